/* Lists of ready commands. */
#include "runtime/ready.h"

void cld_ready_put_urgent(struct cld_ready *ready, struct cld_event *command) {
    struct cld_event **after = ready->urgent ? &ready->urgent->next : &ready->first;
    command->next = *after;
    *after = command;
    if (!command->next)
        ready->last = command;
    ready->urgent = command;
}

void cld_ready_put_back(struct cld_ready *ready, struct cld_event *command) {
    bool is_urgent = command->queue->is_urgent;
    struct cld_event **after = ready->urgent && !is_urgent ? &ready->urgent->next : &ready->first;
    command->next = *after;
    *after = command;
    if (!command->next)
        ready->last = command;
    if (is_urgent && !ready->urgent)
        ready->urgent = command;
}

void cld_ready_splice(struct cld_ready *ready, struct cld_ready *more) {
    while (more->urgent)
        cld_ready_put_urgent(ready, cld_ready_take(more));
    if (!more->first)
        return;
    if (ready->last)
        ready->last->next = more->first;
    else
        ready->first = more->first;
    ready->last = more->last;
    more->first = more->last = NULL;
}

struct cld_event *cld_ready_choose(struct cld_ready *ready, const struct cld_event *command,
                                   const struct cld_queue *queue) {
    struct cld_event *previous = NULL, *before = NULL, *found = NULL;
    for (struct cld_event *at = ready->first; at; previous = at, at = at->next) {
        if (at != command && (found || (queue && !cld_ready_may_be_needed(at, queue))))
            continue;
        found = at;
        before = previous;
        if (at == command || !command)
            break;
    }
    if (!found)
        return NULL;
    if (before)
        before->next = found->next;
    else
        ready->first = found->next;
    if (ready->last == found)
        ready->last = before;
    if (ready->urgent == found)
        ready->urgent = before;
    return found;
}
