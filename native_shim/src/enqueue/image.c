/* Image commands (API specification, 5.3.4 to 5.3.8): read, write, copy and fill, to and from buffers. Maps
 * are in map.c. Every region is a rectangle of bytes, which the copies and fills of copy.c
 * take. */
#include "memory/image.h"
#include "enqueue/enqueue.h"
#include "graph/recording.h"
#include "memory/mem.h"
#include "object/call.h"
#include "runtime/enqueue_check.h"

/* What the level of the image has in each dimension of an origin. */
static void find_extent(const struct cld_mem *image, const struct cld_image_level *level, size_t extent[3]) {
    extent[0] = (size_t)level->width;
    extent[1] = (size_t)level->height;
    extent[2] = (size_t)level->depth;
    if (cld_image_is_array(image->type))
        extent[cld_image_dimensions(image->type) - 1] = (size_t)image->image->desc.array_size;
}

/* "The mipmap image level(s) to access for each command are determined from the origin parameter": by the
 * entry behind those of the image's dimensions. */
static cl_int check_level(const struct cld_mem *image, const size_t *origin,
                          const struct cld_image_level **level) {
    const struct cld_image_desc *desc = &image->image->desc;
    size_t number = desc->levels > 1 ? origin[cld_image_dimensions(image->type)] : 0;
    CLD_REQUIRE(number < desc->levels, CL_INVALID_MIP_LEVEL, "origin[%d] is %zu, the image has %u mip levels",
                cld_image_dimensions(image->type), number, (unsigned)desc->levels);
    *level = &desc->level[number];
    return CL_SUCCESS;
}

cl_int cld_check_image_region(const struct cld_mem *image, const size_t *origin, const size_t *region,
                              struct cld_image_rect *inside) {
    const struct cld_image_desc *desc = &image->image->desc;
    const struct cld_pixel_group group = image->image->group;
    const struct cld_image_level *level;
    int dimensions = cld_image_dimensions(image->type);
    size_t extent[3];
    /* "CL_INVALID_VALUE if origin or region is NULL." */
    CLD_REQUIRE(origin && region, CL_INVALID_VALUE, "an origin or the region is NULL");
    CLD_TRY(check_level(image, origin, &level));
    find_extent(image, level, extent);
    for (int i = 0; i < 3; i++) {
        /* "If image is a 2D image object, origin[2] must be 0" "region[2] must be 1", and so on: where an
         * image has no dimension, its extent is 1. "The values in region cannot be 0." */
        size_t start = desc->levels > 1 && i == dimensions ? 0 : origin[i];
        CLD_REQUIRE(region[i], CL_INVALID_VALUE, "region[%d] is 0, at least 1", i);
        CLD_REQUIRE(start < extent[i] && region[i] <= extent[i] - start, CL_INVALID_VALUE,
                    "origin[%d] is %zu and region[%d] is %zu, the image has %zu there", i, start, i,
                    region[i], extent[i]);
        inside->region[i] = region[i];
    }
    CLD_REQUIRE(group.pixels == 1 || (origin[0] | region[0]) % group.pixels == 0, CL_INVALID_VALUE,
                "the region begins at pixel %zu and has %zu: %u share bytes", origin[0], region[0],
                group.pixels);
    struct cld_rect *rect = &inside->rect;
    inside->row_pitch = level->row_pitch;
    rect->row = image->type == CL_MEM_OBJECT_IMAGE1D_ARRAY ? level->slice_pitch : level->row_pitch;
    rect->slice = level->slice_pitch;
    rect->offset = level->offset + cld_pixel_bytes(group, origin[0]);
    if (dimensions > 1)
        rect->offset += origin[1] * rect->row;
    if (dimensions > 2)
        rect->offset += origin[2] * rect->slice;
    inside->region[0] = cld_pixel_bytes(group, region[0]);
    rect->span = (region[2] - 1) * rect->slice + (region[1] - 1) * rect->row + inside->region[0];
    return CL_SUCCESS;
}

/* The host's side of a read or write. */
static cl_int check_host_pitches(const struct cld_mem *image, const struct cld_image_rect *inside,
                                 size_t row_pitch, size_t slice_pitch, struct cld_rect *host) {
    bool is_1d_array = image->type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
    size_t rows = is_1d_array ? 1 : inside->region[1], slice;
    /* "This value must be greater than or equal to the element size in bytes x width." */
    CLD_REQUIRE(!row_pitch || row_pitch >= inside->region[0], CL_INVALID_VALUE,
                "the row pitch is %zu, at least %zu, a row of the region", row_pitch, inside->region[0]);
    host->row = row_pitch ? row_pitch : inside->region[0];
    /* "CL_INVALID_VALUE if image is a 1D or 2D image and slice_pitch or input_slice_pitch is not 0." */
    CLD_REQUIRE(!slice_pitch || cld_image_has_slices(image->type), CL_INVALID_VALUE,
                "the slice pitch is %zu, 0 for an image without slices", slice_pitch);
    /* "Otherwise this value must be greater than or equal to row_pitch x height." */
    CLD_REQUIRE(!__builtin_mul_overflow(host->row, rows, &slice), CL_INVALID_VALUE,
                "the region has %zu rows of %zu bytes: more than can be counted", rows, host->row);
    CLD_REQUIRE(!slice_pitch || slice_pitch >= slice, CL_INVALID_VALUE,
                "the slice pitch is %zu, at least %zu, a slice of the region", slice_pitch, slice);
    host->slice = slice_pitch ? slice_pitch : slice;
    if (is_1d_array)
        host->row = host->slice;
    host->offset = 0;
    return CL_SUCCESS;
}

/* A copy between an image and memory outside of it, with what the checks find out. */
struct transfer {
    struct cld_queue *queue;
    struct cld_mem *image, *buffer; /* buffer: NULL where the host's memory is the other side */
    struct cld_image_rect inside;
    struct cld_rect outside;
};

static cl_int check_host_transfer(struct transfer *transfer, cl_command_queue queue, cl_mem image,
                                  const size_t *origin, const size_t *region, size_t row_pitch,
                                  size_t slice_pitch, const void *ptr, const struct cld_wait *wait) {
    CLD_TRY(cld_check_queue(queue, wait, &transfer->queue));
    CLD_TRY(cld_check_image(transfer->queue, image, &transfer->image));
    CLD_TRY(cld_check_wait(transfer->queue, wait));
    CLD_TRY(cld_check_image_region(transfer->image, origin, region, &transfer->inside));
    CLD_TRY(
        check_host_pitches(transfer->image, &transfer->inside, row_pitch, slice_pitch, &transfer->outside));
    CLD_REQUIRE(ptr, CL_INVALID_VALUE, "ptr is NULL");
    return CL_SUCCESS;
}

static cl_int enqueue_out(const struct transfer *transfer, cl_command_type type, void *to, bool blocking,
                          const struct cld_wait *wait) {
    const struct cld_image_rect *inside = &transfer->inside;
    struct cld_copy_region copy =
        cld_rectangle(to, &transfer->outside, transfer->image->data, &inside->rect, inside->region);
    return cld_enqueue_copy(transfer->queue, type, transfer->image, transfer->buffer, &copy, blocking, wait);
}

static cl_int enqueue_in(const struct transfer *transfer, cl_command_type type, const void *from,
                         bool blocking, const struct cld_wait *wait) {
    const struct cld_image_rect *inside = &transfer->inside;
    struct cld_copy_region copy =
        cld_rectangle(transfer->image->data, &inside->rect, from, &transfer->outside, inside->region);
    return cld_enqueue_copy(transfer->queue, type, transfer->buffer, transfer->image, &copy, blocking, wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueReadImage(cl_command_queue command_queue, cl_mem image,
                                                   cl_bool blocking_read, const size_t *origin,
                                                   const size_t *region, size_t row_pitch, size_t slice_pitch,
                                                   void *ptr, cl_uint num_events_in_wait_list,
                                                   const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    struct transfer transfer = {0};
    CLD_TRY(check_host_transfer(&transfer, command_queue, image, origin, region, row_pitch, slice_pitch, ptr,
                                &wait));
    CLD_TRY(cld_check_host_reads(transfer.image));
    return enqueue_out(&transfer, CL_COMMAND_READ_IMAGE, ptr, blocking_read, &wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueWriteImage(cl_command_queue command_queue, cl_mem image,
                                                    cl_bool blocking_write, const size_t *origin,
                                                    const size_t *region, size_t input_row_pitch,
                                                    size_t input_slice_pitch, const void *ptr,
                                                    cl_uint num_events_in_wait_list,
                                                    const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    struct transfer transfer = {0};
    CLD_TRY(check_host_transfer(&transfer, command_queue, image, origin, region, input_row_pitch,
                                input_slice_pitch, ptr, &wait));
    CLD_TRY(cld_check_host_writes(transfer.image));
    return enqueue_in(&transfer, CL_COMMAND_WRITE_IMAGE, ptr, blocking_write, &wait);
}

static cl_int fill_image(cl_command_queue command_queue, cl_mem handle, const void *fill_color,
                         const size_t *origin, const size_t *region, const struct cld_wait *wait) {
    struct cld_queue *queue;
    struct cld_mem *image;
    struct cld_image_rect inside;
    uint8_t pixel[CLD_LARGEST_PIXEL];
    CLD_TRY(cld_check_queue(command_queue, wait, &queue));
    CLD_TRY(cld_check_image(queue, handle, &image));
    CLD_TRY(cld_check_wait(queue, wait));
    CLD_TRY(cld_check_changes(image));
    CLD_REQUIRE(fill_color, CL_INVALID_VALUE, "fill_color is NULL");
    CLD_TRY(cld_check_image_region(image, origin, region, &inside));
    cld_pixel_pack(&image->image->format, fill_color, pixel);
    struct cld_copy_region to =
        cld_rectangle(image->data, &inside.rect, image->data, &inside.rect, inside.region);
    return cld_enqueue_fill_rows(queue, CL_COMMAND_FILL_IMAGE, image, &to, pixel, image->image->group.bytes,
                                 wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueFillImage(cl_command_queue command_queue, cl_mem image,
                                                   const void *fill_color, const size_t *origin,
                                                   const size_t *region, cl_uint num_events_in_wait_list,
                                                   const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return fill_image(command_queue, image, fill_color, origin, region, &wait);
}

CL_API_ENTRY cl_int CL_API_CALL clCommandFillImageKHR(
    cl_command_buffer_khr command_buffer, cl_command_queue command_queue,
    const cl_command_properties_khr *properties, cl_mem image, const void *fill_color, const size_t *origin,
    const size_t *region, cl_uint num_sync_points_in_wait_list, const cl_sync_point_khr *sync_point_wait_list,
    cl_sync_point_khr *sync_point, cl_mutable_command_khr *mutable_handle) {
    struct cld_command_recording recording;
    CLD_TRY(cld_recording_begin(&recording, command_buffer, command_queue, properties,
                                num_sync_points_in_wait_list, sync_point_wait_list, sync_point,
                                mutable_handle));
    return fill_image(NULL, image, fill_color, origin, region, cld_recording_wait(&recording));
}

static cl_int copy_image(cl_command_queue command_queue, cl_mem src_image, cl_mem dst_image,
                         const size_t *src_origin, const size_t *dst_origin, const size_t *region,
                         const struct cld_wait *wait) {
    struct cld_queue *queue;
    struct cld_mem *source, *destination;
    struct cld_image_rect from, to;
    CLD_TRY(cld_check_queue(command_queue, wait, &queue));
    CLD_TRY(cld_check_image(queue, src_image, &source));
    CLD_TRY(cld_check_image(queue, dst_image, &destination));
    CLD_TRY(cld_check_wait(queue, wait));
    CLD_TRY(cld_check_changes(destination));
    /* "CL_IMAGE_FORMAT_MISMATCH if src_image and dst_image do not use the same image format." */
    const cl_image_format *a = &source->image->format, *b = &destination->image->format;
    CLD_REQUIRE(a->image_channel_order == b->image_channel_order &&
                    a->image_channel_data_type == b->image_channel_data_type,
                CL_IMAGE_FORMAT_MISMATCH,
                "src_image has channel order %#x and type %#x, dst_image %#x and %#x", a->image_channel_order,
                a->image_channel_data_type, b->image_channel_order, b->image_channel_data_type);
    CLD_TRY(cld_check_image_region(source, src_origin, region, &from));
    CLD_TRY(cld_check_image_region(destination, dst_origin, region, &to));
    /* "CL_MEM_COPY_OVERLAP if src_image and dst_image are the same image object and the source and
     * destination regions overlap": as with buffers, also if they share their memory. */
    CLD_REQUIRE(!cld_same_memory(source, destination) ||
                    !cld_rects_overlap(source->data + from.rect.offset, &from.rect, from.region,
                                       destination->data + to.rect.offset, &to.rect, to.region),
                CL_MEM_COPY_OVERLAP, "the regions overlap in one image");
    struct cld_copy_region copy =
        cld_rectangle(destination->data, &to.rect, source->data, &from.rect, from.region);
    return cld_enqueue_copy(queue, CL_COMMAND_COPY_IMAGE, source, destination, &copy, false, wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueCopyImage(cl_command_queue command_queue, cl_mem src_image,
                                                   cl_mem dst_image, const size_t *src_origin,
                                                   const size_t *dst_origin, const size_t *region,
                                                   cl_uint num_events_in_wait_list,
                                                   const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return copy_image(command_queue, src_image, dst_image, src_origin, dst_origin, region, &wait);
}

CL_API_ENTRY cl_int CL_API_CALL
clCommandCopyImageKHR(cl_command_buffer_khr command_buffer, cl_command_queue command_queue,
                      const cl_command_properties_khr *properties, cl_mem src_image, cl_mem dst_image,
                      const size_t *src_origin, const size_t *dst_origin, const size_t *region,
                      cl_uint num_sync_points_in_wait_list, const cl_sync_point_khr *sync_point_wait_list,
                      cl_sync_point_khr *sync_point, cl_mutable_command_khr *mutable_handle) {
    struct cld_command_recording recording;
    CLD_TRY(cld_recording_begin(&recording, command_buffer, command_queue, properties,
                                num_sync_points_in_wait_list, sync_point_wait_list, sync_point,
                                mutable_handle));
    return copy_image(NULL, src_image, dst_image, src_origin, dst_origin, region,
                      cld_recording_wait(&recording));
}

static cl_int check_buffer_transfer(struct transfer *transfer, cl_command_queue queue, cl_mem image,
                                    cl_mem buffer, const size_t *origin, const size_t *region, size_t offset,
                                    const struct cld_wait *wait) {
    const struct cld_image_rect *inside = &transfer->inside;
    struct cld_rect *rect = &transfer->outside;
    CLD_TRY(cld_check_queue(queue, wait, &transfer->queue));
    CLD_TRY(cld_check_image(transfer->queue, image, &transfer->image));
    CLD_TRY(cld_check_buffer(transfer->queue, buffer, &transfer->buffer));
    CLD_TRY(cld_check_wait(transfer->queue, wait));
    /* "CL_INVALID_MEM_OBJECT [...] if src_image is a 1D image buffer object created from dst_buffer." */
    CLD_REQUIRE(transfer->image->type != CL_MEM_OBJECT_IMAGE1D_BUFFER ||
                    transfer->image->parent != transfer->buffer,
                CL_INVALID_MEM_OBJECT, "the image of the call is made from its buffer");
    CLD_TRY(cld_check_image_region(transfer->image, origin, region, &transfer->inside));
    /* In the buffer, the pixels are one after the other. */
    rect->row = inside->region[0];
    rect->slice = rect->row * inside->region[1];
    rect->offset = offset;
    return cld_check_range(transfer->buffer, offset, rect->slice * inside->region[2]);
}

static cl_int copy_to_buffer(cl_command_queue command_queue, cl_mem src_image, cl_mem dst_buffer,
                             const size_t *src_origin, const size_t *region, size_t dst_offset,
                             const struct cld_wait *wait) {
    struct transfer transfer;
    CLD_TRY(check_buffer_transfer(&transfer, command_queue, src_image, dst_buffer, src_origin, region,
                                  dst_offset, wait));
    CLD_TRY(cld_check_changes(transfer.buffer));
    return enqueue_out(&transfer, CL_COMMAND_COPY_IMAGE_TO_BUFFER, transfer.buffer->data, false, wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueCopyImageToBuffer(cl_command_queue command_queue, cl_mem src_image,
                                                           cl_mem dst_buffer, const size_t *src_origin,
                                                           const size_t *region, size_t dst_offset,
                                                           cl_uint num_events_in_wait_list,
                                                           const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return copy_to_buffer(command_queue, src_image, dst_buffer, src_origin, region, dst_offset, &wait);
}

CL_API_ENTRY cl_int CL_API_CALL clCommandCopyImageToBufferKHR(
    cl_command_buffer_khr command_buffer, cl_command_queue command_queue,
    const cl_command_properties_khr *properties, cl_mem src_image, cl_mem dst_buffer,
    const size_t *src_origin, const size_t *region, size_t dst_offset, cl_uint num_sync_points_in_wait_list,
    const cl_sync_point_khr *sync_point_wait_list, cl_sync_point_khr *sync_point,
    cl_mutable_command_khr *mutable_handle) {
    struct cld_command_recording recording;
    CLD_TRY(cld_recording_begin(&recording, command_buffer, command_queue, properties,
                                num_sync_points_in_wait_list, sync_point_wait_list, sync_point,
                                mutable_handle));
    return copy_to_buffer(NULL, src_image, dst_buffer, src_origin, region, dst_offset,
                          cld_recording_wait(&recording));
}

static cl_int copy_from_buffer(cl_command_queue command_queue, cl_mem src_buffer, cl_mem dst_image,
                               size_t src_offset, const size_t *dst_origin, const size_t *region,
                               const struct cld_wait *wait) {
    struct transfer transfer;
    CLD_TRY(check_buffer_transfer(&transfer, command_queue, dst_image, src_buffer, dst_origin, region,
                                  src_offset, wait));
    CLD_TRY(cld_check_changes(transfer.image));
    return enqueue_in(&transfer, CL_COMMAND_COPY_BUFFER_TO_IMAGE, transfer.buffer->data, false, wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueCopyBufferToImage(cl_command_queue command_queue, cl_mem src_buffer,
                                                           cl_mem dst_image, size_t src_offset,
                                                           const size_t *dst_origin, const size_t *region,
                                                           cl_uint num_events_in_wait_list,
                                                           const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return copy_from_buffer(command_queue, src_buffer, dst_image, src_offset, dst_origin, region, &wait);
}

CL_API_ENTRY cl_int CL_API_CALL clCommandCopyBufferToImageKHR(
    cl_command_buffer_khr command_buffer, cl_command_queue command_queue,
    const cl_command_properties_khr *properties, cl_mem src_buffer, cl_mem dst_image, size_t src_offset,
    const size_t *dst_origin, const size_t *region, cl_uint num_sync_points_in_wait_list,
    const cl_sync_point_khr *sync_point_wait_list, cl_sync_point_khr *sync_point,
    cl_mutable_command_khr *mutable_handle) {
    struct cld_command_recording recording;
    CLD_TRY(cld_recording_begin(&recording, command_buffer, command_queue, properties,
                                num_sync_points_in_wait_list, sync_point_wait_list, sync_point,
                                mutable_handle));
    return copy_from_buffer(NULL, src_buffer, dst_image, src_offset, dst_origin, region,
                            cld_recording_wait(&recording));
}
