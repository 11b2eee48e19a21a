/* Launches that are recorded: what other files ask of recorded_kernel.c. */
#ifndef CLD_RECORDED_KERNEL_H
#define CLD_RECORDED_KERNEL_H

#include "graph/command_buffer.h"

/* The command of a launch, whose is_complete is set. may_defer: arguments may be set later. */
cl_int cld_recorded_launch_prepare(struct cld_recorded_launch *launch, struct cld_queue *queue,
                                   bool may_defer, struct cld_event **command);

/* Changes a launch that nobody else knows yet. Its command is to be made afterwards. */
cl_int cld_recorded_launch_update(struct cld_recorded_launch *launch,
                                  const struct cld_mutable_dispatch_config *config);

#endif
