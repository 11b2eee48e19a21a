/* Per-command latency of one OpenCL platform, from C. Prints one line per figure: name, nanoseconds.
 *
 * Each figure is the least of ROUNDS means, so that a noisy neighbour on a shared machine costs a round and
 * not the result. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 15, CALLS = 2000 };

static const char *source = "kernel void empty(global int *p) {}"
                            "kernel void add_one(global int *p) { p[get_global_id(0)] += 1; }";

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void check(cl_int status, const char *what) {
    if (status != CL_SUCCESS) {
        fprintf(stderr, "%s: %d\n", what, status);
        exit(1);
    }
}

struct state {
    cl_command_queue queue;
    cl_kernel kernel;
    cl_mem buffer;
    cl_int value;
};

static void finish_empty(struct state *s) {
    size_t one = 1;
    check(clEnqueueNDRangeKernel(s->queue, s->kernel, 1, NULL, &one, &one, 0, NULL, NULL), "enqueue");
    check(clFinish(s->queue), "clFinish");
}

static void enqueue_only(struct state *s) {
    size_t one = 1;
    check(clEnqueueNDRangeKernel(s->queue, s->kernel, 1, NULL, &one, &one, 0, NULL, NULL), "enqueue");
}

static void enqueue_with_event(struct state *s) {
    size_t one = 1;
    cl_event event;
    check(clEnqueueNDRangeKernel(s->queue, s->kernel, 1, NULL, &one, &one, 0, NULL, &event), "enqueue");
    check(clWaitForEvents(1, &event), "clWaitForEvents");
    check(clReleaseEvent(event), "clReleaseEvent");
}

static void set_arg(struct state *s) {
    check(clSetKernelArg(s->kernel, 0, sizeof s->buffer, &s->buffer), "clSetKernelArg");
}

static void read_4(struct state *s) {
    check(clEnqueueReadBuffer(s->queue, s->buffer, CL_TRUE, 0, 4, &s->value, 0, NULL, NULL), "read");
}

static void write_4(struct state *s) {
    check(clEnqueueWriteBuffer(s->queue, s->buffer, CL_TRUE, 0, 4, &s->value, 0, NULL, NULL), "write");
}

static void measure(const char *name, void (*function)(struct state *), struct state *s) {
    double best = 1e30;
    for (int i = 0; i < 100; i++)
        function(s);
    check(clFinish(s->queue), "clFinish");
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_ns();
        for (int i = 0; i < CALLS; i++)
            function(s);
        double mean = (now_ns() - start) / CALLS;
        check(clFinish(s->queue), "clFinish");
        if (mean < best)
            best = mean;
    }
    printf("%s %.1f\n", name, best);
}

int main(void) {
    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    double start = now_ns();
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    check(status, "clCreateContext");
    printf("start_to_context %.1f\n", now_ns() - start);
    struct state s = {0};
    s.queue = clCreateCommandQueue(context, device, 0, &status);
    check(status, "clCreateCommandQueue");
    s.buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &status);
    check(status, "clCreateBuffer");
    start = now_ns();
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    check(status, "clCreateProgramWithSource");
    check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
    s.kernel = clCreateKernel(program, "empty", &status);
    check(status, "clCreateKernel");
    printf("build %.1f\n", now_ns() - start);
    set_arg(&s);
    measure("enqueue_finish", finish_empty, &s);
    measure("enqueue", enqueue_only, &s);
    measure("enqueue_wait_event", enqueue_with_event, &s);
    measure("set_kernel_arg", set_arg, &s);
    measure("read_4_bytes", read_4, &s);
    measure("write_4_bytes", write_4, &s);

    /* The measured queue really ran: 1,000 increments of every element must be there. */
    cl_kernel add = clCreateKernel(program, "add_one", &status);
    check(status, "clCreateKernel");
    cl_int data[1024] = {0};
    size_t global = 1024;
    check(clSetKernelArg(add, 0, sizeof s.buffer, &s.buffer), "clSetKernelArg");
    check(clEnqueueWriteBuffer(s.queue, s.buffer, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL), "write");
    for (int i = 0; i < 1000; i++)
        check(clEnqueueNDRangeKernel(s.queue, add, 1, NULL, &global, NULL, 0, NULL, NULL), "enqueue");
    check(clEnqueueReadBuffer(s.queue, s.buffer, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL), "read");
    for (int i = 0; i < 1024; i++)
        if (data[i] != 1000) {
            fprintf(stderr, "element %d is %d, not 1000\n", i, data[i]);
            return 1;
        }
    return 0;
}
