/* A line on stderr about the fault in a kernel that the host is about to die of (CL_DRIVER_FAULT_MESSAGE). */
#ifndef CLD_FAULT_H
#define CLD_FAULT_H

#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

#include "runtime/command.h"

/* What a thread executes, for the handler of its faults: thread-local storage may have to be allocated, which
 * a handler must not. These are never freed; those of threads that have ended are given to others. */
struct cld_running {
    struct cld_running *next;
    _Atomic pid_t thread; /* 0: nobody's */
    _Atomic(const struct cld_event *) command;
    _Atomic(const void *) frame; /* of the function that calls the kernel */
};

/* The thread's, made by its first kernel; the first of all installs the handler. NULL when out of memory. */
struct cld_running *cld_fault_running(struct cld_self *self);

static inline struct cld_running *cld_fault_enter(struct cld_self *self, const struct cld_event *command) {
    struct cld_running *running = self->running ? self->running : cld_fault_running(self);
    if (running) {
        atomic_store_explicit(&running->frame, __builtin_frame_address(0), memory_order_relaxed);
        atomic_store_explicit(&running->command, command, memory_order_relaxed);
    }
    return running;
}

static inline void cld_fault_leave(struct cld_running *running) {
    if (running)
        atomic_store_explicit(&running->command, NULL, memory_order_relaxed);
}

#endif
