/* Allocations of shared virtual memory (API specification, 5.6.1). The device is the host's CPU: every kind
 * of it is the same memory, and any pointer of the host may be given where an SVM pointer may. What
 * clSVMAlloc made is remembered all the same, for what asks whether a pointer lies in it. */
#include "memory/svm.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "memory/allocator.h"
#include "object/lock.h"

enum { ALIGN = 128 }; /* of long16, the largest data type */

struct allocation {
    uint8_t *start;
    size_t size;
};

/* Sorted by address. */
struct cld_svm {
    size_t count, capacity;
    struct allocation list[];
};

/* The number of allocations that start at or below the pointer. */
static size_t find(const struct cld_svm *svm, const void *pointer) {
    size_t low = 0, high = svm ? svm->count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)svm->list[middle].start <= (uintptr_t)pointer)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* With the lock held. */
static bool insert(struct cld_context *context, uint8_t *start, size_t size) {
    struct cld_svm *svm = context->svm;
    if (!svm || svm->count == svm->capacity) {
        size_t capacity = svm ? 2 * svm->capacity : 16;
        struct cld_svm *grown = realloc(svm, sizeof *svm + capacity * sizeof *svm->list);
        if (!grown)
            return false;
        if (!svm)
            grown->count = 0;
        grown->capacity = capacity;
        context->svm = svm = grown;
    }
    size_t at = find(svm, start);
    memmove(svm->list + at + 1, svm->list + at, (svm->count - at) * sizeof *svm->list);
    svm->list[at] = (struct allocation){start, size};
    svm->count++;
    return true;
}

bool cld_svm_allocation(struct cld_context *context, const void *pointer, const uint8_t **start,
                        size_t *size) {
    bool is_inside = false;
    cld_lock(context);
    size_t at = find(context->svm, pointer);
    if (at) {
        const struct allocation *allocation = &context->svm->list[at - 1];
        is_inside = (uintptr_t)pointer - (uintptr_t)allocation->start < allocation->size;
        *start = allocation->start;
        *size = allocation->size;
    }
    cld_unlock(context);
    return is_inside;
}

size_t cld_svm_room(struct cld_context *context, const void *pointer) {
    const uint8_t *start;
    size_t size;
    if (!cld_svm_allocation(context, pointer, &start, &size))
        return 0;
    return size - (size_t)((uintptr_t)pointer - (uintptr_t)start);
}

void cld_svm_free_all(struct cld_context *context) {
    struct cld_svm *svm = context->svm;
    for (size_t i = 0; svm && i < svm->count; i++)
        cld_allocate_free(svm->list[i].start, svm->list[i].size);
    free(svm);
    context->svm = NULL;
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
    cld_log(1, "clSVMAlloc: %s", why);
    return NULL;
}

CL_API_ENTRY void *CL_API_CALL clSVMAlloc(cl_context handle, cl_svm_mem_flags flags, size_t size,
                                          cl_uint alignment) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    if (!context)
        return fail("not a context");
    if (!valid_flags(flags))
        return fail("flags are not valid");
    for (uint32_t i = 0; i < context->device_count; i++)
        if (context->devices[i]->max_alloc_size && size > context->devices[i]->max_alloc_size)
            return fail("more than CL_DEVICE_MAX_MEM_ALLOC_SIZE");
    if (!size)
        return fail("size is 0");
    /* "alignment is not a power of two or the implementation cannot support the specified alignment": "It
     * must be a power of two up to the largest data type supported". */
    if ((alignment & (alignment - 1)) || alignment > ALIGN)
        return fail("alignment is not a power of two up to 128");
    void *start = cld_allocate(size);
    if (!start)
        return fail("no memory");
    cld_lock(context);
    bool known = insert(context, start, size);
    cld_unlock(context);
    if (!known) {
        cld_allocate_free(start, size);
        return fail("no memory");
    }
    return start;
}

CL_API_ENTRY void CL_API_CALL clSVMFree(cl_context handle, void *svm_pointer) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    if (!context || !svm_pointer)
        return;
    cld_lock(context);
    size_t at = find(context->svm, svm_pointer);
    bool found = at && context->svm->list[at - 1].start == svm_pointer;
    size_t size = 0;
    if (found) {
        struct allocation *list = context->svm->list;
        size = list[at - 1].size;
        memmove(list + at - 1, list + at, (context->svm->count - at) * sizeof *list);
        context->svm->count--;
    }
    cld_unlock(context);
    if (found)
        cld_allocate_free(svm_pointer, size);
    else
        cld_log(1, "clSVMFree: %p is not what clSVMAlloc returned for this context", svm_pointer);
}
