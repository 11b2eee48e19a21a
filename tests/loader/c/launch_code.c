/* Launches that need, or do not need, more code than the build of their program made: launch_code KIND. */
#include <pthread.h>

#include "client.h"

enum { MOST = 1 << 14, THREADS = 4 };

/* The groups of `loose` are the driver's to choose; those of the others are not. `chained` adds 1 so slowly
 * that several vectors of work-items at a time are much faster. */
static const char SOURCE[] = "#ifndef STEP\n#define STEP 1\n#endif\n"
                             "kernel void loose(global int *a, int n) {\n"
                             "  int i = get_global_id(0);\n"
                             "  a[i] += STEP * n + i / 3;\n"
                             "}\n"
                             "kernel void tied(global int *a, int n) {\n"
                             "  a[get_global_id(0)] += STEP * n + get_local_id(0);\n"
                             "}\n"
                             "kernel void chained(global int *a, int n) {\n"
                             "  uint x = get_local_id(0);\n"
                             "  for (int k = 0; k < STEP * n; k++) x = (x * 7 + 7) / 7;\n"
                             "  a[get_global_id(0)] += x;\n"
                             "}\n";

static cl_device_id device;
static cl_context context;

static void launch(cl_kernel kernel, cl_device_id where, size_t items, size_t local, int step) {
    static const cl_int zero;
    cl_command_queue queue = make_queue(context, where, 0);
    cl_mem memory = make_buffer(context, MOST * sizeof(cl_int));
    cl_int n = 5, *values = malloc(MOST * sizeof *values);
    CHECK(values);
    OK(clEnqueueFillBuffer(queue, memory, &zero, sizeof zero, 0, MOST * sizeof zero, 0, NULL, NULL));
    OK(clSetKernelArg(kernel, 0, sizeof memory, &memory));
    OK(clSetKernelArg(kernel, 1, sizeof n, &n));
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, local ? &local : NULL, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, MOST * sizeof *values, values, 0, NULL, NULL));
    for (size_t i = 0; i < MOST; i++)
        EXPECT(values[i], i < items ? step * n + (cl_int)(local ? i % local : i / 3) : 0);
    free(values);
    OK(clReleaseMemObject(memory));
    OK(clReleaseCommandQueue(queue));
}

static void *launch_odd(void *program) {
    cl_int status;
    cl_kernel kernel = clCreateKernel(program, "loose", &status);
    OK(status);
    for (size_t items = 1000; items < 1010; items++)
        launch(kernel, device, items, 0, 1);
    OK(clReleaseKernel(kernel));
    return NULL;
}

static cl_program make_program(void) {
    const char *source = SOURCE;
    cl_int status;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    OK(status);
    return program;
}

/* A program with another executable for each of two sub-devices: each gets code of its own. */
static void two_devices(void) {
    const cl_device_partition_property equally[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    cl_device_id parts[64] = {device, device};
    cl_uint count = 0;
    clCreateSubDevices(device, equally, 64, parts, &count); /* fails where there is one compute unit */
    cl_int status;
    cl_uint used = count > 1 ? 2 : 1;
    context = clCreateContext(NULL, used, parts, NULL, NULL, &status);
    OK(status);
    cl_program program = make_program();
    static const char *const options[] = {"-DSTEP=1", "-DSTEP=2"};
    for (cl_uint i = 0; i < used; i++)
        OK(clBuildProgram(program, 1, &parts[i], options[i], NULL, NULL));
    cl_kernel kernel = clCreateKernel(program, "loose", &status);
    OK(status);
    for (cl_uint i = used; i-- > 0;)
        launch(kernel, parts[i], 1003, 0, (int)i + 1);
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    const char *kind = arguments[1];
    device = the_device();
    if (!strcmp(kind, "devices")) {
        two_devices();
        return 0;
    }
    context = make_context(device);
    cl_program program = make_program();
    OK(clBuildProgram(program, 1, &device, NULL, NULL, NULL));
    cl_int status;
    cl_kernel loose = clCreateKernel(program, "loose", &status);
    OK(status);
    cl_kernel tied = clCreateKernel(program, "tied", &status);
    OK(status);
    launch(loose, device, MOST, 0, 1);
    launch(tied, device, MOST, 64, 1);
    if (!strcmp(kind, "odd")) {
        for (size_t items = 1; items < 40; items++)
            launch(loose, device, items, 0, 1);
        launch(loose, device, MOST - 1, 0, 1);
    } else if (!strcmp(kind, "short")) {
        launch(tied, device, 1002, 2, 1);
    } else if (!strcmp(kind, "ragged")) {
        launch(tied, device, 1008, 21, 1);
        launch(tied, device, 998, 499, 1);
        launch(tied, device, MOST, 32, 1);
    } else if (!strcmp(kind, "below")) {
        for (size_t local = 4; local < 8; local++)
            launch(tied, device, 840 / local * local, local, 1);
    } else if (!strcmp(kind, "tiles")) {
        cl_kernel chained = clCreateKernel(program, "chained", &status);
        OK(status);
        launch(chained, device, MOST, 512, 1);
        launch(chained, device, MOST - 512, 512, 1);
        launch(chained, device, 1003, 17, 1);
    } else if (!strcmp(kind, "threads")) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            OK(pthread_create(&threads[i], NULL, launch_odd, program));
        for (int i = 0; i < THREADS; i++)
            OK(pthread_join(threads[i], NULL));
    }
    return 0;
}
