/* Launches in the check mode (check/check.h). */
#ifndef CLD_CHECKED_LAUNCH_H
#define CLD_CHECKED_LAUNCH_H

#include "kernel/kernel.h"
#include "runtime/command.h"

/* How a launch is executed whose kernel has checks: as others are, with what is told to the checks around it.
 * So launches ask nothing of checks where there are none. */
extern struct cld_operation cld_checked_operation;

/* To be called by a constructor: how others are executed, and what makes room for what a kernel's code needs
 * of a thread, false without memory. */
void cld_checked_launches(const struct cld_operation *plain,
                          bool (*has_room)(struct cld_event *command, struct cld_self *self));

/* Tells the checks of a launch what its arguments are, but for local ones. */
void cld_checked_launch_arguments(struct cld_event *command, const struct cld_kernel *kernel);

#endif
