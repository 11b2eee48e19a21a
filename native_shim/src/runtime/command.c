/* The life of commands, from the enqueue to their completion. */
#define _GNU_SOURCE
#include "runtime/command.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_names.h"
#include "base/log.h"
#include "memory/mem.h"
#include "object/call.h"
#include "object/mover.h"
#include "runtime/callback.h"
#include "runtime/family.h"
#include "runtime/worker.h"

/* What nobody has asked for yet is handed over when there is this much of it. Waking a thread costs about as
 * much as a few small commands, so a lone one waits for clFlush or for a thread that waits and executes it.
 */
enum { PENDING_COMMANDS = 64, PENDING_TIME = 20000, BUSY_PENDING_TIME = 1000000 };

struct cld_event *cld_command_new(struct cld_queue *queue, cl_command_type type,
                                  const struct cld_operation *operation, bool with_event) {
    struct cld_event *command = cld_object_new_raw(with_event ? 1 : 0);
    if (!command)
        return NULL;
    cld_object_hold(queue);
    command->context = queue->context;
    command->queue = queue;
    atomic_store_explicit(&command->status, CL_QUEUED, memory_order_relaxed);
    atomic_store_explicit(&command->sleepers, 0, memory_order_relaxed);
    command->type = type;
    atomic_store_explicit(&command->blockers, 1, memory_order_relaxed);
    atomic_store_explicit(&command->error, 0, memory_order_relaxed);
    command->barrier = command->is_node = command->waits = false;
    command->enqueues = command->is_child = command->has_event = false;
    command->elsewhere = CLD_NOT_ELSEWHERE;
    command->special = (uint8_t)(queue->properties & (CLD_PROFILED | CLD_OBSERVED | CLD_SPREAD));
    command->timed = false;
    atomic_store_explicit(&command->dependents, NULL, memory_order_relaxed);
    atomic_store_explicit(&command->callbacks, NULL, memory_order_relaxed);
    command->more_edges = NULL;
    command->operation = operation;
    command->total = command->grain = 1;
    command->estimate = CLD_TIME_UNKNOWN;
    command->share = NULL;
    atomic_init(&command->participants, 0);
    atomic_init(&command->open, false);
    command->more_mems = NULL;
    command->mem_count = 0;
    command->counted_bytes = 0;
    return command;
}

static struct cld_mem **mems_of(struct cld_event *command) {
    return command->more_mems ? command->more_mems : command->mems;
}

bool cld_command_hold_mem(struct cld_event *command, struct cld_mem *mem) {
    uint32_t count = command->mem_count;
    if (count >= CLD_INLINE_MEMS && !(count & (count - 1))) { /* a power of two: full, doubles */
        struct cld_mem **more = realloc(command->more_mems, 2 * count * sizeof(struct cld_mem *));
        if (!more)
            return false;
        if (count == CLD_INLINE_MEMS)
            memcpy(more, command->mems, sizeof command->mems);
        command->more_mems = more;
    }
    cld_object_hold(mem);
    mems_of(command)[count] = mem;
    command->mem_count = count + 1;
    return true;
}

/* What a command holds goes before its status is set: an application that waited for it finds destructor
 * callbacks of what it released called. */
static void let_go(struct cld_event *command, int32_t status) {
    if (command->operation && command->operation->end)
        command->operation->end(command, status);
    struct cld_mem **mems = mems_of(command);
    for (uint32_t i = 0; i < command->mem_count; i++)
        cld_object_drop(mems[i]);
    free(command->more_mems);
    free(command->more_edges);
    command->more_mems = NULL;
    command->more_edges = NULL;
    command->mem_count = 0;
}

void cld_command_discard(struct cld_event *command) {
    let_go(command, CL_OUT_OF_HOST_MEMORY);
    /* No store to holds: who looks at all slots may hold it for a moment. */
    if (atomic_exchange_explicit(&command->obj.refs, 0, memory_order_relaxed))
        atomic_fetch_sub_explicit(&command->obj.holds, 1, memory_order_relaxed);
    cld_object_publish(command, CLD_EVENT);
    cld_object_drop(command);
}

/* Only the first error counts. */
void cld_command_fail(struct cld_event *command, int32_t error) {
    int32_t none = 0;
    atomic_compare_exchange_strong(&command->error, &none, error);
}

static __attribute__((noinline, cold)) bool follows(struct cld_event *command, struct cld_event *event,
                                                    bool errors) {
    return cld_mover()->follows(command, event, errors);
}

/* Makes the command wait for the event. The wait list passes errors on; the order of a queue does not. */
static void depend(struct cld_event *command, struct cld_event *event, struct cld_edge *edge, bool errors) {
    if (__builtin_expect(command->special & CLD_SPREAD, 0) && follows(command, event, errors))
        return;
    atomic_fetch_add_explicit(&command->blockers, 1, memory_order_relaxed);
    edge->dependent = (uintptr_t)command | errors;
    struct cld_edge *head = atomic_load_explicit(&event->dependents, memory_order_acquire);
    while (head != CLD_EDGES_CLOSED) {
        edge->next = head;
        if (atomic_compare_exchange_weak_explicit(&event->dependents, &head, edge, memory_order_release,
                                                  memory_order_acquire))
            return;
    }
    atomic_fetch_sub_explicit(&command->blockers, 1, memory_order_relaxed);
    if (errors && cld_event_status(event) < 0)
        cld_command_fail(command, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
}

static bool out_of_order(const struct cld_queue *queue) {
    return queue->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
}

/* Orders the command after what it has to wait for. With the queue's lock held. */
static bool link_command(struct cld_event *command, cl_uint wait_count, const cl_event *wait_list,
                         unsigned flags) {
    struct cld_queue *queue = command->queue;
    size_t count = (size_t)wait_count + 1;
    bool after_all = out_of_order(queue) && (flags & CLD_AFTER_ALL);
    /* What an unfinished marker waits for need not be waited for again. */
    struct cld_event *end = NULL;
    if (after_all)
        for (struct cld_event *at = queue->unfinished; at != end; at = at->older) {
            count++;
            if (at->covers)
                end = at->older;
        }
    struct cld_edge *edge = command->edges;
    if (count > CLD_INLINE_EDGES && !(edge = command->more_edges = malloc(count * sizeof *edge)))
        return false;
    for (cl_uint i = 0; i < wait_count; i++)
        depend(command, (struct cld_event *)wait_list[i], edge++, true);
    if (!out_of_order(queue)) {
        cld_object_hold(command);
        struct cld_event *last = atomic_exchange_explicit(&queue->last, command, memory_order_acq_rel);
        if (last) {
            depend(command, last, edge, false);
            cld_object_drop(last);
        }
        return true;
    }
    command->covers = after_all;
    if (after_all)
        for (struct cld_event *at = queue->unfinished; at != end; at = at->older)
            depend(command, at, edge++, false);
    else if (queue->barrier)
        depend(command, queue->barrier, edge, false);
    command->newer = NULL;
    command->older = queue->unfinished;
    if (command->older)
        command->older->newer = command;
    queue->unfinished = command;
    if (command->barrier)
        queue->barrier = command;
    return true;
}

static void unlink_command(struct cld_event *command) {
    struct cld_queue *queue = command->queue;
    pthread_mutex_lock(&queue->lock);
    if (command->newer)
        command->newer->older = command->older;
    else
        queue->unfinished = command->older;
    if (command->older)
        command->older->newer = command->newer;
    if (queue->barrier == command)
        queue->barrier = NULL;
    pthread_mutex_unlock(&queue->lock);
}

/* An event that nobody has flushed yet, in another queue: nobody may ever do so. */
static void flush_others(struct cld_queue *queue, cl_uint count, const cl_event *list) {
    for (cl_uint i = 0; i < count; i++) {
        struct cld_event *event = (struct cld_event *)list[i];
        if (event->queue && event->queue != queue && cld_event_status(event) == CL_QUEUED)
            cld_queue_flush(event->queue, NULL);
    }
}

/* The context was terminated while the command was made: it may have been overlooked, and so may user events
 * that are as new. */
static __attribute__((noinline, cold)) void forget_user_events(cl_uint count, const cl_event *list) {
    for (cl_uint i = 0; i < count; i++) {
        struct cld_event *event = (struct cld_event *)list[i];
        if (!event->queue && cld_event_status(event) > 0)
            cld_event_forget_dependents(event, CL_CONTEXT_TERMINATED_KHR);
    }
}

/* What is noted of profiled commands is in functions of its own: others need fewer registers without it. */
static __attribute__((noinline)) void note_queued(struct cld_event *command, uint32_t wait_count,
                                                  struct cld_event *const *wait_list) {
    command->times[CLD_TIME_QUEUED] = cld_now();
    if (!cld_is_observed(command))
        return;
    command->times[CLD_TIME_SUBMIT] = command->times[CLD_TIME_START] = 0;
    CLD_TELL(queued, command, wait_count, wait_list);
}

bool cld_command_link(struct cld_event *command, uint32_t wait_count, struct cld_event *const *wait_list) {
    struct cld_edge *edge = command->edges;
    if (wait_count > CLD_INLINE_EDGES && !(edge = command->more_edges = malloc(wait_count * sizeof *edge))) {
        cld_command_discard(command);
        return false;
    }
    if (cld_is_timed(command))
        note_queued(command, wait_count, wait_list);
    cld_object_publish(command, CLD_EVENT);
    for (uint32_t i = 0; i < wait_count; i++)
        depend(command, wait_list[i], edge++, true);
    if (__builtin_expect(atomic_load_explicit(&command->queue->is_terminated, memory_order_relaxed), 0)) {
        cld_command_fail(command, CL_CONTEXT_TERMINATED_KHR);
        forget_user_events(wait_count, (const cl_event *)wait_list); /* a kernel wrote the list */
    }
    return true;
}

/* Of a queue with that many pending commands, or that much: whether they are handed over. More wait where
 * there is no thread to spare besides the caller, who goes on. */
static __attribute__((noinline)) bool is_enough(const struct cld_queue *queue) {
    return queue->pending_count >= PENDING_COMMANDS || queue->pending_time >= BUSY_PENDING_TIME ||
           queue->is_urgent || cld_pool_spare(queue) > 1;
}

cl_int cld_command_enqueue(struct cld_event *command, const struct cld_wait *wait, unsigned flags) {
    struct cld_queue *queue = command->queue;
    if (__builtin_expect(wait->recording != NULL, 0))
        return wait->recording->take(wait->recording, command);
    if (wait->count)
        flush_others(queue, wait->count, wait->list);
    if (cld_is_timed(command))
        note_queued(command, wait->count, (struct cld_event *const *)wait->list);
    if (flags & CLD_BLOCKING)
        cld_object_hold(command);
    cld_object_publish(command, CLD_EVENT);

    pthread_mutex_lock(&queue->lock);
    if (!link_command(command, wait->count, wait->list, flags)) {
        pthread_mutex_unlock(&queue->lock);
        if (flags & CLD_BLOCKING)
            cld_object_drop(command);
        cld_command_discard(command);
        return CL_OUT_OF_HOST_MEMORY;
    }
    command->next = NULL;
    if (queue->pending)
        queue->pending_end->next = command;
    else
        queue->pending = command;
    queue->pending_end = command;
    queue->pending_count++;
    uint64_t time = command->waits ? BUSY_PENDING_TIME : command->estimate;
    queue->pending_time += time < BUSY_PENDING_TIME ? time : BUSY_PENDING_TIME;
    bool enough = queue->pending_count >= PENDING_COMMANDS || queue->pending_time >= PENDING_TIME;
    if (__builtin_expect(enough, 0))
        enough = is_enough(queue);
    bool is_terminated = atomic_load_explicit(&queue->is_terminated, memory_order_relaxed);
    if (__builtin_expect(is_terminated, 0))
        cld_command_fail(command, CL_CONTEXT_TERMINATED_KHR);
    /* The handle must be in place before a callback or another thread can see the command end. */
    if (wait->event)
        *wait->event = (cl_event)command;
    pthread_mutex_unlock(&queue->lock);

    if (__builtin_expect(is_terminated, 0))
        forget_user_events(wait->count, wait->list);
    if (flags & CLD_BLOCKING) {
        int32_t status = cld_event_wait(command);
        cld_object_drop(command);
        CLD_REQUIRE(status >= 0, status, "the command has failed, which the call has waited for");
        return CL_SUCCESS;
    }
    if (enough)
        cld_queue_flush(queue, NULL);
    return CL_SUCCESS;
}

bool cld_immediate_begin(struct cld_queue *queue, cl_command_type type, const struct cld_wait *wait,
                         struct cld_event **command) {
    *command = NULL;
    /* Who observes is to see it, and what it is about may be elsewhere. */
    if (wait->recording || queue->properties & (CLD_OBSERVED | CLD_SPREAD))
        return false;
    for (cl_uint i = 0; i < wait->count; i++)
        if (cld_event_status((struct cld_event *)wait->list[i]) != CL_COMPLETE)
            return false;
    if (wait->event && !(*command = cld_command_new(queue, type, NULL, true)))
        return false;
    pthread_mutex_lock(&queue->lock);
    /* Its last command may have been ended since the call looked whether the queue is terminated. */
    if (cld_queue_idle(queue) && !atomic_load_explicit(&queue->is_terminated, memory_order_relaxed)) {
        if (*command && cld_is_timed(*command)) {
            uint64_t *times = (*command)->times;
            times[CLD_TIME_QUEUED] = times[CLD_TIME_SUBMIT] = times[CLD_TIME_START] = cld_now();
        }
        return true;
    }
    pthread_mutex_unlock(&queue->lock);
    if (*command)
        cld_command_discard(*command);
    *command = NULL;
    return false;
}

void cld_immediate_end(struct cld_queue *queue, struct cld_event *command, cl_event *event) {
    pthread_mutex_unlock(&queue->lock);
    if (!command)
        return;
    if (cld_is_timed(command))
        command->times[CLD_TIME_END] = cld_now();
    atomic_store_explicit(&command->dependents, CLD_EDGES_CLOSED, memory_order_relaxed);
    atomic_store_explicit(&command->status, CL_COMPLETE, memory_order_release);
    cld_object_publish(command, CLD_EVENT);
    *event = (cl_event)command;
    cld_object_drop(command);
}

static __attribute__((noinline)) void note_submitted(struct cld_event *command) {
    command->times[CLD_TIME_SUBMIT] = cld_now();
    if (cld_is_observed(command))
        CLD_TELL(submitted, command);
}

static void submit(struct cld_event *command, struct cld_ready *ready) {
    if (cld_is_timed(command))
        note_submitted(command);
    atomic_store(&command->status, CL_SUBMITTED);
    cld_event_fire(command);
    if (atomic_fetch_sub_explicit(&command->blockers, 1, memory_order_acq_rel) == 1)
        cld_ready_add(ready, command);
}

void cld_command_submit(struct cld_event *command, struct cld_ready *ready) {
    submit(command, ready);
}

void cld_queue_flush(struct cld_queue *queue, struct cld_ready *ready) {
    struct cld_ready own = {0};
    pthread_mutex_lock(&queue->lock);
    struct cld_event *command = queue->pending;
    queue->pending = queue->pending_end = NULL;
    queue->pending_count = 0;
    queue->pending_time = 0;
    pthread_mutex_unlock(&queue->lock);
    while (command) {
        struct cld_event *next = command->next;
        submit(command, ready ? ready : &own);
        command = next;
    }
    if (own.first)
        cld_pool_push(&own);
}

/* Decrements what the dependents wait for. */
static void release_dependents(struct cld_event *event, int32_t status, struct cld_ready *ready) {
    struct cld_edge *edge =
        atomic_exchange_explicit(&event->dependents, CLD_EDGES_CLOSED, memory_order_acq_rel);
    struct cld_ready elsewhere = {0};
    while (edge && edge != CLD_EDGES_CLOSED) { /* those of a user event may have been forgotten */
        /* The edge is the dependent's, which may be gone once its last blocker is. */
        struct cld_edge *next = edge->next;
        struct cld_event *dependent = (struct cld_event *)(edge->dependent & ~(uintptr_t)1);
        if (status < 0 && (edge->dependent & 1))
            cld_command_fail(dependent, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        if (atomic_fetch_sub_explicit(&dependent->blockers, 1, memory_order_acq_rel) == 1) {
            bool same = ready && (!event->queue || cld_pool_has_both(event->queue, dependent->queue));
            cld_ready_add(same ? ready : &elsewhere, dependent);
        }
        edge = next;
    }
    if (elsewhere.first)
        cld_pool_push(&elsewhere);
}

void cld_event_forget_dependents(struct cld_event *event, int32_t status) {
    release_dependents(event, status, NULL);
}

void cld_command_note_start(struct cld_event *command) {
    command->times[CLD_TIME_START] = cld_now();
    /* When another machine begins is told with its end. */
    if (cld_is_observed(command) && command->elsewhere != CLD_TO_BE_SENT)
        CLD_TELL(started, command);
}

static uint64_t *end_of(struct cld_event *event) {
    return event->enqueues ? &event->node.complete_time : &event->times[CLD_TIME_END];
}

void cld_command_note_end(struct cld_event *command, int32_t status) {
    if (command->elsewhere == CLD_SENT || command->elsewhere == CLD_SENT_WITH_TIMES)
        CLD_TELL(started, command);
    if (command->elsewhere != CLD_SENT_WITH_TIMES)
        *end_of(command) = cld_now();
    CLD_TELL(ended, command, status);
}

/* Of a command that is observed, or that other machines may have to do with. */
static __attribute__((noinline)) void tell_end(struct cld_event *event, int32_t status) {
    if (cld_is_observed(event))
        cld_command_note_end(event, status);
    if (event->elsewhere >= CLD_USED_HERE)
        cld_mover()->ended(event);
}

/* Of one that has failed or is special, when it has let go of what it held. */
static __attribute__((noinline)) void note_end(struct cld_event *event, int32_t status) {
    if (status < 0 && status != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST &&
        status != CL_CONTEXT_TERMINATED_KHR)
        cld_context_notify(event->context, "a command of type %#x failed: %s", (unsigned)event->type,
                           cld_error_name(status));
    if (!cld_is_timed(event))
        return;
    if (!cld_is_observed(event) && event->elsewhere != CLD_SENT_WITH_TIMES)
        *end_of(event) = cld_now();
    if (event->is_child)
        cld_family_tell_times(event);
}

static void complete(struct cld_event *event, int32_t status, struct cld_ready *ready) {
    struct cld_queue *queue = event->queue;
    if (__builtin_expect(event->special & (CLD_OBSERVED | CLD_SPREAD), 0))
        tell_end(event, status);
    if (event->is_node) {
        event->node.whole->ended(event, status, ready);
        return;
    }
    if (queue) {
        let_go(event, status);
        if (__builtin_expect((status < 0) | event->special, 0))
            note_end(event, status);
    }
    atomic_store(&event->status, status);
    if (atomic_load(&event->sleepers))
        cld_futex_wake((_Atomic uint32_t *)&event->status, INT_MAX);
    cld_event_fire(event);
    /* Only now: clFinish takes a queue with nothing unfinished as proof that every status is final. */
    if (queue && out_of_order(queue) && !event->is_child)
        unlink_command(event);
    release_dependents(event, status, ready);
    if (!queue)
        return;
    struct cld_event *self = event;
    if (!out_of_order(queue) && atomic_compare_exchange_strong(&queue->last, &self, NULL))
        cld_object_drop(event);
    cld_object_drop(event);
}

struct cld_event *cld_user_event_new(struct cld_context *context) {
    struct cld_event *event = cld_object_new_zeroed();
    if (!event)
        return NULL;
    cld_object_hold(context);
    event->context = context;
    event->type = CL_COMMAND_USER;
    atomic_store(&event->status, CL_SUBMITTED);
    cld_object_publish(event, CLD_EVENT); /* only now: the end of a context looks for its events */
    return event;
}

bool cld_user_event_set(struct cld_event *event, int32_t status, struct cld_ready *ready) {
    int32_t unset = 0;
    if (!atomic_compare_exchange_strong(&event->blockers, &unset, 1))
        return false;
    cld_object_hold(event); /* a thread that waits for it may release it at once */
    cld_event_complete(event, status, ready);
    cld_object_drop(event);
    return true;
}

/* A kernel that enqueues others, or was enqueued by one. */
static __attribute__((noinline)) void complete_member(struct cld_event *event, int32_t status,
                                                      struct cld_ready *ready) {
    if (event->enqueues && !cld_family_release(event, &status, ready))
        return;
    while (event) {
        struct cld_family *family = event->is_child ? event->family : NULL;
        complete(event, status, ready);
        event = family ? cld_family_leave(family, status, &status) : NULL;
    }
}

void cld_event_complete(struct cld_event *event, int32_t status, struct cld_ready *ready) {
    if (__builtin_expect(event->enqueues || event->is_child, 0))
        complete_member(event, status, ready);
    else
        complete(event, status, ready);
}
