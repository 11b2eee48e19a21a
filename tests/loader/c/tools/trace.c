/* What a trace is to show (tests/loader/tracing). argv[1] is the scene. */
#include "client.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ITEMS = 1 << 16, THREADS = 4, COMMANDS = 3000 };

static const char source[] = "kernel void twice(global int *a) { a[get_global_id(0)] *= 2; }\n"
                             "kernel void more(global int *a, int by) { a[get_global_id(0)] += by; }\n"
                             "kernel void slow(global int *a, int rounds) {\n"
                             "    int x = a[get_global_id(0)];\n"
                             "    for (int i = 0; i < rounds; i++) x = x * 1664525 + 1013904223;\n"
                             "    a[get_global_id(0)] = x;\n"
                             "}\n";

static cl_context context;
static cl_device_id device;

static cl_kernel kernel_on(const char *name, cl_mem buffer) {
    cl_kernel kernel = make_kernel(context, device, source, name);
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    return kernel;
}

/* Two kernels, of which the second waits for the first, between a write and a read; two that run at once. */
static void plain(void) {
    static int data[ITEMS];
    size_t size = ITEMS, local = 64;
    cl_command_queue queue = make_queue(context, device, 0);
    cl_command_queue other = make_queue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_mem buffer = make_buffer(context, sizeof data);
    cl_kernel twice = kernel_on("twice", buffer), more = kernel_on("more", buffer);
    int by = 3;
    cl_event first, second;
    for (int i = 0; i < ITEMS; i++)
        data[i] = i;
    OK(clSetKernelArg(more, 1, sizeof by, &by));
    OK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL));
    OK(clEnqueueNDRangeKernel(queue, twice, 1, NULL, &size, &local, 0, NULL, &first));
    OK(clEnqueueNDRangeKernel(other, more, 1, NULL, &size, NULL, 1, &first, &second));
    OK(clEnqueueMarkerWithWaitList(other, 1, &first, NULL));
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof data, data, 1, &second, NULL));
    for (int i = 0; i < ITEMS; i++)
        EXPECT(data[i], 2 * i + 3);
    /* A trace changes nothing of what programs see. */
    cl_ulong time;
    cl_command_queue_properties properties;
    EXPECT(clGetEventProfilingInfo(first, CL_PROFILING_COMMAND_END, sizeof time, &time, NULL),
           CL_PROFILING_INFO_NOT_AVAILABLE);
    OK(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL));
    EXPECT(properties, 0);
    EXPECT(clEnqueueReadBuffer(queue, buffer, CL_TRUE, sizeof data, 4, data, 0, NULL, NULL),
           CL_INVALID_VALUE);
    OK(clFinish(other));
}

static void *enqueue_much(void *argument) {
    size_t size = 64;
    cl_command_queue queue = make_queue(context, device, 0);
    cl_mem buffer = make_buffer(context, 4 * ITEMS);
    cl_kernel kernel = kernel_on("twice", buffer);
    (void)argument;
    for (int i = 0; i < COMMANDS; i++) {
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
        if (i % 100 == 99)
            OK(clFinish(queue));
    }
    OK(clFinish(queue));
    return NULL;
}

static void threads(void) {
    pthread_t made[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&made[i], NULL, enqueue_much, NULL));
    for (int i = 0; i < THREADS; i++)
        pthread_join(made[i], NULL);
}

/* In the middle of a command that takes for ever. how: a signal, or 0 for _exit. */
static void dies(int how) {
    size_t size = ITEMS, one = 1;
    int rounds = 1 << 30;
    cl_command_queue queue = make_queue(context, device, 0);
    cl_mem buffer = make_buffer(context, 4 * ITEMS);
    cl_kernel twice = kernel_on("twice", buffer), slow = kernel_on("slow", buffer);
    OK(clSetKernelArg(slow, 1, sizeof rounds, &rounds));
    for (int i = 0; i < 10; i++)
        OK(clEnqueueNDRangeKernel(queue, twice, 1, NULL, &size, NULL, 0, NULL, NULL));
    OK(clFinish(queue));
    OK(clEnqueueNDRangeKernel(queue, slow, 1, NULL, &one, NULL, 0, NULL, NULL));
    OK(clFlush(queue));
    usleep(300000);
    if (how)
        raise(how);
    _exit(0);
}

static void one_command(const char *name) {
    size_t size = ITEMS;
    cl_command_queue queue = make_queue(context, device, 0);
    cl_mem buffer = make_buffer(context, 4 * ITEMS);
    cl_kernel kernel = kernel_on(name, buffer);
    if (strcmp(name, "twice"))
        OK(clSetKernelArg(kernel, 1, 4, &(int){1}));
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
    OK(clFinish(queue));
}

static void forks(void) {
    int status;
    one_command("twice");
    pid_t child = fork();
    if (!child) {
        one_command("more");
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && !status);
    one_command("twice");
}

/* A launch that is worth several threads. */
static void large(void) {
    size_t size = ITEMS;
    int rounds = 20000;
    cl_command_queue queue = make_queue(context, device, 0);
    cl_mem buffer = make_buffer(context, 4 * ITEMS);
    cl_kernel slow = kernel_on("slow", buffer);
    OK(clSetKernelArg(slow, 1, sizeof rounds, &rounds));
    OK(clEnqueueNDRangeKernel(queue, slow, 1, NULL, &size, NULL, 0, NULL, NULL));
    OK(clFinish(queue));
}

/* Calls that fail by their first argument, with pointers to nothing, or to what lies before nothing. */
static void refused(void) {
    long page = sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    /* Not unmapped: another thread might get the place. */
    CHECK(pages != MAP_FAILED && !mprotect(pages + page, (size_t)page, PROT_NONE));
    const void *nowhere = pages + page;
    char *last = strcpy(pages + page - 5, "last");
    cl_command_queue queue = make_queue(context, device, 0);
    cl_mem buffer = make_buffer(context, 64);
    cl_kernel kernel = kernel_on("twice", buffer);
    cl_int code;
    CHECK(!clCreateKernel((cl_program)queue, nowhere, &code) && code == CL_INVALID_PROGRAM);
    CHECK(!clCreateKernel((cl_program)queue, "\xc1 \xe2\x82\xac \xe2\x82", &code) &&
          code == CL_INVALID_PROGRAM);
    CHECK(!clCreateKernel((cl_program)queue, last, &code) && code == CL_INVALID_PROGRAM);
    EXPECT(clBuildProgram((cl_program)queue, 0, NULL, nowhere, NULL, NULL), CL_INVALID_PROGRAM);
    EXPECT(
        clEnqueueNDRangeKernel((cl_command_queue)buffer, kernel, 1, nowhere, nowhere, nowhere, 0, NULL, NULL),
        CL_INVALID_COMMAND_QUEUE);
    CHECK(!clCreateImage((cl_context)queue, 0, nowhere, nowhere, NULL, &code) && code == CL_INVALID_CONTEXT);
    CHECK(!clCreateCommandQueueWithProperties((cl_context)queue, device, nowhere, &code) &&
          code == CL_INVALID_CONTEXT);
    EXPECT(clEnqueueReadBufferRect((cl_command_queue)buffer, buffer, CL_TRUE, nowhere, nowhere, nowhere, 0, 0,
                                   0, 0, pages, 0, NULL, NULL),
           CL_INVALID_COMMAND_QUEUE);
}

int main(int count, char **arguments) {
    CHECK(count > 1);
    const char *scene = arguments[1];
    device = the_device();
    context = make_context(device);
    if (!strcmp(scene, "plain"))
        plain();
    else if (!strcmp(scene, "threads"))
        threads();
    else if (!strcmp(scene, "killed"))
        dies(SIGKILL);
    else if (!strcmp(scene, "exits"))
        dies(0);
    else if (!strcmp(scene, "forks"))
        forks();
    else if (!strcmp(scene, "refused"))
        refused();
    else if (!strcmp(scene, "large"))
        large();
    else
        return 2;
    return 0;
}
