/* Copies of a buffer that kernels do nothing with but add to it
 * (cl_driver/codegen/atomic/privatised_histogram.py): each thread that executes a part of the launch adds to
 * a copy of its own, and adds that to the buffer in the end. */
#ifndef CLD_PRIVATISED_HISTOGRAM_H
#define CLD_PRIVATISED_HISTOGRAM_H

#include "kernel/kernel.h"
#include "runtime/command.h"

/* Decides for a launch whose arguments and sizes are known: sets the command's counted_bytes. */
void cld_histogram_choose(struct cld_event *command, const struct cld_kernel *kernel);

/* Before a thread executes groups: gives it its copy, if the launch has copies and there is memory for one.
 */
void cld_histogram_take(struct cld_event *command, struct cld_self *self);

static inline void cld_histogram_enter(struct cld_event *command, struct cld_self *self) {
    self->kernel.counted = self->kernel.combined = 0;
    if (__builtin_expect(command->counted_bytes, 0))
        cld_histogram_take(command, self);
}

/* When a thread has done what it will of a command: adds its copy, if it has one, to the buffer. */
void cld_histogram_leave(struct cld_event *command, struct cld_self *self);

#endif
