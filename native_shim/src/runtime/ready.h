/* Lists of ready commands (struct cld_ready, base/thread.h), which one thread executes or gives to a pool.
 * Those of urgent queues are the first. */
#ifndef CLD_READY_H
#define CLD_READY_H

#include "runtime/command.h"

/* Adds a command behind the urgent ones. */
void cld_ready_put_urgent(struct cld_ready *ready, struct cld_event *command);

/* Gives back a command that was taken or chosen: it is the first of its kind again. */
void cld_ready_put_back(struct cld_ready *ready, struct cld_event *command);

/* Adds all of another list, which is empty then. */
void cld_ready_splice(struct cld_ready *ready, struct cld_ready *more);

static inline void cld_ready_add(struct cld_ready *ready, struct cld_event *command) {
    if (__builtin_expect(command->queue->is_urgent, 0)) {
        cld_ready_put_urgent(ready, command);
        return;
    }
    command->next = NULL;
    if (ready->last)
        ready->last->next = command;
    else
        ready->first = command;
    ready->last = command;
}

static inline struct cld_event *cld_ready_take(struct cld_ready *ready) {
    struct cld_event *command = ready->first;
    if (command && !(ready->first = command->next))
        ready->last = NULL;
    if (command == ready->urgent)
        ready->urgent = NULL;
    return command;
}

/* Whether the command may be in a list of ready ones: it is submitted, waits for nothing, and does not run.
 */
static inline bool cld_event_may_be_ready(const struct cld_event *event) {
    return atomic_load_explicit(&event->status, memory_order_acquire) == CL_SUBMITTED &&
           !atomic_load_explicit(&event->blockers, memory_order_relaxed);
}

/* Whether a thread that waits for a command of a queue may execute another meanwhile: what it waits for may
 * be behind it in the queue, or be a kernel that is not complete before what it has enqueued is. */
static inline bool cld_ready_may_be_needed(const struct cld_event *command, const struct cld_queue *queue) {
    bool is_near = command->queue == queue || (command->is_child && command->context == queue->context);
    return is_near && !command->waits;
}

/* Takes that command out if it is in the list, else the first of that queue that does not wait for others;
 * any where both are NULL. */
struct cld_event *cld_ready_choose(struct cld_ready *ready, const struct cld_event *command,
                                   const struct cld_queue *queue);

#endif
