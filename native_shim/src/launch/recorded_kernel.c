/* Launches that are recorded, and what updates make of them. */
#include "launch/recorded_kernel.h"

#include <string.h>

#include "graph/recording.h"
#include "launch/kernel_command.h"
#include "object/call.h"

static struct cld_launch_sizes sizes_of(const struct cld_recorded_launch *launch) {
    return (struct cld_launch_sizes){launch->work_dim, launch->offset, launch->has_size ? launch->size : NULL,
                                     launch->has_local ? launch->local : NULL, NULL};
}

cl_int cld_recorded_launch_prepare(struct cld_recorded_launch *launch, struct cld_queue *queue,
                                   bool may_defer, struct cld_event **command) {
    struct cld_launch_sizes sizes = sizes_of(launch);
    launch->is_complete = true;
    return cld_launch_prepare(queue, &launch->kernel, &sizes, may_defer ? &launch->is_complete : NULL,
                              command);
}

/* Nothing of more dimensions than there may be, which is an error that is found afterwards. */
static void copy_sizes(size_t to[3], const size_t *from, cl_uint work_dim) {
    for (cl_uint i = 0; from && work_dim <= 3 && i < work_dim; i++)
        to[i] = from[i];
}

/* "CL_INVALID_KERNEL_ARGS if the kernel argument values have not been specified and the
 * CL_MUTABLE_DISPATCH_ARGUMENTS_KHR flag was not set in the properties parameter." It takes a command-buffer
 * that may be updated, too: there is no other way to set them. */
static bool may_defer(const struct cld_command_recording *recording) {
    return recording->has_fields && recording->fields & CLD_MUTABLE_DISPATCH_ARGUMENTS &&
           recording->buffer->flags & CLD_COMMAND_BUFFER_MUTABLE;
}

CL_API_ENTRY cl_int CL_API_CALL clCommandNDRangeKernelKHR(
    cl_command_buffer_khr command_buffer, cl_command_queue command_queue,
    const cl_command_properties_khr *properties, cl_kernel handle, cl_uint work_dim,
    const size_t *global_work_offset, const size_t *global_work_size, const size_t *local_work_size,
    cl_uint num_sync_points_in_wait_list, const cl_sync_point_khr *sync_point_wait_list,
    cl_sync_point_khr *sync_point, cl_mutable_command_khr *mutable_handle) {
    struct cld_command_recording recording;
    CLD_TRY(cld_recording_begin_kernel(&recording, command_buffer, command_queue, properties,
                                       num_sync_points_in_wait_list, sync_point_wait_list, sync_point,
                                       mutable_handle));
    struct cld_kernel *kernel = cld_object_check(handle, CLD_KERNEL);
    CLD_REQUIRE(kernel, CL_INVALID_KERNEL, "not a kernel");
    CLD_REQUIRE(kernel->program->context == recording.buffer->context, CL_INVALID_CONTEXT,
                "the context of kernel is not the context of command_buffer");
    bool asserts = recording.has_asserts || recording.buffer->asserts;
    CLD_REQUIRE(!asserts || local_work_size, CL_INVALID_VALUE,
                "the number of work-groups is not to grow, and local_work_size is NULL");
    struct cld_recorded_launch *launch = cld_recorded_launch_new(kernel, kernel);
    CLD_REQUIRE(launch, CL_OUT_OF_HOST_MEMORY, "no memory");
    launch->work_dim = work_dim;
    launch->has_size = global_work_size;
    launch->has_local = local_work_size;
    launch->fields = recording.fields;
    copy_sizes(launch->offset, global_work_offset, work_dim);
    copy_sizes(launch->size, global_work_size, work_dim);
    copy_sizes(launch->local, local_work_size, work_dim);
    struct cld_event *command;
    cl_int status =
        cld_recorded_launch_prepare(launch, recording.recording.queue, may_defer(&recording), &command);
    if (status) {
        cld_recorded_launch_free(launch);
        return status;
    }
    recording.launch = launch;
    return cld_command_enqueue(command, cld_recording_wait(&recording), 0);
}

/* "CL_INVALID_OPERATION if the [...] property was not set on command recording and" the member is set.
 * "CL_INVALID_VALUE if arg_list is NULL and num_args > 0, or arg_list is not NULL and num_args is 0." */
static cl_int check_config(const struct cld_recorded_launch *launch,
                           const struct cld_mutable_dispatch_config *config) {
    CLD_REQUIRE(!config->work_dim || config->work_dim == launch->work_dim, CL_INVALID_OPERATION,
                "work_dim is %u, it was %u", config->work_dim, launch->work_dim);
    CLD_REQUIRE(!config->global_work_offset || launch->fields & CLD_MUTABLE_DISPATCH_GLOBAL_OFFSET,
                CL_INVALID_OPERATION,
                "the offset may not be updated: CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR was %#lx",
                (unsigned long)launch->fields);
    CLD_REQUIRE(!config->global_work_size || launch->fields & CLD_MUTABLE_DISPATCH_GLOBAL_SIZE,
                CL_INVALID_OPERATION,
                "the global size may not be updated: CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR was %#lx",
                (unsigned long)launch->fields);
    CLD_REQUIRE(!config->local_work_size || launch->fields & CLD_MUTABLE_DISPATCH_LOCAL_SIZE,
                CL_INVALID_OPERATION,
                "the local size may not be updated: CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR was %#lx",
                (unsigned long)launch->fields);
    CLD_REQUIRE(!(config->num_args || config->num_svm_args) ||
                    launch->fields & CLD_MUTABLE_DISPATCH_ARGUMENTS,
                CL_INVALID_OPERATION,
                "the arguments may not be updated: CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR was %#lx",
                (unsigned long)launch->fields);
    CLD_REQUIRE(!config->num_exec_infos || launch->fields & CLD_MUTABLE_DISPATCH_EXEC_INFO,
                CL_INVALID_OPERATION,
                "the execution info may not be updated: CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR was %#lx",
                (unsigned long)launch->fields);
    CLD_REQUIRE(!config->num_args == !config->arg_list && !config->num_svm_args == !config->arg_svm_list &&
                    !config->num_exec_infos == !config->exec_info_list,
                CL_INVALID_VALUE,
                "a list of the config contradicts its length: num_args is %u, num_svm_args is %u, "
                "num_exec_infos is %u",
                config->num_args, config->num_svm_args, config->num_exec_infos);
    return CL_SUCCESS;
}

static bool is_uniform(const struct cld_recorded_launch *launch) {
    for (cl_uint i = 0; launch->has_local && launch->has_size && i < launch->work_dim; i++)
        if (launch->local[i] && launch->size[i] % launch->local[i])
            return false;
    return true;
}

cl_int cld_recorded_launch_update(struct cld_recorded_launch *launch,
                                  const struct cld_mutable_dispatch_config *config) {
    CLD_TRY(check_config(launch, config));
    for (cl_uint i = 0; i < config->num_args; i++) {
        const struct cld_mutable_dispatch_arg *arg = &config->arg_list[i];
        CLD_TRY(cld_set_kernel_arg(&launch->kernel, arg->arg_index, arg->arg_size, arg->arg_value));
    }
    for (cl_uint i = 0; i < config->num_svm_args; i++) {
        const struct cld_mutable_dispatch_arg *arg = &config->arg_svm_list[i];
        CLD_TRY(cld_set_kernel_arg_pointer(&launch->kernel, arg->arg_index, arg->arg_value));
    }
    for (cl_uint i = 0; i < config->num_exec_infos; i++) {
        const struct cld_mutable_dispatch_exec_info *exec_info = &config->exec_info_list[i];
        CLD_TRY(cld_set_kernel_exec_info(&launch->kernel, exec_info->param_name, exec_info->param_value_size,
                                         exec_info->param_value));
    }
    bool was_uniform = is_uniform(launch);
    copy_sizes(launch->offset, config->global_work_offset, launch->work_dim);
    copy_sizes(launch->size, config->global_work_size, launch->work_dim);
    copy_sizes(launch->local, config->local_work_size, launch->work_dim);
    launch->has_size = launch->has_size || config->global_work_size;
    launch->has_local = launch->has_local || config->local_work_size;
    /* "CL_INVALID_OPERATION if the values of local_work_size and/or global_work_size result in a change to
     * work-group uniformity." */
    CLD_REQUIRE(was_uniform == is_uniform(launch), CL_INVALID_OPERATION,
                "work-groups would no longer be uniform, or become so");
    return CL_SUCCESS;
}
