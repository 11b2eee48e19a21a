/* Commands that were enqueued, until they have ended. */
#include <stdlib.h>

#include "executor/internal.h"

cl_int cld_status_of(cl_event event) {
    cl_int status = CL_COMPLETE;
    clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    return status;
}

bool cld_waits_add(struct cld_waits *waits, cl_event event) {
    if (waits->count == waits->room) {
        uint32_t more = waits->room ? 2 * waits->room : 16;
        cl_event *larger = realloc(waits->events, more * sizeof *larger);
        if (!larger)
            return false;
        waits->events = larger;
        waits->room = more;
    }
    if (clRetainEvent(event))
        return false;
    waits->events[waits->count++] = event;
    return true;
}

void cld_waits_free(struct cld_waits *waits) {
    for (uint32_t i = 0; i < waits->count; i++)
        clReleaseEvent(waits->events[i]);
    free(waits->events);
    *waits = (struct cld_waits){0};
}

/* Whether contents that it waited for never came. */
static bool has_missed(const struct cld_waits *waits) {
    for (uint32_t i = waits->launches; i < waits->count; i++)
        if (cld_status_of(waits->events[i]) < 0)
            return true;
    return false;
}

static void CL_CALLBACK ended(cl_event event, cl_int status, void *data) {
    struct cld_pending *pending = data;
    struct cld_executor *executor = pending->executor;
    if (status >= 0)
        status = CL_SUCCESS;
    else if (has_missed(&pending->waits)) /* to the host it is the device's failure */
        status = CL_DEVICE_NOT_AVAILABLE;
    if (pending->ended)
        pending->ended(pending, event, status);
    if (pending->batch)
        cld_batch_leave(executor, pending->batch);
    cld_pending_free(pending);
    pthread_mutex_lock(&executor->lock);
    if (!--executor->running)
        pthread_cond_signal(&executor->is_idle);
    pthread_mutex_unlock(&executor->lock);
}

void cld_pending_watch(struct cld_pending *pending, cl_event event) {
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

struct cld_pending *cld_pending_new(struct cld_executor *executor, cld_pending_end *end, uint64_t number) {
    struct cld_pending *pending = calloc(1, sizeof *pending);
    if (pending)
        *pending = (struct cld_pending){.executor = executor, .ended = end, .number = number};
    return pending;
}

void cld_pending_free(struct cld_pending *pending) {
    cld_waits_free(&pending->waits);
    free(pending->data);
    free(pending);
}
