/* The C side of the control plane: what its files (api_*.c) share, and what others may use of it. */
#ifndef CLD_API_H
#define CLD_API_H

#include "door.h"
#include "info.h"
#include "objects.h"
#include "platform.h"

/* Fetches the limits of the device (struct cld_device) through the door, once. Contexts do it for each of their devices, so that
 * everything that has a context may rely on the limits. Returns the door's status. */
cl_int cld_device_complete(struct cld_device *device);

/* True if the device is one of the context's. */
bool cld_context_has_device(const struct cld_context *context, const struct cld_device *device);

/* Counts the words of a property list with its final 0 and copies it. properties NULL: *count 0, *copy NULL.
 * False when out of memory. */
bool cld_copy_properties(const intptr_t *properties, size_t *count, intptr_t **copy);

/* One value of the answer, taken over: keys of new peers. Every key must end in a handle or be forgotten. */
uint64_t cld_get_key(struct cld_msg *reply);

/* Drops kernel infos and executables (api_kernel.c, api_executable.c). NULL is ignored. */
void cld_kernel_info_drop(struct cld_kernel_info *info);
void cld_executable_drop(struct cld_executable *executable);

#endif
