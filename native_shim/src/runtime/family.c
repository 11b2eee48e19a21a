/* Kernels that kernels enqueue, and when these are complete. */
#include "runtime/family.h"

#include <stdlib.h>

#include "runtime/ready.h"
#include "runtime/worker.h"

void cld_family_begin(struct cld_event *command) {
    atomic_store_explicit(&command->node.family, NULL, memory_order_relaxed);
    atomic_store_explicit(&command->node.children, NULL, memory_order_relaxed);
}

/* Whether nobody can see when a command is complete but its family. */
static bool is_unseen(const struct cld_event *command) {
    return command->is_child && !command->has_event;
}

static struct cld_family *family_of(struct cld_event *parent) {
    if (is_unseen(parent))
        return parent->family;
    struct cld_family *family = atomic_load_explicit(&parent->node.family, memory_order_acquire);
    if (family)
        return family;
    struct cld_family *made = malloc(sizeof *made);
    if (!made)
        return NULL;
    made->owner = parent;
    atomic_init(&made->open, 1);
    atomic_init(&made->status, CL_COMPLETE);
    if (atomic_compare_exchange_strong(&parent->node.family, &family, made))
        return made;
    free(made); /* another thread of the parent's was faster */
    return family;
}

bool cld_family_join(struct cld_event *parent, struct cld_event *child) {
    struct cld_family *family = family_of(parent);
    if (!family)
        return false;
    atomic_fetch_add_explicit(&family->open, 1, memory_order_relaxed);
    child->family = family;
    atomic_store_explicit(&child->captured, NULL, memory_order_relaxed);
    child->is_child = true;
    return true;
}

void cld_family_await(struct cld_event *parent, struct cld_event *child) {
    struct cld_event *head = atomic_load_explicit(&parent->node.children, memory_order_relaxed);
    do
        child->next = head;
    while (!atomic_compare_exchange_weak_explicit(&parent->node.children, &head, child, memory_order_release,
                                                  memory_order_relaxed));
}

/* In the order in which they were enqueued, as far as one thread did so. */
static void submit_children(struct cld_event *parent, struct cld_ready *ready) {
    struct cld_event *rest = atomic_exchange_explicit(&parent->node.children, NULL, memory_order_acquire);
    struct cld_event *first = NULL;
    while (rest) {
        struct cld_event *next = rest->next;
        rest->next = first;
        first = rest;
        rest = next;
    }
    while (first) {
        struct cld_event *next = first->next;
        cld_command_submit(first, ready);
        first = next;
    }
}

static void fail(struct cld_family *family, int32_t status) {
    int32_t none = CL_COMPLETE;
    atomic_compare_exchange_strong(&family->status, &none, status);
}

static bool is_last(struct cld_family *family) {
    return atomic_fetch_sub_explicit(&family->open, 1, memory_order_acq_rel) == 1;
}

bool cld_family_release(struct cld_event *parent, int32_t *status, struct cld_ready *ready) {
    struct cld_family *family = atomic_load_explicit(&parent->node.family, memory_order_acquire);
    if (cld_is_timed(parent))
        parent->times[CLD_TIME_END] = cld_now();
    if (family && *status < 0)
        fail(family, *status);
    struct cld_self *self = cld_self();
    struct cld_ready *children = &self->children, elsewhere = {0};
    self->kept_children = 0;
    submit_children(parent, children);
    while (children->first) { /* also what the last part of the kernel has made ready */
        struct cld_event *child = cld_ready_take(children);
        cld_ready_add(cld_pool_has_both(parent->queue, child->queue) ? ready : &elsewhere, child);
    }
    if (elsewhere.first)
        cld_pool_push(&elsewhere);
    if (!family)
        return true;
    if (!is_last(family))
        return false;
    *status = atomic_load(&family->status);
    free(family);
    return true;
}

struct cld_event *cld_family_leave(struct cld_family *family, int32_t status, int32_t *owners) {
    /* What its wait list had is no failure of its own. */
    if (status < 0 && status != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
        fail(family, status);
    if (!is_last(family))
        return NULL;
    struct cld_event *owner = family->owner;
    *owners = atomic_load(&family->status);
    free(family);
    return owner;
}

static uint64_t span(uint64_t begin, uint64_t end) {
    return end > begin ? end - begin : 1;
}

static void write_times(const struct cld_event *child, uint64_t *values) {
    uint64_t start = child->times[CLD_TIME_START], end = child->times[CLD_TIME_END];
    values[0] = span(start, end);
    values[1] = child->enqueues ? span(start, child->node.complete_time) : values[0];
}

/* Stands for the place of the times of a child that is complete. */
static uint64_t told;

void cld_family_capture_times(struct cld_event *child, uint64_t *values) {
    uint64_t *none = NULL;
    if (!atomic_compare_exchange_strong(&child->captured, &none, values) && none == &told)
        write_times(child, values);
}

void cld_family_tell_times(struct cld_event *child) {
    uint64_t *values = atomic_exchange(&child->captured, &told);
    if (values)
        write_times(child, values);
}
