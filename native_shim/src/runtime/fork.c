/* fork(): the child keeps every object, has none of the driver's threads, and nothing of what was in flight.
 *
 * What the 64 object locks, the slots' lock and the callbacks' lock guard is whole in the child, because the
 * parent holds them while it forks. The other locks (queues, pools) may have been held by threads that the
 * child does not have, so that they, and what they guard, are made anew. */
#include "base/own_thread.h"
#include "object/lock.h"
#include "runtime/callback.h"
#include "runtime/command.h"
#include "runtime/semaphore.h"
#include "runtime/worker.h"

static void prepare(void) {
    cld_locks_take();
    cld_callback_fork_prepare();
    cld_semaphores_fork_prepare();
    cld_slots_fork_prepare();
}

static void parent(void) {
    cld_slots_fork_done();
    cld_semaphores_fork_parent();
    cld_callback_fork_parent();
    cld_locks_release();
}

static void renew_queue(void *object) {
    struct cld_queue *queue = object;
    pthread_mutex_init(&queue->lock, NULL);
    atomic_store(&queue->last, NULL);
    queue->pending = queue->pending_end = queue->unfinished = queue->barrier = NULL;
    queue->pending_count = 0;
    queue->pending_time = 0;
    atomic_store(&queue->waiters, 0);
    atomic_store(&queue->helpers, 0);
}

/* The parent executes it; in the child it has failed. What it holds stays held: nobody knows how far another
 * thread was in letting it go. User events are the application's to set in either process. */
static void renew_event(void *object) {
    struct cld_event *event = object;
    atomic_store(&event->sleepers, 0);
    if (!event->queue) {
        if (atomic_load(&event->status) > 0)
            atomic_store(&event->dependents, NULL);
        return;
    }
    if (atomic_load(&event->status) <= 0)
        return;
    atomic_store(&event->status, CL_OUT_OF_RESOURCES);
    atomic_store(&event->dependents, CLD_EDGES_CLOSED);
    atomic_store(&event->callbacks, NULL);
}

static void child(void) {
    cld_slots_fork_done();
    cld_callback_fork_child();
    cld_locks_release();
    cld_own_threads_fork_child();
    cld_pools_fork_child();
    cld_semaphores_fork_child();
    cld_object_each(CLD_QUEUE, renew_queue);
    cld_object_each(CLD_EVENT, renew_event);
}

__attribute__((constructor)) static void register_fork(void) {
    cld_object_around_fork(prepare, parent, child);
}
