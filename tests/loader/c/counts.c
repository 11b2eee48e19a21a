/* Histograms by atomics on a buffer, of many sizes: compiled kernels, of which threads have copies of the
 * bins. */
#include <stdlib.h>
#include <string.h>

#include "client.h"

enum { MOST_ITEMS = 300001, MOST_BINS = 1 << 14 };

static const char SOURCE[] = "kernel void count(global uint *bins, global const uint *data, uint mask) {\n"
                             "  size_t i = get_global_id(1) * get_global_size(0) + get_global_id(0);\n"
                             "  uint v = data[i];\n"
                             "  if (v & 1) atomic_add(&bins[v & mask], v >> 28);\n"
                             "  else atomic_dec(&bins[(v >> 7) & mask]);\n"
                             "}\n";

static cl_uint data[MOST_ITEMS], bins[MOST_BINS], expected[MOST_BINS];

static void run(cl_command_queue queue, cl_kernel kernel, cl_mem buffer, const size_t *size, cl_uint mask) {
    OK(clSetKernelArg(kernel, 2, sizeof mask, &mask));
    for (cl_uint i = 0; i <= mask; i++)
        bins[i] = expected[i] = i;
    OK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, (mask + 1) * sizeof *bins, bins, 0, NULL, NULL));
    for (int launch = 0; launch < 3; launch++) {
        OK(clEnqueueNDRangeKernel(queue, kernel, 2, NULL, size, NULL, 0, NULL, NULL));
        for (size_t i = 0; i < size[0] * size[1]; i++)
            if (data[i] & 1)
                expected[data[i] & mask] += data[i] >> 28;
            else
                expected[(data[i] >> 7) & mask]--;
    }
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, (mask + 1) * sizeof *bins, bins, 0, NULL, NULL));
    EXPECT(memcmp(bins, expected, (mask + 1) * sizeof *bins), 0);
}

int main(void) {
    cl_device_id device = the_device();
    cl_context context = make_context(device);
    cl_command_queue queue = make_queue(context, device, 0);
    cl_kernel kernel = make_kernel(context, device, SOURCE, "count");
    cl_mem values = make_buffer(context, sizeof data);
    cl_uint state = 1;
    for (size_t i = 0; i < MOST_ITEMS; i++)
        data[i] = state = state * 1664525 + 1013904223;
    OK(clEnqueueWriteBuffer(queue, values, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL));
    OK(clSetKernelArg(kernel, 1, sizeof values, &values));
    static const size_t sizes[][2] = {{MOST_ITEMS, 1}, {1000, 300}, {3, 90001}, {4096, 16}, {500, 1}};
    for (cl_uint mask = 0; mask < MOST_BINS; mask = 4 * mask + 3) {
        cl_mem buffer = make_buffer(context, (mask + 1) * sizeof *bins);
        OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            run(queue, kernel, buffer, sizes[i], mask);
        OK(clReleaseMemObject(buffer));
    }
    OK(clReleaseMemObject(values));
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseContext(context));
}
