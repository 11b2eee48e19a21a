#define _GNU_SOURCE /* tdestroy */
#include "memory/allocations.h"

#include <search.h>
#include <stdlib.h>

#include "check/check.h"
#include "memory/allocator.h"
#include "object/lock.h"

/* Order of ranges that do not overlap. One that overlaps another counts as equal to it, so that a range of
 * one byte finds what it lies in. */
static int compare(const void *a, const void *b) {
    const struct cld_allocation *x = a, *y = b;
    if ((uintptr_t)x->start + x->size <= (uintptr_t)y->start)
        return -1;
    return (uintptr_t)y->start + y->size <= (uintptr_t)x->start;
}

/* Bytes behind an allocation that no other one has. */
static size_t gap(void) {
    return cld_kcheck_is_on ? 2 * CLD_CHECK_GAP : 0;
}

static void destroy(void *node) {
    struct cld_allocation *allocation = node;
    if (cld_kcheck_is_on)
        cld_kcheck_freed(allocation->start);
    cld_allocate_free((void *)(uintptr_t)allocation->start, allocation->size + gap());
    if (allocation->device)
        cld_object_drop(allocation->device);
    free(allocation);
}

/* With the context's lock held. */
static struct cld_allocation *find(struct cld_context *context, const void *pointer) {
    struct cld_allocation key = {.start = pointer, .size = 1};
    struct cld_allocation *const *node = tfind(&key, &context->allocations, compare);
    return node ? *node : NULL;
}

void *cld_allocation_new(struct cld_context *context, const struct cld_allocation *wanted) {
    struct cld_allocation *allocation = malloc(sizeof *allocation);
    void *start = allocation ? cld_allocate(wanted->size + gap()) : NULL;
    if (!start) {
        free(allocation);
        return NULL;
    }
    *allocation = *wanted;
    allocation->start = start;
    if (allocation->device)
        cld_object_hold(allocation->device);
    cld_lock(context);
    bool is_known = tsearch(allocation, &context->allocations, compare) != NULL;
    cld_unlock(context);
    if (!is_known) {
        destroy(allocation);
        return NULL;
    }
    if (cld_kcheck_is_on) /* the host may write to it at any time */
        cld_kcheck_allocated(start, wanted->size,
                             wanted->is_svm ? "made by clSVMAlloc" : "unified shared memory", true);
    return start;
}

bool cld_allocation_find(struct cld_context *context, const void *pointer, struct cld_allocation *found) {
    cld_lock(context);
    const struct cld_allocation *allocation = find(context, pointer);
    if (allocation)
        *found = *allocation;
    cld_unlock(context);
    return allocation != NULL;
}

bool cld_allocation_free(struct cld_context *context, const void *start, bool is_svm) {
    cld_lock(context);
    struct cld_allocation *allocation = find(context, start);
    if (allocation && (allocation->start != start || allocation->is_svm != is_svm))
        allocation = NULL;
    if (allocation)
        tdelete(allocation, &context->allocations, compare);
    cld_unlock(context);
    if (allocation)
        destroy(allocation);
    return allocation != NULL;
}

void cld_allocations_free_all(struct cld_context *context) {
    tdestroy(context->allocations, destroy);
    context->allocations = NULL;
}
