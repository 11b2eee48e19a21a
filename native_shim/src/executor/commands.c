/* The messages of batches. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "executor/internal.h"
#include "launch/kernel_command.h"

enum { MOST_WAITS = 16, MOST_DIMENSIONS = 3 };

/* Work-groups of a launch. More would take this machine days if they did nothing, and nobody can end them. */
#define MOST_GROUPS ((double)((uint64_t)1 << 40))

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

static void launch_ended(struct cld_pending *pending, cl_event event, cl_int status) {
    struct cld_executor *executor = pending->executor;
    cl_ulong start = 0, end = 0;
    clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL);
    clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
    forget_launch(executor, pending->number, status < 0);
    cld_answer_done(executor, pending->number, status, start, end);
}

static void read_ended(struct cld_pending *pending, cl_event event, cl_int status) {
    (void)event;
    cld_answer_data(pending->executor, pending->number, status, pending->data, pending->size);
    pending->data = NULL;
}

static void send_ended(struct cld_pending *pending, cl_event event, cl_int status) {
    (void)event;
    if (status) {
        cld_answer_lost(pending->executor, pending->number);
        cld_flight_end(pending->executor, pending->size);
        return;
    }
    cld_answer_departure(pending->executor, pending->peer, pending->number, pending->data, pending->size);
    pending->data = NULL;
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

static bool execute_write(struct cld_executor *executor, struct cld_batch *batch, struct cld_msg *msg) {
    uint64_t number = (uint64_t)cld_get_int(msg);
    size_t offset = (size_t)cld_get_int(msg), size;
    const void *data = cld_batch_data(batch, msg, &size);
    struct cld_remote_buffer *buffer = cld_numbers_find(&executor->buffers, number);
    if (msg->failed)
        return false;
    cl_event event;
    struct cld_pending *pending = buffer ? cld_pending_new(executor, NULL, 0) : NULL;
    if (!pending || clEnqueueWriteBuffer(executor->queue, buffer->handle, CL_FALSE, offset, size, data, 0,
                                         NULL, &event)) {
        free(pending);
        return !buffer; /* without memory the commands that want it fail */
    }
    pending->batch = batch;
    cld_pending_watch(pending, event);
    clReleaseEvent(event);
    cld_await_no_more(buffer, offset, size);
    return true;
}

static bool execute_fill(struct cld_executor *executor, struct cld_msg *msg) {
    uint64_t number = (uint64_t)cld_get_int(msg);
    size_t offset = (size_t)cld_get_int(msg), size = (size_t)cld_get_int(msg), pattern_size;
    const void *pattern = cld_get_bytes(msg, &pattern_size);
    struct cld_remote_buffer *buffer = cld_numbers_find(&executor->buffers, number);
    if (msg->failed)
        return false;
    /* Without the buffer, or room, the commands that want it fail. */
    if (buffer && !clEnqueueFillBuffer(executor->queue, buffer->handle, pattern, pattern_size, offset, size,
                                       0, NULL, NULL))
        cld_await_no_more(buffer, offset, size);
    return true;
}

/* What is read is for the host, or for another worker. */
static cl_int read_buffer(struct cld_pending *pending, uint64_t number, size_t offset, size_t size) {
    struct cld_executor *executor = pending->executor;
    struct cld_remote_buffer *buffer = cld_numbers_find(&executor->buffers, number);
    if (!buffer)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (size > CLD_MOST_MESSAGE_BYTES)
        return CL_INVALID_VALUE;
    cl_int status = cld_await(buffer, offset, size, &pending->waits);
    if (status)
        return status;
    if (!cld_flight_begin(executor, size))
        return CL_OUT_OF_RESOURCES;
    cl_event event;
    const struct cld_waits *waits = &pending->waits;
    pending->size = size;
    pending->data = malloc(size ? size : 1);
    status = !pending->data
                 ? CL_OUT_OF_HOST_MEMORY
                 : clEnqueueReadBuffer(executor->queue, buffer->handle, CL_FALSE, offset, size, pending->data,
                                       waits->count, waits->count ? waits->events : NULL, &event);
    if (status) {
        cld_flight_end(executor, size);
        return status;
    }
    cld_pending_watch(pending, event);
    clReleaseEvent(event);
    return CL_SUCCESS;
}

static bool execute_read(struct cld_executor *executor, struct cld_msg *msg, bool is_send) {
    uint64_t request = (uint64_t)cld_get_int(msg), number = (uint64_t)cld_get_int(msg);
    size_t offset = (size_t)cld_get_int(msg), size = (size_t)cld_get_int(msg);
    uint64_t peer = is_send ? (uint64_t)cld_get_int(msg) : 0;
    if (msg->failed)
        return false;
    struct cld_pending *pending = cld_pending_new(executor, is_send ? send_ended : read_ended, request);
    if (pending)
        pending->peer = peer;
    cl_int status = pending ? read_buffer(pending, number, offset, size) : CL_OUT_OF_HOST_MEMORY;
    if (!status)
        return true;
    if (pending)
        cld_pending_free(pending);
    if (is_send)
        cld_answer_lost(executor, request);
    else
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

static cl_int set_argument(struct cld_executor *executor, struct cld_msg *msg, struct cld_waits *waits,
                           cl_kernel kernel, cl_uint i) {
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
        return cld_set_image(executor, msg, waits, kernel, i);
    case CLD_SAMPLER_VALUES:
        return cld_set_sampler(executor, msg, kernel, i);
    }
    struct cld_bytes bytes;
    cl_int status = cld_part_of(executor, msg, &bytes, &part);
    if (!status)
        status = cld_await_bytes(executor, &bytes, waits);
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
static cl_int get_waits(struct cld_executor *executor, struct cld_msg *msg, struct cld_waits *waits) {
    uint32_t listed = cld_get_list(msg);
    cl_int status = CL_SUCCESS;
    if (listed > MOST_WAITS)
        msg->failed = true;
    pthread_mutex_lock(&executor->lock);
    for (uint32_t i = 0; i < listed && !msg->failed; i++) {
        const struct cld_remote_launch *launch =
            cld_numbers_find(&executor->launches, (uint64_t)cld_get_int(msg));
        if (launch && !launch->event)
            status = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
        else if (launch && !cld_waits_add(waits, launch->event))
            status = CL_OUT_OF_HOST_MEMORY;
    }
    pthread_mutex_unlock(&executor->lock);
    waits->launches = waits->count;
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

/* Which groups of the launch are to be executed. False: all. */
static bool get_part(struct cld_msg *msg, uint32_t dimensions, bool has_local, struct cld_group_range *part) {
    size_t numbers[MOST_DIMENSIONS];
    if (cld_get_none(msg))
        return false;
    get_sizes(msg, MOST_DIMENSIONS, numbers);
    if (msg->failed || numbers[0] >= dimensions || !has_local)
        msg->failed = true;
    else
        *part = (struct cld_group_range){(uint32_t)numbers[0], numbers[1], numbers[2]};
    return true;
}

/* Whether a launch of these sizes has these groups. */
static bool has_groups(const struct cld_group_range *part, size_t (*sizes)[MOST_DIMENSIONS]) {
    size_t size = sizes[1][part->dimension], local = sizes[2][part->dimension];
    return local && part->first < part->last && part->last <= size / local + (size % local != 0);
}

static bool is_too_large(const struct cld_executor *executor, uint32_t dimensions,
                         size_t (*sizes)[MOST_DIMENSIONS], bool has_local,
                         const struct cld_group_range *part) {
    double groups = has_local ? 1 : 1 / (double)((const struct cld_device *)executor->device)->max_group_size;
    for (uint32_t i = 0; i < dimensions; i++) {
        double size = (double)sizes[1][i], local = has_local && sizes[2][i] ? (double)sizes[2][i] : 1;
        groups *= part && part->dimension == i ? (double)(part->last - part->first) : size / local;
    }
    return groups > MOST_GROUPS;
}

static cl_int enqueue(struct cld_pending *pending, cl_kernel kernel, uint32_t dimensions,
                      size_t (*sizes)[MOST_DIMENSIONS], bool has_local, struct cld_group_range *part) {
    cl_event event;
    const struct cld_waits *waits = &pending->waits;
    const struct cld_wait wait = {waits->count, waits->count ? waits->events : NULL, &event, NULL};
    const struct cld_launch_sizes launch = {dimensions, sizes[0], sizes[1], has_local ? sizes[2] : NULL,
                                            part};
    if (part && !has_groups(part, sizes))
        return CL_INVALID_WORK_GROUP_SIZE;
    if (is_too_large(pending->executor, dimensions, sizes, has_local, part)) {
        cld_log(1, "cluster: a launch has more work-groups than this machine can execute");
        return CL_OUT_OF_RESOURCES;
    }
    cl_int status = cld_launch_enqueue(pending->executor->queue, kernel, &launch, &wait);
    if (status)
        return status;
    remember_launch(pending->executor, pending->number, event);
    cld_pending_watch(pending, event);
    clReleaseEvent(event);
    return CL_SUCCESS;
}

static bool execute_launch(struct cld_executor *executor, struct cld_msg *msg) {
    size_t name_size, sizes[3][MOST_DIMENSIONS];
    cl_kernel kernel = NULL;
    uint64_t number = (uint64_t)cld_get_int(msg), program = (uint64_t)cld_get_int(msg);
    const char *name = cld_get_bytes(msg, &name_size);
    uint32_t dimensions = get_sizes(msg, 0, sizes[0]);
    get_sizes(msg, dimensions, sizes[1]);
    bool has_local = !cld_get_none(msg);
    if (has_local)
        get_sizes(msg, dimensions, sizes[2]);
    struct cld_pending *pending = cld_pending_new(executor, launch_ended, number);
    if (!pending)
        return false;
    struct cld_waits *waits = &pending->waits;
    cl_int status = get_waits(executor, msg, waits);
    struct cld_group_range part = {0};
    bool is_part = get_part(msg, dimensions, has_local, &part);
    uint32_t count = cld_get_list(msg);
    if (!status && !msg->failed)
        status = cld_remote_kernel_of(executor, program, name, name_size, &kernel);
    for (uint32_t i = 0; i < count && !msg->failed; i++) { /* all are read, whatever has failed */
        cl_int error = set_argument(executor, msg, waits, kernel, i);
        status = status ? status : error;
    }
    if (!status && !msg->failed)
        status = enqueue(pending, kernel, dimensions, sizes, has_local, is_part ? &part : NULL);
    if (status || msg->failed)
        cld_pending_free(pending);
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
    executor->message_count++;
    if (batch->is_peer)
        return kind == CLD_ARRIVE_MESSAGE && count == 3 && cld_execute_arrive(executor, batch, msg);
    if (kind == CLD_LAUNCH_MESSAGE && count == 10)
        return execute_launch(executor, msg);
    if (kind == CLD_WRITE_MESSAGE && count == 4)
        return execute_write(executor, batch, msg);
    if (kind == CLD_FILL_MESSAGE && count == 5)
        return execute_fill(executor, msg);
    if (kind == CLD_READ_MESSAGE && count == 5)
        return execute_read(executor, msg, false);
    if (kind == CLD_SEND_MESSAGE && count == 6)
        return execute_read(executor, msg, true);
    if (kind == CLD_RECEIVE_MESSAGE && count == 5)
        return cld_execute_receive(executor, msg);
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
            cld_buffer_free(executor, buffer);
    } else if (kind == CLD_FORGET_IMAGE_MESSAGE) {
        struct cld_remote_image *image = cld_numbers_take(&executor->images, number);
        if (image)
            cld_remote_image_free(image);
    } else if (kind == CLD_FORGET_PROGRAM_MESSAGE) {
        struct cld_remote_program *program = cld_numbers_take(&executor->programs, number);
        if (program)
            cld_remote_program_free(program);
    } else if (kind == CLD_CONNECT_MESSAGE && !msg->failed) {
        cld_answer_departure(executor, number, 0, NULL, 0);
    } else if (kind == CLD_MISS_MESSAGE && !msg->failed) {
        cld_arrival_miss(executor, number);
    } else {
        return false;
    }
    return !msg->failed;
}
