/* Global ids around 2^29, 2^30 and 2^31, and past 2^32: code that was compiled for small ones must not run
 * there.
 */
#include "client.h"

enum { ITEMS = 1000 };

static const char SOURCE[] = "kernel void ids(global int *as_int, global ulong *whole, ulong offset) {\n"
                             "  int i = (int)get_global_id(0);\n"
                             "  as_int[get_global_id(0) - offset] = i / 3;\n"
                             "  whole[get_global_id(0) - offset] = (long)i + get_global_size(0);\n"
                             "}\n";

static void run(cl_command_queue queue, cl_kernel kernel, cl_mem as_int, cl_mem whole, size_t offset) {
    cl_ulong first = offset;
    OK(clSetKernelArg(kernel, 2, sizeof first, &first));
    size_t items = ITEMS;
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, &offset, &items, NULL, 0, NULL, NULL));
    static cl_int ints[ITEMS];
    static cl_ulong longs[ITEMS];
    OK(clEnqueueReadBuffer(queue, as_int, CL_TRUE, 0, sizeof ints, ints, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queue, whole, CL_TRUE, 0, sizeof longs, longs, 0, NULL, NULL));
    for (size_t i = 0; i < ITEMS; i++) {
        cl_int id = (cl_int)(cl_uint)(offset + i);
        EXPECT(ints[i], id / 3);
        EXPECT(longs[i], (cl_ulong)((cl_long)id + ITEMS));
    }
}

int main(void) {
    cl_device_id device = the_device();
    cl_context context = make_context(device);
    cl_command_queue queue = make_queue(context, device, 0);
    cl_kernel kernel = make_kernel(context, device, SOURCE, "ids");
    cl_mem as_int = make_buffer(context, ITEMS * sizeof(cl_int));
    cl_mem whole = make_buffer(context, ITEMS * sizeof(cl_ulong));
    OK(clSetKernelArg(kernel, 0, sizeof as_int, &as_int));
    OK(clSetKernelArg(kernel, 1, sizeof whole, &whole));
    static const size_t around[] = {0, 1u << 29, 1u << 30, (size_t)1 << 31, (size_t)1 << 32, (size_t)3 << 31};
    for (size_t i = 0; i < sizeof around / sizeof *around; i++) {
        run(queue, kernel, as_int, whole, around[i]);
        if (around[i]) {
            run(queue, kernel, as_int, whole, around[i] - ITEMS);
            run(queue, kernel, as_int, whole, around[i] - ITEMS / 2 - 1);
        }
    }
    return 0;
}
