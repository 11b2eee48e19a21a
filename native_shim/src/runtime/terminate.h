/* The end of a context (cl_khr_terminate_context). */
#ifndef CLD_TERMINATE_H
#define CLD_TERMINATE_H

#include "object/objects.h"

/* Ends all commands of a context that is marked as terminated, and of its queues: with
 * CL_CONTEXT_TERMINATED_KHR, without waiting for any. */
void cld_context_terminate(struct cld_context *context);

#endif
