/* Semaphores: commands that wait for them take no thread, whoever signals goes on with them.
 *
 * A semaphore counts its signals, so that one that is signaled again before a wait has been executed loses
 * none. Waits get them in the order in which they were enqueued, whatever the order in which they are
 * executed. One that other processes share is an eventfd, whose count is the kernel's; a thread of the
 * driver's own polls those that commands wait for, while there are any. */
#ifndef CLD_SEMAPHORE_H
#define CLD_SEMAPHORE_H

#include "runtime/command.h"

struct cld_semaphore {
    struct cld_object obj;
    struct cld_context *context; /* held */
    struct cld_device *device;   /* held: the one whose queues may use it */
    bool is_exportable;
    int descriptor;                           /* the eventfd, or -1 */
    uint32_t signals;                         /* that no wait has got, if there is no descriptor */
    struct cld_semaphore_use *waits, *newest; /* enqueued, without a signal yet, oldest first */
    struct cld_semaphore *next_watched, *next_left;
    bool is_watched; /* held then */
    size_t property_count;
    intptr_t *properties;
};

/* Of a command's list. */
struct cld_semaphore_use {
    struct cld_semaphore *semaphore; /* held */
    struct cld_event *command;
    struct cld_semaphore_use *next; /* in the semaphore's waits */
    bool is_listed, has_signal;
};

/* Signals a semaphore, or waits for a signal: operations of commands with `semaphores`. */
extern const struct cld_operation cld_semaphore_wait, cld_semaphore_signal;

/* Gives the command its list, without those that are there twice. A wait has its place in their orders then.
 * False: no memory. */
bool cld_semaphores_use(struct cld_event *command, struct cld_semaphore *const *list, uint32_t count);

bool cld_semaphore_is_signaled(const struct cld_semaphore *semaphore);

/* A descriptor to share, or -1. */
int cld_semaphore_new_descriptor(void);

/* Whether the descriptor is one of those. */
bool cld_semaphore_is_descriptor(int descriptor);

/* Waits of a context that was terminated end, as do all of its commands: with the errors that they have. */
void cld_semaphores_terminate(const struct cld_context *context);

/* Around a fork. In the child no command waits. */
void cld_semaphores_fork_prepare(void);
void cld_semaphores_fork_parent(void);
void cld_semaphores_fork_child(void);

#endif
