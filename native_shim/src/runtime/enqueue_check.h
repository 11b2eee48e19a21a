/* The checks that all enqueue functions share. */
#ifndef CLD_ENQUEUE_CHECK_H
#define CLD_ENQUEUE_CHECK_H

#include "runtime/command.h"

/* The queue, and what the wait list says of itself. Both were looked at before if the command is recorded. */
cl_int cld_check_queue(cl_command_queue handle, const struct cld_wait *wait, struct cld_queue **queue);
cl_int cld_check_wait(const struct cld_queue *queue, const struct cld_wait *wait);

/* Some commands are refused where an event of the wait list, which has been checked, has failed already. */
cl_int cld_check_wait_status(const struct cld_wait *wait);

#endif
