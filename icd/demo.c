/* The first program: builds a kernel, runs it on a few million elements, checks every one of them, and says
 * how long it took. Nothing in it knows which driver it runs on. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { COUNT = 8 << 20, REPEATS = 20 };

static const char *source =
    "kernel void triad(global float *a, global const float *b, global const float *c,\n"
    "                  float s) {\n"
    "    size_t i = get_global_id(0);\n"
    "    a[i] = b[i] + s * c[i];\n"
    "}\n";

static void check(cl_int status, const char *what) {
    if (status == CL_SUCCESS)
        return;
    fprintf(stderr, "%s: OpenCL error %d\n", what, status);
    exit(1);
}

static double milliseconds(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

int main(void) {
    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    char name[256], version[256], language[256];
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_DEFAULT, 1, &device, NULL), "clGetDeviceIDs");
    check(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL), "clGetDeviceInfo");
    check(clGetDeviceInfo(device, CL_DEVICE_VERSION, sizeof version, version, NULL), "clGetDeviceInfo");
    check(clGetDeviceInfo(device, CL_DEVICE_OPENCL_C_VERSION, sizeof language, language, NULL),
          "clGetDeviceInfo");
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    check(status, "clCreateContext");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    check(status, "clCreateCommandQueue");

    double start = milliseconds();
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    check(status, "clCreateProgramWithSource");
    if (clBuildProgram(program, 1, &device, "", NULL, NULL) != CL_SUCCESS) {
        static char log[16384];
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
        fprintf(stderr, "clBuildProgram: %s\n", log);
        return 1;
    }
    cl_kernel kernel = clCreateKernel(program, "triad", &status);
    check(status, "clCreateKernel");
    double built = milliseconds();

    size_t size = COUNT * sizeof(float), global = COUNT;
    float *host = malloc(size);
    if (!host)
        return 1;
    cl_mem buffers[3];
    for (int i = 0; i < 3; i++) {
        for (size_t j = 0; j < COUNT; j++)
            host[j] = (float)(j % 1000) * (float)i;
        buffers[i] = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, size, host, &status);
        check(status, "clCreateBuffer");
        check(clSetKernelArg(kernel, (cl_uint)i, sizeof(cl_mem), &buffers[i]), "clSetKernelArg");
    }
    float factor = 3.0f;
    check(clSetKernelArg(kernel, 3, sizeof factor, &factor), "clSetKernelArg");

    double best = 1e30;
    for (int i = 0; i < REPEATS; i++) {
        double before = milliseconds();
        check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL),
              "clEnqueueNDRangeKernel");
        check(clFinish(queue), "clFinish");
        double time = milliseconds() - before;
        best = time < best ? time : best;
    }

    check(clEnqueueReadBuffer(queue, buffers[0], CL_TRUE, 0, size, host, 0, NULL, NULL),
          "clEnqueueReadBuffer");
    for (size_t j = 0; j < COUNT; j++) {
        float expected = (float)(j % 1000) * 7.0f; /* 1 * x + 3 * 2 * x */
        if (host[j] != expected) {
            fprintf(stderr, "element %zu is %g and should be %g\n", j, host[j], expected);
            return 1;
        }
    }
    printf("%s: built in %.1f ms; a = b + s * c on %d floats, all right: %.2f ms, %.1f GB/s\n", name,
           built - start, COUNT, best, 3.0 * (double)size / best * 1e-6);
    printf("The device is one of %.10s. Programs that name no version are %.12s: the specification wants the "
           "highest\n"
           "1.x for them, so that what was written for 1.x means what it did. For all of it: -cl-std=CL3.0\n",
           version, language);
    free(host);
    for (int i = 0; i < 3; i++)
        clReleaseMemObject(buffers[i]);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return 0;
}
