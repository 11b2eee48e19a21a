/* Queues, events and threads with real kernels. argv[1] is the test, argv[2] its size. */
#include "client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static cl_context context;
static cl_device_id device;
static cl_program program;

static const char source[] =
    "kernel void stamp(global uint *counter, global uint2 *records, uint index, uint rounds) {\n"
    "    if (get_global_id(0)) return;\n"
    "    records[index].x = atomic_inc(counter);\n"
    "    for (volatile uint i = 0; i < rounds; i++) ;\n"
    "    records[index].y = atomic_inc(counter);\n"
    "}\n"
    "kernel void add(global int *data, int value) { data[get_global_id(0)] += value; }\n";

static void set_up(void) {
    device = the_device();
    cl_int status;
    const char *text = source;
    context = make_context(device);
    program = clCreateProgramWithSource(context, 1, &text, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 1, &device, "", NULL, NULL));
}

static cl_kernel kernel_of(const char *name) {
    cl_int status;
    cl_kernel kernel = clCreateKernel(program, name, &status);
    OK(status);
    return kernel;
}

/* Two threads on the same four queues, random dependencies, order checked by stamps of one counter. */
enum { QUEUES = 4, RING = 32, MOST_WAITS = 3 };

struct expected {
    uint32_t waits[MOST_WAITS], previous; /* indices + 1 */
};

static uint32_t per_thread;
static struct expected *expected;
static cl_command_queue queues[QUEUES];
static cl_mem counter, records;

static uint32_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void *enqueue_all(void *argument) {
    uint32_t thread = (uint32_t)(uintptr_t)argument;
    uint64_t random = 5 + thread;
    cl_kernel kernel = kernel_of("stamp");
    cl_event ring[RING] = {NULL};
    uint32_t ring_index[RING] = {0}, last[QUEUES] = {0};
    OK(clSetKernelArg(kernel, 0, sizeof counter, &counter));
    OK(clSetKernelArg(kernel, 1, sizeof records, &records));
    for (uint32_t i = 0; i < per_thread; i++) {
        cl_uint index = thread * per_thread + i, rounds = next_random(&random) % 200 ? 3 : 3000, count = 0;
        cl_event waits[MOST_WAITS], old = ring[i % RING];
        for (cl_uint k = next_random(&random) % (MOST_WAITS + 1); k > 0; k--) {
            uint32_t at = next_random(&random) % RING;
            if (!ring[at])
                continue;
            expected[index].waits[count] = ring_index[at] + 1;
            waits[count++] = ring[at];
        }
        uint32_t q = next_random(&random) % QUEUES;
        if (q < 2) { /* these are in order */
            expected[index].previous = last[q];
            last[q] = index + 1;
        }
        size_t global = next_random(&random) % 50 ? 1 : 4096;
        OK(clSetKernelArg(kernel, 2, sizeof index, &index));
        OK(clSetKernelArg(kernel, 3, sizeof rounds, &rounds));
        OK(clEnqueueNDRangeKernel(queues[q], kernel, 1, NULL, &global, NULL, count, count ? waits : NULL,
                                  &ring[i % RING]));
        ring_index[i % RING] = index;
        if (old)
            OK(clReleaseEvent(old));
        uint32_t what = next_random(&random) % 1000;
        if (what < 5)
            OK(clFlush(queues[q]));
        else if (what < 7)
            OK(clWaitForEvents(1, &ring[i % RING]));
        else if (what < 8)
            OK(clEnqueueBarrierWithWaitList(queues[q], 0, NULL, NULL));
    }
    for (int q = 0; q < QUEUES; q++)
        OK(clFinish(queues[q]));
    for (int i = 0; i < RING; i++)
        if (ring[i])
            OK(clReleaseEvent(ring[i]));
    OK(clReleaseKernel(kernel));
    return NULL;
}

static void stress(uint32_t count) {
    pthread_t threads[2];
    per_thread = count;
    size_t size = 2 * (size_t)count * sizeof(cl_uint2);
    expected = calloc(2 * (size_t)count, sizeof *expected);
    cl_uint2 *stamps = malloc(size);
    cl_uint one = 1, zero = 0;
    counter = make_buffer(context, sizeof one);
    records = make_buffer(context, size);
    for (int q = 0; q < QUEUES; q++)
        queues[q] = make_queue(context, device, q < 2 ? 0 : CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    OK(clEnqueueFillBuffer(queues[0], counter, &one, sizeof one, 0, sizeof one, 0, NULL, NULL));
    OK(clEnqueueFillBuffer(queues[0], records, &zero, sizeof zero, 0, size, 0, NULL, NULL));
    OK(clFinish(queues[0]));
    for (uintptr_t t = 0; t < 2; t++)
        CHECK(!pthread_create(&threads[t], NULL, enqueue_all, (void *)t));
    for (int t = 0; t < 2; t++)
        pthread_join(threads[t], NULL);
    OK(clEnqueueReadBuffer(queues[0], records, CL_TRUE, 0, size, stamps, 0, NULL, NULL));
    for (uint32_t i = 0; i < 2 * count; i++) {
        CHECK(stamps[i].s[0] && stamps[i].s[1] > stamps[i].s[0]);
        for (int k = 0; k < MOST_WAITS; k++)
            if (expected[i].waits[k])
                CHECK(stamps[expected[i].waits[k] - 1].s[1] < stamps[i].s[0]);
        if (expected[i].previous)
            CHECK(stamps[expected[i].previous - 1].s[1] < stamps[i].s[0]);
    }
    for (int q = 0; q < QUEUES; q++)
        OK(clReleaseCommandQueue(queues[q]));
    OK(clReleaseMemObject(counter));
    OK(clReleaseMemObject(records));
}

/* A chain over two queues by events only; each link sees what the one before has written. */
static void chain(uint32_t count) {
    cl_command_queue two[2] = {
        make_queue(context, device, CL_QUEUE_PROFILING_ENABLE),
        make_queue(context, device, CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)};
    size_t items = 1 << 18;
    cl_mem data = make_buffer(context, items * sizeof(int));
    int zero = 0, one = 1, *host = malloc(items * sizeof(int));
    cl_kernel kernel = kernel_of("add");
    cl_event before, event;
    OK(clEnqueueFillBuffer(two[0], data, &zero, sizeof zero, 0, items * sizeof(int), 0, NULL, &before));
    OK(clSetKernelArg(kernel, 0, sizeof data, &data));
    OK(clSetKernelArg(kernel, 1, sizeof one, &one));
    cl_ulong last_end = 0;
    for (uint32_t i = 0; i < count; i++) {
        OK(clEnqueueNDRangeKernel(two[i % 2], kernel, 1, NULL, &items, NULL, 1, &before, &event));
        OK(clReleaseEvent(before));
        before = event;
        if (i % 100 == 99) {
            cl_ulong times[4];
            OK(clWaitForEvents(1, &event));
            for (cl_profiling_info k = 0; k < 4; k++)
                OK(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED + k, 8, &times[k], NULL));
            CHECK(times[0] <= times[1] && times[1] <= times[2] && times[2] <= times[3] &&
                  last_end <= times[2]);
            last_end = times[3];
        }
    }
    OK(clEnqueueReadBuffer(two[0], data, CL_TRUE, 0, items * sizeof(int), host, 1, &before, NULL));
    for (size_t i = 0; i < items; i++)
        CHECK(host[i] == (int)count);
    OK(clReleaseEvent(before));
}

/* A buffer, a kernel, a program, a queue and the context may all be released with their work in flight. */
static void release_early(uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        cl_command_queue queue =
            make_queue(context, device, i % 2 ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0);
        cl_int status;
        static int host[1 << 16];
        int five = 5;
        size_t items = 1 << 16;
        memset(host, 0, sizeof host);
        cl_mem data = clCreateBuffer(context, CL_MEM_USE_HOST_PTR, sizeof host, host, &status);
        OK(status);
        cl_kernel kernel = kernel_of("add");
        cl_event user = clCreateUserEvent(context, &status), done;
        OK(clSetKernelArg(kernel, 0, sizeof data, &data));
        OK(clSetKernelArg(kernel, 1, sizeof five, &five));
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 1, &user, &done));
        OK(clReleaseMemObject(data));
        OK(clReleaseKernel(kernel));
        OK(clReleaseCommandQueue(queue));
        if (i + 1 == count) {
            OK(clReleaseProgram(program));
            OK(clReleaseContext(context));
        }
        OK(clSetUserEventStatus(user, CL_COMPLETE));
        OK(clReleaseEvent(user));
        OK(clWaitForEvents(1, &done));
        OK(clReleaseEvent(done));
        for (size_t k = 0; k < items; k++)
            CHECK(host[k] == 5);
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    uint32_t count = (uint32_t)atoi(argv[2]);
    set_up();
    if (!strcmp(argv[1], "stress"))
        stress(count);
    else if (!strcmp(argv[1], "chain"))
        chain(count);
    else if (!strcmp(argv[1], "release_early"))
        release_early(count);
    else
        return 2;
    return 0;
}
