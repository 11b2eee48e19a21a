/* Allocations of unified shared memory (cl_intel_unified_shared_memory 1.2). Host, device and shared ones are
 * the same memory, which host and devices may use at any time: all that the kinds differ by is what queries
 * answer. Hints (placement, write combining) are remembered and have no effect. */
#include "api/common.h"
#include "memory/allocations.h"
#include "object/call.h"
#include "object/info.h"
#include "runtime/command.h"

enum {
    PLACEMENTS = CL_MEM_ALLOC_INITIAL_PLACEMENT_DEVICE_INTEL | CL_MEM_ALLOC_INITIAL_PLACEMENT_HOST_INTEL,
    ALL_FLAGS = CL_MEM_ALLOC_WRITE_COMBINED_INTEL | PLACEMENTS,
};

static cl_int read_properties(const cl_mem_properties_intel *properties, enum cld_allocation_kind kind,
                              cl_mem_alloc_flags_intel *flags) {
    bool is_given = false;
    *flags = 0;
    for (; properties && properties[0]; properties += 2) {
        CLD_REQUIRE(properties[0] == CL_MEM_ALLOC_FLAGS_INTEL, CL_INVALID_PROPERTY,
                    "properties has %#lx, which is none of unified shared memory",
                    (unsigned long)properties[0]);
        CLD_REQUIRE(!is_given, CL_INVALID_PROPERTY, "CL_MEM_ALLOC_FLAGS_INTEL is there twice");
        is_given = true;
        *flags = properties[1];
        CLD_REQUIRE(!(*flags & ~(cl_mem_alloc_flags_intel)ALL_FLAGS), CL_INVALID_PROPERTY,
                    "CL_MEM_ALLOC_FLAGS_INTEL is %#lx, with an unknown bit", (unsigned long)*flags);
        CLD_REQUIRE(kind == CLD_ALLOCATED_SHARED || !(*flags & PLACEMENTS), CL_INVALID_PROPERTY,
                    "CL_MEM_ALLOC_FLAGS_INTEL is %#lx: an initial placement is for shared allocations",
                    (unsigned long)*flags);
        CLD_REQUIRE((*flags & PLACEMENTS) != PLACEMENTS, CL_INVALID_PROPERTY,
                    "CL_MEM_ALLOC_FLAGS_INTEL is %#lx: initial placements exclude each other",
                    (unsigned long)*flags);
    }
    return CL_SUCCESS;
}

/* The devices agree on all of their limits that count here. */
static cl_int check_size(const struct cld_context *context, size_t size, cl_uint alignment) {
    CLD_REQUIRE(!(alignment & (alignment - 1)) && alignment <= CLD_ALLOCATION_ALIGN, CL_INVALID_VALUE,
                "alignment is %u, no power of two up to %u", (unsigned)alignment,
                (unsigned)CLD_ALLOCATION_ALIGN);
    CLD_REQUIRE(size && size <= context->devices[0]->max_alloc_size, CL_INVALID_BUFFER_SIZE,
                "size is %zu, 1 to %zu (CL_DEVICE_MAX_MEM_ALLOC_SIZE)", size,
                (size_t)context->devices[0]->max_alloc_size);
    return CL_SUCCESS;
}

static cl_int allocate(cl_context handle, cl_device_id device_handle, enum cld_allocation_kind kind,
                       const cl_mem_properties_intel *properties, size_t size, cl_uint alignment,
                       void **start) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    CLD_REQUIRE(context, CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE_LIVE(context);
    CLD_REQUIRE(!context->is_elsewhere, CL_INVALID_OPERATION, "no device of the context has such memory");
    struct cld_allocation wanted = {.size = size, .kind = kind};
    if (device_handle || kind == CLD_ALLOCATED_DEVICE) {
        wanted.device = cld_object_check(device_handle, CLD_DEVICE);
        CLD_REQUIRE(wanted.device && cld_context_has_device(context, wanted.device), CL_INVALID_DEVICE,
                    "not a device of the context");
    }
    CLD_TRY(read_properties(properties, kind, &wanted.flags));
    CLD_TRY(check_size(context, size, alignment));
    *start = cld_allocation_new(context, &wanted);
    CLD_REQUIRE(*start, CL_OUT_OF_HOST_MEMORY, "no memory");
    return CL_SUCCESS;
}

static void *allocate_or_null(cl_context context, cl_device_id device, enum cld_allocation_kind kind,
                              const cl_mem_properties_intel *properties, size_t size, cl_uint alignment,
                              cl_int *errcode_ret) {
    void *start = NULL;
    cl_int status = allocate(context, device, kind, properties, size, alignment, &start);
    if (errcode_ret)
        *errcode_ret = status;
    return start;
}

CL_API_ENTRY void *CL_API_CALL clHostMemAllocINTEL(cl_context context,
                                                   const cl_mem_properties_intel *properties, size_t size,
                                                   cl_uint alignment, cl_int *errcode_ret) {
    return allocate_or_null(context, NULL, CLD_ALLOCATED_HOST, properties, size, alignment, errcode_ret);
}

CL_API_ENTRY void *CL_API_CALL clDeviceMemAllocINTEL(cl_context context, cl_device_id device,
                                                     const cl_mem_properties_intel *properties, size_t size,
                                                     cl_uint alignment, cl_int *errcode_ret) {
    return allocate_or_null(context, device, CLD_ALLOCATED_DEVICE, properties, size, alignment, errcode_ret);
}

CL_API_ENTRY void *CL_API_CALL clSharedMemAllocINTEL(cl_context context, cl_device_id device,
                                                     const cl_mem_properties_intel *properties, size_t size,
                                                     cl_uint alignment, cl_int *errcode_ret) {
    return allocate_or_null(context, device, CLD_ALLOCATED_SHARED, properties, size, alignment, errcode_ret);
}

static cl_int free_allocation(cl_context handle, const void *pointer, bool waits) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    CLD_REQUIRE(context, CL_INVALID_CONTEXT, "not a context");
    if (!pointer)
        return CL_SUCCESS;
    struct cld_allocation found;
    bool is_known = cld_allocation_find(context, pointer, &found) && found.start == pointer && !found.is_svm;
    CLD_REQUIRE(is_known, CL_INVALID_VALUE, "ptr is %p, not an allocation of unified shared memory", pointer);
    /* Any command may use it: by an argument, or by an address that it finds in memory. */
    if (waits)
        CLD_TRY(cld_context_finish(context));
    CLD_REQUIRE(cld_allocation_free(context, pointer, false), CL_INVALID_VALUE,
                "ptr is %p, which another thread has freed", pointer);
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clMemFreeINTEL(cl_context context, void *ptr) {
    return free_allocation(context, ptr, false);
}

CL_API_ENTRY cl_int CL_API_CALL clMemBlockingFreeINTEL(cl_context context, void *ptr) {
    return free_allocation(context, ptr, true);
}

static cl_unified_shared_memory_type_intel type_of(enum cld_allocation_kind kind) {
    switch (kind) {
    case CLD_ALLOCATED_HOST:
        return CL_MEM_TYPE_HOST_INTEL;
    case CLD_ALLOCATED_DEVICE:
        return CL_MEM_TYPE_DEVICE_INTEL;
    default:
        return CL_MEM_TYPE_SHARED_INTEL;
    }
}

CL_API_ENTRY cl_int CL_API_CALL clGetMemAllocInfoINTEL(cl_context handle, const void *ptr,
                                                       cl_mem_info_intel param_name, size_t param_value_size,
                                                       void *param_value, size_t *param_value_size_ret) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    CLD_REQUIRE(context, CL_INVALID_CONTEXT, "not a context");
    struct cld_allocation found;
    bool is_known = cld_allocation_find(context, ptr, &found) && !found.is_svm;
    if (!is_known)
        found = (struct cld_allocation){0};
    cl_unified_shared_memory_type_intel type = is_known ? type_of(found.kind) : CL_MEM_TYPE_UNKNOWN_INTEL;
    const void *answer;
    size_t size;
    switch (param_name) {
    case CL_MEM_ALLOC_TYPE_INTEL:
        answer = &type;
        size = sizeof type;
        break;
    case CL_MEM_ALLOC_BASE_PTR_INTEL:
        answer = &found.start;
        size = sizeof found.start;
        break;
    case CL_MEM_ALLOC_SIZE_INTEL:
        answer = &found.size;
        size = sizeof found.size;
        break;
    case CL_MEM_ALLOC_DEVICE_INTEL:
        answer = &found.device; /* a cl_device_id is the address of its struct cld_device */
        size = sizeof found.device;
        break;
    case CL_MEM_ALLOC_FLAGS_INTEL:
        answer = &found.flags;
        size = sizeof found.flags;
        break;
    default:
        return cld_lack(__func__, CL_INVALID_VALUE, "param_name is not a query of unified shared memory");
    }
    return cld_info(answer, size, param_value_size, param_value, param_value_size_ret);
}
