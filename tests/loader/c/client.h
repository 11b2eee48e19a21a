/* What the clients share: a check that says where and why, the driver's device, a clock. */
#ifndef CLIENT_H
#define CLIENT_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#define CL_ENABLE_BETA_EXTENSIONS /* newer headers have provisional extensions for those who ask */
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                  \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

/* status must be `expected`; both are evaluated once. */
#define EXPECT(status, expected)                                                                             \
    do {                                                                                                     \
        long status_ = (long)(status), expected_ = (long)(expected);                                         \
        if (status_ != expected_) {                                                                          \
            fprintf(stderr, "%s:%d: %s is %ld, not %s (%ld)\n", __FILE__, __LINE__, #status, status_,        \
                    #expected, expected_);                                                                   \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

#define OK(status) EXPECT(status, CL_SUCCESS)

/* The one platform that the test lets the loader see, and its root device. */
static inline cl_platform_id the_platform(void) {
    cl_platform_id platform;
    cl_uint count;
    OK(clGetPlatformIDs(1, &platform, &count));
    EXPECT(count, 1);
    return platform;
}

static inline cl_device_id the_device(void) {
    cl_device_id device;
    OK(clGetDeviceIDs(the_platform(), CL_DEVICE_TYPE_DEFAULT, 1, &device, NULL));
    return device;
}

/* Finds an extension's function for a variable that has its name and an underscore. */
#define GET_EXTENSION(name)                                                                                  \
    do {                                                                                                     \
        void *found_ = clGetExtensionFunctionAddressForPlatform(the_platform(), #name);                      \
        CHECK(found_);                                                                                       \
        memcpy(&name##_, &found_, sizeof found_);                                                            \
    } while (0)

static inline cl_context make_context(cl_device_id device) {
    cl_int status;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    OK(status);
    return context;
}

static inline cl_command_queue make_queue(cl_context context, cl_device_id device,
                                          cl_command_queue_properties properties) {
    cl_int status;
    cl_command_queue queue = clCreateCommandQueue(context, device, properties, &status);
    OK(status);
    return queue;
}

/* A kernel of a one-kernel program. */
static inline cl_kernel make_kernel_with(cl_context context, cl_device_id device, const char *source,
                                         const char *options, const char *name) {
    cl_int status;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    OK(status);
    if (clBuildProgram(program, 1, &device, options, NULL, NULL)) {
        static char log[65536];
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
        fprintf(stderr, "%s\n", log);
        exit(1);
    }
    cl_kernel kernel = clCreateKernel(program, name, &status);
    OK(status);
    OK(clReleaseProgram(program));
    return kernel;
}

static inline cl_kernel make_kernel(cl_context context, cl_device_id device, const char *source,
                                    const char *name) {
    return make_kernel_with(context, device, source, "", name);
}

static inline cl_mem make_buffer(cl_context context, size_t size) {
    cl_int status;
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &status);
    OK(status);
    return buffer;
}

static inline double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

#endif
