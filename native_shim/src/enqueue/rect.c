/* Rectangles of buffers (API specification, 5.2.2 and 5.2.3). */
#include "enqueue/enqueue.h"
#include "graph/recording.h"
#include "memory/mem.h"
#include "object/call.h"
#include "runtime/enqueue_check.h"

/* "CL_INVALID_VALUE if any region array element is 0." "CL_INVALID_VALUE if buffer_origin, host_origin, or
 * region is NULL." */
static cl_int check_arrays(const size_t *a_origin, const size_t *b_origin, const size_t *region) {
    CLD_REQUIRE(a_origin && b_origin && region, CL_INVALID_VALUE, "an origin or the region is NULL");
    CLD_REQUIRE(region[0] && region[1] && region[2], CL_INVALID_VALUE,
                "region is {%zu, %zu, %zu}, each at least 1", region[0], region[1], region[2]);
    return CL_SUCCESS;
}

struct cld_copy_region cld_rectangle(uint8_t *destination, const struct cld_rect *destination_rect,
                                     const uint8_t *source, const struct cld_rect *source_rect,
                                     const size_t *region) {
    struct cld_copy_region copy = {
        .destination = destination + destination_rect->offset,
        .source = source + source_rect->offset,
        .width = region[0],
        .height = region[1],
        .depth = region[2],
        .destination_row = destination_rect->row,
        .destination_slice = destination_rect->slice,
        .source_row = source_rect->row,
        .source_slice = source_rect->slice,
    };
    /* Rows, and then slices, that follow each other without a gap on both sides are one. */
    if (copy.destination_row == copy.width && copy.source_row == copy.width) {
        copy.width *= copy.height;
        copy.height = copy.depth;
        copy.depth = 1;
        copy.destination_row = copy.destination_slice;
        copy.source_row = copy.source_slice;
        if (copy.destination_row == copy.width && copy.source_row == copy.width) {
            copy.width *= copy.height;
            copy.height = 1;
        }
    }
    return copy;
}

/* clEnqueueReadBufferRect and clEnqueueWriteBufferRect; ptr is where the host's rectangle is. */
static cl_int transfer(cl_command_queue command_queue, cl_command_type type, cl_mem handle, cl_bool blocking,
                       const size_t *buffer_origin, const size_t *host_origin, const size_t *region,
                       size_t buffer_row_pitch, size_t buffer_slice_pitch, size_t host_row_pitch,
                       size_t host_slice_pitch, uint8_t *ptr, const struct cld_wait *wait) {
    struct cld_queue *queue;
    struct cld_mem *buffer;
    struct cld_rect inside, host;
    bool reads = type == CL_COMMAND_READ_BUFFER_RECT;
    CLD_TRY(cld_check_buffer_command(command_queue, handle, wait, &queue, &buffer));
    CLD_TRY(check_arrays(buffer_origin, host_origin, region));
    CLD_TRY(cld_check_rect(buffer_origin, region, buffer_row_pitch, buffer_slice_pitch, &inside));
    CLD_TRY(cld_check_rect(host_origin, region, host_row_pitch, host_slice_pitch, &host));
    CLD_TRY(cld_check_range(buffer, inside.offset, inside.span));
    CLD_REQUIRE(ptr, CL_INVALID_VALUE, "ptr is NULL");
    CLD_TRY(reads ? cld_check_host_reads(buffer) : cld_check_host_writes(buffer));
    struct cld_copy_region copy = reads ? cld_rectangle(ptr, &host, buffer->data, &inside, region)
                                        : cld_rectangle(buffer->data, &inside, ptr, &host, region);
    return cld_enqueue_copy(queue, type, buffer, NULL, &copy, blocking, wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueReadBufferRect(cl_command_queue command_queue, cl_mem buffer,
                                                        cl_bool blocking_read, const size_t *buffer_origin,
                                                        const size_t *host_origin, const size_t *region,
                                                        size_t buffer_row_pitch, size_t buffer_slice_pitch,
                                                        size_t host_row_pitch, size_t host_slice_pitch,
                                                        void *ptr, cl_uint num_events_in_wait_list,
                                                        const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return transfer(command_queue, CL_COMMAND_READ_BUFFER_RECT, buffer, blocking_read, buffer_origin,
                    host_origin, region, buffer_row_pitch, buffer_slice_pitch, host_row_pitch,
                    host_slice_pitch, ptr, &wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueWriteBufferRect(cl_command_queue command_queue, cl_mem buffer,
                                                         cl_bool blocking_write, const size_t *buffer_origin,
                                                         const size_t *host_origin, const size_t *region,
                                                         size_t buffer_row_pitch, size_t buffer_slice_pitch,
                                                         size_t host_row_pitch, size_t host_slice_pitch,
                                                         const void *ptr, cl_uint num_events_in_wait_list,
                                                         const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    /* Of the host's rectangle a write reads only. */
    return transfer(command_queue, CL_COMMAND_WRITE_BUFFER_RECT, buffer, blocking_write, buffer_origin,
                    host_origin, region, buffer_row_pitch, buffer_slice_pitch, host_row_pitch,
                    host_slice_pitch, (uint8_t *)(uintptr_t)ptr, &wait);
}

static cl_int copy_rect(cl_command_queue command_queue, cl_mem source_handle, cl_mem destination_handle,
                        const size_t *src_origin, const size_t *dst_origin, const size_t *region,
                        size_t src_row_pitch, size_t src_slice_pitch, size_t dst_row_pitch,
                        size_t dst_slice_pitch, const struct cld_wait *wait) {
    struct cld_queue *queue;
    struct cld_mem *source, *destination;
    struct cld_rect from, to;
    CLD_TRY(cld_check_buffer_copy(command_queue, source_handle, destination_handle, wait, &queue, &source,
                                  &destination));
    CLD_TRY(check_arrays(src_origin, dst_origin, region));
    CLD_TRY(cld_check_rect(src_origin, region, src_row_pitch, src_slice_pitch, &from));
    CLD_TRY(cld_check_rect(dst_origin, region, dst_row_pitch, dst_slice_pitch, &to));
    CLD_TRY(cld_check_range(source, from.offset, from.span));
    CLD_TRY(cld_check_range(destination, to.offset, to.span));
    /* "If src_buffer and dst_buffer are the same buffer object, src_row_pitch must equal dst_row_pitch and
     * src_slice_pitch must equal dst_slice_pitch." */
    CLD_REQUIRE(source != destination || (from.row == to.row && from.slice == to.slice), CL_INVALID_VALUE,
                "one buffer has the row pitches %zu and %zu, the slice pitches %zu and %zu", from.row, to.row,
                from.slice, to.slice);
    CLD_REQUIRE(!cld_same_memory(source, destination) ||
                    !cld_rects_overlap(source->data + from.offset, &from, region,
                                       destination->data + to.offset, &to, region),
                CL_MEM_COPY_OVERLAP,
                "the regions overlap in one buffer, with rows %zu and slices %zu bytes apart", from.row,
                from.slice);
    struct cld_copy_region copy = cld_rectangle(destination->data, &to, source->data, &from, region);
    return cld_enqueue_copy(queue, CL_COMMAND_COPY_BUFFER_RECT, source, destination, &copy, false, wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueCopyBufferRect(cl_command_queue command_queue, cl_mem src_buffer,
                                                        cl_mem dst_buffer, const size_t *src_origin,
                                                        const size_t *dst_origin, const size_t *region,
                                                        size_t src_row_pitch, size_t src_slice_pitch,
                                                        size_t dst_row_pitch, size_t dst_slice_pitch,
                                                        cl_uint num_events_in_wait_list,
                                                        const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return copy_rect(command_queue, src_buffer, dst_buffer, src_origin, dst_origin, region, src_row_pitch,
                     src_slice_pitch, dst_row_pitch, dst_slice_pitch, &wait);
}

CL_API_ENTRY cl_int CL_API_CALL clCommandCopyBufferRectKHR(
    cl_command_buffer_khr command_buffer, cl_command_queue command_queue,
    const cl_command_properties_khr *properties, cl_mem src_buffer, cl_mem dst_buffer,
    const size_t *src_origin, const size_t *dst_origin, const size_t *region, size_t src_row_pitch,
    size_t src_slice_pitch, size_t dst_row_pitch, size_t dst_slice_pitch,
    cl_uint num_sync_points_in_wait_list, const cl_sync_point_khr *sync_point_wait_list,
    cl_sync_point_khr *sync_point, cl_mutable_command_khr *mutable_handle) {
    struct cld_command_recording recording;
    CLD_TRY(cld_recording_begin(&recording, command_buffer, command_queue, properties,
                                num_sync_points_in_wait_list, sync_point_wait_list, sync_point,
                                mutable_handle));
    return copy_rect(NULL, src_buffer, dst_buffer, src_origin, dst_origin, region, src_row_pitch,
                     src_slice_pitch, dst_row_pitch, dst_slice_pitch, cld_recording_wait(&recording));
}
