/* The end of a context (cl_khr_terminate_context). */
#ifndef CLD_TERMINATE_H
#define CLD_TERMINATE_H

#include "object/objects.h"

/* Marks the context and its queues as terminated and ends all their commands with CL_CONTEXT_TERMINATED_KHR,
 * without waiting for any. false: it was terminated before, or another thread is at it. */
bool cld_context_terminate(struct cld_context *context);

#endif
