/* Workers of a Dask cluster as devices (cl_driver/cluster/README.md).
 *
 * A launch on such a device is a command like any other until it is ready. Then it is a message in the list
 * of what is to be sent, and whoever has made it ready goes on; one thread sends, another receives, and
 * completes commands with what comes back. Every other command is executed here, on the memory object's
 * memory of this machine, which is fetched before if a worker has a newer copy (copies.c). */
#ifndef CLD_CLUSTER_H
#define CLD_CLUSTER_H

#include "runtime/command.h"

struct cld_kernel;
struct cld_mem;
struct cld_msg;

/* The devices of the cluster that CL_DRIVER_CLUSTER names; 0 where it names none. The first call connects,
 * and waits for it. Later ones may have more. Devices are never freed. root: this machine's, whose threads
 * execute what is done here.
 */
uint32_t cld_cluster_devices(struct cld_device *root, struct cld_device *const **devices);

/* The answer of such a device to a query, or NULL. */
const void *cld_cluster_answer(const struct cld_device *device, cl_device_info query, size_t *size);

/* Whether something can be executed there: the worker has not gone, or not all have. */
bool cld_cluster_is_available(const struct cld_device *device);

/* Whether there are such devices, and they lack an extension. root: as above. */
bool cld_cluster_lacks(struct cld_device *root, const char *extension, size_t size);

/* Makes a launch, whose arguments and sizes are in command->kernel, one of the device of its queue, which is
 * a worker's. CL_INVALID_KERNEL_ARGS for arguments that cannot leave this machine, CL_OUT_OF_RESOURCES,
 * CL_OUT_OF_HOST_MEMORY. */
cl_int cld_cluster_launch(struct cld_event *command, const struct cld_kernel *kernel, bool has_local_size);

/* Its operation. */
extern const struct cld_operation cld_cluster_operation;

#endif
