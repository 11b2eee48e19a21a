/* Threads whose queues wait for one another's semaphores. argv[1]: "plain", or "shared" for semaphores that
 * are exported and imported; argv[2]: how often each thread does. */
#include "client.h"

#include <pthread.h>

enum { PAIRS = 2, THREADS = 2 * PAIRS, WAITERS = 8 };

#define FUNCTION(name) static name##_fn name##_
FUNCTION(clCreateSemaphoreWithPropertiesKHR);
FUNCTION(clEnqueueWaitSemaphoresKHR);
FUNCTION(clEnqueueSignalSemaphoresKHR);
FUNCTION(clGetSemaphoreInfoKHR);
FUNCTION(clGetSemaphoreHandleForTypeKHR);
FUNCTION(clRetainSemaphoreKHR);
FUNCTION(clReleaseSemaphoreKHR);

static cl_device_id device;
static cl_context context;
static int rounds, is_shared;
/* Of each pair: from the first thread to the second, and back. With what the other side uses for it. */
static cl_semaphore_khr signaled[PAIRS][2], awaited[PAIRS][2];
/* What the commands of both change: only semaphores order them. */
static cl_mem data[PAIRS];

static cl_semaphore_khr make(const cl_semaphore_properties_khr *properties) {
    cl_int status;
    cl_semaphore_khr semaphore = clCreateSemaphoreWithPropertiesKHR_(context, properties, &status);
    OK(status);
    return semaphore;
}

static void make_both(cl_semaphore_khr *signals, cl_semaphore_khr *waits) {
    const cl_semaphore_properties_khr plain[] = {CL_SEMAPHORE_TYPE_KHR, CL_SEMAPHORE_TYPE_BINARY_KHR, 0};
    const cl_semaphore_properties_khr shared[] = {CL_SEMAPHORE_TYPE_KHR,
                                                  CL_SEMAPHORE_TYPE_BINARY_KHR,
                                                  CL_SEMAPHORE_EXPORT_HANDLE_TYPES_KHR,
                                                  CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR,
                                                  CL_SEMAPHORE_EXPORT_HANDLE_TYPES_LIST_END_KHR,
                                                  0};
    *signals = *waits = make(is_shared ? shared : plain);
    if (!is_shared) {
        OK(clRetainSemaphoreKHR_(*waits));
        return;
    }
    int descriptor;
    OK(clGetSemaphoreHandleForTypeKHR_(*signals, device, CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR, sizeof descriptor,
                                       &descriptor, NULL));
    const cl_semaphore_properties_khr imported[] = {CL_SEMAPHORE_TYPE_KHR, CL_SEMAPHORE_TYPE_BINARY_KHR,
                                                    CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR,
                                                    (cl_semaphore_properties_khr)descriptor, 0};
    *waits = make(imported);
}

static cl_command_queue new_queue(int is_out_of_order) {
    cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES,
                                        is_out_of_order ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0, 0};
    cl_int status;
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, properties, &status);
    OK(status);
    return queue;
}

/* The second thread's queue is out of order: its commands are ordered by events. */
static void *ping_pong(void *argument) {
    int thread = *(int *)argument, pair = thread / 2, side = thread % 2;
    cl_command_queue queue = new_queue(side);
    for (int i = 0; i < rounds; i++) {
        cl_event events[2];
        cl_uint value = (cl_uint)(2 * i + side);
        if (side || i)
            OK(clEnqueueWaitSemaphoresKHR_(queue, 1, &awaited[pair][!side], NULL, 0, NULL, &events[0]));
        else
            OK(clEnqueueMarkerWithWaitList(queue, 0, NULL, &events[0]));
        OK(clEnqueueFillBuffer(queue, data[pair], &value, sizeof value, 0, 4096, 1, events, &events[1]));
        OK(clEnqueueSignalSemaphoresKHR_(queue, 1, &signaled[pair][side], NULL, 1, &events[1], NULL));
        if (i % 7 == 0)
            OK(clFinish(queue));
        OK(clReleaseEvent(events[0]));
        OK(clReleaseEvent(events[1]));
    }
    OK(clFinish(queue));
    OK(clReleaseCommandQueue(queue));
    return NULL;
}

/* Many commands wait for two semaphores at once, which other queues signal in either order. */
static void crowd(void) {
    cl_semaphore_khr pair[2], same[2];
    cl_command_queue waits = new_queue(1), signals[2] = {new_queue(0), new_queue(0)};
    for (int i = 0; i < 2; i++)
        make_both(&pair[i], &same[i]);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < WAITERS; i++)
            OK(clEnqueueWaitSemaphoresKHR_(waits, 2, same, NULL, 0, NULL, NULL));
        OK(clFlush(waits));
        for (int i = 0; i < WAITERS; i++)
            for (int k = 0; k < 2; k++)
                OK(clEnqueueSignalSemaphoresKHR_(signals[k], 1, &pair[k], NULL, 0, NULL, NULL));
        OK(clFinish(waits));
    }
    for (int i = 0; i < 2; i++) {
        cl_semaphore_payload_khr payload;
        OK(clFinish(signals[i]));
        OK(clGetSemaphoreInfoKHR_(pair[i], CL_SEMAPHORE_PAYLOAD_KHR, sizeof payload, &payload, NULL));
        EXPECT(payload, 0);
        OK(clReleaseSemaphoreKHR_(pair[i]));
        OK(clReleaseSemaphoreKHR_(same[i]));
        OK(clReleaseCommandQueue(signals[i]));
    }
    OK(clReleaseCommandQueue(waits));
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    is_shared = !strcmp(argv[1], "shared");
    rounds = atoi(argv[2]);
    GET_EXTENSION(clCreateSemaphoreWithPropertiesKHR);
    GET_EXTENSION(clEnqueueWaitSemaphoresKHR);
    GET_EXTENSION(clEnqueueSignalSemaphoresKHR);
    GET_EXTENSION(clGetSemaphoreInfoKHR);
    GET_EXTENSION(clGetSemaphoreHandleForTypeKHR);
    GET_EXTENSION(clRetainSemaphoreKHR);
    GET_EXTENSION(clReleaseSemaphoreKHR);
    device = the_device();
    cl_int status;
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    OK(status);
    for (int pair = 0; pair < PAIRS; pair++) {
        for (int side = 0; side < 2; side++)
            make_both(&signaled[pair][side], &awaited[pair][side]);
        data[pair] = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &status);
        OK(status);
    }
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(!pthread_create(&threads[i], NULL, ping_pong, &numbers[i]));
    }
    crowd();
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(threads[i], NULL));
    cl_command_queue queue = new_queue(0);
    for (int pair = 0; pair < PAIRS; pair++) {
        cl_uint found[1024];
        OK(clEnqueueReadBuffer(queue, data[pair], CL_TRUE, 0, sizeof found, found, 0, NULL, NULL));
        for (int i = 0; i < 1024; i++)
            EXPECT(found[i], 2 * rounds - 1);
        OK(clReleaseMemObject(data[pair]));
        for (int side = 0; side < 2; side++) {
            OK(clReleaseSemaphoreKHR_(signaled[pair][side]));
            OK(clReleaseSemaphoreKHR_(awaited[pair][side]));
        }
    }
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseContext(context));
    return 0;
}
