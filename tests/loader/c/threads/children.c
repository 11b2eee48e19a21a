/* Threads, each with a queue, whose kernels enqueue others on one queue of the device: in a tree, after one
 * another, after events, with local memory. argv[1]: how often. */
#include "client.h"

#include <pthread.h>

enum { THREADS = 4, DEPTH = 5, CHAIN = 40, GROUPS = 8 };

static const char *source =
    "void tree(global int *out, int depth) {"
    "    atomic_inc(out);"
    "    for (int i = 0; depth > 0 && i < 2; i++)"
    "        enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), ^{"
    "            tree(out, depth - 1);"
    "        });"
    "}"
    "kernel void k(global int *out, queue_t q, int depth, int chain) {"
    "    if (get_global_id(0) == 0)"
    "        tree(out, depth);"
    "    long8 large = (long8)(chain), more = large, most = large;"
    "    if (get_local_id(0) == 0)"
    "        enqueue_kernel(q, CLK_ENQUEUE_FLAGS_WAIT_WORK_GROUP, ndrange_1D(64, 16), ^(local void *m) {"
    "            local int *own = (local int *)m;"
    "            own[get_local_id(0)] = get_local_id(0);"
    "            barrier(CLK_LOCAL_MEM_FENCE);"
    "            if (large.s0 + more.s7 - most.s3 == chain)"
    "                atomic_add(out + 1, own[15 - get_local_id(0)]);"
    "        }, 64);"
    "    if (get_global_id(0) == 0) {"
    "        clk_event_t user = create_user_event(), before = user, after;"
    "        for (int i = 0; i < chain; i++) {"
    "            enqueue_kernel(q, i & 1, ndrange_1D(1), 1, &before, &after, ^{ out[2]++; });"
    "            if (i > 0)"
    "                release_event(before);"
    "            before = after;"
    "        }"
    "        set_user_event_status(user, CL_COMPLETE);"
    "        release_event(user);"
    "        release_event(before);"
    "    }"
    "}";

static cl_device_id device;
static cl_context context;
static cl_program program;
static cl_command_queue children;
static int rounds;

static void *launch(void *unused) {
    (void)unused;
    cl_command_queue queue = make_queue(context, device, CL_QUEUE_PROFILING_ENABLE);
    cl_int status, zeros[3] = {0}, depth = DEPTH, chain = CHAIN;
    cl_kernel kernel = clCreateKernel(program, "k", &status);
    OK(status);
    cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof zeros, zeros, &status);
    OK(status);
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    OK(clSetKernelArg(kernel, 1, sizeof children, &children));
    OK(clSetKernelArg(kernel, 2, sizeof depth, &depth));
    OK(clSetKernelArg(kernel, 3, sizeof chain, &chain));
    for (int round = 0; round < rounds; round++) {
        size_t items = 4 * GROUPS, group = 4;
        cl_event event;
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &group, 0, NULL, &event));
        OK(round % 3 ? clWaitForEvents(1, &event) : clFlush(queue));
        OK(clReleaseEvent(event));
    }
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof zeros, zeros, 0, NULL, NULL));
    EXPECT(zeros[0], rounds * ((2 << DEPTH) - 1));
    EXPECT(zeros[1], rounds * GROUPS * 4 * 120);
    EXPECT(zeros[2], rounds * CHAIN);
    OK(clReleaseMemObject(buffer));
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
    return NULL;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    rounds = atoi(argv[1]);
    device = the_device();
    context = make_context(device);
    cl_int status;
    const cl_queue_properties properties[] = {
        CL_QUEUE_PROPERTIES,
        CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
    children = clCreateCommandQueueWithProperties(context, device, properties, &status);
    OK(status);
    program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 1, &device, "-cl-std=CL3.0", NULL, NULL));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, launch, NULL));
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(threads[i], NULL));
    OK(clReleaseProgram(program));
    OK(clReleaseCommandQueue(children));
    OK(clReleaseContext(context));
    return 0;
}
