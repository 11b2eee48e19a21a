/* Launches of kernels, as commands: what making them and executing them share. */
#ifndef CLD_KERNEL_COMMAND_H
#define CLD_KERNEL_COMMAND_H

#include "kernel/argument_specialisation.h"
#include "kernel/kernel.h"
#include "kernel/variant.h"
#include "runtime/command.h"

/* What launches are called, and what executes them. */
struct cld_launch_kind {
    cl_command_type type;
    const struct cld_operation *operation;
};
extern const struct cld_launch_kind cld_launch_ndrange, cld_launch_task; /* kernel_launch.c */

/* The sizes of a launch, as the application gave them. */
struct cld_launch_sizes {
    cl_uint work_dim;
    const size_t *offset, *size, *local;
};

static inline struct cld_ab_run *cld_launch_trial(const struct cld_event *command) {
    return cld_specialisation_is_of_images(command->kernel.info) ? NULL : command->kernel.trial;
}

static inline struct cld_variant_wish *cld_launch_wish(const struct cld_event *command) {
    return cld_specialisation_is_of_images(command->kernel.info) ? command->kernel.wish : NULL;
}

static inline bool cld_runs_entry(const struct cld_variant *code) {
    return !code || code->key.shape == CLD_SHAPE_REST;
}

/* What a launch runs from now on instead of the entry, or after it. */
static inline const struct cld_variant *cld_launch_code(const struct cld_event *command) {
    if (cld_variant_is_there(command->kernel.variant))
        return command->kernel.variant;
    const struct cld_variant_wish *wish = cld_launch_wish(command);
    return wish ? cld_variant_meanwhile(wish) : NULL;
}

/* Raises the scratch memory that a launch needs to that of some code; false if there is an overflow. */
static inline bool cld_raise_scratch(uint64_t *size, uint64_t fixed, uint64_t per_item, uint64_t items) {
    uint64_t needed;
    if (__builtin_mul_overflow(per_item, items, &needed) || __builtin_add_overflow(needed, fixed, &needed))
        return false;
    if (*size < needed)
        *size = needed;
    return true;
}

/* Bytes of scratch memory that a launch needs with some code; false if there is an overflow. */
static inline bool cld_find_scratch_size(const struct cld_event *command, const struct cld_variant *code,
                                         uint64_t *size) {
    const struct cld_kernel_info *info = command->kernel.info;
    const uint64_t *local = command->kernel.launch.local_size;
    uint64_t items = local[0] * local[1] * local[2];
    *size = 0;
    return (!cld_runs_entry(code) ||
            cld_raise_scratch(size, info->scratch_fixed, info->scratch_per_item, items)) &&
           (!code || cld_raise_scratch(size, code->scratch_fixed, code->scratch_per_item, items));
}

/* Work-items of a launch that there is something to do for. */
double cld_items_of(const struct cld_kernel_info *info, const struct cld_launch *launch);

/* How long one thread would take, or CLD_TIME_UNKNOWN. */
uint64_t cld_time_of(const struct cld_kernel_info *info, const struct cld_launch *launch);

/* A command that executes the kernel with the arguments that it has now; kernel may be a copy. is_complete:
 * NULL, or, where arguments may be set later, set to whether all are; if not, only the sizes are checked. */
cl_int cld_launch_prepare(struct cld_queue *queue, struct cld_kernel *kernel,
                          const struct cld_launch_kind *kind, const struct cld_launch_sizes *sizes,
                          bool with_event, bool *is_complete, struct cld_event **command);

/* Before a node of a graph is executed: looks for better code than the last time. */
void cld_launch_renew(struct cld_event *node);

/* clSetKernelArg, clSetKernelArgSVMPointer and clSetKernelExecInfo of a kernel that may be a copy
 * (kernel_args.c). */
cl_int cld_set_kernel_arg(struct cld_kernel *kernel, cl_uint arg_index, size_t arg_size,
                          const void *arg_value);
cl_int cld_set_kernel_arg_pointer(struct cld_kernel *kernel, cl_uint arg_index, const void *arg_value);
cl_int cld_set_kernel_exec_info(struct cld_kernel *kernel, cl_kernel_exec_info param_name,
                                size_t param_value_size, const void *param_value);

#endif
