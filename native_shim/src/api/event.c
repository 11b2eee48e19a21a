/* User events, event queries, waits (API specification, 5.11 and 5.14). */
#include <stdlib.h>

#include "graph/graph_run.h"
#include "object/call.h"
#include "object/info.h"
#include "runtime/callback.h"
#include "runtime/command.h"

static void destroy_event(void *object) {
    struct cld_event *event = object;
    if (event->queue)
        cld_object_drop(event->queue);
    else
        cld_object_drop(event->context);
}

__attribute__((constructor)) static void register_event(void) {
    cld_object_on_destroy(CLD_EVENT, destroy_event);
}

CL_API_ENTRY cl_event CL_API_CALL clCreateUserEvent(cl_context handle, cl_int *errcode_ret) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    CLD_REQUIRE_OR_NULL(context, CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE_LIVE_OR_NULL(context);
    struct cld_event *event = cld_user_event_new(context);
    CLD_REQUIRE_OR_NULL(event, CL_OUT_OF_HOST_MEMORY, "no memory");
    if (errcode_ret)
        *errcode_ret = CL_SUCCESS;
    return (cl_event)event;
}

CL_API_ENTRY cl_int CL_API_CALL clSetUserEventStatus(cl_event handle, cl_int execution_status) {
    struct cld_event *event = cld_object_check(handle, CLD_EVENT);
    CLD_REQUIRE(event && event->type == CL_COMMAND_USER, CL_INVALID_EVENT, "not a user event");
    CLD_REQUIRE(execution_status <= CL_COMPLETE, CL_INVALID_VALUE,
                "execution_status is %d, at most CL_COMPLETE (0)", execution_status);
    bool first = cld_user_event_set(event, execution_status, NULL);
    CLD_REQUIRE(first, CL_INVALID_OPERATION, "the status of event was set before");
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clWaitForEvents(cl_uint num_events, const cl_event *event_list) {
    CLD_REQUIRE(num_events && event_list, CL_INVALID_VALUE, "num_events is 0 or event_list NULL");
    const struct cld_context *context = NULL;
    for (cl_uint i = 0; i < num_events; i++) {
        struct cld_event *event = cld_object_check(event_list[i], CLD_EVENT);
        CLD_REQUIRE(event, CL_INVALID_EVENT, "event_list[%u] is %s, not an event", i,
                    cld_describe(event_list[i]).text);
        CLD_REQUIRE(!context || event->context == context, CL_INVALID_CONTEXT,
                    "event_list[%u] is an event of another context than event_list[0]", i);
        context = event->context;
    }
    /* All are flushed before the first is waited for: they may depend on each other across queues. A queue
     * of which one event is waited for here flushes as this thread helps. */
    for (cl_uint i = 1; i < num_events; i++) {
        struct cld_event *event = (struct cld_event *)event_list[i];
        if (event->queue && event->queue != ((struct cld_event *)event_list[0])->queue)
            cld_queue_flush(event->queue, NULL);
    }
    bool failed = false;
    for (cl_uint i = 0; i < num_events; i++)
        failed |= cld_event_wait((struct cld_event *)event_list[i]) < 0;
    CLD_REQUIRE(!failed, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
                "an event of event_list is of a command that has failed");
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetEventInfo(cl_event handle, cl_event_info param_name,
                                               size_t param_value_size, void *param_value,
                                               size_t *param_value_size_ret) {
    struct cld_event *event = cld_object_check(handle, CLD_EVENT);
    CLD_REQUIRE(event, CL_INVALID_EVENT, "not an event");
    static const cl_command_queue none = NULL;
    cl_int status;
    cl_uint count;
    const void *answer;
    size_t size;
    switch (param_name) {
    case CL_EVENT_COMMAND_QUEUE:
        /* "For events returned by a command-buffer enqueue operation to multiple command-queues, NULL is
         * returned." */
        answer = cld_graph_is_of_several(event) ? (const void *)&none : &event->queue;
        size = sizeof(cl_command_queue);
        break;
    case CL_EVENT_CONTEXT:
        answer = &event->context;
        size = sizeof(cl_context);
        break;
    case CL_EVENT_COMMAND_TYPE:
        answer = &event->type;
        size = sizeof event->type;
        break;
    case CL_EVENT_COMMAND_EXECUTION_STATUS:
        status = cld_event_status(event);
        /* Who asks may ask until it is complete, without a flush. */
        if (status == CL_QUEUED)
            cld_queue_flush(event->queue, NULL);
        answer = &status;
        size = sizeof status;
        break;
    case CL_EVENT_REFERENCE_COUNT:
        count = cld_object_refs(event);
        answer = &count;
        size = sizeof count;
        break;
    default:
        return cld_lack(__func__, CL_INVALID_VALUE, "param_name is not an event query");
    }
    return cld_info(answer, size, param_value_size, param_value, param_value_size_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clGetEventProfilingInfo(cl_event handle, cl_profiling_info param_name,
                                                        size_t param_value_size, void *param_value,
                                                        size_t *param_value_size_ret) {
    struct cld_event *event = cld_object_check(handle, CLD_EVENT);
    CLD_REQUIRE(event, CL_INVALID_EVENT, "not an event");
    CLD_REQUIRE(event->queue && event->special & CLD_PROFILED, CL_PROFILING_INFO_NOT_AVAILABLE,
                "a user event, or of a queue without profiling");
    CLD_REQUIRE(cld_event_status(event) == CL_COMPLETE, CL_PROFILING_INFO_NOT_AVAILABLE,
                "the command is not complete");
    enum cld_time time;
    cl_ulong stamp;
    switch (param_name) {
    case CL_PROFILING_COMMAND_QUEUED:
        time = CLD_TIME_QUEUED;
        break;
    case CL_PROFILING_COMMAND_SUBMIT:
        time = CLD_TIME_SUBMIT;
        break;
    case CL_PROFILING_COMMAND_START:
        time = CLD_TIME_START;
        break;
    case CL_PROFILING_COMMAND_END:
        time = CLD_TIME_END;
        break;
    case CL_PROFILING_COMMAND_COMPLETE: /* with all that the command has enqueued itself */
        time = CLD_TIME_END;
        if (!event->enqueues)
            break;
        stamp = event->node.complete_time;
        return cld_info(&stamp, sizeof stamp, param_value_size, param_value, param_value_size_ret);
    default:
        return cld_lack(__func__, CL_INVALID_VALUE, "param_name is not a profiling query");
    }
    stamp = event->times[time];
    return cld_info(&stamp, sizeof stamp, param_value_size, param_value, param_value_size_ret);
}
