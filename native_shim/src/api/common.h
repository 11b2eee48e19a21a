/* The C side of the control plane: what its files share. They make devices, contexts, memory objects,
 * samplers, programs and kernels, and register their destructors (cld_object_on_destroy); retain and release
 * are in object/retain_release.c. */
#ifndef CLD_COMMON_H
#define CLD_COMMON_H

#include "object/objects.h"
#include "python/requests.h"

/* Fetches the limits of the device (struct cld_device) through the door, once. Contexts do it for each of
 * their devices, so that everything that has a context may rely on the limits. Returns the door's status. */
cl_int cld_device_complete(struct cld_device *device);

/* Counts the words of a property list with its final 0 and copies it. properties NULL: *count 0, *copy NULL.
 * False when out of memory. */
bool cld_copy_properties(const intptr_t *properties, size_t *count, intptr_t **copy);

/* The rules that device lists share: their devices, the context's own if the list is NULL. */
cl_int cld_check_devices(const struct cld_context *context, cl_uint num_devices,
                         const cl_device_id *device_list, struct cld_device *const **devices,
                         uint32_t *count);

/* Copies what a new memory object begins with. On machines of several memory nodes the device's threads copy
 * much of it, each the part that it will have of commands, so that its pages come to its node. */
void cld_context_copy(struct cld_context *context, void *to, const void *from, size_t size);

#endif
