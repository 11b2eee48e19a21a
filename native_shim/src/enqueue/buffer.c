/* Read, write, copy and fill of buffers (API specification, 5.2.2 to 5.2.4). */
#include "enqueue/enqueue.h"
#include "graph/recording.h"
#include "memory/mem.h"
#include "object/call.h"
#include "runtime/enqueue_check.h"

/* Reads where type is CL_COMMAND_READ_BUFFER, else writes. */
static cl_int transfer(cl_command_queue command_queue, cl_command_type type, cl_mem handle, cl_bool blocking,
                       size_t offset, size_t size, uint8_t *ptr, const struct cld_wait *wait) {
    bool reads = type == CL_COMMAND_READ_BUFFER;
    struct cld_queue *queue;
    struct cld_mem *buffer;
    CLD_TRY(cld_check_buffer_command(command_queue, handle, wait, &queue, &buffer));
    CLD_TRY(cld_check_range(buffer, offset, size));
    CLD_REQUIRE(ptr, CL_INVALID_VALUE, "ptr is NULL");
    CLD_TRY(reads ? cld_check_host_reads(buffer) : cld_check_host_writes(buffer));
    uint8_t *inside = buffer->data + offset;
    struct cld_copy_region region = reads ? cld_linear(ptr, inside, size) : cld_linear(inside, ptr, size);
    return cld_enqueue_copy(queue, type, buffer, NULL, &region, blocking, wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueReadBuffer(cl_command_queue command_queue, cl_mem buffer,
                                                    cl_bool blocking_read, size_t offset, size_t size,
                                                    void *ptr, cl_uint num_events_in_wait_list,
                                                    const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return transfer(command_queue, CL_COMMAND_READ_BUFFER, buffer, blocking_read, offset, size, ptr, &wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueWriteBuffer(cl_command_queue command_queue, cl_mem buffer,
                                                     cl_bool blocking_write, size_t offset, size_t size,
                                                     const void *ptr, cl_uint num_events_in_wait_list,
                                                     const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    /* Of the host's memory a write reads only. */
    return transfer(command_queue, CL_COMMAND_WRITE_BUFFER, buffer, blocking_write, offset, size,
                    (uint8_t *)(uintptr_t)ptr, &wait);
}

static cl_int copy(cl_command_queue command_queue, cl_mem source_handle, cl_mem destination_handle,
                   size_t src_offset, size_t dst_offset, size_t size, const struct cld_wait *wait) {
    struct cld_queue *queue;
    struct cld_mem *source, *destination;
    CLD_TRY(cld_check_buffer_copy(command_queue, source_handle, destination_handle, wait, &queue, &source,
                                  &destination));
    CLD_TRY(cld_check_range(source, src_offset, size));
    CLD_TRY(cld_check_range(destination, dst_offset, size));
    struct cld_copy_region region =
        cld_linear(destination->data + dst_offset, source->data + src_offset, size);
    /* "CL_MEM_COPY_OVERLAP if src_buffer and dst_buffer are the same buffer or sub-buffer object and the
     * source and destination regions overlap or if they are different sub-buffers of the same associated
     * buffer object and they overlap." */
    CLD_REQUIRE(!cld_same_memory(source, destination) || !size ||
                    region.source + size <= region.destination || region.destination + size <= region.source,
                CL_MEM_COPY_OVERLAP, "the regions overlap in one buffer");
    return cld_enqueue_copy(queue, CL_COMMAND_COPY_BUFFER, source, destination, &region, false, wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueCopyBuffer(cl_command_queue command_queue, cl_mem src_buffer,
                                                    cl_mem dst_buffer, size_t src_offset, size_t dst_offset,
                                                    size_t size, cl_uint num_events_in_wait_list,
                                                    const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return copy(command_queue, src_buffer, dst_buffer, src_offset, dst_offset, size, &wait);
}

CL_API_ENTRY cl_int CL_API_CALL
clCommandCopyBufferKHR(cl_command_buffer_khr command_buffer, cl_command_queue command_queue,
                       const cl_command_properties_khr *properties, cl_mem src_buffer, cl_mem dst_buffer,
                       size_t src_offset, size_t dst_offset, size_t size,
                       cl_uint num_sync_points_in_wait_list, const cl_sync_point_khr *sync_point_wait_list,
                       cl_sync_point_khr *sync_point, cl_mutable_command_khr *mutable_handle) {
    struct cld_command_recording recording;
    CLD_TRY(cld_recording_begin(&recording, command_buffer, command_queue, properties,
                                num_sync_points_in_wait_list, sync_point_wait_list, sync_point,
                                mutable_handle));
    return copy(NULL, src_buffer, dst_buffer, src_offset, dst_offset, size, cld_recording_wait(&recording));
}

static cl_int fill(cl_command_queue command_queue, cl_mem handle, const void *pattern, size_t pattern_size,
                   size_t offset, size_t size, const struct cld_wait *wait) {
    struct cld_queue *queue;
    struct cld_mem *buffer;
    CLD_TRY(cld_check_buffer_command(command_queue, handle, wait, &queue, &buffer));
    CLD_TRY(cld_check_changes(buffer));
    CLD_TRY(cld_check_range(buffer, offset, size));
    CLD_REQUIRE(pattern && cld_is_pattern_size(pattern_size), CL_INVALID_VALUE,
                "pattern is NULL, or pattern_size is %zu, none of 1, 2, 4, 8, 16, 32, 64, 128", pattern_size);
    CLD_REQUIRE(offset % pattern_size == 0 && size % pattern_size == 0, CL_INVALID_VALUE,
                "offset is %zu and size is %zu, both to be multiples of %zu, pattern_size", offset, size,
                pattern_size);
    return cld_enqueue_fill(queue, CL_COMMAND_FILL_BUFFER, buffer, buffer->data + offset, size, pattern,
                            pattern_size, wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueFillBuffer(cl_command_queue command_queue, cl_mem buffer,
                                                    const void *pattern, size_t pattern_size, size_t offset,
                                                    size_t size, cl_uint num_events_in_wait_list,
                                                    const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return fill(command_queue, buffer, pattern, pattern_size, offset, size, &wait);
}

CL_API_ENTRY cl_int CL_API_CALL
clCommandFillBufferKHR(cl_command_buffer_khr command_buffer, cl_command_queue command_queue,
                       const cl_command_properties_khr *properties, cl_mem buffer, const void *pattern,
                       size_t pattern_size, size_t offset, size_t size, cl_uint num_sync_points_in_wait_list,
                       const cl_sync_point_khr *sync_point_wait_list, cl_sync_point_khr *sync_point,
                       cl_mutable_command_khr *mutable_handle) {
    struct cld_command_recording recording;
    CLD_TRY(cld_recording_begin(&recording, command_buffer, command_queue, properties,
                                num_sync_points_in_wait_list, sync_point_wait_list, sync_point,
                                mutable_handle));
    return fill(NULL, buffer, pattern, pattern_size, offset, size, cld_recording_wait(&recording));
}
