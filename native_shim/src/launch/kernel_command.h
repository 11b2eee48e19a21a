/* Launches of kernels, as commands: what making them and executing them share. */
#ifndef CLD_KERNEL_COMMAND_H
#define CLD_KERNEL_COMMAND_H

#include "kernel/argument_specialisation.h"
#include "kernel/kernel.h"
#include "kernel/variant.h"
#include "runtime/command.h"

/* The sizes of a launch, as the application gave them. */
struct cld_launch_sizes {
    cl_uint work_dim;
    const size_t *offset, *size, *local;
    struct cld_group_range *part; /* NULL: all groups; in the end, those of the code that runs */
};

/* clEnqueueNDRangeKernel, of a part of its groups if sizes has one, which is in the range; then it has local
 * sizes. */
cl_int cld_launch_enqueue(cl_command_queue queue, cl_kernel kernel, const struct cld_launch_sizes *sizes,
                          const struct cld_wait *wait);

/* A command that executes the kernel with the arguments that it has now; kernel may be a copy. is_complete:
 * NULL, or, where arguments may be set later, set to whether all are; if not, only the sizes are checked. */
cl_int cld_launch_prepare(struct cld_queue *queue, struct cld_kernel *kernel,
                          const struct cld_launch_sizes *sizes, bool *is_complete,
                          struct cld_event **command);

/* A command that executes a block, in three steps (device_enqueue.c): it is made, NULL without memory; its
 * arguments are put into kernel.args, of which local ones get places; the range is looked at. */
struct cld_event *cld_launch_block_new(struct cld_queue *queue, struct cld_kernel_info *info,
                                       bool with_event);
cl_int cld_launch_place_local(struct cld_event *command, const uint64_t *sizes);
cl_int cld_launch_block_fill(struct cld_event *command, const struct cld_ndrange *range);

/* Lets others execute what the kernel that this thread executes has made ready. */
void cld_launch_give_children(struct cld_self *self);

/* clSetKernelArg, clSetKernelArgSVMPointer and clSetKernelExecInfo of a kernel that may be a copy
 * (kernel_args.c). */
cl_int cld_set_kernel_arg(struct cld_kernel *kernel, cl_uint arg_index, size_t arg_size,
                          const void *arg_value);
cl_int cld_set_kernel_arg_pointer(struct cld_kernel *kernel, cl_uint arg_index, const void *arg_value);
cl_int cld_set_kernel_exec_info(struct cld_kernel *kernel, cl_kernel_exec_info param_name,
                                size_t param_value_size, const void *param_value);

#endif
