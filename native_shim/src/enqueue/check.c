/* The checks that enqueue functions share. Above each stands the specification's sentence. */
#include "enqueue/enqueue.h"
#include "memory/mem.h"
#include "object/call.h"

/* "CL_INVALID_MEM_OBJECT if memobj is not a valid memory object." "CL_INVALID_CONTEXT if the context
 * associated with command_queue and memobj are not the same." */
cl_int cld_check_mem(const struct cld_queue *queue, cl_mem handle, struct cld_mem **mem) {
    *mem = cld_object_check(handle, CLD_MEM);
    CLD_REQUIRE(*mem, CL_INVALID_MEM_OBJECT, "not a memory object");
    CLD_REQUIRE((*mem)->context == queue->context, CL_INVALID_CONTEXT,
                "the context of command_queue is not the context of the memory object %s",
                cld_describe(*mem).text);
    return CL_SUCCESS;
}

/* "CL_INVALID_MEM_OBJECT if buffer is not a valid buffer object." "CL_MISALIGNED_SUB_BUFFER_OFFSET if buffer
 * is a sub-buffer object and offset specified when the sub-buffer object is created is not aligned to
 * CL_DEVICE_MEM_BASE_ADDR_ALIGN value for device associated with queue." */
cl_int cld_check_buffer(const struct cld_queue *queue, cl_mem handle, struct cld_mem **buffer) {
    CLD_TRY(cld_check_mem(queue, handle, buffer));
    CLD_REQUIRE((*buffer)->type == CL_MEM_OBJECT_BUFFER, CL_INVALID_MEM_OBJECT, "not a buffer");
    uint32_t align = queue->device->base_align;
    CLD_REQUIRE(!(*buffer)->parent || !align || (*buffer)->offset % align == 0,
                CL_MISALIGNED_SUB_BUFFER_OFFSET, "the sub-buffer begins at byte %zu, no multiple of %u",
                (size_t)(*buffer)->offset, (unsigned)align);
    return CL_SUCCESS;
}

cl_int cld_check_buffer_command(cl_command_queue command_queue, cl_mem handle, const struct cld_wait *wait,
                                struct cld_queue **queue, struct cld_mem **buffer) {
    CLD_TRY(cld_check_queue(command_queue, wait, queue));
    CLD_TRY(cld_check_buffer(*queue, handle, buffer));
    return cld_check_wait(*queue, wait);
}

cl_int cld_check_buffer_copy(cl_command_queue command_queue, cl_mem source_handle, cl_mem destination_handle,
                             const struct cld_wait *wait, struct cld_queue **queue, struct cld_mem **source,
                             struct cld_mem **destination) {
    CLD_TRY(cld_check_queue(command_queue, wait, queue));
    CLD_TRY(cld_check_buffer(*queue, source_handle, source));
    CLD_TRY(cld_check_buffer(*queue, destination_handle, destination));
    CLD_TRY(cld_check_wait(*queue, wait));
    return cld_check_changes(*destination);
}

/* "CL_INVALID_MEM_OBJECT if image is not a valid image object." */
cl_int cld_check_image(const struct cld_queue *queue, cl_mem handle, struct cld_mem **image) {
    CLD_TRY(cld_check_mem(queue, handle, image));
    CLD_REQUIRE((*image)->image, CL_INVALID_MEM_OBJECT, "not an image");
    return CL_SUCCESS;
}

/* "CL_INVALID_OPERATION if clEnqueueReadBuffer is called on buffer which has been created with
 * CL_MEM_HOST_WRITE_ONLY or CL_MEM_HOST_NO_ACCESS." */
cl_int cld_check_host_reads(const struct cld_mem *buffer) {
    CLD_REQUIRE(!(buffer->flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS)), CL_INVALID_OPERATION,
                "the buffer was made with flags %#lx: the host may not read it",
                (unsigned long)buffer->flags);
    return CL_SUCCESS;
}

/* "CL_INVALID_OPERATION if clEnqueueWriteBuffer is called on buffer which has been created with
 * CL_MEM_HOST_READ_ONLY or CL_MEM_HOST_NO_ACCESS." */
cl_int cld_check_host_writes(const struct cld_mem *buffer) {
    CLD_REQUIRE(!(buffer->flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)), CL_INVALID_OPERATION,
                "the buffer was made with flags %#lx: the host may not write it",
                (unsigned long)buffer->flags);
    return cld_check_changes(buffer);
}

/* "CL_INVALID_OPERATION if dst_buffer was created with CL_MEM_IMMUTABLE_EXT." */
cl_int cld_check_changes(const struct cld_mem *mem) {
    CLD_REQUIRE(!(mem->flags & CLD_MEM_IMMUTABLE), CL_INVALID_OPERATION, "the memory object %s never changes",
                cld_describe(mem).text);
    return CL_SUCCESS;
}

/* "CL_INVALID_VALUE if the region specified by (offset, size) is out of bounds." */
cl_int cld_check_range(const struct cld_mem *buffer, size_t offset, size_t size) {
    CLD_REQUIRE(offset <= buffer->size && size <= buffer->size - offset, CL_INVALID_VALUE,
                "the region has %zu bytes from byte %zu on, the buffer has %zu", size, offset, buffer->size);
    return CL_SUCCESS;
}

bool cld_same_memory(const struct cld_mem *a, const struct cld_mem *b) {
    while (a->parent)
        a = a->parent;
    while (b->parent)
        b = b->parent;
    return a == b;
}

/* sum += a * b; false where that does not fit. */
static bool add_product(size_t *sum, size_t a, size_t b) {
    size_t product;
    return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(*sum, product, sum);
}

cl_int cld_check_rect(const size_t *origin, const size_t *region, size_t row_pitch, size_t slice_pitch,
                      struct cld_rect *rect) {
    /* "CL_INVALID_VALUE if row_pitch is not 0 and is less than region[0]." */
    CLD_REQUIRE(!row_pitch || row_pitch >= region[0], CL_INVALID_VALUE,
                "the row pitch is %zu, at least %zu, a row of the region", row_pitch, region[0]);
    rect->row = row_pitch ? row_pitch : region[0];
    size_t slice;
    CLD_REQUIRE(!__builtin_mul_overflow(rect->row, region[1], &slice), CL_INVALID_VALUE,
                "the region has %zu rows of %zu bytes: more than can be counted", region[1], rect->row);
    /* "CL_INVALID_VALUE if slice_pitch is not 0 and is less than region[1] x row_pitch or if slice_pitch is
     * not 0 and is not a multiple of row_pitch." */
    CLD_REQUIRE(!slice_pitch || (slice_pitch >= slice && slice_pitch % rect->row == 0), CL_INVALID_VALUE,
                "the slice pitch is %zu, at least %zu and a multiple of the row pitch %zu", slice_pitch,
                slice, rect->row);
    rect->slice = slice_pitch ? slice_pitch : slice;
    size_t end = 0;
    rect->offset = 0;
    bool fits = add_product(&rect->offset, origin[2], rect->slice) &&
                add_product(&rect->offset, origin[1], rect->row) &&
                add_product(&rect->offset, origin[0], 1) && add_product(&end, region[2] - 1, rect->slice) &&
                add_product(&end, region[1] - 1, rect->row) && add_product(&end, region[0], 1);
    rect->span = end;
    CLD_REQUIRE(fits && rect->offset <= SIZE_MAX - end, CL_INVALID_VALUE,
                "the region ends beyond all memory");
    return CL_SUCCESS;
}

/* Row by row where the spans meet: for each row of a, the only rows of b that it may touch start less than a
 * row's width before or behind it. */
bool cld_rects_overlap(const uint8_t *a, const struct cld_rect *a_rect, const size_t *a_region,
                       const uint8_t *b, const struct cld_rect *b_rect, const size_t *b_region) {
    uintptr_t from = (uintptr_t)a, to = (uintptr_t)b;
    if (from + a_rect->span <= to || to + b_rect->span <= from)
        return false;
    size_t row = b_rect->row, slice = b_rect->slice;
    for (size_t z = 0; z < a_region[2]; z++)
        for (size_t y = 0; y < a_region[1]; y++) {
            intptr_t start = (intptr_t)(from - to + z * a_rect->slice + y * a_rect->row);
            intptr_t lowest = start - (intptr_t)b_region[0] + 1, highest = start + (intptr_t)a_region[0] - 1;
            if (highest < 0)
                continue;
            size_t low = lowest > 0 ? (size_t)lowest : 0, high = (size_t)highest;
            for (size_t k = low / slice; k < b_region[2] && k * slice <= high; k++) {
                size_t base = k * slice;
                size_t first = low > base ? (low - base + row - 1) / row : 0;
                if (first < b_region[1] && base + first * row >= low && base + first * row <= high)
                    return true;
            }
        }
    return false;
}
