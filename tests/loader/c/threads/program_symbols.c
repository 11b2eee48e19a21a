/* Threads that ask one program for its variables, read and write them, and build and release programs of
 * their own with commands on their variables under way. argv[1]: how often each thread does. */
#include "client.h"

#include <pthread.h>
#include <stdint.h>

enum { THREADS = 4, ITEMS = 3000 };

static cl_device_id device;
static cl_context context;
static cl_program shared;
static int rounds;

static cl_int(CL_API_CALL *clEnqueueReadGlobalVariableINTEL_)(cl_command_queue, cl_program, const char *,
                                                              cl_bool, size_t, size_t, void *, cl_uint,
                                                              const cl_event *, cl_event *);
static cl_int(CL_API_CALL *clEnqueueWriteGlobalVariableINTEL_)(cl_command_queue, cl_program, const char *,
                                                               cl_bool, size_t, size_t, const void *, cl_uint,
                                                               const cl_event *, cl_event *);
static cl_int(CL_API_CALL *clGetDeviceGlobalVariablePointerINTEL_)(cl_device_id, cl_program, const char *,
                                                                   size_t *, void **);
static cl_int(CL_API_CALL *clGetDeviceFunctionPointerINTEL_)(cl_device_id, cl_program, const char *,
                                                             cl_ulong *);

static const char source[] = "global int own[4][3000];\nglobal int fixed = 7;\n"
                             "kernel void k(int row) { own[row][get_global_id(0)] += fixed; }\n";

static cl_program build(void) {
    const char *text = source;
    cl_int status;
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 0, NULL, "-cl-std=CL3.0", NULL, NULL));
    return program;
}

/* Each thread has a row of the shared program's variable. */
static void use_shared(cl_command_queue queue, cl_kernel kernel, int row, int round) {
    static const size_t items = ITEMS;
    int given[ITEMS], found[ITEMS];
    for (int i = 0; i < ITEMS; i++)
        given[i] = i + round;
    size_t offset = (size_t)row * sizeof given, size;
    void *address;
    cl_ulong function;
    OK(clEnqueueWriteGlobalVariableINTEL_(queue, shared, "own", CL_FALSE, sizeof given, offset, given, 0,
                                          NULL, NULL));
    OK(clSetKernelArg(kernel, 0, sizeof row, &row));
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
    OK(clEnqueueReadGlobalVariableINTEL_(queue, shared, "own", CL_TRUE, sizeof found, offset, found, 0, NULL,
                                         NULL));
    for (int i = 0; i < ITEMS; i++)
        EXPECT(found[i], given[i] + 7);
    OK(clGetDeviceGlobalVariablePointerINTEL_(device, shared, "own", &size, &address));
    EXPECT(size, 4 * sizeof given);
    EXPECT(memcmp((char *)address + offset, found, sizeof found), 0);
    EXPECT(clGetDeviceFunctionPointerINTEL_(device, shared, "k", &function), CL_INVALID_ARG_VALUE);
}

/* The program goes, and is built again, before its commands have run. */
static void use_own(cl_command_queue queue) {
    cl_program program = build();
    int value = 9, found[2] = {0, 0};
    cl_int status;
    cl_event gate = clCreateUserEvent(context, &status);
    OK(status);
    OK(clEnqueueWriteGlobalVariableINTEL_(queue, program, "fixed", CL_FALSE, sizeof value, 0, &value, 1,
                                          &gate, NULL));
    OK(clEnqueueReadGlobalVariableINTEL_(queue, program, "fixed", CL_FALSE, sizeof value, 0, &found[0], 0,
                                         NULL, NULL));
    OK(clBuildProgram(program, 0, NULL, "-cl-std=CL3.0", NULL, NULL));
    OK(clEnqueueReadGlobalVariableINTEL_(queue, program, "fixed", CL_FALSE, sizeof value, 0, &found[1], 0,
                                         NULL, NULL));
    OK(clReleaseProgram(program));
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
    OK(clFinish(queue));
    OK(clReleaseEvent(gate));
    EXPECT(found[0], 9);
    EXPECT(found[1], 7);
}

static void *work(void *argument) {
    int row = (int)(intptr_t)argument;
    cl_int status;
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &status);
    OK(status);
    cl_kernel kernel = clCreateKernel(shared, "k", &status);
    OK(status);
    for (int round = 0; round < rounds; round++) {
        use_shared(queue, kernel, row, round);
        if (round % 8 == row)
            use_own(queue);
    }
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
    return NULL;
}

int main(int argc, char **argv) {
    rounds = argc > 1 ? atoi(argv[1]) : 100;
    device = the_device();
    GET_EXTENSION(clEnqueueReadGlobalVariableINTEL);
    GET_EXTENSION(clEnqueueWriteGlobalVariableINTEL);
    GET_EXTENSION(clGetDeviceGlobalVariablePointerINTEL);
    GET_EXTENSION(clGetDeviceFunctionPointerINTEL);
    cl_int status;
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    OK(status);
    shared = build();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i), 0);
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_join(threads[i], NULL), 0);
    OK(clReleaseProgram(shared));
    OK(clReleaseContext(context));
    return 0;
}
