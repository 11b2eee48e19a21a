/* Contents that come from other workers.
 *
 * The host says what is to come and where it belongs (RECEIVE), among all else that it says, and its place in
 * the queue is taken then: by a copy behind a user event, its gate. The contents come by themselves, from the
 * other worker (ARRIVE), before or after, and open the gate. If they never will the host says so (MISS). What
 * uses the bytes waits for the copy as for an event, so that it fails if that does. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "executor/internal.h"

static void free_awaited(struct cld_awaited *awaited) {
    clReleaseEvent(awaited->event);
    free(awaited);
}

cl_int cld_await(struct cld_remote_buffer *buffer, size_t offset, size_t size, struct cld_waits *waits) {
    struct cld_awaited **link = &buffer->awaited;
    for (struct cld_awaited *awaited = *link; awaited; awaited = *link) {
        cl_int status = cld_status_of(awaited->event);
        bool is_used = awaited->from < offset + size && offset < awaited->to;
        if (status == CL_COMPLETE) {
            *link = awaited->next;
            free_awaited(awaited);
            continue;
        }
        if (is_used && status < 0)
            return CL_DEVICE_NOT_AVAILABLE;
        if (is_used && !cld_waits_add(waits, awaited->event))
            return CL_OUT_OF_HOST_MEMORY;
        link = &awaited->next;
    }
    return CL_SUCCESS;
}

cl_int cld_await_bytes(struct cld_executor *executor, const struct cld_bytes *bytes,
                       struct cld_waits *waits) {
    struct cld_remote_buffer *buffer = cld_numbers_find(&executor->buffers, bytes->buffer);
    return buffer ? cld_await(buffer, bytes->offset, bytes->size, waits) : CL_SUCCESS;
}

/* The part behind `to` of one that the bytes before are cut out of; without memory none of it is. */
static struct cld_awaited *rest_of(const struct cld_awaited *awaited, size_t to) {
    struct cld_awaited *rest = malloc(sizeof *rest);
    if (!rest)
        return NULL;
    *rest = *awaited;
    rest->from = to;
    clRetainEvent(rest->event);
    return rest;
}

void cld_await_no_more(struct cld_remote_buffer *buffer, size_t offset, size_t size) {
    size_t end = offset + size;
    struct cld_awaited **link = &buffer->awaited;
    for (struct cld_awaited *awaited = *link; awaited; awaited = *link) {
        if (offset <= awaited->from && awaited->to <= end) { /* it may have no bytes */
            *link = awaited->next;
            free_awaited(awaited);
        } else if (end <= awaited->from || awaited->to <= offset) {
            link = &awaited->next;
        } else if (offset <= awaited->from) {
            awaited->from = end;
            link = &awaited->next;
        } else {
            struct cld_awaited *rest = awaited->to > end ? rest_of(awaited, end) : NULL;
            if (rest)
                awaited->next = rest;
            if (rest || awaited->to <= end)
                awaited->to = offset;
            link = rest ? &rest->next : &awaited->next;
        }
    }
}

struct copy {
    const struct cld_arrival *arrival;
    uint8_t *buffer;
};

static void CL_CALLBACK copy_contents(void *argument) {
    const struct copy *copy = argument;
    memcpy(copy->buffer + copy->arrival->offset, copy->arrival->data, copy->arrival->size);
}

void cld_arrival_leave(struct cld_arrival *arrival) {
    if (arrival->batch)
        cld_batch_leave(arrival->executor, arrival->batch);
    free(arrival);
}

static void copy_ended(struct cld_pending *pending, cl_event event, cl_int status) {
    (void)event;
    cld_answer_done(pending->executor, pending->number, status ? CL_DEVICE_NOT_AVAILABLE : CL_SUCCESS, 0, 0);
    cld_arrival_leave(pending->arrival);
}

/* Takes the place of the contents in the queue. */
static cl_int enqueue_copy(struct cld_executor *executor, struct cld_arrival *arrival,
                           struct cld_remote_buffer *buffer) {
    struct copy copy = {arrival, NULL};
    const void *place = &copy.buffer;
    cl_event event;
    struct cld_awaited *awaited = calloc(1, sizeof *awaited);
    struct cld_pending *pending = cld_pending_new(executor, copy_ended, arrival->numbered.number);
    cl_int status = awaited && pending ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
    if (!status && !arrival->batch)
        arrival->gate = clCreateUserEvent(executor->context, &status);
    if (!status)
        status = clEnqueueNativeKernel(executor->queue, copy_contents, &copy, sizeof copy, 1, &buffer->handle,
                                       &place, arrival->gate ? 1 : 0, arrival->gate ? &arrival->gate : NULL,
                                       &event);
    if (status) {
        if (arrival->gate)
            clReleaseEvent(arrival->gate);
        arrival->gate = NULL;
        free(awaited);
        free(pending);
        return status;
    }
    executor->gate_count += arrival->gate != NULL;
    *awaited = (struct cld_awaited){buffer->awaited, arrival->offset, arrival->offset + arrival->size, event};
    buffer->awaited = awaited;
    pending->arrival = arrival;
    cld_pending_watch(pending, event);
    return CL_SUCCESS;
}

/* One that nobody waits for any more; the contents are dropped when they come. */
static void expect_to_drop(struct cld_executor *executor, uint64_t number) {
    struct cld_arrival *mark = calloc(1, sizeof *mark);
    if (!mark)
        return;
    mark->executor = executor;
    mark->is_announced = true;
    if (!cld_numbers_add(&executor->arrivals, &mark->numbered, number))
        free(mark);
}

/* The gate is no longer needed: the copy's command holds it. */
static void open_gate(struct cld_arrival *arrival, cl_int status) {
    cl_event gate = arrival->gate;
    arrival->gate = NULL;
    arrival->executor->gate_count--;
    clSetUserEventStatus(gate, status); /* who copies may free the arrival now */
    clReleaseEvent(gate);
}

static struct cld_arrival *arrival_of(struct cld_executor *executor, uint64_t number) {
    struct cld_arrival *arrival = cld_numbers_find(&executor->arrivals, number);
    if (arrival)
        return arrival;
    arrival = calloc(1, sizeof *arrival);
    if (!arrival)
        return NULL;
    arrival->executor = executor;
    if (cld_numbers_add(&executor->arrivals, &arrival->numbered, number))
        return arrival;
    free(arrival);
    return NULL;
}

bool cld_execute_receive(struct cld_executor *executor, struct cld_msg *msg) {
    uint64_t transfer = (uint64_t)cld_get_int(msg), number = (uint64_t)cld_get_int(msg);
    size_t offset = (size_t)cld_get_int(msg), size = (size_t)cld_get_int(msg);
    struct cld_arrival *arrival = msg->failed ? NULL : arrival_of(executor, transfer);
    if (!arrival || arrival->is_announced)
        return false;
    struct cld_remote_buffer *buffer = cld_numbers_find(&executor->buffers, number);
    bool has_come = arrival->batch != NULL;
    cl_int status = buffer ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (buffer &&
        (offset > buffer->size || size > buffer->size - offset || (has_come && arrival->size != size)))
        status = CL_INVALID_VALUE;
    if (buffer && !status)
        cld_await_no_more(buffer, offset, size);
    arrival->is_announced = true;
    arrival->offset = offset;
    arrival->size = size;
    if (status || has_come)
        cld_numbers_take(&executor->arrivals, transfer);
    if (!status)
        status = enqueue_copy(executor, arrival, buffer);
    if (!status)
        return true;
    cld_log(1, "cluster: contents of another worker have no place (%d)", status);
    cld_numbers_take(&executor->arrivals, transfer);
    cld_arrival_leave(arrival);
    if (!has_come)
        expect_to_drop(executor, transfer);
    cld_answer_done(executor, transfer, status, 0, 0);
    return true;
}

bool cld_execute_arrive(struct cld_executor *executor, struct cld_batch *batch, struct cld_msg *msg) {
    size_t size;
    uint64_t transfer = (uint64_t)cld_get_int(msg);
    const void *data = cld_batch_data(batch, msg, &size);
    struct cld_arrival *arrival = msg->failed ? NULL : arrival_of(executor, transfer);
    if (!arrival || arrival->batch)
        return false;
    bool is_wanted = arrival->gate != NULL, fits = !is_wanted || arrival->size == size;
    if (arrival->is_announced)
        cld_numbers_take(&executor->arrivals, transfer);
    if (arrival->is_announced && !is_wanted) {
        free(arrival);
        return true;
    }
    if (fits) {
        batch->users++;
        arrival->batch = batch;
        arrival->data = data;
        arrival->size = size;
    }
    if (is_wanted)
        open_gate(arrival, fits ? CL_COMPLETE : CL_DEVICE_NOT_AVAILABLE);
    return true;
}

void cld_arrival_miss(struct cld_executor *executor, uint64_t number) {
    struct cld_arrival *arrival = cld_numbers_find(&executor->arrivals, number);
    if (!arrival || !arrival->gate) /* it has come, or was missed before */
        return;
    cld_numbers_take(&executor->arrivals, number);
    open_gate(arrival, CL_DEVICE_NOT_AVAILABLE);
    expect_to_drop(executor, number);
}

void cld_arrivals_end(struct cld_executor *executor) {
    struct cld_arrival *arrival;
    while ((arrival = cld_numbers_any(&executor->arrivals)))
        if (arrival->gate)
            open_gate(arrival, CL_DEVICE_NOT_AVAILABLE);
        else
            cld_arrival_leave(arrival);
    cld_numbers_free(&executor->arrivals);
}
