/* User code within commands that ends the thread it is called on (pthread_exit): the command fails, later
 * ones are executed, and no thread of the host's is lost. */
#include <pthread.h>
#include <stdatomic.h>

#include "harness.h"

static cl_context context;
static _Atomic int calls;

static void CL_CALLBACK end_thread(void *nothing) {
    (void)nothing;
    calls++;
    pthread_exit(NULL);
}

static void CL_CALLBACK count(void *nothing) {
    (void)nothing;
    calls++;
}

static void CL_CALLBACK end_thread_of_free(cl_command_queue queue, cl_uint number, void *pointers[],
                                           void *nothing) {
    (void)queue, (void)number, (void)pointers;
    end_thread(nothing);
}

static cl_event enqueue(cl_command_queue queue, void(CL_CALLBACK *function)(void *)) {
    cl_event event;
    OK(clEnqueueNativeKernel(queue, function, NULL, 0, 0, NULL, NULL, 0, NULL, &event));
    return event;
}

static void expect(cl_event event, cl_int status) {
    for (int i = 0; i < 2000 && status_of(event) > 0; i++)
        usleep(5000);
    CHECK_IS(status_of(event), status);
    OK(clReleaseEvent(event));
}

/* waits: in clFinish, where this thread executes what is there; else the threads of the device do it. */
static void mixed(bool waits, cl_command_queue_properties properties) {
    enum { MANY = 100 };
    cl_event events[2 * MANY], freed;
    cl_command_queue queue = test_queue(context, properties);
    calls = 0;
    for (int i = 0; i < 2 * MANY; i++)
        events[i] = enqueue(queue, i % 2 ? count : end_thread);
    OK(clEnqueueSVMFree(queue, 0, NULL, end_thread_of_free, NULL, 0, NULL, &freed));
    OK(waits ? clFinish(queue) : clFlush(queue));
    for (int i = 0; i < 2 * MANY; i++)
        expect(events[i], i % 2 ? CL_COMPLETE : CL_OUT_OF_RESOURCES);
    expect(freed, CL_OUT_OF_RESOURCES);
    CHECK_IS(calls, 2 * MANY + 1);
    OK(clReleaseCommandQueue(queue));
}

/* What waits for the command is told, and does not hang. */
static void dependents(void) {
    cl_command_queue queue = test_queue(context, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE),
                     other = test_queue(context, 0);
    cl_event failed = enqueue(queue, end_thread), marker;
    OK(clEnqueueMarkerWithWaitList(other, 1, &failed, &marker));
    CHECK_IS(clWaitForEvents(1, &marker), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    OK(clReleaseEvent(failed));
    OK(clReleaseEvent(marker));
    expect(enqueue(queue, count), CL_COMPLETE);
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseCommandQueue(other));
}

int main(void) {
    context = test_context();
    for (int waits = 0; waits < 2; waits++) {
        mixed(waits, 0);
        mixed(waits, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    }
    dependents();
    OK(clReleaseContext(context));
}
