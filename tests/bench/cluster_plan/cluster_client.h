/* What the programs that measure clusters share. */
#ifndef CLUSTER_CLIENT_H
#define CLUSTER_CLIENT_H

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CHECK(call) check((call), #call)

static inline void check(cl_int status, const char *what) {
    if (!status)
        return;
    fprintf(stderr, "%s: %d\n", what, status);
    exit(1);
}

/* Seconds. */
static inline double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static inline cl_program build(cl_context context, const char *text) {
    cl_int status;
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &status);
    CHECK(status);
    CHECK(clBuildProgram(program, 0, NULL, NULL, NULL, NULL));
    return program;
}

static inline cl_mem make_buffer(cl_context context, size_t size) {
    cl_int status;
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &status);
    CHECK(status);
    return buffer;
}

static inline cl_command_queue make_queue(cl_context context, cl_device_id device) {
    cl_int status;
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &status);
    CHECK(status);
    return queue;
}

/* Its first argument is the buffer. */
static inline cl_kernel make_kernel(cl_program program, cl_mem buffer) {
    cl_int status;
    cl_kernel kernel = clCreateKernel(program, "touch", &status);
    CHECK(status);
    CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    return kernel;
}

#endif
