/* Launches on the devices of a cluster, for costs.py, which reads the CPU times of all threads before and
 * after.
 *
 * Usage: launches WORKERS; the platform's devices are this machine's, the workers', and the one that is all.
 * Prints "ready", then for each line of the standard input the seconds that it took:
 *   stream N    N launches, on each worker in turn, and the end of all
 *   alone N     N launches on the first worker, each after the end of the one before
 *   round N     N times a launch on each worker, and the end of all of these
 *   whole N     N launches on all workers at once, and the end of all
 *   nothing N   nothing, for N milliseconds
 *   contents N  N times 4 MiB to the first worker, and their end
 *   program N   N programs that nobody has built before, each with a launch on each worker */
#include <stdbool.h>
#include <string.h>

#include "cluster_client.h"

/* Work-items of a launch: one, or for a launch on all workers so many for each of them. */
enum { ITEMS_PER_WORKER = 64, CONTENT_BYTES = 4 << 20 };

static const char source[] =
    "kernel void touch(global int *x) { size_t i = get_global_id(0); x[i] = 3 * x[i] + %d; }";

static cl_uint worker_count;
static cl_context context;
static cl_device_id *devices; /* the workers', then the one that is all */
static cl_command_queue *queues;
static cl_mem *buffers;
static cl_kernel *kernels;

static cl_program build_number(int number) {
    char text[sizeof source + 16];
    snprintf(text, sizeof text, source, number);
    return build(context, text);
}

static size_t items_of(cl_uint i) {
    return i == worker_count ? (size_t)ITEMS_PER_WORKER * worker_count : 1;
}

static void launch(cl_uint i, cl_kernel kernel) {
    size_t items = items_of(i);
    CHECK(clEnqueueNDRangeKernel(queues[i], kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
}

static void finish(void) {
    for (cl_uint i = 0; i <= worker_count; i++)
        CHECK(clFinish(queues[i]));
}

/* What is enqueued on a worker that has gone ends at once: such times are none. */
static void check_available(void) {
    for (cl_uint i = 0; i <= worker_count; i++) {
        cl_bool is_available = CL_FALSE;
        CHECK(clGetDeviceInfo(devices[i], CL_DEVICE_AVAILABLE, sizeof is_available, &is_available, NULL));
        CHECK(is_available ? CL_SUCCESS : CL_DEVICE_NOT_AVAILABLE);
    }
}

static double run_programs(int count) {
    static int number;
    double taken = 0;
    for (int i = 0; i < count; i++) {
        /* Of this run alone, for there are caches. */
        cl_program program = build_number((int)(time(NULL) % 1000000) * 1000 + number++);
        double start = now();
        for (cl_uint worker = 0; worker < worker_count; worker++) {
            cl_kernel kernel = make_kernel(program, buffers[worker]);
            launch(worker, kernel);
            CHECK(clReleaseKernel(kernel));
        }
        finish();
        taken += now() - start;
        CHECK(clReleaseProgram(program));
    }
    return taken;
}

static double run_contents(int count) {
    size_t size = CONTENT_BYTES;
    cl_kernel kernel = kernels[0];
    cl_mem large = make_buffer(context, size);
    CHECK(clSetKernelArg(kernel, 0, sizeof large, &large));
    double taken = 0;
    for (int i = 0; i < count; i++) {
        CHECK(clEnqueueFillBuffer(queues[0], large, &i, sizeof i, 0, size, 0, NULL, NULL));
        CHECK(clFinish(queues[0]));
        double start = now();
        launch(0, kernel);
        CHECK(clFinish(queues[0]));
        taken += now() - start;
    }
    CHECK(clSetKernelArg(kernel, 0, sizeof buffers[0], &buffers[0]));
    CHECK(clReleaseMemObject(large));
    return taken;
}

static void run_nothing(int milliseconds) {
    const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

static void run_launches(const char *what, int count) {
    bool is_round = !strcmp(what, "round"), is_alone = !strcmp(what, "alone");
    bool is_whole = !strcmp(what, "whole");
    for (int i = 0; i < (is_round ? count * (int)worker_count : count); i++) {
        cl_uint worker = is_whole ? worker_count : is_alone ? 0 : (cl_uint)i % worker_count;
        launch(worker, kernels[worker]);
        if (is_alone || (is_round && worker + 1 == worker_count))
            finish();
    }
    finish();
}

static double run(const char *what, int count) {
    if (!strcmp(what, "program"))
        return run_programs(count);
    if (!strcmp(what, "contents"))
        return run_contents(count);
    double start = now();
    if (!strcmp(what, "nothing"))
        run_nothing(count);
    else
        run_launches(what, count);
    return now() - start;
}

int main(int argc, char **argv) {
    worker_count = argc > 1 ? (cl_uint)atoi(argv[1]) : 0;
    cl_platform_id platform;
    cl_uint count;
    cl_int status;
    CHECK(clGetPlatformIDs(1, &platform, NULL));
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count));
    if (!worker_count || count != worker_count + 2) {
        fprintf(stderr, "there are %u devices, not those of %u workers\n", count, worker_count);
        return 1;
    }
    devices = calloc(count, sizeof *devices);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices, NULL));
    devices++;
    context = clCreateContext(NULL, count - 1, devices, NULL, NULL, &status);
    CHECK(status);
    queues = calloc(count, sizeof *queues);
    kernels = calloc(count, sizeof *kernels);
    buffers = calloc(count, sizeof *buffers);
    cl_program program = build_number(0);
    for (cl_uint i = 0; i <= worker_count; i++) {
        queues[i] = make_queue(context, devices[i]);
        buffers[i] = make_buffer(context, items_of(i) * sizeof(cl_int));
        kernels[i] = make_kernel(program, buffers[i]);
        launch(i, kernels[i]);
    }
    finish();
    check_available();
    puts("ready");
    fflush(stdout);
    char what[16];
    int number;
    while (scanf("%15s %d", what, &number) == 2) {
        double taken = run(what, number);
        check_available();
        printf("%.9f\n", taken);
        fflush(stdout);
    }
    return 0;
}
