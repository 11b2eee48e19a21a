/* Allocations of shared virtual memory (API specification, 5.6.1). The device is the host's CPU: every kind
 * of it is the same memory, and any pointer of the host may be given where an SVM pointer may. What
 * clSVMAlloc made is remembered all the same, for what asks whether a pointer lies in it. */
#include "memory/svm.h"

#include "base/log.h"
#include "memory/allocations.h"

size_t cld_svm_room(struct cld_context *context, const void *pointer) {
    struct cld_allocation found;
    if (!cld_allocation_find(context, pointer, &found) || !found.is_svm)
        return 0;
    return found.size - (size_t)((uintptr_t)pointer - (uintptr_t)found.start);
}

static bool valid_flags(cl_svm_mem_flags flags) {
    cl_svm_mem_flags access = flags & (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY);
    if (flags & ~(access | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS))
        return false;
    /* "flags does not contain CL_MEM_SVM_FINE_GRAIN_BUFFER but does contain CL_MEM_SVM_ATOMICS." */
    if ((flags & CL_MEM_SVM_ATOMICS) && !(flags & CL_MEM_SVM_FINE_GRAIN_BUFFER))
        return false;
    return !(access & (access - 1));
}

static void *fail(const char *why) {
    cld_refuse("clSVMAlloc", CL_SUCCESS, "%s", why);
    return NULL;
}

CL_API_ENTRY void *CL_API_CALL clSVMAlloc(cl_context handle, cl_svm_mem_flags flags, size_t size,
                                          cl_uint alignment) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    if (!context)
        return fail("not a context");
    if (context->is_elsewhere)
        return fail("no device of the context has SVM");
    if (atomic_load_explicit(&context->terminated, memory_order_relaxed))
        return fail("the context was terminated");
    if (!valid_flags(flags))
        return fail("flags are not valid");
    for (uint32_t i = 0; i < context->device_count; i++)
        if (context->devices[i]->max_alloc_size && size > context->devices[i]->max_alloc_size)
            return fail("more than CL_DEVICE_MAX_MEM_ALLOC_SIZE");
    if (!size)
        return fail("size is 0");
    /* "alignment is not a power of two or the implementation cannot support the specified alignment": "It
     * must be a power of two up to the largest data type supported". */
    if ((alignment & (alignment - 1)) || alignment > CLD_ALLOCATION_ALIGN)
        return fail("alignment is not a power of two up to 128");
    void *start = cld_allocation_new(context, &(struct cld_allocation){.size = size, .is_svm = true});
    return start ? start : fail("no memory");
}

CL_API_ENTRY void CL_API_CALL clSVMFree(cl_context handle, void *svm_pointer) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    if (context && svm_pointer && !cld_allocation_free(context, svm_pointer, true))
        cld_refuse(__func__, CL_SUCCESS, "svm_pointer is %p, not what clSVMAlloc returned for the context",
                   svm_pointer);
}
