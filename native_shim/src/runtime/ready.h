/* Lists of ready commands, which one thread executes or gives to a pool. Those of urgent queues are the
 * first. */
#ifndef CLD_READY_H
#define CLD_READY_H

#include "runtime/command.h"

struct cld_ready {
    struct cld_event *first, *last;
    struct cld_event *urgent; /* the last one of an urgent queue; NULL: there is none */
};

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

/* Takes that command out if it is in the list, else the first of that queue that does not wait for others;
 * any where both are NULL. */
struct cld_event *cld_ready_choose(struct cld_ready *ready, const struct cld_event *command,
                                   const struct cld_queue *queue);

#endif
