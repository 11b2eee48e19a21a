/* Shared virtual memory: what other files ask of svm.c. */
#ifndef CLD_SVM_H
#define CLD_SVM_H

#include "object/objects.h"

/* Bytes from the pointer to the end of the context's clSVMAlloc allocation that it lies in; 0 if in none. */
size_t cld_svm_room(struct cld_context *context, const void *pointer);

/* The context's clSVMAlloc allocation that a pointer lies in; false if in none. */
bool cld_svm_allocation(struct cld_context *context, const void *pointer, const uint8_t **start,
                        size_t *size);

/* The context's destructor calls it: frees what the application has not. */
void cld_svm_free_all(struct cld_context *context);

#endif
