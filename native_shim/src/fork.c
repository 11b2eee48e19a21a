/* fork(): the child keeps every object, has none of the driver's threads, and nothing of what was in flight.
 *
 * What the 64 object locks, the slots' lock and the callbacks' lock guard is whole in the child, because the
 * parent holds them while it forks. The other locks (queues, pools) may have been held by threads that the
 * child does not have, so that they, and what they guard, are made anew. */
#include "command.h"
#include "fault.h"
#include "lock.h"
#include "own_thread.h"

enum { LOCKS = 64 };

static pthread_mutex_t locks[LOCKS] = {[0 ... LOCKS - 1] = PTHREAD_MUTEX_INITIALIZER};

pthread_mutex_t *cld_lock_of(const void *object) {
    return &locks[(uintptr_t)object / CLD_SLOT_SIZE % LOCKS];
}

void cld_fork_prepare(void) {
    for (int i = 0; i < LOCKS; i++)
        pthread_mutex_lock(&locks[i]);
    cld_callback_fork_prepare();
    cld_slots_fork_prepare();
}

void cld_fork_parent(void) {
    cld_slots_fork_done();
    cld_callback_fork_parent();
    for (int i = LOCKS; i-- > 0;)
        pthread_mutex_unlock(&locks[i]);
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

void cld_fork_child(void) {
    cld_slots_fork_done();
    cld_callback_fork_child();
    for (int i = LOCKS; i-- > 0;)
        pthread_mutex_unlock(&locks[i]);
    cld_own_threads_fork_child();
    cld_fault_fork_child();
    cld_pools_fork_child();
    cld_object_each(CLD_QUEUE, renew_queue);
    cld_object_each(CLD_EVENT, renew_event);
}
