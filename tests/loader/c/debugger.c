/* Runs kernels that were built with -g, for a debugger to stop in. */
#include "client.h"

static const char *source = "float helper(float x) {\n"
                            "    float y = x * 2.0f;\n"
                            "    return y + 1.0f;\n"
                            "}\n"
                            "kernel void k(global float *a) {\n"
                            "    int i = get_global_id(0);\n"
                            "    a[i] = helper(a[i]);\n"
                            "}\n"
                            "kernel void turn(global float *a, local float *t) {\n"
                            "    int l = get_local_id(0);\n"
                            "    float kept = a[l] + 0.5f;\n"
                            "    t[l] = kept;\n"
                            "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                            "    a[l] = t[3 - l] + kept;\n"
                            "}\n";

int main(void) {
    cl_int status;
    cl_device_id device = the_device();
    cl_context context = make_context(device);
    cl_command_queue queue = make_queue(context, device, 0);
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 1, &device, "-g -cl-opt-disable", NULL, NULL));
    cl_kernel kernel = clCreateKernel(program, "k", &status);
    OK(status);
    float data[4] = {0, 1, 2, 3};
    cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof data, data, &status);
    OK(status);
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    size_t items = 4;
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL));
    for (int i = 0; i < 4; i++)
        CHECK(data[i] == 2.0f * (float)i + 1.0f);
    kernel = clCreateKernel(program, "turn", &status);
    OK(status);
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    OK(clSetKernelArg(kernel, 1, sizeof data, NULL));
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &items, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL));
    for (int i = 0; i < 4; i++)
        CHECK(data[i] == 9.0f);
    return 0;
}
