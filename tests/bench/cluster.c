/* What devices of a cluster cost: launches in order, one launch and its end, contents there and back, and
 * from one device to another. Prints a figure a line. cluster.py starts a cluster for it.
 *
 * Usage: cluster FIRST SECOND (their numbers among the platform's devices) */
#include <string.h>

#include "cluster_plan/cluster_client.h"

enum { MOST_DEVICES = 65, LAUNCHES = 20000, ROUNDS = 200, TURNS = 4 };

#define BYTES ((size_t)128 << 20)

static const char *const source = "kernel void touch(global int *x) { x[get_global_id(0)] += 1; }";

static void launch(cl_command_queue queue, cl_kernel kernel) {
    const size_t size = 1;
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
}

static void measure_launches(cl_command_queue queue, cl_kernel kernel) {
    double best = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        double start = now();
        for (int i = 0; i < LAUNCHES; i++)
            launch(queue, kernel);
        CHECK(clFinish(queue));
        double rate = LAUNCHES / (now() - start);
        best = rate > best ? rate : best;
    }
    printf("launches_per_second %.0f\n", best);
    double least = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        double start = now();
        launch(queue, kernel);
        CHECK(clFinish(queue));
        double taken = now() - start;
        least = taken < least ? taken : least;
    }
    printf("launch_and_finish_us %.1f\n", 1e6 * least);
}

/* A launch that uses a byte of it makes contents go there; a read of all brings them back. */
static void measure_contents(cl_context context, cl_command_queue queue, cl_kernel kernel) {
    cl_mem large = make_buffer(context, BYTES);
    char *bytes = malloc(BYTES);
    memset(bytes, 1, BYTES);
    CHECK(clSetKernelArg(kernel, 0, sizeof large, &large));
    double there = 0, back = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        CHECK(clEnqueueWriteBuffer(queue, large, CL_TRUE, 0, BYTES, bytes, 0, NULL, NULL));
        double start = now();
        launch(queue, kernel);
        CHECK(clFinish(queue));
        double sent = now();
        CHECK(clEnqueueReadBuffer(queue, large, CL_TRUE, 0, BYTES, bytes, 0, NULL, NULL));
        double end = now();
        there = BYTES / (sent - start) > there ? BYTES / (sent - start) : there;
        back = BYTES / (end - sent) > back ? BYTES / (end - sent) : back;
    }
    printf("there_mb_per_second %.0f\nback_mb_per_second %.0f\n", there / 1e6, back / 1e6);
    free(bytes);
    clReleaseMemObject(large);
}

/* A launch on each of two devices in turn, which may write the buffer. */
static void measure_between(cl_context context, const cl_command_queue *queues, cl_kernel kernel) {
    cl_mem large = make_buffer(context, BYTES);
    CHECK(clSetKernelArg(kernel, 0, sizeof large, &large));
    double best = 0;
    for (int turn = 0; turn <= 3 * TURNS; turn++) {
        double start = now();
        launch(queues[turn % 2], kernel);
        CHECK(clFinish(queues[turn % 2]));
        double rate = BYTES / (now() - start);
        best = turn && rate > best ? rate : best; /* the first ones come from, or by way of, this machine */
    }
    printf("between_mb_per_second %.0f\n", best / 1e6);
    clReleaseMemObject(large);
}

int main(int argc, char **argv) {
    cl_platform_id platform;
    cl_device_id devices[MOST_DEVICES];
    cl_uint count;
    cl_int status;
    cl_uint first = argc > 2 ? (cl_uint)atoi(argv[1]) : 0, second = argc > 2 ? (cl_uint)atoi(argv[2]) : 0;
    CHECK(clGetPlatformIDs(1, &platform, NULL));
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MOST_DEVICES, devices, &count));
    if (first >= count || second >= count) {
        fprintf(stderr, "there are %u devices\n", count);
        return 1;
    }
    const cl_device_id pair[] = {devices[first], devices[second]};
    cl_context context = clCreateContext(NULL, first == second ? 1 : 2, pair, NULL, NULL, &status);
    CHECK(status);
    cl_command_queue queues[2];
    for (int i = 0; i < 2; i++)
        queues[i] = make_queue(context, pair[i]);
    cl_program program = build(context, source);
    cl_mem small = make_buffer(context, sizeof(cl_int));
    cl_kernel kernel = make_kernel(program, small);
    launch(queues[0], kernel);
    CHECK(clFinish(queues[0]));
    measure_launches(queues[0], kernel);
    measure_contents(context, queues[0], kernel);
    measure_between(context, queues, kernel);
    clReleaseMemObject(small);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    for (int i = 0; i < 2; i++)
        clReleaseCommandQueue(queues[i]);
    clReleaseContext(context);
    return 0;
}
