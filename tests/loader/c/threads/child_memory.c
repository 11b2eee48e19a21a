/* Kernels that enqueue kernels while the driver's allocations fail now and then: enqueue_kernel says so, and
 * exactly the children that it took run. argv[1]: how often. */
#define _GNU_SOURCE
#include "extensions/failing_allocations.h"

#include <pthread.h>
#include <stdatomic.h>

enum { DEPTH = 5, WAITS = 12, ITEMS = 64, THREADS = 3 };

/* out: what was taken and refused, what ran, of the tree and of the kernels with long wait lists. */
static const char *source =
    "void tree(global int *out, int depth) {"
    "    atomic_inc(out + 2);"
    "    for (int i = 0; depth > 0 && i < 2; i++)"
    "        atomic_inc(out + !!enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1),"
    "                                          ^{ tree(out, depth - 1); }));"
    "}"
    "kernel void k(global int *out) {"
    "    queue_t q = get_default_queue();"
    "    if (get_local_id(0) == 0)"
    "        atomic_inc(out + !!enqueue_kernel(q, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), ^{"
    "            tree(out, 5);"
    "        }));"
    "    if (get_global_id(0) > 0)"
    "        return;"
    "    long16 a = (long16)(out[6]), b = a + 1, c = a + 2;" /* too large to be kept with the command */
    "    clk_event_t events[12];"
    "    int count = 0;"
    "    for (int i = 0; i < 12; i++) {"
    "        clk_event_t event;"
    "        if (enqueue_kernel(q, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), 0, NULL, &event, ^{"
    "                atomic_add(out + 5, a.s1 + b.s2 + c.s3 == 3); }))"
    "            atomic_inc(out + 4);"
    "        else {"
    "            atomic_inc(out + 3);"
    "            events[count++] = event;"
    "        }"
    "    }"
    "    int status = !count || enqueue_kernel(q, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), count, events,"
    "                                          NULL, ^{ atomic_inc(out + 5); });"
    "    atomic_inc(out + 3 + !!status);"
    "    for (int i = 0; i < count; i++)"
    "        release_event(events[i]);"
    "}";

static _Atomic int every; /* so many allocations of the driver, and one fails; 0: none */
static _Atomic unsigned allocations, failures;
static _Atomic int refused; /* children */

static bool now_fails(void) {
    int one_of = atomic_load(&every);
    if (!one_of || atomic_fetch_add(&allocations, 1) % (unsigned)one_of)
        return false;
    atomic_fetch_add(&failures, 1);
    return true;
}

static cl_device_id device;
static cl_context context;
static cl_program program;
static int rounds;
static pthread_barrier_t turn;

static void *launch(void *first) {
    cl_command_queue queue = make_queue(context, device, 0);
    cl_int status, *out;
    cl_kernel kernel = clCreateKernel(program, "k", &status);
    OK(status);
    cl_mem buffer = clCreateBuffer(context, CL_MEM_ALLOC_HOST_PTR, 7 * sizeof *out, NULL, &status);
    OK(status);
    out = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, 7 * sizeof *out, 0, NULL,
                             NULL, &status);
    OK(status);
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    for (int round = 0; round < rounds; round++) {
        size_t items = ITEMS, group = 4;
        cl_event event, start = clCreateUserEvent(context, &status);
        OK(status);
        memset(out, 0, 7 * sizeof *out);
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &group, 1, &start, &event));
        OK(clFlush(queue));
        pthread_barrier_wait(&turn); /* only what kernels ask for fails, not what the host does */
        if (first)
            atomic_store(&every, round % 4 ? 1 + round % 7 : 0);
        pthread_barrier_wait(&turn);
        OK(clSetUserEventStatus(start, CL_COMPLETE));
        OK(clWaitForEvents(1, &event));
        pthread_barrier_wait(&turn);
        if (first)
            atomic_store(&every, 0);
        pthread_barrier_wait(&turn);
        OK(clReleaseEvent(start));
        OK(clReleaseEvent(event));
        EXPECT(out[2], out[0]);
        EXPECT(out[5], out[3]);
        EXPECT(out[3] + out[4], WAITS + 1);
        atomic_fetch_add(&refused, out[1] + out[4]);
        if (round % 4 == 0)
            EXPECT(out[0], ITEMS / 4 * ((2 << DEPTH) - 1));
    }
    OK(clEnqueueUnmapMemObject(queue, buffer, out, 0, NULL, NULL));
    OK(clFinish(queue));
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
    CHECK(dl_iterate_phdr(find_driver, NULL));
    cl_int status;
    const cl_queue_properties properties[] = {
        CL_QUEUE_PROPERTIES,
        CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
    cl_command_queue children = clCreateCommandQueueWithProperties(context, device, properties, &status);
    OK(status);
    program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 1, &device, "-cl-std=CL3.0", NULL, NULL));
    pthread_t threads[THREADS];
    CHECK(!pthread_barrier_init(&turn, NULL, THREADS));
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, launch, i ? NULL : &threads[0]));
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(threads[i], NULL));
    CHECK(atomic_load(&failures) > 0 && atomic_load(&refused) > 0);
    OK(clReleaseProgram(program));
    OK(clReleaseCommandQueue(children));
    OK(clReleaseContext(context));
    return 0;
}
