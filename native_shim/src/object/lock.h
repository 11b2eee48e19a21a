/* Locks of small, rarely contended things.
 *
 * Locking order of the data plane, outermost first; nothing else is ever held together:
 *   cld_queue.lock  >  lock of a pool (runtime/worker.c)
 *   cld_queue.lock  >  cld_lock(object)  >  lock of the slots (object.c), lock of the callback queue
 * (runtime/callback.c) User code (callbacks, native kernels, destructors) and waits run with no lock held.
 * cld_lock is never taken twice by one thread: the objects share 64 mutexes. */
#ifndef CLD_LOCK_H
#define CLD_LOCK_H

#include <pthread.h>
#include <stddef.h>

/* The mutex that guards the callbacks, maps and allocations that hang on an object. */
pthread_mutex_t *cld_lock_of(const void *object);

static inline void cld_lock(const void *object) {
    pthread_mutex_lock(cld_lock_of(object));
}

static inline void cld_unlock(const void *object) {
    pthread_mutex_unlock(cld_lock_of(object));
}

/* All of them, around a fork. */
void cld_locks_take(void);
void cld_locks_release(void);

#endif
