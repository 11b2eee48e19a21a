/* Each entry point of unified shared memory, of command-buffers and of buffers with addresses while the
 * first, the second, ... allocation that it makes fails: it says so, and it works the next time. Prints the
 * names of those that said so. */
#define _GNU_SOURCE
#include "extensions/failing_allocations.h"

#include "../../../../native_shim/src/object/command_buffer_khr.h"

#define PRIVATE_ADDRESS 0x5000 /* macros of headers since 2025 */
#define ADDRESS 0x5001

enum { ITEMS = 64, BYTES = ITEMS * sizeof(cl_int), MANY = 40 /* more events than commands have room for */ };

/* How many allocations until one fails; none does while it is negative. Other threads' do not. */
static _Thread_local int until = -1;

static bool now_fails(void) {
    return until >= 0 && until-- == 0;
}

/* After the call in which the nth allocation was to fail: whether it did. */
static bool has_failed(const char *name, int nth, cl_int status) {
    bool failed = until < 0;
    until = -1;
    bool is_told = status == CL_OUT_OF_HOST_MEMORY || status == CL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (status != CL_SUCCESS && !(is_told && failed)) {
        fprintf(stderr, "%s, allocation %d: %d\n", name, nth, status);
        exit(1);
    }
    if (status && nth == 0)
        puts(name);
    return failed;
}

/* call: a status. Then what undoes a call that succeeded: where the driver does without what it did not get,
 * there are several such calls. */
#define TRY(name, call, ...)                                                                                 \
    for (int nth_ = 0, more_ = 1; more_; nth_++) {                                                           \
        until = nth_;                                                                                        \
        cl_int status_ = (call);                                                                             \
        more_ = has_failed(#name, nth_, status_);                                                            \
        if (!status_) {                                                                                      \
            __VA_ARGS__;                                                                                     \
        }                                                                                                    \
    }

static cl_device_id device;
static cl_context context;
static cl_command_queue queue, other_queue;
static cl_kernel kernel;

/* What commands wait for until it is opened. */
static cl_event gate, behind_gate[MANY];

/* The last parameters of a command that waits for it. */
#define WAIT MANY, behind_gate, &event

static void shut_gate(void) {
    cl_int status;
    gate = clCreateUserEvent(context, &status);
    OK(status);
    for (int i = 0; i < MANY; i++)
        OK(clEnqueueMarkerWithWaitList(other_queue, 1, &gate, &behind_gate[i]));
}

static void open_gate(void) {
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
    OK(clFinish(other_queue));
    OK(clFinish(queue));
    OK(clReleaseEvent(gate));
    for (int i = 0; i < MANY; i++)
        OK(clReleaseEvent(behind_gate[i]));
}

#define USM(name) static name##_fn name##_
USM(clHostMemAllocINTEL);
USM(clDeviceMemAllocINTEL);
USM(clSharedMemAllocINTEL);
USM(clMemFreeINTEL);
USM(clMemBlockingFreeINTEL);
USM(clSetKernelArgMemPointerINTEL);
USM(clEnqueueMemFillINTEL);
USM(clEnqueueMemsetINTEL);
USM(clEnqueueMemcpyINTEL);
USM(clEnqueueMigrateMemINTEL);
USM(clEnqueueMemAdviseINTEL);

static void use_unified_shared_memory(void) {
    GET_EXTENSION(clHostMemAllocINTEL);
    GET_EXTENSION(clDeviceMemAllocINTEL);
    GET_EXTENSION(clSharedMemAllocINTEL);
    GET_EXTENSION(clMemFreeINTEL);
    GET_EXTENSION(clMemBlockingFreeINTEL);
    GET_EXTENSION(clSetKernelArgMemPointerINTEL);
    GET_EXTENSION(clEnqueueMemFillINTEL);
    GET_EXTENSION(clEnqueueMemsetINTEL);
    GET_EXTENSION(clEnqueueMemcpyINTEL);
    GET_EXTENSION(clEnqueueMigrateMemINTEL);
    GET_EXTENSION(clEnqueueMemAdviseINTEL);
    cl_int status;
    char *data = NULL, *other;
    cl_event event;
    const cl_ulong pattern[16] = {1};
    TRY(clHostMemAllocINTEL, (data = clHostMemAllocINTEL_(context, NULL, BYTES, 0, &status), status),
        OK(clMemFreeINTEL_(context, data)));
    TRY(clDeviceMemAllocINTEL,
        (data = clDeviceMemAllocINTEL_(context, device, NULL, BYTES, 0, &status), status),
        OK(clMemBlockingFreeINTEL_(context, data)));
    TRY(clSharedMemAllocINTEL,
        (data = clSharedMemAllocINTEL_(context, NULL, NULL, BYTES, 0, &status), status), other = data);
    data = clHostMemAllocINTEL_(context, NULL, BYTES, 0, &status);
    OK(status);
    void *const pointers[] = {data, other};
    TRY(clSetKernelArgMemPointerINTEL, clSetKernelArgMemPointerINTEL_(kernel, 0, data));
    TRY(clSetKernelExecInfo,
        clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL, sizeof pointers, pointers));
    shut_gate();
    TRY(clEnqueueMemFillINTEL, clEnqueueMemFillINTEL_(queue, data, pattern, sizeof pattern, BYTES, WAIT),
        OK(clReleaseEvent(event)));
    TRY(clEnqueueMemsetINTEL, clEnqueueMemsetINTEL_(queue, data, 1, BYTES, WAIT), OK(clReleaseEvent(event)));
    TRY(clEnqueueMemcpyINTEL, clEnqueueMemcpyINTEL_(queue, CL_FALSE, other, data, BYTES, WAIT),
        OK(clReleaseEvent(event)));
    TRY(clEnqueueMigrateMemINTEL, clEnqueueMigrateMemINTEL_(queue, data, BYTES, 0, WAIT),
        OK(clReleaseEvent(event)));
    TRY(clEnqueueMemAdviseINTEL, clEnqueueMemAdviseINTEL_(queue, data, BYTES, 0, WAIT),
        OK(clReleaseEvent(event)));
    open_gate();
    for (int i = 0; i < BYTES; i++)
        EXPECT(other[i], 1);
    TRY(clMemBlockingFreeINTEL, clMemBlockingFreeINTEL_(context, data), break);
    TRY(clMemFreeINTEL, clMemFreeINTEL_(context, other), break);
}

#define COMMAND(name, ...)                                                                                   \
    static cl_int(CL_API_CALL *name##_)(                                                                     \
        cl_command_buffer_khr, cl_command_queue, const cl_command_properties_khr *, __VA_ARGS__, cl_uint,    \
        const cl_sync_point_khr *, cl_sync_point_khr *, cl_mutable_command_khr *)
static cl_int(CL_API_CALL *clCommandBarrierWithWaitListKHR_)(cl_command_buffer_khr, cl_command_queue,
                                                             const cl_command_properties_khr *, cl_uint,
                                                             const cl_sync_point_khr *, cl_sync_point_khr *,
                                                             cl_mutable_command_khr *);
COMMAND(clCommandCopyBufferKHR, cl_mem, cl_mem, size_t, size_t, size_t);
COMMAND(clCommandCopyBufferRectKHR, cl_mem, cl_mem, const size_t *, const size_t *, const size_t *, size_t,
        size_t, size_t, size_t);
COMMAND(clCommandCopyBufferToImageKHR, cl_mem, cl_mem, size_t, const size_t *, const size_t *);
COMMAND(clCommandCopyImageKHR, cl_mem, cl_mem, const size_t *, const size_t *, const size_t *);
COMMAND(clCommandCopyImageToBufferKHR, cl_mem, cl_mem, const size_t *, const size_t *, size_t);
COMMAND(clCommandFillBufferKHR, cl_mem, const void *, size_t, size_t, size_t);
COMMAND(clCommandFillImageKHR, cl_mem, const void *, const size_t *, const size_t *);
COMMAND(clCommandNDRangeKernelKHR, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *);
COMMAND(clCommandSVMMemcpyKHR, void *, const void *, size_t);
COMMAND(clCommandSVMMemFillKHR, void *, const void *, size_t, size_t);
static cl_command_buffer_khr(CL_API_CALL *clCreateCommandBufferKHR_)(cl_uint, const cl_command_queue *,
                                                                     const cl_command_buffer_properties_khr *,
                                                                     cl_int *);
static cl_command_buffer_khr(CL_API_CALL *clRemapCommandBufferKHR_)(cl_command_buffer_khr, cl_bool, cl_uint,
                                                                    const cl_command_queue *, cl_uint,
                                                                    const cl_mutable_command_khr *,
                                                                    cl_mutable_command_khr *, cl_int *);
static cl_int(CL_API_CALL *clReleaseCommandBufferKHR_)(cl_command_buffer_khr);
static cl_int(CL_API_CALL *clFinalizeCommandBufferKHR_)(cl_command_buffer_khr);
static cl_int(CL_API_CALL *clEnqueueCommandBufferKHR_)(cl_uint, cl_command_queue *, cl_command_buffer_khr,
                                                       cl_uint, const cl_event *, cl_event *);
static cl_int(CL_API_CALL *clUpdateMutableCommandsKHR_)(cl_command_buffer_khr, cl_uint, const cl_uint *,
                                                        const void **);

static cl_int update(cl_command_buffer_khr buffer, cl_mutable_command_khr command, cl_mem data) {
    struct cld_mutable_dispatch_arg arg = {0, sizeof data, &data};
    struct cld_mutable_dispatch_config config = {.command = command, .num_args = 1, .arg_list = &arg};
    const cl_uint types[] = {CLD_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG};
    const void *configs[] = {&config};
    return clUpdateMutableCommandsKHR_(buffer, 1, types, configs);
}

static cl_mem make_image(void) {
    const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    const cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 4, .image_height = 4};
    cl_int status;
    cl_mem image = clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, NULL, &status);
    OK(status);
    return image;
}

static void expect_all(cl_mem data, cl_int value) {
    cl_int found[ITEMS];
    OK(clEnqueueReadBuffer(queue, data, CL_TRUE, 0, BYTES, found, 0, NULL, NULL));
    for (int i = 0; i < ITEMS; i++)
        EXPECT(found[i], value);
}

/* What is recorded: of each command as many as it was taken, which is once but where stated. */
static void use_command_buffers(void) {
    GET_EXTENSION(clCommandBarrierWithWaitListKHR);
    GET_EXTENSION(clCommandCopyBufferKHR);
    GET_EXTENSION(clCommandCopyBufferRectKHR);
    GET_EXTENSION(clCommandCopyBufferToImageKHR);
    GET_EXTENSION(clCommandCopyImageKHR);
    GET_EXTENSION(clCommandCopyImageToBufferKHR);
    GET_EXTENSION(clCommandFillBufferKHR);
    GET_EXTENSION(clCommandFillImageKHR);
    GET_EXTENSION(clCommandNDRangeKernelKHR);
    GET_EXTENSION(clCommandSVMMemcpyKHR);
    GET_EXTENSION(clCommandSVMMemFillKHR);
    GET_EXTENSION(clCreateCommandBufferKHR);
    GET_EXTENSION(clRemapCommandBufferKHR);
    GET_EXTENSION(clReleaseCommandBufferKHR);
    GET_EXTENSION(clFinalizeCommandBufferKHR);
    GET_EXTENSION(clEnqueueCommandBufferKHR);
    GET_EXTENSION(clUpdateMutableCommandsKHR);
    cl_mem left = make_buffer(context, BYTES), right = make_buffer(context, BYTES);
    cl_mem first = make_image(), second = make_image();
    char *shared = clSVMAlloc(context, CL_MEM_READ_WRITE, 2 * BYTES, 0);
    CHECK(shared);
    const size_t origin[3] = {0}, region[3] = {4, 4, 1}, items = ITEMS;
    const cl_int zero = 0, one = 1, color[4] = {1, 1, 1, 1};
    OK(clEnqueueFillBuffer(queue, left, &zero, sizeof zero, 0, BYTES, 0, NULL, NULL));
    OK(clEnqueueFillBuffer(queue, right, &zero, sizeof zero, 0, BYTES, 0, NULL, NULL));
    OK(clFinish(queue));
    OK(clSetKernelArg(kernel, 0, sizeof left, &left));
    OK(clSetKernelArg(kernel, 1, sizeof one, &one));
    const cl_command_buffer_properties_khr properties[] = {CLD_COMMAND_BUFFER_FLAGS,
                                                           CLD_COMMAND_BUFFER_MUTABLE, 0};
    cl_int status;
    cl_command_buffer_khr buffer = NULL, copy;
    cl_mutable_command_khr command = NULL, handle;
    cl_sync_point_khr points[MANY], point;
    TRY(clCreateCommandBufferKHR, (copy = clCreateCommandBufferKHR_(1, &queue, properties, &status), status),
        {
            if (buffer)
                OK(clReleaseCommandBufferKHR_(buffer));
            buffer = copy;
        });
    for (int i = 0; i < MANY; i++)
        OK(clCommandBarrierWithWaitListKHR_(buffer, NULL, NULL, 0, NULL, &points[i], NULL));
#define RECORD(name, ...) TRY(name, name##_(buffer, NULL, NULL, __VA_ARGS__, MANY, points, &point, NULL))
    TRY(clCommandBarrierWithWaitListKHR,
        clCommandBarrierWithWaitListKHR_(buffer, NULL, NULL, MANY, points, &point, NULL));
    RECORD(clCommandCopyBufferKHR, right, left, 0, 0, BYTES);
    RECORD(clCommandCopyBufferRectKHR, right, left, origin, origin, region, 0, 0, 0, 0);
    RECORD(clCommandCopyBufferToImageKHR, right, first, 0, origin, region);
    RECORD(clCommandCopyImageKHR, first, second, origin, origin, region);
    RECORD(clCommandCopyImageToBufferKHR, second, right, origin, region, 0);
    RECORD(clCommandFillBufferKHR, left, &one, sizeof one, 0, BYTES);
    RECORD(clCommandFillImageKHR, first, color, origin, region);
    RECORD(clCommandSVMMemcpyKHR, shared + BYTES, shared, BYTES);
    RECORD(clCommandSVMMemFillKHR, shared, &one, sizeof one, BYTES);
    OK(clCommandBarrierWithWaitListKHR_(buffer, NULL, NULL, 0, NULL, NULL, NULL));
    int launches = 0;
    TRY(clCommandNDRangeKernelKHR,
        clCommandNDRangeKernelKHR_(buffer, NULL, NULL, kernel, 1, NULL, &items, NULL, MANY, points, &point,
                                   &handle),
        {
            command = handle;
            launches++;
        });
    TRY(clFinalizeCommandBufferKHR, clFinalizeCommandBufferKHR_(buffer), break);
    cl_event event;
    shut_gate();
    TRY(clEnqueueCommandBufferKHR, clEnqueueCommandBufferKHR_(0, NULL, buffer, WAIT),
        OK(clReleaseEvent(event)));
    open_gate();
    expect_all(left, 1 + launches);
    TRY(clUpdateMutableCommandsKHR, update(buffer, command, right));
    OK(clEnqueueCommandBufferKHR_(0, NULL, buffer, 0, NULL, NULL));
    OK(clFinish(queue));
    expect_all(left, launches);
    TRY(clRemapCommandBufferKHR,
        (copy = clRemapCommandBufferKHR_(buffer, CL_FALSE, 1, &queue, 1, &command, &handle, &status), status),
        {
            OK(update(copy, handle, left));
            OK(clEnqueueCommandBufferKHR_(0, NULL, copy, 0, NULL, NULL));
            OK(clReleaseCommandBufferKHR_(copy));
            OK(clFinish(queue));
        });
    expect_all(left, 1 + launches);
    OK(clReleaseCommandBufferKHR_(buffer));
    clSVMFree(context, shared);
    const cl_mem made[] = {left, right, first, second};
    for (int i = 0; i < 4; i++)
        OK(clReleaseMemObject(made[i]));
}

/* Buffers with addresses. */
static void use_addresses(void) {
    static cl_int(CL_API_CALL * clSetKernelArgDevicePointerEXT_)(cl_kernel, cl_uint, cl_ulong);
    GET_EXTENSION(clSetKernelArgDevicePointerEXT);
    const cl_mem_properties properties[] = {PRIVATE_ADDRESS, CL_TRUE, 0};
    cl_int status;
    cl_mem buffer = NULL, made;
    cl_ulong address = 0;
    TRY(clCreateBufferWithProperties,
        (made = clCreateBufferWithProperties(context, properties, CL_MEM_READ_WRITE, BYTES, NULL, &status),
         status),
        {
            if (buffer)
                OK(clReleaseMemObject(buffer));
            buffer = made;
        });
    TRY(clGetMemObjectInfo, clGetMemObjectInfo(buffer, ADDRESS, sizeof address, &address, NULL));
    CHECK(address);
    TRY(clSetKernelArgDevicePointerEXT, clSetKernelArgDevicePointerEXT_(kernel, 0, address));
    OK(clReleaseMemObject(buffer));
}

int main(void) {
    device = the_device();
    context = make_context(device);
    CHECK(dl_iterate_phdr(find_driver, NULL));
    queue = make_queue(context, device, 0);
    other_queue = make_queue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    kernel = make_kernel_with(
        context, device, "kernel void k(global int *data, int value) { data[get_global_id(0)] += value; }",
        "", "k");
    use_unified_shared_memory();
    use_command_buffers();
    use_addresses();
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseCommandQueue(other_queue));
    OK(clReleaseContext(context));
    return 0;
}
