/* Transforms complex numbers with Debian's libclfft: standard input to standard output.
 *
 * clfft_client single|double forward|backward N0 [N1]: N1 rows of N0 interleaved complex numbers. */
#define CL_TARGET_OPENCL_VERSION 120
#include <clFFT.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int status, const char *what) {
    if (status != 0) {
        fprintf(stderr, "%s: %d\n", what, status);
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    int is_double = strcmp(argv[1], "double") == 0;
    clfftDirection direction = strcmp(argv[2], "forward") == 0 ? CLFFT_FORWARD : CLFFT_BACKWARD;
    size_t lengths[2] = {strtoul(argv[3], NULL, 10), argc > 4 ? strtoul(argv[4], NULL, 10) : 1};
    size_t bytes = lengths[0] * lengths[1] * 2 * (is_double ? sizeof(double) : sizeof(float));
    char *data = malloc(bytes);
    if (!data || fread(data, 1, bytes, stdin) != bytes)
        return 2;

    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    check(status, "clCreateContext");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    check(status, "clCreateCommandQueue");
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, data, &status);
    check(status, "clCreateBuffer");

    clfftSetupData setup;
    check(clfftInitSetupData(&setup), "clfftInitSetupData");
    check(clfftSetup(&setup), "clfftSetup");
    clfftPlanHandle plan;
    check(clfftCreateDefaultPlan(&plan, context, lengths[1] > 1 ? CLFFT_2D : CLFFT_1D, lengths),
          "clfftCreateDefaultPlan");
    check(clfftSetPlanPrecision(plan, is_double ? CLFFT_DOUBLE : CLFFT_SINGLE), "clfftSetPlanPrecision");
    check(clfftSetLayout(plan, CLFFT_COMPLEX_INTERLEAVED, CLFFT_COMPLEX_INTERLEAVED), "clfftSetLayout");
    check(clfftSetResultLocation(plan, CLFFT_INPLACE), "clfftSetResultLocation");
    check(clfftBakePlan(plan, 1, &queue, NULL, NULL), "clfftBakePlan");
    check(clfftEnqueueTransform(plan, direction, 1, &queue, 0, NULL, NULL, &buffer, NULL, NULL),
          "clfftEnqueueTransform");
    check(clFinish(queue), "clFinish");
    check(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, bytes, data, 0, NULL, NULL), "clEnqueueReadBuffer");
    check(clfftDestroyPlan(&plan), "clfftDestroyPlan");
    check(clfftTeardown(), "clfftTeardown");
    return fwrite(data, 1, bytes, stdout) == bytes ? 0 : 2;
}
