/* How long the calls of the data plane take, without loader and compiler. Prints; fails only when wrong. */
#include "harness.h"

static void nothing(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                    uint64_t first, uint64_t last) {
    (void)launch, (void)args, (void)thread, (void)first, (void)last;
}

#define TIME(what, count, statement)                                                                         \
    do {                                                                                                     \
        for (int i = 0; i < 200; i++)                                                                        \
            statement;                                                                                       \
        uint64_t best = UINT64_MAX;                                                                          \
        for (int round = 0; round < 5; round++) {                                                            \
            uint64_t start = cld_now();                                                                      \
            for (int i = 0; i < (count); i++)                                                                \
                statement;                                                                                   \
            uint64_t time = cld_now() - start;                                                               \
            best = time < best ? time : best;                                                                \
            clFinish(queue);                                                                                 \
        }                                                                                                    \
        printf("%-44s %8.1f ns\n", what, (double)best / (count));                                            \
    } while (0)

int main(void) {
    cl_context context = test_context();
    for (int order = 0; order < 2; order++) {
        cl_command_queue queue = test_queue(context, order ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0);
        cl_mem buffer = test_buffer(context, 1 << 20);
        cl_kernel kernel = test_kernel(context, nothing, "ggi");
        int value = 7;
        size_t one = 1, many = 1 << 20;
        cl_event event;
        OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
        OK(clSetKernelArg(kernel, 1, sizeof buffer, &buffer));
        OK(clSetKernelArg(kernel, 2, sizeof value, &value));
        puts(order ? "out of order" : "in order");
        TIME("clSetKernelArg, int", 100000, clSetKernelArg(kernel, 2, sizeof value, &value));
        TIME("clSetKernelArg, buffer", 100000, clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
        TIME("enqueue + finish, empty kernel", 20000,
             (clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL), clFinish(queue)));
        TIME("the same, with an event waited for", 20000,
             (clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, &event),
              clWaitForEvents(1, &event), clReleaseEvent(event)));
        TIME("enqueue of an empty kernel", 10000,
             clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL));
        TIME("enqueue + finish, a million empty items", 4000,
             (clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &many, NULL, 0, NULL, NULL), clFinish(queue)));
        TIME("read of 4 bytes, blocking", 20000,
             clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 4, &value, 0, NULL, NULL));
        TIME("write of 4 bytes", 20000,
             clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, 4, &value, 0, NULL, NULL));
        TIME("marker", 10000, clEnqueueMarkerWithWaitList(queue, 0, NULL, NULL));
        TIME("user event", 20000, clReleaseEvent(clCreateUserEvent(context, NULL)));
        OK(clReleaseKernel(kernel));
        OK(clReleaseMemObject(buffer));
        OK(clReleaseCommandQueue(queue));
    }
    OK(clReleaseContext(context));
}
