/* The driver's own threads: what they block, and how long they stay. */
#ifndef CLD_OWN_THREAD_H
#define CLD_OWN_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/thread.h"

/* Starts a thread of the driver's own; *thread is set where thread is not NULL, else it is detached. It
 * blocks all signals but those that its own instructions raise, and has an alternate signal stack. attributes
 * may have anything but the stack size, NULL is nothing. An error number, or 0. */
int cld_own_thread(pthread_t *thread, pthread_attr_t *attributes, size_t stack_size, enum cld_role role,
                   void *(*function)(void *), void *argument);

/* Starts a detached thread of low priority, to which the system gives little time while others want some. */
int cld_own_low_thread(pthread_attr_t *attributes, size_t stack_size, enum cld_role role,
                       void *(*function)(void *), void *argument);

/* Calls a function that makes threads or processes. They have the priority of the thread that makes them, and
 * cannot be given a higher one: so another thread calls it where the caller's is low. */
void cld_at_usual_priority(void (*function)(void *), void *argument);

/* A thread of the host's uses the driver; it ends. */
void cld_host_thread_begins(void);
void cld_host_thread_ends(void);

/* How a thread sleeps that has nothing to do: while *word == expected. CLD_IS_LATE if it is to end, for
 * nobody woke it for a second and there is no thread of the host's. *settled counts those that sleep for
 * longer: who changes *word because of cld_host_thread_ends() may leave it where there are none. */
enum cld_waited cld_rest(_Atomic uint32_t *word, uint32_t expected, _Atomic uint32_t *settled);

/* When the last of the host's threads ends, stir() wakes those that sleep for long. It says whether any are
 * at work. To be called by constructors. */
void cld_on_hosts_end(bool (*stir)(void));

/* In the child after fork: none of the threads is there any more but the one that called it. */
void cld_own_threads_fork_child(void);

#endif
