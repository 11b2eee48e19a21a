/* Shared virtual memory: what other files ask of svm.c. */
#ifndef CLD_SVM_H
#define CLD_SVM_H

#include "object/objects.h"

/* Bytes from the pointer to the end of the context's clSVMAlloc allocation that it lies in; 0 if in none. */
size_t cld_svm_room(struct cld_context *context, const void *pointer);

#endif
