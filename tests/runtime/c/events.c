/* Events and queues: user events, wait lists, errors along dependencies, callbacks, order, profiling. */
#include <pthread.h>
#include <stdatomic.h>

#include "harness.h"

static cl_context context;
static _Atomic int counter;

static void CL_CALLBACK count_up(void *args) {
    _Atomic int *seen;
    memcpy(&seen, args, sizeof seen);
    *seen = atomic_fetch_add(&counter, 1) + 1;
}

/* A native kernel that notes when it ran, counted from 1. */
static void note(cl_command_queue queue, _Atomic int *seen, cl_uint count, const cl_event *waits,
                 cl_event *event) {
    *seen = 0;
    OK(clEnqueueNativeKernel(queue, count_up, &seen, sizeof seen, 0, NULL, NULL, count, waits, event));
}

static void user_events(void) {
    cl_int status;
    CHECK(!clCreateUserEvent(NULL, &status));
    CHECK_IS(status, CL_INVALID_CONTEXT);
    cl_event event = clCreateUserEvent(context, &status);
    OK(status);
    CHECK_IS(status_of(event), CL_SUBMITTED);
    CHECK_IS(clSetUserEventStatus(event, CL_RUNNING), CL_INVALID_VALUE);
    CHECK_IS(clSetUserEventStatus((cl_event)context, CL_COMPLETE), CL_INVALID_EVENT);
    OK(clSetUserEventStatus(event, CL_COMPLETE));
    CHECK_IS(clSetUserEventStatus(event, CL_COMPLETE), CL_INVALID_OPERATION);
    CHECK_IS(clSetUserEventStatus(event, -5), CL_INVALID_OPERATION);
    OK(clWaitForEvents(1, &event));
    cl_command_type type;
    cl_command_queue queue;
    OK(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL));
    CHECK_IS(type, CL_COMMAND_USER);
    OK(clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof queue, &queue, NULL));
    CHECK(!queue);
    CHECK_IS(clGetEventInfo(event, 0x1234, sizeof queue, &queue, NULL), CL_INVALID_VALUE);
    CHECK_IS(clGetEventInfo(event, CL_EVENT_CONTEXT, 4, &queue, NULL), CL_INVALID_VALUE);
    CHECK_IS(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, 8, &queue, NULL),
             CL_PROFILING_INFO_NOT_AVAILABLE);
    OK(clReleaseEvent(event));
    CHECK_IS(clWaitForEvents(1, &event), CL_INVALID_EVENT);
    CHECK_IS(clWaitForEvents(0, &event), CL_INVALID_VALUE);
    CHECK_IS(clWaitForEvents(1, NULL), CL_INVALID_VALUE);
    cl_context other = test_context();
    cl_event two[2] = {clCreateUserEvent(context, NULL), clCreateUserEvent(other, NULL)};
    CHECK_IS(clWaitForEvents(2, two), CL_INVALID_CONTEXT);
    cl_command_queue mine = test_queue(context, 0);
    CHECK_IS(clEnqueueMarkerWithWaitList(mine, 1, &two[1], NULL), CL_INVALID_CONTEXT);
    CHECK_IS(clEnqueueMarkerWithWaitList(mine, 0, &two[0], NULL), CL_INVALID_EVENT_WAIT_LIST);
    CHECK_IS(clEnqueueMarkerWithWaitList(mine, 1, NULL, NULL), CL_INVALID_EVENT_WAIT_LIST);
    CHECK_IS(clEnqueueMarkerWithWaitList(mine, 1, &event, NULL), CL_INVALID_EVENT_WAIT_LIST);
    CHECK_IS(clEnqueueWaitForEvents(mine, 0, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueWaitForEvents(mine, 1, &event), CL_INVALID_EVENT);
    CHECK_IS(clEnqueueMarker(mine, NULL), CL_INVALID_VALUE);
    OK(clReleaseEvent(two[0]));
    OK(clReleaseEvent(two[1]));
    OK(clReleaseCommandQueue(mine));
    OK(clReleaseContext(other));
}

/* What waits for a failed event fails with its own code, along a chain; what is merely behind it in the queue
 * runs. */
static void errors(cl_command_queue_properties order) {
    cl_command_queue queue = test_queue(context, order);
    cl_mem buffer = test_buffer(context, 64);
    cl_event user = clCreateUserEvent(context, NULL), first, second, third;
    _Atomic int a, b, c;
    char data[16];
    note(queue, &a, 1, &user, &first);
    note(queue, &b, 1, &first, &second);
    note(queue, &c, 0, NULL, &third);
    OK(clFlush(queue));
    CHECK_IS(status_of(first), CL_SUBMITTED);
    OK(clSetUserEventStatus(user, -42));
    CHECK_IS(clWaitForEvents(1, &second), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    CHECK_IS(status_of(user), -42);
    CHECK_IS(status_of(first), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    CHECK_IS(status_of(second), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    OK(clWaitForEvents(1, &third));
    CHECK(!a && !b && c);
    CHECK_IS(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 16, data, 1, &first, NULL),
             CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    cl_int status;
    CHECK(!clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, 16, 1, &first, NULL, &status));
    CHECK_IS(status, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 16, data, 0, NULL, NULL));
    OK(clFinish(queue));
    OK(clReleaseEvent(user));
    OK(clReleaseEvent(first));
    OK(clReleaseEvent(second));
    OK(clReleaseEvent(third));
    OK(clReleaseMemObject(buffer));
    OK(clReleaseCommandQueue(queue));
}

static void barriers(void) {
    cl_command_queue queue = test_queue(context, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_event user = clCreateUserEvent(context, NULL), marker, barrier, one, after;
    _Atomic int a, b, c, d;
    note(queue, &a, 1, &user, &one);
    note(queue, &b, 0, NULL, NULL);
    OK(clEnqueueMarker(queue, &marker));                        /* waits for a and b */
    OK(clEnqueueMarkerWithWaitList(queue, 1, &one, &after));    /* waits for a */
    OK(clEnqueueBarrierWithWaitList(queue, 0, NULL, &barrier)); /* waits for all, all later for it */
    note(queue, &c, 0, NULL, NULL);
    OK(clEnqueueBarrier(queue));
    note(queue, &d, 0, NULL, NULL);
    OK(clFlush(queue));
    for (int i = 0; i < 1000 && !b; i++)
        usleep(1000);
    CHECK(b && !a && !c && !d);
    CHECK(status_of(marker) > 0 && status_of(after) > 0 && status_of(barrier) > 0);
    OK(clSetUserEventStatus(user, CL_COMPLETE));
    OK(clFinish(queue));
    CHECK(a && b && a < c && b < c && c < d);
    CHECK_IS(status_of(marker), CL_COMPLETE);
    cl_event events[] = {user, marker, barrier, one, after};
    for (int i = 0; i < 5; i++)
        OK(clReleaseEvent(events[i]));
    /* clEnqueueWaitForEvents: later commands wait, earlier ones do not count. */
    user = clCreateUserEvent(context, NULL);
    OK(clEnqueueWaitForEvents(queue, 1, &user));
    note(queue, &a, 0, NULL, NULL);
    OK(clFlush(queue));
    usleep(20000);
    CHECK(!a);
    OK(clSetUserEventStatus(user, CL_COMPLETE));
    OK(clFinish(queue));
    CHECK(a);
    OK(clReleaseEvent(user));
    OK(clReleaseCommandQueue(queue));
}

/* An event of another queue that nobody has flushed is flushed by who waits for it. */
static void across_queues(void) {
    cl_command_queue first = test_queue(context, 0), second = test_queue(context, 0);
    for (int round = 0; round < 200; round++) {
        cl_event one, two;
        _Atomic int a, b, c;
        note(first, &a, 0, NULL, &one);
        note(second, &b, 1, &one, &two);
        note(first, &c, 1, &two, NULL);
        OK(round % 2 ? clFinish(second) : clWaitForEvents(1, &two));
        CHECK(a && a < b);
        OK(clFinish(first));
        CHECK(b < c);
        OK(clReleaseEvent(one));
        OK(clReleaseEvent(two));
    }
    OK(clReleaseCommandQueue(first));
    OK(clReleaseCommandQueue(second));
}

static struct {
    _Atomic int calls, status[8];
    cl_event event;
} seen;

static void CL_CALLBACK notice(cl_event event, cl_int status, void *data) {
    CHECK(event == seen.event);
    atomic_store(&seen.status[(intptr_t)data], status);
    atomic_fetch_add(&seen.calls, 1);
}

static void wait_calls(int calls) {
    for (int i = 0; i < 5000 && atomic_load(&seen.calls) < calls; i++)
        usleep(1000);
    usleep(2000);
    CHECK_IS(atomic_load(&seen.calls), calls);
}

static cl_command_queue callback_queue;
static cl_event from_callback;
static _Atomic int chained;

/* Everything but blocking is allowed in a callback; blocking is not, but must not hang us either. */
static void CL_CALLBACK use_opencl(cl_event event, cl_int status, void *data) {
    (void)status;
    if (data) {
        OK(clFinish(callback_queue));
        cl_event user = data;
        OK(clWaitForEvents(1, &user)); /* set by a callback that is due behind this one */
        OK(clReleaseEvent(user));
    }
    OK(clEnqueueMarkerWithWaitList(callback_queue, 0, NULL, &from_callback));
    OK(clFlush(callback_queue));
    OK(clReleaseEvent(from_callback));
    OK(clReleaseEvent(event));
    atomic_fetch_add(&chained, 1);
}

static void CL_CALLBACK set_user(cl_event event, cl_int status, void *data) {
    (void)event, (void)status;
    OK(clSetUserEventStatus(data, CL_COMPLETE));
}

static void callbacks(void) {
    cl_command_queue queue = test_queue(context, 0);
    cl_event user = clCreateUserEvent(context, NULL);
    _Atomic int a;
    note(queue, &a, 1, &user, &seen.event);
    CHECK_IS(clSetEventCallback(seen.event, CL_COMPLETE, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clSetEventCallback(seen.event, CL_QUEUED, notice, NULL), CL_INVALID_VALUE);
    CHECK_IS(clSetEventCallback(NULL, CL_COMPLETE, notice, NULL), CL_INVALID_EVENT);
    OK(clSetEventCallback(seen.event, CL_SUBMITTED, notice, (void *)0));
    OK(clSetEventCallback(seen.event, CL_RUNNING, notice, (void *)1));
    OK(clSetEventCallback(seen.event, CL_COMPLETE, notice, (void *)2));
    wait_calls(1); /* registering is somebody's interest: it was submitted */
    CHECK_IS(atomic_load(&seen.status[0]), CL_SUBMITTED);
    OK(clSetUserEventStatus(user, CL_COMPLETE));
    OK(clFinish(queue));
    wait_calls(3);
    CHECK_IS(atomic_load(&seen.status[1]), CL_RUNNING);
    CHECK_IS(atomic_load(&seen.status[2]), CL_COMPLETE);
    OK(clSetEventCallback(seen.event, CL_COMPLETE, notice, (void *)3)); /* late: at once */
    wait_calls(4);
    OK(clReleaseEvent(seen.event));
    OK(clReleaseEvent(user));

    /* Failure: all of them, with the error. */
    user = clCreateUserEvent(context, NULL);
    note(queue, &a, 1, &user, &seen.event);
    OK(clSetEventCallback(seen.event, CL_COMPLETE, notice, (void *)4));
    OK(clSetEventCallback(seen.event, CL_RUNNING, notice, (void *)5));
    OK(clSetUserEventStatus(user, -7));
    wait_calls(6);
    CHECK_IS(atomic_load(&seen.status[4]), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    CHECK_IS(atomic_load(&seen.status[5]), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    OK(clReleaseEvent(seen.event));
    OK(clReleaseEvent(user));

    /* User events have callbacks too, and OpenCL may be used in them. */
    callback_queue = queue;
    for (int round = 0; round < 20; round++) {
        cl_event awaited = round % 2 ? clCreateUserEvent(context, NULL) : NULL;
        user = clCreateUserEvent(context, NULL);
        cl_event other = clCreateUserEvent(context, NULL);
        OK(clSetEventCallback(user, CL_COMPLETE, use_opencl, awaited));
        if (awaited)
            OK(clSetEventCallback(other, CL_COMPLETE, set_user, awaited));
        OK(clSetUserEventStatus(user, CL_COMPLETE));
        OK(clSetUserEventStatus(other, CL_COMPLETE));
        OK(clReleaseEvent(other));
        for (int i = 0; i < 5000 && atomic_load(&chained) <= round; i++)
            usleep(1000);
        CHECK_IS(atomic_load(&chained), round + 1);
    }
    OK(clReleaseCommandQueue(queue));
}

static void CL_CALLBACK count(cl_event event, cl_int status, void *counter) {
    (void)event, (void)status;
    atomic_fetch_add((_Atomic int *)counter, 1);
}

/* Each costs the same, however many there are: all took minutes. */
static void many_callbacks(void) {
    enum { CALLBACKS = 200000 };
    static _Atomic int counter;
    cl_event user = clCreateUserEvent(context, NULL);
    uint64_t start = cld_now();
    for (int i = 0; i < CALLBACKS; i++)
        OK(clSetEventCallback(user, CL_COMPLETE, count, &counter));
    OK(clSetUserEventStatus(user, CL_COMPLETE));
    while (atomic_load(&counter) < CALLBACKS && cld_now() - start < 20000000000)
        usleep(1000);
    CHECK_IS(atomic_load(&counter), CALLBACKS);
    CHECK(cld_now() - start < 20000000000);
    OK(clReleaseEvent(user));
}

static void profiling(void) {
    cl_command_queue queue = test_queue(context, CL_QUEUE_PROFILING_ENABLE);
    cl_mem buffer = test_buffer(context, 4 << 20);
    char *data = malloc(4 << 20);
    for (int size = 16; size <= 4 << 20; size *= 64) {
        cl_event event;
        cl_ulong times[5], before, after;
        OK(clGetHostTimer(test_device(), &before));
        OK(clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, (size_t)size, data, 0, NULL, &event));
        OK(clWaitForEvents(1, &event));
        OK(clGetHostTimer(test_device(), &after));
        for (cl_profiling_info i = 0; i < 5; i++)
            OK(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED + i, 8, &times[i], NULL));
        CHECK(before <= times[0] && times[0] <= times[1] && times[1] <= times[2] && times[2] <= times[3]);
        CHECK(times[3] == times[4] && times[4] <= after);
        CHECK_IS(clGetEventProfilingInfo(event, 0x1111, 8, &times[0], NULL), CL_INVALID_VALUE);
        CHECK_IS(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, 4, &times[0], NULL),
                 CL_INVALID_VALUE);
        OK(clReleaseEvent(event));
    }
    cl_event user = clCreateUserEvent(context, NULL), event;
    cl_ulong time;
    OK(clEnqueueMarkerWithWaitList(queue, 1, &user, &event));
    CHECK_IS(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, 8, &time, NULL),
             CL_PROFILING_INFO_NOT_AVAILABLE);
    OK(clSetUserEventStatus(user, CL_COMPLETE));
    OK(clReleaseEvent(user));
    OK(clReleaseEvent(event));
    OK(clReleaseMemObject(buffer));
    OK(clReleaseCommandQueue(queue));
    free(data);
}

static void queues(void) {
    cl_int status;
    cl_device_id device = test_device();
    cl_queue_properties unknown[] = {0x4242, 1, 0};
    cl_queue_properties too_large[] = {CL_QUEUE_PROPERTIES, 7, CL_QUEUE_SIZE, 1ul << 31, 0};
    cl_queue_properties size[] = {CL_QUEUE_SIZE, 1024, 0}, bits[] = {CL_QUEUE_PROPERTIES, 1 << 20, 0};
    cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0}, answer[8];
    CHECK(!clCreateCommandQueueWithProperties(context, device, unknown, &status));
    CHECK_IS(status, CL_INVALID_VALUE);
    CHECK(!clCreateCommandQueueWithProperties(context, device, bits, &status));
    CHECK_IS(status, CL_INVALID_VALUE);
    CHECK(!clCreateCommandQueueWithProperties(context, device, size, &status));
    CHECK_IS(status, CL_INVALID_VALUE);
    CHECK(!clCreateCommandQueueWithProperties(context, device, too_large, &status));
    CHECK_IS(status, CL_INVALID_QUEUE_PROPERTIES);
    CHECK(!clCreateCommandQueueWithProperties(NULL, device, NULL, &status));
    CHECK_IS(status, CL_INVALID_CONTEXT);
    CHECK(!clCreateCommandQueueWithProperties(context, NULL, NULL, &status));
    CHECK_IS(status, CL_INVALID_DEVICE);
    CHECK(!clCreateCommandQueue(context, device, 1 << 10, &status));
    CHECK_IS(status, CL_INVALID_VALUE);
    cl_device_id part = test_sub_device(1);
    CHECK(!clCreateCommandQueue(context, part, 0, &status));
    CHECK_IS(status, CL_INVALID_DEVICE);
    OK(clReleaseDevice(part));
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, list, &status);
    size_t bytes;
    OK(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES_ARRAY, sizeof answer, answer, &bytes));
    CHECK(bytes == sizeof list && !memcmp(answer, list, bytes));
    CHECK_IS(clGetCommandQueueInfo(queue, CL_QUEUE_SIZE, 4, answer, NULL), CL_INVALID_COMMAND_QUEUE);
    CHECK_IS(clGetCommandQueueInfo(queue, 0x99, 4, answer, NULL), CL_INVALID_VALUE);
    CHECK_IS(clSetCommandQueueProperty(queue, CL_QUEUE_PROFILING_ENABLE, CL_TRUE, NULL),
             CL_INVALID_OPERATION);
    CHECK_IS(clSetDefaultDeviceCommandQueue(context, device, queue), CL_INVALID_COMMAND_QUEUE);
    OK(clReleaseCommandQueue(queue));
    queue = clCreateCommandQueue(context, device, 0, &status);
    OK(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES_ARRAY, sizeof answer, answer, &bytes));
    CHECK_IS(bytes, 0);
    /* A released queue finishes what it has. */
    _Atomic int a;
    note(queue, &a, 0, NULL, NULL);
    OK(clReleaseCommandQueue(queue));
    for (int i = 0; i < 2000 && !a; i++)
        usleep(1000);
    CHECK(a);
    CHECK_IS(clFinish(queue), CL_INVALID_COMMAND_QUEUE);
}

static void CL_CALLBACK sleep_a_second(void *args) {
    (void)args;
    usleep(1000000);
}

/* After clFinish every event of the queue is complete, whoever has executed the commands. */
static void finished_means_complete(cl_command_queue_properties order) {
    cl_command_queue queue = test_queue(context, order | CL_QUEUE_PROFILING_ENABLE);
    for (int round = 0; round < 3000; round++) {
        _Atomic int a, b;
        cl_event events[2];
        cl_ulong end;
        note(queue, &a, 0, NULL, &events[0]);
        note(queue, &b, 0, NULL, &events[1]);
        OK(clFlush(queue));
        for (volatile int i = 0; i < round % 300 * 10; i++)
            ;
        OK(clFinish(queue));
        for (int i = 0; i < 2; i++) {
            OK(clGetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_END, sizeof end, &end, NULL));
            OK(clReleaseEvent(events[i]));
        }
    }
    OK(clReleaseCommandQueue(queue));
}

/* Who waits for a short command of an out-of-order queue does not return late for having helped with another.
 */
static void short_before_long(void) {
    cl_command_queue queue = test_queue(context, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    for (int flushed = 0; flushed < 2; flushed++) {
        _Atomic int a;
        cl_event event;
        uint64_t start = cld_now();
        OK(clEnqueueNativeKernel(queue, sleep_a_second, NULL, 0, 0, NULL, NULL, 0, NULL, NULL));
        note(queue, &a, 0, NULL, &event);
        if (flushed)
            OK(clFlush(queue));
        OK(clWaitForEvents(1, &event));
        CHECK(cld_now() - start < 900000000);
        OK(clFinish(queue));
        CHECK(cld_now() - start >= 1000000000);
        OK(clReleaseEvent(event));
    }
    OK(clReleaseCommandQueue(queue));
}

static void *wait_for(void *event) {
    OK(clWaitForEvents(1, (cl_event *)&event));
    return NULL;
}

static void many_waiters(void) {
    for (int round = 0; round < 50; round++) {
        pthread_t ids[6];
        cl_event user = clCreateUserEvent(context, NULL);
        for (int i = 0; i < 6; i++)
            CHECK(!pthread_create(&ids[i], NULL, wait_for, user));
        usleep(round * 20);
        OK(clSetUserEventStatus(user, CL_COMPLETE));
        for (int i = 0; i < 6; i++)
            pthread_join(ids[i], NULL);
        OK(clReleaseEvent(user));
    }
}

int main(void) {
    context = test_context();
    user_events();
    errors(0);
    errors(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    barriers();
    across_queues();
    callbacks();
    many_callbacks();
    profiling();
    queues();
    many_waiters();
    short_before_long();
    finished_means_complete(0);
    finished_means_complete(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    OK(clReleaseContext(context));
}
