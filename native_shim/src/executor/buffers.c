/* Buffers and parts of them. */
#include <stdlib.h>

#include "base/log.h"
#include "executor/internal.h"

/* Of a buffer; sub-buffers that were not used for the longest time are made anew. */
enum { MOST_PARTS = 64 };

/* What all buffers of a host may have: as much as the device has. They take it when they are written. */
static bool has_room(const struct cld_executor *executor, size_t size) {
    size_t most = ((const struct cld_device *)executor->device)->max_alloc_size;
    return size <= most && executor->held <= most - size;
}

bool cld_execute_buffer(struct cld_executor *executor, struct cld_msg *msg) {
    uint64_t number = (uint64_t)cld_get_int(msg);
    size_t size = (size_t)cld_get_int(msg);
    cl_int status;
    if (msg->failed)
        return false;
    struct cld_remote_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer)
        return false;
    buffer->size = size;
    status = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (has_room(executor, size))
        buffer->handle = clCreateBuffer(executor->context, CL_MEM_READ_WRITE, size, NULL, &status);
    if (!buffer->handle) {
        cld_log(1, "cluster: no memory for a buffer of %zu bytes (%d)", size, status);
        free(buffer);
        return true; /* the commands that want it fail */
    }
    executor->held += size;
    if (cld_numbers_add(&executor->buffers, &buffer->numbered, number))
        return true;
    cld_buffer_free(executor, buffer);
    return false;
}

void cld_buffer_free(struct cld_executor *executor, struct cld_remote_buffer *buffer) {
    executor->held -= buffer->size;
    cld_await_no_more(buffer, 0, SIZE_MAX);
    for (struct cld_buffer_part *part = buffer->parts, *next; part; part = next) {
        next = part->next;
        clReleaseMemObject(part->handle);
        free(part);
    }
    clReleaseMemObject(buffer->handle);
    free(buffer);
}

/* Frees parts that the message does not use, the oldest first, while there are many. */
static void trim(const struct cld_executor *executor, struct cld_remote_buffer *buffer) {
    struct cld_buffer_part **oldest = NULL;
    if (buffer->part_count <= MOST_PARTS)
        return;
    for (struct cld_buffer_part **link = &buffer->parts; *link; link = &(*link)->next)
        if ((*link)->used != executor->message_count && (!oldest || (*link)->used <= (*oldest)->used))
            oldest = link;
    if (!oldest)
        return;
    struct cld_buffer_part *part = *oldest;
    *oldest = part->next;
    buffer->part_count--;
    clReleaseMemObject(part->handle); /* commands that use it hold it */
    free(part);
}

cl_int cld_part_of(struct cld_executor *executor, struct cld_msg *msg, struct cld_bytes *bytes,
                   cl_mem *handle) {
    uint32_t count = cld_get_list(msg);
    bytes->buffer = (uint64_t)cld_get_int(msg);
    size_t offset = bytes->offset = (size_t)cld_get_int(msg);
    size_t size = bytes->size = (size_t)cld_get_int(msg);
    struct cld_remote_buffer *buffer = cld_numbers_find(&executor->buffers, bytes->buffer);
    if (count != 3)
        msg->failed = true;
    if (!buffer || msg->failed)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    *handle = buffer->handle;
    if (!offset && size == buffer->size)
        return CL_SUCCESS;
    struct cld_buffer_part *part = buffer->parts;
    while (part && (part->offset != offset || part->size != size))
        part = part->next;
    if (!part) {
        const cl_buffer_region region = {offset, size};
        cl_int status;
        part = calloc(1, sizeof *part);
        if (!part)
            return CL_OUT_OF_HOST_MEMORY;
        part->handle = clCreateSubBuffer(buffer->handle, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
        if (!part->handle) {
            free(part);
            return status;
        }
        part->offset = offset;
        part->size = size;
        part->next = buffer->parts;
        buffer->parts = part;
        buffer->part_count++;
    }
    part->used = executor->message_count;
    trim(executor, buffer);
    *handle = part->handle;
    return CL_SUCCESS;
}
