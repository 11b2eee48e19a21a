/* Queries of command-buffers and of their commands. */
#include "graph/command_buffer.h"
#include "object/call.h"
#include "object/info.h"

CL_API_ENTRY cl_int CL_API_CALL clGetCommandBufferInfoKHR(cl_command_buffer_khr command_buffer,
                                                          cl_command_buffer_info_khr param_name,
                                                          size_t param_value_size, void *param_value,
                                                          size_t *param_value_size_ret) {
    struct cld_command_buffer *buffer = cld_command_buffer_check(command_buffer);
    CLD_REQUIRE(buffer, CLD_INVALID_COMMAND_BUFFER, "not a command-buffer");
    cl_uint number = 0;
    const void *answer = &number;
    size_t size = sizeof number;
    switch (param_name) {
    case CLD_COMMAND_BUFFER_NUM_QUEUES:
        number = buffer->queue_count;
        break;
    case CLD_COMMAND_BUFFER_QUEUES:
        answer = buffer->queues;
        size = buffer->queue_count * sizeof(cl_command_queue);
        break;
    case CLD_COMMAND_BUFFER_REFERENCE_COUNT:
        number = cld_object_refs(buffer);
        break;
    case CLD_COMMAND_BUFFER_STATE:
        number = atomic_load_explicit(&buffer->state, memory_order_acquire);
        break;
    case CLD_COMMAND_BUFFER_PROPERTIES_ARRAY:
        answer = buffer->properties;
        size = buffer->property_count * sizeof *buffer->properties;
        break;
    case CLD_COMMAND_BUFFER_CONTEXT:
        answer = &buffer->context;
        size = sizeof(cl_context);
        break;
    default:
        return cld_lack(__func__, CL_INVALID_VALUE, "param_name is not a query of command-buffers");
    }
    return cld_info(answer, size, param_value_size, param_value, param_value_size_ret);
}

/* Only kernels have handles, so that no query is without an answer. */
static cl_int answer(const struct cld_mutable_command *command, const struct cld_recorded *recorded,
                     cl_mutable_command_info_khr param_name, size_t param_value_size, void *param_value,
                     size_t *param_value_size_ret) {
    const struct cld_recorded_launch *launch = recorded->launch;
    const void *bytes;
    size_t size = launch->work_dim * sizeof(size_t);
    switch (param_name) {
    case CLD_MUTABLE_COMMAND_COMMAND_QUEUE:
        bytes = &command->buffer->queues[recorded->queue];
        size = sizeof(cl_command_queue);
        break;
    case CLD_MUTABLE_COMMAND_COMMAND_BUFFER:
        bytes = &command->buffer;
        size = sizeof(cl_command_buffer_khr);
        break;
    case CLD_MUTABLE_COMMAND_COMMAND_TYPE:
        bytes = &recorded->model->type;
        size = sizeof recorded->model->type;
        break;
    case CLD_MUTABLE_COMMAND_PROPERTIES_ARRAY:
        bytes = recorded->properties;
        size = recorded->property_count * sizeof *recorded->properties;
        break;
    case CLD_MUTABLE_DISPATCH_KERNEL:
        bytes = &launch->of;
        size = sizeof(cl_kernel);
        break;
    case CLD_MUTABLE_DISPATCH_DIMENSIONS:
        bytes = &launch->work_dim;
        size = sizeof launch->work_dim;
        break;
    case CLD_MUTABLE_DISPATCH_GLOBAL_WORK_OFFSET:
        bytes = launch->offset;
        break;
    case CLD_MUTABLE_DISPATCH_GLOBAL_WORK_SIZE:
        bytes = launch->size;
        break;
    case CLD_MUTABLE_DISPATCH_LOCAL_WORK_SIZE:
        bytes = launch->local;
        break;
    default:
        return cld_lack(__func__, CL_INVALID_VALUE, "param_name is not a query of commands");
    }
    return cld_info(bytes, size, param_value_size, param_value, param_value_size_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clGetMutableCommandInfoKHR(cl_mutable_command_khr handle,
                                                           cl_mutable_command_info_khr param_name,
                                                           size_t param_value_size, void *param_value,
                                                           size_t *param_value_size_ret) {
    const struct cld_mutable_command *command = cld_object_check(handle, CLD_MUTABLE_COMMAND);
    CLD_REQUIRE(command, CLD_INVALID_MUTABLE_COMMAND, "not a command of a command-buffer");
    struct cld_recorded *recorded = cld_recorded_hold(command->buffer, command->number);
    cl_int status =
        answer(command, recorded, param_name, param_value_size, param_value, param_value_size_ret);
    cld_recorded_drop(recorded);
    return status;
}
