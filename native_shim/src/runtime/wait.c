/* Waiting for events and queues, with the waiting thread's help. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "base/thread.h"
#include "object/lock.h"
#include "runtime/callback.h"
#include "runtime/ready.h"
#include "runtime/worker.h"

/* Executes what has become ready, as far as that is what the event waits for; the rest goes to the pool. */
static void execute_until(struct cld_event *event, struct cld_self *self, struct cld_ready *ready) {
    while (ready->first && cld_event_status(event) > 0) {
        /* What is waited for goes first: others may take long, and this thread is not to return late. */
        struct cld_event *command =
            cld_ready_choose(ready, cld_event_may_be_ready(event) ? event : NULL, NULL);
        /* It might wait for what the host does once this thread has returned. */
        if (command->waits && command != event) {
            cld_ready_add(ready, command);
            break;
        }
        /* What takes long must not keep the others waiting behind this thread. */
        if (ready->first && (command->estimate > 5000 || command->waits || command->queue != event->queue))
            cld_pool_push(ready);
        cld_command_execute(command, self, ready);
    }
    if (ready->first)
        cld_pool_push(ready);
}

static void sleep_on(struct cld_event *event) {
    atomic_fetch_add(&event->sleepers, 1);
    int32_t status;
    while ((status = atomic_load(&event->status)) > 0)
        cld_futex_wait((_Atomic uint32_t *)&event->status, (uint32_t)status);
    atomic_fetch_sub(&event->sleepers, 1);
}

int32_t cld_event_wait(struct cld_event *event) {
    struct cld_self *self = cld_self();
    struct cld_queue *queue = event->queue;
    int32_t status = cld_event_status(event);
    if (status <= 0)
        return status;
    bool help = queue && cld_pool_may_help(queue, self);
    struct cld_ready ready = {0};
    if (queue)
        cld_queue_flush(queue, help ? &ready : NULL);
    execute_until(event, self, &ready);
    if ((status = cld_event_status(event)) <= 0)
        return status;
    if (queue)
        atomic_fetch_add(&queue->waiters, 1);
    struct cld_pool *pool = help ? cld_pool_enter(queue, self) : NULL;
    while (help && cld_event_status(event) > 0 && cld_pool_help(event, self, &ready))
        execute_until(event, self, &ready);
    if (pool)
        cld_pool_exit(pool, self);
    if (cld_event_status(event) > 0) {
        uint64_t start = cld_now();
        for (unsigned turn = 0; !help && cld_event_status(event) > 0 && cld_linger(turn, start); turn++)
            ;
        if (self->role == CLD_CALLBACK_THREAD)
            cld_callback_thread_blocks();
        sleep_on(event);
    }
    if (queue)
        atomic_fetch_sub(&queue->waiters, 1);
    return cld_event_status(event);
}

/* In-order: the newest command, with a hold, unless all are complete. The pointer may be gone between the
 * load and the hold, and its slot be something else; the second look tells. */
static struct cld_event *newest(struct cld_queue *queue) {
    for (;;) {
        struct cld_event *last = atomic_load(&queue->last);
        if (!last)
            return NULL;
        if (!cld_object_try_hold(last))
            continue;
        if (atomic_load(&queue->last) == last)
            return last;
        cld_object_drop(last);
    }
}

cl_int cld_queue_finish(struct cld_queue *queue) {
    struct cld_event *last;
    if (queue->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) {
        pthread_mutex_lock(&queue->lock);
        last = queue->unfinished;
        bool single = last && !last->older;
        if (single)
            cld_object_hold(last);
        pthread_mutex_unlock(&queue->lock);
        if (!last)
            return CL_SUCCESS;
        if (single) {
            cld_event_wait(last);
            cld_object_drop(last);
            return CL_SUCCESS;
        }
        last = cld_command_new(queue, CL_COMMAND_MARKER, NULL, false);
        if (!last)
            return CL_OUT_OF_HOST_MEMORY;
        last->estimate = 0;
        return cld_command_enqueue(last, &(struct cld_wait){0}, CLD_AFTER_ALL | CLD_BLOCKING);
    }
    if (!(last = newest(queue)))
        return CL_SUCCESS;
    cld_event_wait(last);
    cld_object_drop(last);
    return CL_SUCCESS;
}

/* The queues of a context, held; NULL: no memory. */
static struct cld_queue **hold_queues(struct cld_context *context, size_t *held) {
    for (size_t room = 8, count = 0;; room = count) {
        struct cld_queue **queues = malloc(room * sizeof *queues);
        if (!queues)
            return NULL;
        *held = count = 0;
        cld_lock(context);
        for (struct cld_queue *queue = context->queues; queue; queue = queue->next)
            count++;
        for (struct cld_queue *queue = count <= room ? context->queues : NULL; queue; queue = queue->next)
            if (cld_object_try_hold(queue))
                queues[(*held)++] = queue;
        cld_unlock(context);
        if (count <= room)
            return queues;
        free(queues);
    }
}

cl_int cld_context_flush(struct cld_context *context) {
    size_t count;
    struct cld_queue **queues = hold_queues(context, &count);
    if (!queues)
        return CL_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < count; i++) {
        cld_queue_flush(queues[i], NULL);
        cld_object_drop(queues[i]);
    }
    free(queues);
    return CL_SUCCESS;
}

cl_int cld_context_finish(struct cld_context *context) {
    size_t count;
    struct cld_queue **queues = hold_queues(context, &count);
    if (!queues)
        return CL_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < count; i++) /* one may wait for commands of another */
        cld_queue_flush(queues[i], NULL);
    cl_int status = CL_SUCCESS;
    for (size_t i = 0; i < count; i++) {
        cl_int found = cld_queue_finish(queues[i]);
        status = status ? status : found;
        cld_object_drop(queues[i]);
    }
    free(queues);
    return status;
}
