/* What a guest's host is made of: a device, a queue, a buffer, and kernels that nobody has built before. */
#ifndef GUEST_H
#define GUEST_H

#include "client.h"

enum { COUNT = 1000 };

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_kernel kernel;
static cl_mem buffer;

/* A program of its own for every number, so that no cache knows it twice in a run. */
static inline cl_kernel build(int number) {
    char source[256];
    snprintf(source, sizeof source,
             "kernel void add(global int *a, int n) { a[get_global_id(0)] += n + %d; }\n", number);
    return make_kernel(context, device, source, "add");
}

static inline void set_up(void) {
    device = the_device();
    context = make_context(device);
    queue = make_queue(context, device, 0);
    buffer = make_buffer(context, COUNT * sizeof(int));
    kernel = build(0);
}

/* Runs the kernel, and sees whether it did. */
static inline void run(cl_kernel with, int number) {
    int values[COUNT], n = 5;
    size_t global = COUNT;
    for (int i = 0; i < COUNT; i++)
        values[i] = i;
    OK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL));
    OK(clSetKernelArg(with, 0, sizeof buffer, &buffer));
    OK(clSetKernelArg(with, 1, sizeof n, &n));
    OK(clEnqueueNDRangeKernel(queue, with, 1, NULL, &global, NULL, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL));
    for (int i = 0; i < COUNT; i++)
        EXPECT(values[i], i + n + number);
}

/* Everything that a program does, with objects of its own. */
static inline void use(int number) {
    cl_kernel fresh = build(number);
    run(fresh, number);
    OK(clReleaseKernel(fresh));
}

static inline void tear_down(void) {
    OK(clReleaseKernel(kernel));
    OK(clReleaseMemObject(buffer));
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseContext(context));
}

#endif
