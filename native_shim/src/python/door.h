/* The door between the planes: plain data only. */
#ifndef CLD_DOOR_H
#define CLD_DOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/codec.h"

/* Calls the Python function bound to `op` (an entry point's name, or a name of cl_driver/api's own such as
 * "program_executable") with the request's values as its arguments, and blocks until it answers. Returns its
 * status (CL_SUCCESS or the error code raised); the answer's values are in reply, which is empty on error.
 * Where no Python can be had the status is CL_OUT_OF_HOST_MEMORY, and why is logged. reply must be freed by
 * the caller in every case. Must not be called with a lock held that a callback or worker may want. */
int32_t cld_door_call(const char *op, const struct cld_msg *request, struct cld_msg *reply);

/* Whether the control plane may be another one tomorrow, which knows of no peers: a runtime process can end,
 * and its connections can be closed by a program that closes what it does not know. */
bool cld_door_may_change(void);

/* Tells Python that the peers of destroyed handles may go: queued, and delivered by the next door call.
 * Never blocks, never enters Python: safe from destructors at exit. */
void cld_door_forget(uint64_t key);

#endif
