/* Threads, each with a queue, that write and read pipes they share, and release them while kernels use them.
 * argv[1]: how often. */
#include "client.h"

#include <pthread.h>

enum { PAIRS = 3, THREADS = 2 * PAIRS, ITEMS = 300 };

static const char *source = "kernel void put(write_only pipe int p, int base) {"
                            "    int value = base + (int)get_global_id(0);"
                            "    while (write_pipe(p, &value))"
                            "        ;"
                            "}"
                            "kernel void get(read_only pipe int p, global int *sum) {"
                            "    int value;"
                            "    while (read_pipe(p, &value))"
                            "        ;"
                            "    atomic_add(sum, value);"
                            "}";

static cl_device_id device;
static cl_context context;
static cl_program program;
static int rounds;
static cl_mem pipes[PAIRS];
static pthread_barrier_t met[PAIRS]; /* of both threads of a pair */

static void *write_and_read(void *argument) {
    int thread = *(int *)argument, pair = thread / 2, reads = thread % 2;
    cl_command_queue queue = make_queue(context, device, 0);
    cl_int status;
    cl_kernel kernel = clCreateKernel(program, reads ? "get" : "put", &status);
    OK(status);
    cl_int sum = 0, want = 0;
    cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof sum, &sum, &status);
    OK(status);
    for (int round = 0; round < rounds; round++) {
        if (!reads) {
            pipes[pair] = clCreatePipe(context, 0, sizeof(cl_int), (cl_uint)(1 + round % 40), NULL, &status);
            OK(status);
            OK(clRetainMemObject(pipes[pair]));
        }
        pthread_barrier_wait(&met[pair]);
        cl_mem pipe = pipes[pair];
        cl_uint most;
        OK(clGetPipeInfo(pipe, CL_PIPE_MAX_PACKETS, sizeof most, &most, NULL));
        EXPECT(most, 1 + round % 40);
        OK(clSetKernelArg(kernel, 0, sizeof pipe, &pipe));
        OK(reads ? clSetKernelArg(kernel, 1, sizeof buffer, &buffer)
                 : clSetKernelArg(kernel, 1, sizeof round, &round));
        size_t items = ITEMS;
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
        OK(clReleaseMemObject(pipe));
        OK(round % 3 ? clFinish(queue) : clFlush(queue));
        want += ITEMS * round + ITEMS * (ITEMS - 1) / 2;
        pthread_barrier_wait(&met[pair]);
    }
    OK(clFinish(queue));
    if (reads) {
        OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof sum, &sum, 0, NULL, NULL));
        EXPECT(sum, want);
    }
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
    program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 1, &device, "-cl-std=CL3.0", NULL, NULL));
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < PAIRS; i++)
        CHECK(!pthread_barrier_init(&met[i], NULL, 2));
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(!pthread_create(&threads[i], NULL, write_and_read, &numbers[i]));
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(threads[i], NULL));
    OK(clReleaseProgram(program));
    OK(clReleaseContext(context));
    return 0;
}
