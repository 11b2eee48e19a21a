/* The checks that all enqueue functions share. Above each stands the specification's sentence. */
#include "runtime/enqueue_check.h"

#include "object/call.h"

/* queue: NULL, or one that refuses. Of one on the device, which executes nothing of the host's, commands may
 * be recorded all the same: another may take its place. */
static __attribute__((noinline, cold)) cl_int refuse(const struct cld_queue *queue, bool is_recording) {
    bool is_on_device = queue && queue->properties & CL_QUEUE_ON_DEVICE;
    CLD_REQUIRE(queue && (is_recording || !is_on_device), CL_INVALID_COMMAND_QUEUE,
                "not a host command-queue");
    if (is_on_device && !atomic_load_explicit(&queue->is_terminated, memory_order_relaxed))
        return CL_SUCCESS;
    return cld_refuse(__func__, CL_CONTEXT_TERMINATED_KHR, "the context was terminated");
}

/* "CL_INVALID_COMMAND_QUEUE if command_queue is not a valid host command-queue." */
cl_int cld_check_queue(cl_command_queue handle, const struct cld_wait *wait, struct cld_queue **queue) {
    *queue = wait->recording ? wait->recording->queue : cld_queue_check(handle);
    bool is_good = *queue && !atomic_load_explicit(&(*queue)->refuses, memory_order_relaxed);
    return __builtin_expect(is_good, 1) ? CL_SUCCESS : refuse(*queue, wait->recording);
}

/* "CL_INVALID_EVENT_WAIT_LIST if event_wait_list is NULL and num_events_in_wait_list > 0, or event_wait_list
 * is not NULL and num_events_in_wait_list is 0, or if event objects in event_wait_list are not valid events."
 * "CL_INVALID_CONTEXT if the context associated with command_queue and events in event_wait_list are not the
 * same." */
cl_int cld_check_wait(const struct cld_queue *queue, const struct cld_wait *wait) {
    if (wait->recording)
        return CL_SUCCESS;
    CLD_REQUIRE(!wait->count == !wait->list, CL_INVALID_EVENT_WAIT_LIST,
                "the wait list contradicts its length");
    for (cl_uint i = 0; i < wait->count; i++) {
        struct cld_event *event = cld_object_check(wait->list[i], CLD_EVENT);
        CLD_REQUIRE(event, CL_INVALID_EVENT_WAIT_LIST, "event_wait_list[%u] is %s, not an event", i,
                    cld_describe(wait->list[i]).text);
        CLD_REQUIRE(event->context == queue->context, CL_INVALID_CONTEXT,
                    "event_wait_list[%u] is an event of another context than command_queue", i);
    }
    return CL_SUCCESS;
}

/* "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST if the execution status of any of the events in
 * event_wait_list is a negative integer value." */
cl_int cld_check_wait_status(const struct cld_wait *wait) {
    for (cl_uint i = 0; i < wait->count; i++)
        CLD_REQUIRE(cld_event_status((struct cld_event *)(void *)wait->list[i]) >= 0,
                    CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
                    "event_wait_list[%u] is an event that has failed: %d", i,
                    cld_event_status((struct cld_event *)(void *)wait->list[i]));
    return CL_SUCCESS;
}
