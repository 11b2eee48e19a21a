/* A process that may make no threads: who flushes or waits executes. */
#include <errno.h>
#include <pthread.h>

#include "harness.h"

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                                          void *(*function)(void *), void *argument);

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                   void *argument) {
    (void)thread, (void)attributes, (void)function, (void)argument;
    return EAGAIN;
}

static int runs, called;

static void count(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                  uint64_t first, uint64_t last) {
    (void)launch, (void)args, (void)thread;
    runs += (int)(last - first);
    for (volatile int i = 0; i < 1000; i++)
        ;
}

static void CL_CALLBACK note(cl_event event, cl_int status, void *data) {
    (void)event, (void)status, (void)data;
    called++;
}

static void use(cl_context context, cl_device_id device) {
    cl_int status;
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    cl_kernel kernel = test_kernel(context, count, "");
    cl_event user = clCreateUserEvent(context, NULL), event;
    size_t groups = 1000, one = 1;
    runs = called = 0;
    OK(status);
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &groups, &one, 0, NULL, NULL));
    OK(clFinish(queue));
    CHECK_IS(runs, 1000);
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &groups, &one, 1, &user, &event));
    for (int i = 0; i < 10000; i++)
        OK(clEnqueueMarkerWithWaitList(queue, 0, NULL, NULL));
    OK(clSetEventCallback(event, CL_COMPLETE, note, NULL));
    OK(clFlush(queue));
    CHECK_IS(runs, 1000);
    OK(clSetUserEventStatus(user, CL_COMPLETE));
    OK(clFinish(queue));
    CHECK_IS(runs, 2000);
    CHECK_IS(called, 1);
    OK(clReleaseEvent(user));
    OK(clReleaseEvent(event));
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
}

int main(void) {
    cl_context context = test_context();
    use(context, test_device());
    OK(clReleaseContext(context));
    cl_device_id part = test_sub_device(1);
    context = test_context_of(1, &part);
    use(context, part);
    OK(clReleaseContext(context));
    OK(clReleaseDevice(part));
}
