/* Memory of buffers and of SVM allocations. */
#ifndef CLD_STORAGE_H
#define CLD_STORAGE_H

#include <stddef.h>

/* So many bytes, which nobody has touched: each page comes to the memory node of the thread that first writes
 * to it. Aligned to 128 bytes. NULL: out of memory. */
void *cld_storage(size_t size);
void cld_storage_free(void *storage, size_t size);

#endif
