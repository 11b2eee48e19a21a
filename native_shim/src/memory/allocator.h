/* Memory of buffers and of SVM allocations. */
#ifndef CLD_ALLOCATOR_H
#define CLD_ALLOCATOR_H

#include <stddef.h>

/* So many bytes. Aligned to 128 bytes. NULL: out of memory. Large storage is such that nobody has touched, so
 * that each page comes to the memory node of the thread that first writes to it. */
void *cld_allocate(size_t size);

/* Some of what is freed is kept for the next that is about as large (allocator.c). */
void cld_allocate_free(void *storage, size_t size);

#endif
