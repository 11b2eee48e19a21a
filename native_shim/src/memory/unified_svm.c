/* Allocations of cl_khr_unified_svm 0.9.0: of the registry's declarations, and of the Khronos CTS where these
 * leave something open. All types are the same memory, which host and devices may use at any time, and which
 * needs no device: they differ by who is said to own it. What a program says that it will not do with its
 * memory is remembered and has no effect. */
#include <string.h>

#include "memory/allocations.h"
#include "memory/svm_types.h"
#include "object/call.h"
#include "object/info.h"

enum {
    OF_ALL = CLD_SVM_SINGLE_ADDRESS_SPACE | CLD_SVM_DEVICE_UNASSOCIATED | CLD_SVM_CONTEXT_ACCESS |
             CLD_SVM_HOST_READ | CLD_SVM_HOST_WRITE | CLD_SVM_HOST_MAP | CLD_SVM_DEVICE_READ |
             CLD_SVM_DEVICE_WRITE | CLD_SVM_DEVICE_ATOMIC_ACCESS | CLD_SVM_CONCURRENT_ACCESS |
             CLD_SVM_CONCURRENT_ATOMIC_ACCESS | CLD_SVM_INDIRECT_ACCESS,
    ACCESS_FLAGS = CLD_SVM_ACCESS_HOST_NOREAD | CLD_SVM_ACCESS_HOST_NOWRITE | CLD_SVM_ACCESS_DEVICE_NOREAD |
                   CLD_SVM_ACCESS_DEVICE_NOWRITE,
};

const cld_svm_capabilities cld_svm_types[CLD_SVM_TYPES] = {
    [CLD_SVM_SHARED] = OF_ALL,
    [CLD_SVM_OF_DEVICE] = OF_ALL | CLD_SVM_DEVICE_OWNED,
    [CLD_SVM_OF_HOST] = OF_ALL | CLD_SVM_HOST_OWNED,
    [CLD_SVM_SYSTEM] = OF_ALL | CLD_SVM_SYSTEM_ALLOCATED,
};

static const enum cld_allocation_kind kinds[CLD_SVM_TYPES] = {
    [CLD_SVM_SHARED] = CLD_ALLOCATED_SHARED,
    [CLD_SVM_OF_DEVICE] = CLD_ALLOCATED_DEVICE,
    [CLD_SVM_OF_HOST] = CLD_ALLOCATED_HOST,
    [CLD_SVM_SYSTEM] = CLD_ALLOCATED_SYSTEM,
};

static enum cld_svm_type type_of(enum cld_allocation_kind kind) {
    for (int type = CLD_SVM_SHARED; type < CLD_SVM_TYPES; type++)
        if (kinds[type] == kind)
            return (enum cld_svm_type)type;
    return CLD_SVM_SHARED;
}

static cl_int read_property(const struct cld_context *context, const cld_svm_alloc_property *pair,
                            struct cld_allocation *wanted) {
    switch (pair[0]) {
    case CLD_SVM_ALLOC_ASSOCIATED_DEVICE_HANDLE:
        wanted->device = cld_object_check((void *)(uintptr_t)pair[1], CLD_DEVICE);
        CLD_REQUIRE(wanted->device && cld_context_has_device(context, wanted->device), CL_INVALID_PROPERTY,
                    "the associated device is none of the context");
        return CL_SUCCESS;
    case CLD_SVM_ALLOC_ACCESS_FLAGS:
        CLD_REQUIRE(!(pair[1] & ~(cld_svm_alloc_property)ACCESS_FLAGS), CL_INVALID_PROPERTY,
                    "CL_SVM_ALLOC_ACCESS_FLAGS_KHR is %#lx, with an unknown bit", (unsigned long)pair[1]);
        wanted->access = pair[1];
        return CL_SUCCESS;
    case CLD_SVM_ALLOC_ALIGNMENT:
        CLD_REQUIRE(!(pair[1] & (pair[1] - 1)) && pair[1] <= CLD_ALLOCATION_ALIGN, CL_INVALID_PROPERTY,
                    "CL_SVM_ALLOC_ALIGNMENT_KHR is %lu, no power of two up to %u", (unsigned long)pair[1],
                    (unsigned)CLD_ALLOCATION_ALIGN);
        return CL_SUCCESS;
    default:
        CLD_REQUIRE(false, CL_INVALID_PROPERTY, "properties has %#lx, which is none of shared virtual memory",
                    (unsigned long)pair[0]);
    }
}

static cl_int read_properties(const struct cld_context *context, const cld_svm_alloc_property *properties,
                              struct cld_allocation *wanted) {
    if (!properties)
        return CL_SUCCESS;
    uint32_t length = 0;
    for (; properties[length]; length += 2) {
        for (uint32_t i = 0; i < length; i += 2)
            CLD_REQUIRE(properties[i] != properties[length], CL_INVALID_PROPERTY,
                        "a property is there twice");
        CLD_TRY(read_property(context, properties + length, wanted));
        memcpy(wanted->properties + length, properties + length, 2 * sizeof *properties);
    }
    wanted->property_words = length + 1; /* `wanted` came with zeros */
    return CL_SUCCESS;
}

static cl_int allocate(cl_context handle, const cld_svm_alloc_property *properties, cl_uint type, size_t size,
                       void **start) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    CLD_REQUIRE(context, CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE_LIVE(context);
    CLD_REQUIRE(type < CLD_SVM_TYPES, CL_INVALID_VALUE, "svm_type_index is %u, less than %u", type,
                CLD_SVM_TYPES);
    struct cld_allocation wanted = {.size = size, .kind = kinds[type], .is_svm = true};
    CLD_TRY(read_properties(context, properties, &wanted));
    if (!size)
        return CL_SUCCESS; /* no memory, and no pointer to it */
    *start = cld_allocation_new(context, &wanted);
    CLD_REQUIRE(*start, CL_OUT_OF_RESOURCES, "no memory");
    return CL_SUCCESS;
}

extern CL_API_ENTRY void *CL_API_CALL clSVMAllocWithPropertiesKHR(cl_context context,
                                                                  const cld_svm_alloc_property *properties,
                                                                  cl_uint svm_type_index, size_t size,
                                                                  cl_int *errcode_ret);

CL_API_ENTRY void *CL_API_CALL clSVMAllocWithPropertiesKHR(cl_context context,
                                                           const cld_svm_alloc_property *properties,
                                                           cl_uint svm_type_index, size_t size,
                                                           cl_int *errcode_ret) {
    void *start = NULL;
    cl_int status = allocate(context, properties, svm_type_index, size, &start);
    if (errcode_ret)
        *errcode_ret = status;
    return start;
}

extern CL_API_ENTRY cl_int CL_API_CALL clSVMFreeWithPropertiesKHR(cl_context context,
                                                                  const cld_svm_free_property *properties,
                                                                  cld_svm_free_flags flags, void *ptr);

/* There are no properties of freeing yet, and no flags. */
CL_API_ENTRY cl_int CL_API_CALL clSVMFreeWithPropertiesKHR(cl_context handle,
                                                           const cld_svm_free_property *properties,
                                                           cld_svm_free_flags flags, void *ptr) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    CLD_REQUIRE(context, CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE(!properties || !properties[0], CL_INVALID_PROPERTY,
                "properties is not empty, and freeing has none");
    CLD_REQUIRE(!flags, CL_INVALID_VALUE, "flags is %#lx, 0: freeing has none", (unsigned long)flags);
    CLD_REQUIRE(!ptr || cld_allocation_free(context, ptr, true), CL_INVALID_VALUE,
                "ptr is %p, not an allocation of shared virtual memory", ptr);
    return CL_SUCCESS;
}

extern CL_API_ENTRY cl_int CL_API_CALL clGetSVMPointerInfoKHR(cl_context context, cl_device_id device,
                                                              const void *ptr,
                                                              cld_svm_pointer_info param_name,
                                                              size_t param_value_size, void *param_value,
                                                              size_t *param_value_size_ret);

CL_API_ENTRY cl_int CL_API_CALL clGetSVMPointerInfoKHR(cl_context handle, cl_device_id device_handle,
                                                       const void *ptr, cld_svm_pointer_info param_name,
                                                       size_t param_value_size, void *param_value,
                                                       size_t *param_value_size_ret) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    CLD_REQUIRE(context, CL_INVALID_CONTEXT, "not a context");
    const struct cld_device *device = device_handle ? cld_object_check(device_handle, CLD_DEVICE) : NULL;
    CLD_REQUIRE(!device_handle || (device && cld_context_has_device(context, device)), CL_INVALID_DEVICE,
                "not a device of the context");
    struct cld_allocation found;
    bool is_known = cld_allocation_find(context, ptr, &found);
    if (!is_known)
        found = (struct cld_allocation){0};
    cl_uint type = is_known ? (cl_uint)type_of(found.kind) : CL_UINT_MAX;
    cld_svm_capabilities capabilities = is_known ? cld_svm_types[type] : 0;
    switch (param_name) {
    case CLD_SVM_INFO_TYPE_INDEX:
        return cld_info(&type, sizeof type, param_value_size, param_value, param_value_size_ret);
    case CLD_SVM_INFO_CAPABILITIES: /* every device has those of the platform */
        return cld_info(&capabilities, sizeof capabilities, param_value_size, param_value,
                        param_value_size_ret);
    case CLD_SVM_INFO_PROPERTIES:
        return cld_info(found.properties, found.property_words * sizeof *found.properties, param_value_size,
                        param_value, param_value_size_ret);
    case CLD_SVM_INFO_ACCESS_FLAGS:
        return cld_info(&found.access, sizeof found.access, param_value_size, param_value,
                        param_value_size_ret);
    case CLD_SVM_INFO_BASE_PTR:
        return cld_info(&found.start, sizeof found.start, param_value_size, param_value,
                        param_value_size_ret);
    case CLD_SVM_INFO_SIZE:
        return cld_info(&found.size, sizeof found.size, param_value_size, param_value, param_value_size_ret);
    case CLD_SVM_INFO_ASSOCIATED_DEVICE_HANDLE: /* a cl_device_id is the address of its struct cld_device */
        return cld_info(&found.device, sizeof found.device, param_value_size, param_value,
                        param_value_size_ret);
    default:
        return cld_lack(__func__, CL_INVALID_VALUE, "param_name is not a query of shared virtual memory");
    }
}

extern CL_API_ENTRY cl_int CL_API_CALL clGetSVMSuggestedTypeIndexKHR(
    cl_context context, cld_svm_capabilities required_capabilities, cld_svm_capabilities desired_capabilities,
    const cld_svm_alloc_property *properties, size_t size, cl_uint *suggested_svm_type_index);

/* Of the types that have all that is required, the one that has most of what is desired; the first of
 * several. CL_UINT_MAX if there is none. */
CL_API_ENTRY cl_int CL_API_CALL clGetSVMSuggestedTypeIndexKHR(
    cl_context handle, cld_svm_capabilities required_capabilities, cld_svm_capabilities desired_capabilities,
    const cld_svm_alloc_property *properties, size_t size, cl_uint *suggested_svm_type_index) {
    (void)size; /* no type has a limit of its own */
    const struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    CLD_REQUIRE(context, CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE(suggested_svm_type_index, CL_INVALID_VALUE, "suggested_svm_type_index is NULL");
    struct cld_allocation wanted = {0};
    CLD_TRY(read_properties(context, properties, &wanted));
    cl_uint best = CL_UINT_MAX;
    int most = -1;
    for (cl_uint type = 0; type < CLD_SVM_TYPES; type++) {
        int fitting = __builtin_popcountll(cld_svm_types[type] & desired_capabilities);
        if (!(required_capabilities & ~cld_svm_types[type]) && fitting > most) {
            best = type;
            most = fitting;
        }
    }
    *suggested_svm_type_index = best;
    return CL_SUCCESS;
}
