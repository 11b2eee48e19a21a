/* The types of shared virtual memory that cl_khr_unified_svm tells apart, by their index. */
#ifndef CLD_SVM_TYPES_H
#define CLD_SVM_TYPES_H

#include "object/svm_khr.h"

enum cld_svm_type {
    CLD_SVM_SHARED, /* what clSVMAlloc makes, too */
    CLD_SVM_OF_DEVICE,
    CLD_SVM_OF_HOST,
    CLD_SVM_SYSTEM, /* any memory of the process */
    CLD_SVM_TYPES
};

/* The capabilities of each, on the platform and on every device. */
extern const cld_svm_capabilities cld_svm_types[CLD_SVM_TYPES];

#endif
