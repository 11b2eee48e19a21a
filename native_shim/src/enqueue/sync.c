/* Markers and barriers (API specification, 5.12). */
#include "base/log.h"
#include "enqueue/enqueue.h"
#include "runtime/enqueue_check.h"

/* "If event_wait_list is NULL, then this particular command waits until all previous enqueued commands to
 * command_queue have completed." */
static cl_int synchronise(struct cld_queue *queue, cl_command_type type, struct cld_wait wait) {
    struct cld_event *command = cld_command_new(queue, type, NULL, wait.event);
    CLD_REQUIRE(command, CL_OUT_OF_HOST_MEMORY, "no memory");
    command->barrier = type == CL_COMMAND_BARRIER;
    command->estimate = 0;
    return cld_command_enqueue(command, wait.count, wait.list, wait.count ? 0 : CLD_AFTER_ALL, wait.event);
}

static cl_int synchronise_with_list(cl_command_queue command_queue, cl_command_type type,
                                    struct cld_wait wait) {
    struct cld_queue *queue;
    CLD_TRY(cld_check_queue(command_queue, &queue));
    CLD_TRY(cld_check_wait(queue, wait));
    return synchronise(queue, type, wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueMarkerWithWaitList(cl_command_queue command_queue,
                                                            cl_uint num_events_in_wait_list,
                                                            const cl_event *event_wait_list,
                                                            cl_event *event) {
    struct cld_wait wait = {num_events_in_wait_list, event_wait_list, event};
    return synchronise_with_list(command_queue, CL_COMMAND_MARKER, wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueBarrierWithWaitList(cl_command_queue command_queue,
                                                             cl_uint num_events_in_wait_list,
                                                             const cl_event *event_wait_list,
                                                             cl_event *event) {
    struct cld_wait wait = {num_events_in_wait_list, event_wait_list, event};
    return synchronise_with_list(command_queue, CL_COMMAND_BARRIER, wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueMarker(cl_command_queue command_queue, cl_event *event) {
    struct cld_queue *queue;
    CLD_TRY(cld_check_queue(command_queue, &queue));
    CLD_REQUIRE(event, CL_INVALID_VALUE, "event is NULL");
    return synchronise(queue, CL_COMMAND_MARKER, (struct cld_wait){.event = event});
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueWaitForEvents(cl_command_queue command_queue, cl_uint num_events,
                                                       const cl_event *event_list) {
    struct cld_queue *queue;
    CLD_TRY(cld_check_queue(command_queue, &queue));
    CLD_REQUIRE(num_events && event_list, CL_INVALID_VALUE, "no events");
    struct cld_wait wait = {.count = num_events, .list = event_list};
    cl_int status = cld_check_wait(queue, wait);
    /* This one entry point has no wait list: its events are plain arguments. */
    CLD_REQUIRE(status != CL_INVALID_EVENT_WAIT_LIST, CL_INVALID_EVENT, "not an event");
    CLD_TRY(status);
    return synchronise(queue, CL_COMMAND_BARRIER, wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueBarrier(cl_command_queue command_queue) {
    struct cld_queue *queue;
    CLD_TRY(cld_check_queue(command_queue, &queue));
    return synchronise(queue, CL_COMMAND_BARRIER, (struct cld_wait){.count = 0});
}
