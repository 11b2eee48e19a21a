/* What the clCommand* functions share: the checks of their command-buffer, and the way from there through
 * the enqueue functions, which hand over to it what they would have enqueued. */
#ifndef CLD_RECORDING_H
#define CLD_RECORDING_H

#include "graph/command_buffer.h"

struct cld_command_recording {
    struct cld_recording recording; /* first: what enqueue functions know of it */
    struct cld_wait wait;           /* what they take in the place of a wait list and an event */
    struct cld_command_buffer *buffer;
    uint32_t queue; /* an index */
    const cl_command_properties_khr *properties;
    size_t property_count;
    cl_mutable_dispatch_fields_khr fields; /* of kernels: what may be updated */
    bool has_fields, has_asserts;
    cl_uint sync_count;
    const cl_sync_point_khr *sync_points;
    cl_sync_point_khr *sync_point;
    cl_mutable_command_khr *handle;
    struct cld_recorded_launch *launch; /* of kernels; taken over with the command */
};

/* The parameters that all of them have. CL_INVALID_COMMAND_BUFFER_KHR, CL_INVALID_OPERATION,
 * CL_INVALID_COMMAND_QUEUE, CL_INVALID_CONTEXT, CL_INVALID_VALUE, CL_INVALID_SYNC_POINT_WAIT_LIST_KHR. */
cl_int cld_recording_begin(struct cld_command_recording *recording, cl_command_buffer_khr command_buffer,
                           cl_command_queue command_queue, const cl_command_properties_khr *properties,
                           cl_uint sync_count, const cl_sync_point_khr *sync_points,
                           cl_sync_point_khr *sync_point, cl_mutable_command_khr *handle);

/* The same of clCommandNDRangeKernelKHR, which has properties and a handle. */
cl_int cld_recording_begin_kernel(struct cld_command_recording *recording,
                                  cl_command_buffer_khr command_buffer, cl_command_queue command_queue,
                                  const cl_command_properties_khr *properties, cl_uint sync_count,
                                  const cl_sync_point_khr *sync_points, cl_sync_point_khr *sync_point,
                                  cl_mutable_command_khr *handle);

/* In the place of an enqueue's wait list and event. */
static inline const struct cld_wait *cld_recording_wait(struct cld_command_recording *recording) {
    recording->wait = (struct cld_wait){.recording = &recording->recording};
    return &recording->wait;
}

/* Where wait is that of clCommandNDRangeKernelKHR. */
static inline struct cld_command_recording *cld_recording_of(const struct cld_wait *wait) {
    return (struct cld_command_recording *)(void *)wait->recording;
}

#endif
