/* The messages of batches. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "executor/internal.h"

enum { MOST_WAITS = 16, MOST_DIMENSIONS = 3 };

/* A command that was enqueued. */
struct pending {
    struct cld_executor *executor;
    struct cld_batch *batch; /* whose memory it uses, or NULL */
    uint64_t number;         /* of the launch or the request */
    void *data;              /* what is read, or NULL */
    size_t size;
    bool is_launch;
};

static void forget_launch(struct cld_executor *executor, uint64_t number, bool has_failed) {
    pthread_mutex_lock(&executor->lock);
    struct cld_remote_launch *launch = has_failed ? cld_numbers_find(&executor->launches, number)
                                                  : cld_numbers_take(&executor->launches, number);
    cl_event event = launch ? launch->event : NULL;
    if (launch &&
        has_failed) /* known for as long as the connection lasts: others may be told to wait for it */
        launch->event = NULL;
    pthread_mutex_unlock(&executor->lock);
    if (event)
        clReleaseEvent(event);
    if (!has_failed)
        free(launch);
}

static void CL_CALLBACK ended(cl_event event, cl_int status, void *data) {
    struct pending *pending = data;
    struct cld_executor *executor = pending->executor;
    if (pending->is_launch) {
        cl_ulong start = 0, end = 0;
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL);
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
        forget_launch(executor, pending->number, status < 0);
        cld_answer_done(executor, pending->number, status < 0 ? status : CL_SUCCESS, start, end);
    } else if (pending->data) {
        cld_answer_data(executor, pending->number, status < 0 ? status : CL_SUCCESS, pending->data,
                        pending->size);
    }
    if (pending->batch)
        cld_batch_leave(executor, pending->batch);
    free(pending);
    pthread_mutex_lock(&executor->lock);
    if (!--executor->running)
        pthread_cond_signal(&executor->is_idle);
    pthread_mutex_unlock(&executor->lock);
}

/* The command's end is noted. */
static void watch(struct pending *pending, cl_event event) {
    struct cld_executor *executor = pending->executor;
    if (pending->batch)
        pending->batch->users++;
    pthread_mutex_lock(&executor->lock);
    executor->running++;
    pthread_mutex_unlock(&executor->lock);
    if (clSetEventCallback(event, CL_COMPLETE, ended, pending)) {
        clWaitForEvents(1, &event); /* no memory */
        ended(event, CL_OUT_OF_HOST_MEMORY, pending);
    }
}

static struct pending *pending_of(struct cld_executor *executor, struct cld_batch *batch, uint64_t number) {
    struct pending *pending = calloc(1, sizeof *pending);
    if (pending)
        *pending = (struct pending){.executor = executor, .batch = batch, .number = number};
    return pending;
}

static bool execute_program(struct cld_executor *executor, struct cld_msg *msg) {
    size_t options_size, size;
    uint64_t number = (uint64_t)cld_get_int(msg);
    const void *options = cld_get_bytes(msg, &options_size), *il = cld_get_bytes(msg, &size);
    struct cld_remote_program *program = msg->failed ? NULL : calloc(1, sizeof *program);
    if (!program)
        return false;
    cld_put_bytes(&program->source, options, options_size);
    cld_put_bytes(&program->source, il, size);
    if (!program->source.failed && cld_numbers_add(&executor->programs, &program->numbered, number))
        return true;
    cld_remote_program_free(program);
    return false;
}

/* What comes next in the message: bytes, or the size of the next payload. */
static const void *data_of(struct cld_batch *batch, struct cld_msg *msg, size_t *size) {
    if (msg->failed || msg->at >= msg->size || msg->data[msg->at] == 'b')
        return cld_get_bytes(msg, size);
    *size = (size_t)cld_get_int(msg);
    const struct cld_range *payload =
        batch->payload_at < batch->payload_count ? &batch->payloads[batch->payload_at++] : NULL;
    if (payload && payload->size == *size)
        return payload->at;
    msg->failed = true;
    return NULL;
}

static bool execute_write(struct cld_executor *executor, struct cld_batch *batch, struct cld_msg *msg) {
    uint64_t number = (uint64_t)cld_get_int(msg);
    size_t offset = (size_t)cld_get_int(msg), size;
    const void *data = data_of(batch, msg, &size);
    const struct cld_remote_buffer *buffer = cld_numbers_find(&executor->buffers, number);
    if (msg->failed)
        return false;
    cl_event event;
    struct pending *pending = buffer ? pending_of(executor, batch, 0) : NULL;
    if (!pending || clEnqueueWriteBuffer(executor->queue, buffer->handle, CL_FALSE, offset, size, data, 0,
                                         NULL, &event)) {
        free(pending);
        return !buffer; /* without memory the commands that want it fail */
    }
    watch(pending, event);
    clReleaseEvent(event);
    return true;
}

static cl_int read_buffer(struct cld_executor *executor, uint64_t request, uint64_t number, size_t offset,
                          size_t size) {
    const struct cld_remote_buffer *buffer = cld_numbers_find(&executor->buffers, number);
    if (!buffer)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (size > CLD_MOST_MESSAGE_BYTES)
        return CL_INVALID_VALUE;
    struct pending *pending = pending_of(executor, NULL, request);
    void *data = pending ? malloc(size ? size : 1) : NULL;
    cl_event event;
    cl_int status = data ? clEnqueueReadBuffer(executor->queue, buffer->handle, CL_FALSE, offset, size, data,
                                               0, NULL, &event)
                         : CL_OUT_OF_HOST_MEMORY;
    if (status) {
        free(data);
        free(pending);
        return status;
    }
    pending->data = data;
    pending->size = size;
    watch(pending, event);
    clReleaseEvent(event);
    return CL_SUCCESS;
}

static bool execute_read(struct cld_executor *executor, struct cld_msg *msg) {
    uint64_t request = (uint64_t)cld_get_int(msg), number = (uint64_t)cld_get_int(msg);
    size_t offset = (size_t)cld_get_int(msg), size = (size_t)cld_get_int(msg);
    if (msg->failed)
        return false;
    cl_int status = read_buffer(executor, request, number, offset, size);
    if (status)
        cld_answer_data(executor, request, status, NULL, 0);
    return true;
}

/* Of the list that comes next, if it is one. */
static uint32_t list_size(struct cld_msg *msg) {
    size_t at = msg->at;
    uint32_t count = cld_get_list(msg);
    msg->at = at;
    return count;
}

static cl_int set_argument(struct cld_executor *executor, struct cld_msg *msg, cl_kernel kernel, cl_uint i) {
    static const void *const null;
    uint8_t tag = msg->at < msg->size ? msg->data[msg->at] : 0;
    size_t size;
    cl_mem part;
    if (tag == 'b') {
        const void *value = cld_get_bytes(msg, &size);
        return kernel && !msg->failed ? clSetKernelArg(kernel, i, size, value) : CL_SUCCESS;
    }
    if (tag == 'i') {
        size = (size_t)cld_get_int(msg);
        return kernel && !msg->failed ? clSetKernelArg(kernel, i, size, NULL) : CL_SUCCESS;
    }
    if (cld_get_none(msg))
        return kernel ? clSetKernelArg(kernel, i, sizeof null, &null) : CL_SUCCESS;
    switch (list_size(msg)) {
    case 1:
        return cld_set_image(executor, msg, kernel, i);
    case CLD_SAMPLER_VALUES:
        return cld_set_sampler(executor, msg, kernel, i);
    }
    cl_int status = cld_part_of(executor, msg, &part);
    return status || !kernel ? status : clSetKernelArg(kernel, i, sizeof part, &part);
}

/* Sizes of so many dimensions, or of as many as there are (0). */
static uint32_t get_sizes(struct cld_msg *msg, uint32_t dimensions, size_t *sizes) {
    uint32_t count = cld_get_list(msg);
    if (count > MOST_DIMENSIONS || (dimensions && count != dimensions))
        msg->failed = true;
    for (uint32_t i = 0; i < count && !msg->failed; i++)
        sizes[i] = (size_t)cld_get_int(msg);
    return msg->failed ? 0 : count;
}

/* The events, held, of those launches of the list that have not ended; an error if one has failed. */
static cl_int get_waits(struct cld_executor *executor, struct cld_msg *msg, cl_event *waits,
                        uint32_t *count) {
    uint32_t listed = cld_get_list(msg);
    cl_int status = CL_SUCCESS;
    *count = 0;
    if (listed > MOST_WAITS)
        msg->failed = true;
    pthread_mutex_lock(&executor->lock);
    for (uint32_t i = 0; i < listed && !msg->failed; i++) {
        const struct cld_remote_launch *launch =
            cld_numbers_find(&executor->launches, (uint64_t)cld_get_int(msg));
        if (launch && !launch->event)
            status = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
        else if (launch && !clRetainEvent(launch->event))
            waits[(*count)++] = launch->event;
    }
    pthread_mutex_unlock(&executor->lock);
    return status;
}

/* event: NULL for one that has failed. */
static void remember_launch(struct cld_executor *executor, uint64_t number, cl_event event) {
    struct cld_remote_launch *launch = calloc(1, sizeof *launch);
    pthread_mutex_lock(&executor->lock);
    if (launch)
        launch->event = event;
    if (event)
        clRetainEvent(event);
    bool is_known = launch && cld_numbers_add(&executor->launches, &launch->numbered, number);
    pthread_mutex_unlock(&executor->lock);
    if (is_known)
        return;
    if (event)
        clReleaseEvent(event);
    free(launch);
}

static cl_int enqueue(struct cld_executor *executor, uint64_t number, cl_kernel kernel, uint32_t dimensions,
                      size_t (*sizes)[MOST_DIMENSIONS], bool has_local, cl_uint wait_count,
                      const cl_event *waits) {
    cl_event event;
    struct pending *pending = pending_of(executor, NULL, number);
    if (!pending)
        return CL_OUT_OF_HOST_MEMORY;
    pending->is_launch = true;
    cl_int status =
        clEnqueueNDRangeKernel(executor->queue, kernel, dimensions, sizes[0], sizes[1],
                               has_local ? sizes[2] : NULL, wait_count, wait_count ? waits : NULL, &event);
    if (status) {
        free(pending);
        return status;
    }
    remember_launch(executor, number, event);
    watch(pending, event);
    clReleaseEvent(event);
    return CL_SUCCESS;
}

static bool execute_launch(struct cld_executor *executor, struct cld_msg *msg) {
    size_t name_size, sizes[3][MOST_DIMENSIONS];
    cl_event waits[MOST_WAITS];
    cl_kernel kernel = NULL;
    uint32_t wait_count;
    uint64_t number = (uint64_t)cld_get_int(msg), program = (uint64_t)cld_get_int(msg);
    const char *name = cld_get_bytes(msg, &name_size);
    uint32_t dimensions = get_sizes(msg, 0, sizes[0]);
    get_sizes(msg, dimensions, sizes[1]);
    bool has_local = !cld_get_none(msg);
    if (has_local)
        get_sizes(msg, dimensions, sizes[2]);
    cl_int status = get_waits(executor, msg, waits, &wait_count);
    uint32_t count = cld_get_list(msg);
    if (!status && !msg->failed)
        status = cld_remote_kernel_of(executor, program, name, name_size, &kernel);
    for (uint32_t i = 0; i < count && !msg->failed; i++) { /* all are read, whatever has failed */
        cl_int error = set_argument(executor, msg, kernel, i);
        status = status ? status : error;
    }
    if (!status && !msg->failed)
        status = enqueue(executor, number, kernel, dimensions, sizes, has_local, wait_count, waits);
    for (uint32_t i = 0; i < wait_count; i++)
        clReleaseEvent(waits[i]);
    if (status && !msg->failed) {
        cld_log(1, "cluster: a launch of %.*s has failed (%d)", (int)name_size, name, status);
        remember_launch(executor, number, NULL);
        cld_answer_done(executor, number, status, 0, 0);
    }
    return !msg->failed;
}

bool cld_execute(struct cld_executor *executor, struct cld_batch *batch, struct cld_msg *msg) {
    uint32_t count = cld_get_list(msg);
    int64_t kind = cld_get_int(msg);
    if (kind == CLD_LAUNCH_MESSAGE && count == 9)
        return execute_launch(executor, msg);
    if (kind == CLD_WRITE_MESSAGE && count == 4)
        return execute_write(executor, batch, msg);
    if (kind == CLD_READ_MESSAGE && count == 5)
        return execute_read(executor, msg);
    if (kind == CLD_BUFFER_MESSAGE && count == 3)
        return cld_execute_buffer(executor, msg);
    if (kind == CLD_IMAGE_MESSAGE && count == 10)
        return cld_execute_image(executor, msg);
    if (kind == CLD_PROGRAM_MESSAGE && count == 4)
        return execute_program(executor, msg);
    if (count != 2 || msg->failed)
        return false;
    uint64_t number = (uint64_t)cld_get_int(msg);
    if (kind == CLD_FORGET_BUFFER_MESSAGE) {
        struct cld_remote_buffer *buffer = cld_numbers_take(&executor->buffers, number);
        if (buffer)
            cld_buffer_free(buffer);
    } else if (kind == CLD_FORGET_IMAGE_MESSAGE) {
        struct cld_remote_image *image = cld_numbers_take(&executor->images, number);
        if (image)
            cld_remote_image_free(image);
    } else if (kind == CLD_FORGET_PROGRAM_MESSAGE) {
        struct cld_remote_program *program = cld_numbers_take(&executor->programs, number);
        if (program)
            cld_remote_program_free(program);
    } else {
        return false;
    }
    return !msg->failed;
}
