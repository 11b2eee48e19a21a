/* The threads of a device: a pool per device or sub-device of this machine, made at first need, never at
 * load; and another for queues of low priority, whose threads the system gives less time to. */
#ifndef CLD_WORKER_H
#define CLD_WORKER_H

#include "runtime/ready.h"

struct cld_pool;

/* Gives ready commands to their pools, whose workers are woken. Where no thread can be made the caller
 * executes them. */
void cld_pool_push(struct cld_ready *ready);

/* How many threads a command can count on, of those that it has use for: who sleeps may come too late. left:
 * ns that it takes one thread. *to_call: for how many of them it is to call. */
unsigned cld_pool_count_on(const struct cld_queue *queue, const struct cld_self *self, double left,
                           unsigned wanted, unsigned *to_call);

/* Lets other threads of the pool join the command, and calls for count of them. The caller participates. True
 * if it is to call for one more later, with cld_pool_call. */
bool cld_pool_open(struct cld_event *command, struct cld_self *self, unsigned count);

/* Calls for so many more threads for an open command, unless enough have joined it. */
void cld_pool_call(struct cld_event *command, unsigned count);

/* The device's threads but for those that are at work, the host's among them: a moment ago. */
unsigned cld_pool_spare(const struct cld_queue *queue);

/* A thread of the host begins to execute commands of that queue, or to look for some, and counts as one that
 * has a CPU until it calls cld_pool_exit. NULL if it counts already, or is none of the host's, or there is no
 * pool yet. */
struct cld_pool *cld_pool_enter(const struct cld_queue *queue, struct cld_self *self);
void cld_pool_exit(struct cld_pool *pool, struct cld_self *self);

/* The caller is done with its part. True if it was the last participant and has to complete the command. */
bool cld_pool_leave(struct cld_event *command);

/* Whether the caller is to leave a command that it participates in, for commands of an urgent queue that no
 * thread has begun with. One thread stays. Who has been told so leaves by cld_pool_step_aside. */
bool cld_pool_wants_back(struct cld_event *command, const struct cld_self *self);

/* The same as cld_pool_leave, for a part that is not done: others may join in place of the caller. */
bool cld_pool_step_aside(struct cld_event *command, const struct cld_self *self);

/* For a waiting thread of the host: executes the event that it waits for, or something of its queue, or looks
 * for it for a short time. False if there was nothing, or the event is complete. */
bool cld_pool_help(const struct cld_event *event, struct cld_self *self, struct cld_ready *ready);

/* Whether the same threads execute the commands of both. */
static inline bool cld_pool_has_both(const struct cld_queue *a, const struct cld_queue *b) {
    return a->local == b->local && a->pool == b->pool;
}

/* Whether the calling thread may execute commands of that queue: threads of the host are no part of a
 * sub-device and have no low priority, and a thread in the middle of a kernel is not to start another. */
bool cld_pool_may_help(const struct cld_queue *queue, const struct cld_self *self);

/* Threads that may work on one command of that queue. */
unsigned cld_pool_threads(const struct cld_queue *queue);

/* The places of the pool's threads, by their homes, and how many these are; NULL where all are in one. */
const struct cld_place *cld_pool_places(const struct cld_queue *queue, unsigned *threads);

/* Starts a detached thread of the driver's own, on the device's CPUs if there is one. False if it cannot be.
 */
bool cld_thread_start(const struct cld_device *device, enum cld_role role, void *(*function)(void *),
                      void *argument);

/* The destructor of a sub-device calls it: its threads end. */
void cld_pools_free(struct cld_device *device);

/* The child of a fork has no pools. */
void cld_pools_fork_child(void);

#endif
