/* Image commands (API specification, 5.3): the device has no images, and says so. "CL_INVALID_OPERATION if
 * the device associated with command_queue does not support images." */
#include "enqueue.h"
#include "log.h"

static cl_int no_images(cl_command_queue handle) {
    struct cld_queue *queue;
    CLD_TRY(cld_check_queue(handle, &queue));
    CLD_REQUIRE(false, CL_INVALID_OPERATION, "the device has no images");
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueReadImage(cl_command_queue command_queue, cl_mem image,
                                                   cl_bool blocking_read, const size_t *origin,
                                                   const size_t *region, size_t row_pitch, size_t slice_pitch,
                                                   void *ptr, cl_uint num_events_in_wait_list,
                                                   const cl_event *event_wait_list, cl_event *event) {
    (void)image, (void)blocking_read, (void)origin, (void)region, (void)row_pitch, (void)slice_pitch;
    (void)ptr, (void)num_events_in_wait_list, (void)event_wait_list, (void)event;
    return no_images(command_queue);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueWriteImage(cl_command_queue command_queue, cl_mem image,
                                                    cl_bool blocking_write, const size_t *origin,
                                                    const size_t *region, size_t input_row_pitch,
                                                    size_t input_slice_pitch, const void *ptr,
                                                    cl_uint num_events_in_wait_list,
                                                    const cl_event *event_wait_list, cl_event *event) {
    (void)image, (void)blocking_write, (void)origin, (void)region, (void)input_row_pitch;
    (void)input_slice_pitch, (void)ptr, (void)num_events_in_wait_list, (void)event_wait_list, (void)event;
    return no_images(command_queue);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueFillImage(cl_command_queue command_queue, cl_mem image,
                                                   const void *fill_color, const size_t *origin,
                                                   const size_t *region, cl_uint num_events_in_wait_list,
                                                   const cl_event *event_wait_list, cl_event *event) {
    (void)image, (void)fill_color, (void)origin, (void)region, (void)num_events_in_wait_list;
    (void)event_wait_list, (void)event;
    return no_images(command_queue);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueCopyImage(cl_command_queue command_queue, cl_mem src_image,
                                                   cl_mem dst_image, const size_t *src_origin,
                                                   const size_t *dst_origin, const size_t *region,
                                                   cl_uint num_events_in_wait_list,
                                                   const cl_event *event_wait_list, cl_event *event) {
    (void)src_image, (void)dst_image, (void)src_origin, (void)dst_origin, (void)region;
    (void)num_events_in_wait_list, (void)event_wait_list, (void)event;
    return no_images(command_queue);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueCopyImageToBuffer(cl_command_queue command_queue, cl_mem src_image,
                                                           cl_mem dst_buffer, const size_t *src_origin,
                                                           const size_t *region, size_t dst_offset,
                                                           cl_uint num_events_in_wait_list,
                                                           const cl_event *event_wait_list, cl_event *event) {
    (void)src_image, (void)dst_buffer, (void)src_origin, (void)region, (void)dst_offset;
    (void)num_events_in_wait_list, (void)event_wait_list, (void)event;
    return no_images(command_queue);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueCopyBufferToImage(cl_command_queue command_queue, cl_mem src_buffer,
                                                           cl_mem dst_image, size_t src_offset,
                                                           const size_t *dst_origin, const size_t *region,
                                                           cl_uint num_events_in_wait_list,
                                                           const cl_event *event_wait_list, cl_event *event) {
    (void)src_buffer, (void)dst_image, (void)src_offset, (void)dst_origin, (void)region;
    (void)num_events_in_wait_list, (void)event_wait_list, (void)event;
    return no_images(command_queue);
}

CL_API_ENTRY void *CL_API_CALL clEnqueueMapImage(
    cl_command_queue command_queue, cl_mem image, cl_bool blocking_map, cl_map_flags map_flags,
    const size_t *origin, const size_t *region, size_t *image_row_pitch, size_t *image_slice_pitch,
    cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event, cl_int *errcode_ret) {
    (void)image, (void)blocking_map, (void)map_flags, (void)origin, (void)region, (void)image_row_pitch;
    (void)image_slice_pitch, (void)num_events_in_wait_list, (void)event_wait_list, (void)event;
    cl_int status = no_images(command_queue);
    if (errcode_ret)
        *errcode_ret = status;
    return NULL;
}
