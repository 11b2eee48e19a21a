/* The C side of the control plane: what its files (api_*.c) share, and what others may use of it.
 *
 * These files make devices (but the root), contexts, memory objects, samplers, programs and kernels, and
 * register their destructors (cld_object_on_destroy); retain and release are in the data plane. */
#ifndef CLD_API_H
#define CLD_API_H

#include "door.h"
#include "info.h"
#include "objects.h"
#include "platform.h"

/* Fetches the limits of the device (struct cld_device) through the door, once. Contexts do it for each of
 * their devices, so that everything that has a context may rely on the limits. Returns the door's status. */
cl_int cld_device_complete(struct cld_device *device);

/* True if the device is one of the context's. */
bool cld_context_has_device(const struct cld_context *context, const struct cld_device *device);

/* Counts the words of a property list with its final 0 and copies it. properties NULL: *count 0, *copy NULL.
 * False when out of memory. */
bool cld_copy_properties(const intptr_t *properties, size_t *count, intptr_t **copy);

/* Has the context's pfn_notify called, if it has one, with the formatted text: for errors at run time that no
 * call returns, or whose code does not tell what happened. On the callback thread; never blocks. */
void cld_context_notify(struct cld_context *context, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A list of integers. */
void cld_put_words(struct cld_msg *request, const intptr_t *words, size_t count);

/* A list of the devices' keys. */
void cld_put_devices(struct cld_msg *request, struct cld_device *const *devices, uint32_t count);

/* An info query through the door; frees the request. */
cl_int cld_query(const char *operation, struct cld_msg *request, size_t param_value_size, void *param_value,
                 size_t *param_value_size_ret);

/* An operation whose answer is the key of a new peer; frees the request. The key must end in a handle or be
 * forgotten (cld_door_forget). */
/* Runs run(argument) on a detached thread of the driver's own that takes no signals; false if there can be
 * none. */
bool cld_start_thread(void *(*run)(void *), void *argument);

cl_int cld_call_for_key(const char *operation, struct cld_msg *request, uint64_t *key);

/* The rules that device lists share: their devices, the context's own if the list is NULL. */
cl_int cld_check_devices(const struct cld_context *context, cl_uint num_devices,
                         const cl_device_id *device_list, struct cld_device *const **devices,
                         uint32_t *count);

/* Drops kernel infos and executables (api_kernel.c, api_executable.c). NULL is ignored. */
void cld_kernel_info_drop(struct cld_kernel_info *info);
void cld_executable_drop(struct cld_executable *executable);

#endif
