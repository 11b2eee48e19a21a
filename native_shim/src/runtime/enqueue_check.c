/* The checks that all enqueue functions share. Above each stands the specification's sentence. */
#include "runtime/enqueue_check.h"

#include "base/log.h"

/* queue: NULL, or one that refuses. */
static __attribute__((noinline, cold)) cl_int refuse(const struct cld_queue *queue) {
    CLD_REQUIRE(queue && !(queue->properties & CL_QUEUE_ON_DEVICE), CL_INVALID_COMMAND_QUEUE,
                "not a host command-queue");
    CLD_REQUIRE(false, CL_CONTEXT_TERMINATED_KHR, "the context was terminated");
}

/* "CL_INVALID_COMMAND_QUEUE if command_queue is not a valid host command-queue." */
cl_int cld_check_queue(cl_command_queue handle, const struct cld_wait *wait, struct cld_queue **queue) {
    *queue = wait->recording ? wait->recording->queue : cld_queue_check(handle);
    bool is_good = *queue && !atomic_load_explicit(&(*queue)->refuses, memory_order_relaxed);
    return __builtin_expect(is_good, 1) ? CL_SUCCESS : refuse(*queue);
}

/* "CL_INVALID_EVENT_WAIT_LIST if event_wait_list is NULL and num_events_in_wait_list > 0, or event_wait_list
 * is not NULL and num_events_in_wait_list is 0, or if event objects in event_wait_list are not valid events."
 * "CL_INVALID_CONTEXT if the context associated with command_queue and events in event_wait_list are not the
 * same." */
cl_int cld_check_wait(const struct cld_queue *queue, const struct cld_wait *wait) {
    if (wait->recording)
        return CL_SUCCESS;
    CLD_REQUIRE(!wait->count == !wait->list, CL_INVALID_EVENT_WAIT_LIST,
                "the wait list and its length contradict each other");
    for (cl_uint i = 0; i < wait->count; i++) {
        struct cld_event *event = cld_object_check(wait->list[i], CLD_EVENT);
        CLD_REQUIRE(event, CL_INVALID_EVENT_WAIT_LIST, "an entry of the wait list is not an event");
        CLD_REQUIRE(event->context == queue->context, CL_INVALID_CONTEXT,
                    "the queue and an event of the wait list are of different contexts");
    }
    return CL_SUCCESS;
}

/* "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST if the execution status of any of the events in
 * event_wait_list is a negative integer value." */
cl_int cld_check_wait_status(const struct cld_wait *wait) {
    for (cl_uint i = 0; i < wait->count; i++)
        CLD_REQUIRE(cld_event_status((struct cld_event *)(void *)wait->list[i]) >= 0,
                    CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, "an event of the wait list has failed");
    return CL_SUCCESS;
}
