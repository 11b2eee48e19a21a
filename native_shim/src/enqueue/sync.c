/* Markers and barriers (API specification, 5.12). */
#include "enqueue/enqueue.h"
#include "graph/recording.h"
#include "object/call.h"
#include "runtime/enqueue_check.h"

/* "If event_wait_list is NULL, then this particular command waits until all previous enqueued commands to
 * command_queue have completed." */
static cl_int synchronise(struct cld_queue *queue, cl_command_type type, const struct cld_wait *wait) {
    struct cld_event *command = cld_command_new(queue, type, NULL, wait->event);
    CLD_REQUIRE(command, CL_OUT_OF_HOST_MEMORY, "no memory");
    command->barrier = type == CL_COMMAND_BARRIER;
    command->estimate = 0;
    return cld_command_enqueue(command, wait, wait->count ? 0 : CLD_AFTER_ALL);
}

static cl_int synchronise_with_list(cl_command_queue command_queue, cl_command_type type,
                                    const struct cld_wait *wait) {
    struct cld_queue *queue;
    CLD_TRY(cld_check_queue(command_queue, wait, &queue));
    CLD_TRY(cld_check_wait(queue, wait));
    return synchronise(queue, type, wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueMarkerWithWaitList(cl_command_queue command_queue,
                                                            cl_uint num_events_in_wait_list,
                                                            const cl_event *event_wait_list,
                                                            cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return synchronise_with_list(command_queue, CL_COMMAND_MARKER, &wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueBarrierWithWaitList(cl_command_queue command_queue,
                                                             cl_uint num_events_in_wait_list,
                                                             const cl_event *event_wait_list,
                                                             cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return synchronise_with_list(command_queue, CL_COMMAND_BARRIER, &wait);
}

CL_API_ENTRY cl_int CL_API_CALL clCommandBarrierWithWaitListKHR(cl_command_buffer_khr command_buffer,
                                                                cl_command_queue command_queue,
                                                                const cl_command_properties_khr *properties,
                                                                cl_uint num_sync_points_in_wait_list,
                                                                const cl_sync_point_khr *sync_point_wait_list,
                                                                cl_sync_point_khr *sync_point,
                                                                cl_mutable_command_khr *mutable_handle) {
    struct cld_command_recording recording;
    CLD_TRY(cld_recording_begin(&recording, command_buffer, command_queue, properties,
                                num_sync_points_in_wait_list, sync_point_wait_list, sync_point,
                                mutable_handle));
    return synchronise_with_list(NULL, CL_COMMAND_BARRIER, cld_recording_wait(&recording));
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueMarker(cl_command_queue command_queue, cl_event *event) {
    struct cld_queue *queue;
    struct cld_wait wait = {.event = event};
    CLD_TRY(cld_check_queue(command_queue, &wait, &queue));
    CLD_REQUIRE(event, CL_INVALID_VALUE, "event is NULL");
    return synchronise(queue, CL_COMMAND_MARKER, &wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueWaitForEvents(cl_command_queue command_queue, cl_uint num_events,
                                                       const cl_event *event_list) {
    struct cld_wait wait = {.count = num_events, .list = event_list};
    struct cld_queue *queue;
    CLD_TRY(cld_check_queue(command_queue, &wait, &queue));
    CLD_REQUIRE(num_events && event_list, CL_INVALID_VALUE, "num_events is 0 or event_list NULL");
    cl_int status = cld_check_wait(queue, &wait);
    /* This one entry point has no wait list: its events are plain arguments. */
    CLD_REQUIRE(status != CL_INVALID_EVENT_WAIT_LIST, CL_INVALID_EVENT, "not an event");
    CLD_TRY(status);
    return synchronise(queue, CL_COMMAND_BARRIER, &wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueBarrier(cl_command_queue command_queue) {
    const struct cld_wait wait = {0};
    struct cld_queue *queue;
    CLD_TRY(cld_check_queue(command_queue, &wait, &queue));
    return synchronise(queue, CL_COMMAND_BARRIER, &wait);
}
