/* cl_khr_unified_svm 0.9.0: what headers of 2023 lack. */
#ifndef CLD_SVM_KHR_H
#define CLD_SVM_KHR_H

#include <CL/cl.h>

typedef cl_bitfield cld_svm_capabilities;     /* cl_svm_capabilities_khr */
typedef cl_properties cld_svm_alloc_property; /* cl_svm_alloc_properties_khr */
typedef cl_properties cld_svm_free_property;  /* cl_svm_free_properties_khr */
typedef cl_bitfield cld_svm_access_flags;     /* cl_svm_alloc_access_flags_khr */
typedef cl_bitfield cld_svm_free_flags;       /* cl_svm_free_flags_khr */
typedef cl_uint cld_svm_pointer_info;         /* cl_svm_pointer_info_khr */

enum {
    CLD_PLATFORM_SVM_TYPE_CAPABILITIES = 0x0909,
    CLD_DEVICE_SVM_TYPE_CAPABILITIES = 0x1077,
    CLD_KERNEL_EXEC_INFO_SVM_INDIRECT_ACCESS = 0x11BB,
};

enum cld_svm_capability {
    CLD_SVM_SINGLE_ADDRESS_SPACE = 1 << 0,
    CLD_SVM_SYSTEM_ALLOCATED = 1 << 1,
    CLD_SVM_DEVICE_OWNED = 1 << 2,
    CLD_SVM_DEVICE_UNASSOCIATED = 1 << 3,
    CLD_SVM_CONTEXT_ACCESS = 1 << 4,
    CLD_SVM_HOST_OWNED = 1 << 5,
    CLD_SVM_HOST_READ = 1 << 6,
    CLD_SVM_HOST_WRITE = 1 << 7,
    CLD_SVM_HOST_MAP = 1 << 8,
    CLD_SVM_DEVICE_READ = 1 << 9,
    CLD_SVM_DEVICE_WRITE = 1 << 10,
    CLD_SVM_DEVICE_ATOMIC_ACCESS = 1 << 11,
    CLD_SVM_CONCURRENT_ACCESS = 1 << 12,
    CLD_SVM_CONCURRENT_ATOMIC_ACCESS = 1 << 13,
    CLD_SVM_INDIRECT_ACCESS = 1 << 14,
};

enum {
    CLD_SVM_ALLOC_ASSOCIATED_DEVICE_HANDLE = 0x2078,
    CLD_SVM_ALLOC_ACCESS_FLAGS = 0x2079,
    CLD_SVM_ALLOC_ALIGNMENT = 0x207A,
};

enum {
    CLD_SVM_ACCESS_HOST_NOREAD = 1 << 0,
    CLD_SVM_ACCESS_HOST_NOWRITE = 1 << 1,
    CLD_SVM_ACCESS_DEVICE_NOREAD = 1 << 8,
    CLD_SVM_ACCESS_DEVICE_NOWRITE = 1 << 9,
};

enum {
    CLD_SVM_INFO_TYPE_INDEX = 0x2088,
    CLD_SVM_INFO_CAPABILITIES = 0x2089,
    CLD_SVM_INFO_PROPERTIES = 0x208A,
    CLD_SVM_INFO_ACCESS_FLAGS = 0x208B,
    CLD_SVM_INFO_BASE_PTR = 0x419B,
    CLD_SVM_INFO_SIZE = 0x419C,
    CLD_SVM_INFO_ASSOCIATED_DEVICE_HANDLE = 0x419D,
};

#endif
