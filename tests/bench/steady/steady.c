/* A host that enqueues at a steady rate: kernels, writes and reads in turn, now and then waiting for an event
 * or a queue, as programs do that are not busy all the time. Prints in ms how long that took, how long its
 * calls took, and the CPU time of all threads; and fails unless the rate was kept.
 *
 * Usage: steady COMMANDS_PER_SECOND SECONDS ITEMS (work-items of each launch) */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { BATCH = 20, WAIT_EVERY = 5, SIZE = 4096 };

static const char *source = "kernel void step(global float *x) {"
                            "    size_t i = get_global_id(0) & 1023; x[i] = x[i] * 0.5f + 1.0f; }";

static void check(cl_int status, const char *what) {
    if (status != CL_SUCCESS) {
        fprintf(stderr, "%s: %d\n", what, status);
        exit(1);
    }
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu_s(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static void sleep_until(double when) {
    struct timespec t = {(time_t)when, (long)((when - (double)(time_t)when) * 1e9)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

struct state {
    cl_command_queue queue;
    cl_kernel kernel;
    cl_mem buffers[2];
    char host[SIZE];
    size_t items;
};

/* The number-th command; its event, or NULL. */
static void enqueue(struct state *s, unsigned number, cl_event *event) {
    cl_mem buffer = s->buffers[number / 4 % 2];
    switch (number % 4) {
    case 0:
    case 2:
        check(clSetKernelArg(s->kernel, 0, sizeof buffer, &buffer), "clSetKernelArg");
        check(clEnqueueNDRangeKernel(s->queue, s->kernel, 1, NULL, &s->items, NULL, 0, NULL, event),
              "launch");
        break;
    case 1:
        check(clEnqueueWriteBuffer(s->queue, buffer, CL_FALSE, 0, SIZE, s->host, 0, NULL, event), "write");
        break;
    default:
        check(clEnqueueReadBuffer(s->queue, buffer, number % 8 == 7, 0, SIZE, s->host, 0, NULL, event),
              "read");
    }
}

static void batch(struct state *s, unsigned first, unsigned count) {
    cl_event event = NULL;
    for (unsigned i = 0; i < count; i++)
        enqueue(s, first + i, i + 1 == count ? &event : NULL);
    if (first / count % WAIT_EVERY)
        check(clWaitForEvents(1, &event), "clWaitForEvents");
    else
        check(clFinish(s->queue), "clFinish");
    check(clReleaseEvent(event), "clReleaseEvent");
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    double rate = atof(argv[1]), seconds = atof(argv[2]);
    struct state s = {.items = (size_t)atoll(argv[3])};
    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    check(status, "clCreateContext");
    s.queue = clCreateCommandQueue(context, device, 0, &status);
    check(status, "clCreateCommandQueue");
    memset(s.host, 0, SIZE);
    for (int i = 0; i < 2; i++) {
        s.buffers[i] = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, SIZE, s.host, &status);
        check(status, "clCreateBuffer");
    }
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    check(status, "clCreateProgramWithSource");
    check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
    s.kernel = clCreateKernel(program, "step", &status);
    check(status, "clCreateKernel");

    unsigned done = 0, total = (unsigned)(rate * seconds);
    for (; done < total / 10; done += BATCH) /* what kernels learn at first */
        batch(&s, done, BATCH);
    double start = now_s(), cpu = cpu_s(), busy = 0;
    for (done = 0; done < total; done += BATCH) {
        sleep_until(start + done / rate);
        double begin = now_s();
        batch(&s, done, BATCH);
        busy += now_s() - begin;
    }
    double wall = now_s() - start;
    cpu = cpu_s() - cpu;
    printf("commands %u\nwall %.3f\nbusy %.3f\ncpu %.3f\n", done, wall * 1e3, busy * 1e3, cpu * 1e3);
    if (wall > seconds * 1.05) {
        fprintf(stderr, "%u commands took %.2f s, not %.2f\n", done, wall, seconds);
        return 3;
    }
    return 0;
}
