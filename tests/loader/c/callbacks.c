/* Callbacks that misbehave. argv[1] is the test. */
#include "client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static cl_context context;
static cl_device_id device;
static cl_command_queue queue;
static _Atomic int called;

static void CL_CALLBACK ends_its_thread(cl_event event, cl_int status, void *nothing) {
    (void)event, (void)status, (void)nothing;
    called++;
    pthread_exit(NULL);
}

static void CL_CALLBACK destroyed(cl_mem memory, void *nothing) {
    (void)memory, (void)nothing;
    called++;
    pthread_exit(NULL);
}

static void wait_for(int count) {
    for (int i = 0; i < 500 && called < count; i++)
        usleep(10000);
    EXPECT(called, count);
}

static cl_event user_event(void) {
    cl_int status;
    cl_event event = clCreateUserEvent(context, &status);
    OK(status);
    return event;
}

/* A callback that ends the thread it is called on takes no other with it, nor the event. */
static void thread_exit(void) {
    enum { CALLBACKS = 5 };
    for (int round = 1; round <= 3; round++) {
        cl_event event = user_event();
        for (int i = 0; i < CALLBACKS; i++)
            OK(clSetEventCallback(event, CL_COMPLETE, ends_its_thread, NULL));
        OK(clSetUserEventStatus(event, CL_COMPLETE));
        OK(clReleaseEvent(event));
        wait_for(round * CALLBACKS);
    }
    /* Destructor callbacks of memory whose last use is a command. */
    cl_int status;
    cl_mem buffer = clCreateBuffer(context, 0, 64, NULL, &status);
    OK(status);
    called = 0;
    for (int i = 0; i < CALLBACKS; i++)
        OK(clSetMemObjectDestructorCallback(buffer, destroyed, NULL));
    cl_event event = user_event();
    int value = 1;
    OK(clEnqueueFillBuffer(queue, buffer, &value, 4, 0, 64, 1, &event, NULL));
    OK(clReleaseMemObject(buffer));
    OK(clFlush(queue));
    OK(clSetUserEventStatus(event, CL_COMPLETE));
    OK(clReleaseEvent(event));
    wait_for(CALLBACKS);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    cl_int status;
    device = the_device();
    context = make_context(device);
    queue = clCreateCommandQueue(context, device, 0, &status);
    OK(status);
    if (!strcmp(argv[1], "thread_exit"))
        thread_exit();
    else
        return 2;
    return 0;
}
