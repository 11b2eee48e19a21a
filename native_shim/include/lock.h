/* Locks of small, rarely contended things, and what fork does to all locks.
 *
 * Locking order of the data plane, outermost first; nothing else is ever held together:
 *   cld_queue.lock  >  lock of a pool (worker.c)
 *   cld_queue.lock  >  cld_lock(object)  >  lock of the slots (object.c), lock of the callback queue
 * (callback.c) User code (callbacks, native kernels, destructors) and waits run with no lock held. cld_lock
 * is never taken twice by one thread: the objects share 64 mutexes. */
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

/* Registered by object.c when the first object is made. fork() takes the locks below around itself, so that
 * the child finds what they guard whole; it makes the others anew (fork.c). */
void cld_fork_prepare(void);
void cld_fork_parent(void);
void cld_fork_child(void);

void cld_slots_fork_prepare(void); /* object.c */
void cld_slots_fork_done(void);
void cld_pools_fork_child(void);      /* worker.c */
void cld_callback_fork_prepare(void); /* callback.c */
void cld_callback_fork_parent(void);
void cld_callback_fork_child(void);

#endif
