/* Recording of commands: the parameters that all clCommand* functions have. */
#include "graph/recording.h"

#include <stdlib.h>
#include <string.h>

#include "object/call.h"
#include "object/lock.h"

/* The lock is not held: the application may record with several threads. */
static cl_int check_state(const struct cld_command_buffer *buffer) {
    uint32_t state = atomic_load_explicit(&buffer->state, memory_order_acquire);
    CLD_REQUIRE(state == CLD_COMMAND_BUFFER_STATE_RECORDING, CL_INVALID_OPERATION,
                "the command-buffer is finalized");
    return CL_SUCCESS;
}

/* "CL_INVALID_COMMAND_QUEUE if [...] either command_queue is NULL and command_buffer was created with more
 * than one queue, or command_queue is not NULL and not a command-queue listed on command_buffer creation."
 * "CL_INVALID_CONTEXT if command_queue is not NULL, and the context associated with command_queue and
 * command_buffer is not the same." */
static cl_int check_queue(const struct cld_command_buffer *buffer, cl_command_queue handle, uint32_t *index) {
    *index = 0;
    if (!handle) {
        CLD_REQUIRE(buffer->queue_count == 1, CL_INVALID_COMMAND_QUEUE,
                    "the command-buffer has several queues, and none is named");
        return CL_SUCCESS;
    }
    const struct cld_queue *queue = cld_queue_check(handle);
    CLD_REQUIRE(queue, CL_INVALID_COMMAND_QUEUE, "not a command-queue");
    CLD_REQUIRE(queue->context == buffer->context, CL_INVALID_CONTEXT,
                "the context of command_queue is not the context of command_buffer");
    while (*index < buffer->queue_count && buffer->queues[*index] != queue)
        ++*index;
    CLD_REQUIRE(*index < buffer->queue_count, CL_INVALID_COMMAND_QUEUE,
                "not a queue of the command-buffer's");
    return CL_SUCCESS;
}

static cl_int check_sync_points(struct cld_command_buffer *buffer, cl_uint count,
                                const cl_sync_point_khr *list) {
    CLD_REQUIRE(!count == !list, CLD_INVALID_SYNC_POINT_WAIT_LIST,
                "num_sync_points_in_wait_list and sync_point_wait_list contradict each other");
    cld_lock(buffer);
    uint32_t known = buffer->count;
    cld_unlock(buffer);
    for (cl_uint i = 0; i < count; i++)
        CLD_REQUIRE(list[i] && list[i] <= known, CLD_INVALID_SYNC_POINT_WAIT_LIST,
                    "sync_point_wait_list[%u] is %u, the command-buffer has %u sync points", i, list[i],
                    known);
    return CL_SUCCESS;
}

/* What becomes of a command whose enqueue function is through with it. */
static cl_int take(struct cld_recording *base, struct cld_event *command) {
    struct cld_command_recording *recording = (struct cld_command_recording *)(void *)base;
    struct cld_command_buffer *buffer = recording->buffer;
    size_t size = recording->property_count * sizeof *recording->properties;
    struct cld_recorded *recorded = calloc(1, sizeof *recorded);
    cl_command_properties_khr *properties = malloc(size ? size : 1);
    if (!recorded || !properties) {
        free(recorded);
        free(properties);
        cld_command_discard(command);
        cld_recorded_launch_free(recording->launch);
        return CL_OUT_OF_HOST_MEMORY;
    }
    if (size)
        memcpy(properties, recording->properties, size);
    atomic_init(&recorded->holds, 1);
    recorded->queue = recording->queue;
    recorded->model = command;
    recorded->launch = recording->launch;
    recorded->property_count = recording->property_count;
    recorded->properties = properties;

    struct cld_mutable_command *handle = recording->handle ? cld_object_new(CLD_MUTABLE_COMMAND) : NULL;
    cl_int status = recording->handle && !handle ? CL_OUT_OF_HOST_MEMORY : CL_SUCCESS;
    cld_lock(buffer);
    if (!status && atomic_load_explicit(&buffer->state, memory_order_relaxed))
        status = CL_INVALID_OPERATION;
    if (!status)
        status =
            cld_command_buffer_add(buffer, recorded, recording->sync_points, recording->sync_count, handle);
    uint32_t sync_point = buffer->count;
    cld_unlock(buffer);
    if (status) {
        cld_recorded_drop(recorded);
        if (handle)
            cld_object_drop(handle);
    }
    CLD_REQUIRE(!status, status, "the command-buffer takes no more");
    if (recording->sync_point)
        *recording->sync_point = sync_point;
    if (recording->handle)
        *recording->handle = (cl_mutable_command_khr)handle;
    return CL_SUCCESS;
}

static cl_int begin(struct cld_command_recording *recording, cl_command_buffer_khr command_buffer,
                    cl_command_queue command_queue) {
    struct cld_command_buffer *buffer = cld_command_buffer_check(command_buffer);
    CLD_REQUIRE(buffer, CLD_INVALID_COMMAND_BUFFER, "not a command-buffer");
    CLD_TRY(check_state(buffer));
    *recording = (struct cld_command_recording){.buffer = buffer};
    CLD_TRY(check_queue(buffer, command_queue, &recording->queue));
    recording->recording.queue = buffer->queues[recording->queue];
    recording->recording.take = take;
    return CL_SUCCESS;
}

static cl_int begin_order(struct cld_command_recording *recording, cl_uint sync_count,
                          const cl_sync_point_khr *sync_points, cl_sync_point_khr *sync_point) {
    recording->sync_count = sync_count;
    recording->sync_points = sync_points;
    recording->sync_point = sync_point;
    return check_sync_points(recording->buffer, sync_count, sync_points);
}

cl_int cld_recording_begin(struct cld_command_recording *recording, cl_command_buffer_khr command_buffer,
                           cl_command_queue command_queue, const cl_command_properties_khr *properties,
                           cl_uint sync_count, const cl_sync_point_khr *sync_points,
                           cl_sync_point_khr *sync_point, cl_mutable_command_khr *handle) {
    CLD_TRY(begin(recording, command_buffer, command_queue));
    CLD_REQUIRE(!properties || !properties[0], CL_INVALID_VALUE,
                "properties is not empty, and this command has none");
    CLD_REQUIRE(!handle, CL_INVALID_VALUE, "mutable_handle is not NULL");
    recording->properties = properties;
    recording->property_count = properties ? 1 : 0;
    return begin_order(recording, sync_count, sync_points, sync_point);
}

/* "If CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR is not specified then it defaults to the value returned by the
 * CL_DEVICE_MUTABLE_DISPATCH_CAPABILITIES_KHR device query": all. */
static cl_int check_properties(struct cld_command_recording *recording,
                               const cl_command_properties_khr *properties) {
    size_t at = 0;
    bool names_asserts = false;
    recording->fields = CLD_MUTABLE_DISPATCH_ALL_FIELDS;
    for (; properties && properties[at]; at += 2) {
        cl_command_properties_khr value = properties[at + 1];
        bool *has = properties[at] == CLD_MUTABLE_DISPATCH_UPDATABLE_FIELDS ? &recording->has_fields
                    : properties[at] == CLD_MUTABLE_DISPATCH_ASSERTS        ? &names_asserts
                                                                            : NULL;
        CLD_REQUIRE(has && !*has, CL_INVALID_VALUE, "properties has %#lx twice, or it is none of kernels",
                    (unsigned long)properties[at]);
        *has = true;
        if (has == &recording->has_fields) {
            CLD_REQUIRE(!(value & ~(cl_bitfield)CLD_MUTABLE_DISPATCH_ALL_FIELDS), CL_INVALID_VALUE,
                        "CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR is %#lx, with an unknown bit",
                        (unsigned long)value);
            recording->fields = value;
        } else {
            CLD_REQUIRE(!(value & ~(cl_bitfield)CLD_MUTABLE_DISPATCH_ASSERT_NO_ADDITIONAL_WORK_GROUPS),
                        CL_INVALID_VALUE, "CL_MUTABLE_DISPATCH_ASSERTS_KHR is %#lx, with an unknown bit",
                        (unsigned long)value);
            recording->has_asserts = value != 0;
        }
    }
    recording->properties = properties;
    recording->property_count = properties ? at + 1 : 0;
    return CL_SUCCESS;
}

cl_int cld_recording_begin_kernel(struct cld_command_recording *recording,
                                  cl_command_buffer_khr command_buffer, cl_command_queue command_queue,
                                  const cl_command_properties_khr *properties, cl_uint sync_count,
                                  const cl_sync_point_khr *sync_points, cl_sync_point_khr *sync_point,
                                  cl_mutable_command_khr *handle) {
    CLD_TRY(begin(recording, command_buffer, command_queue));
    CLD_TRY(check_properties(recording, properties));
    recording->handle = handle;
    return begin_order(recording, sync_count, sync_points, sync_point);
}
