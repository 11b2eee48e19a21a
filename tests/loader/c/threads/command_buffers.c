/* Threads that record, execute, update, remap and release command-buffers, their own and shared ones:
 * command_buffers KIND ROUNDS, where KIND is own, shared, errors, hot or cost. */
#include "client.h"

#include <pthread.h>
#include <stdatomic.h>

#include "../../../native_shim/src/object/command_buffer_khr.h"

enum { THREADS = 4, ITEMS = 256, COMMANDS = 12 };

#define TAIL cl_uint, const cl_sync_point_khr *, cl_sync_point_khr *, cl_mutable_command_khr *
#define HEAD cl_command_buffer_khr, cl_command_queue, const cl_command_properties_khr *
#define FUNCTION(result, name, ...) static result(CL_API_CALL *name##_)(__VA_ARGS__)
FUNCTION(cl_command_buffer_khr, clCreateCommandBufferKHR, cl_uint, const cl_command_queue *,
         const cl_command_buffer_properties_khr *, cl_int *);
FUNCTION(cl_command_buffer_khr, clRemapCommandBufferKHR, cl_command_buffer_khr, cl_bool, cl_uint,
         const cl_command_queue *, cl_uint, const cl_mutable_command_khr *, cl_mutable_command_khr *,
         cl_int *);
FUNCTION(cl_int, clRetainCommandBufferKHR, cl_command_buffer_khr);
FUNCTION(cl_int, clReleaseCommandBufferKHR, cl_command_buffer_khr);
FUNCTION(cl_int, clFinalizeCommandBufferKHR, cl_command_buffer_khr);
FUNCTION(cl_int, clEnqueueCommandBufferKHR, cl_uint, cl_command_queue *, cl_command_buffer_khr, cl_uint,
         const cl_event *, cl_event *);
FUNCTION(cl_int, clGetCommandBufferInfoKHR, cl_command_buffer_khr, cl_uint, size_t, void *, size_t *);
FUNCTION(cl_int, clGetMutableCommandInfoKHR, cl_mutable_command_khr, cl_uint, size_t, void *, size_t *);
FUNCTION(cl_int, clUpdateMutableCommandsKHR, cl_command_buffer_khr, cl_uint, const cl_uint *, const void **);
FUNCTION(cl_int, clCommandBarrierWithWaitListKHR, HEAD, TAIL);
FUNCTION(cl_int, clCommandCopyBufferKHR, HEAD, cl_mem, cl_mem, size_t, size_t, size_t, TAIL);
FUNCTION(cl_int, clCommandFillBufferKHR, HEAD, cl_mem, const void *, size_t, size_t, size_t, TAIL);
FUNCTION(cl_int, clCommandNDRangeKernelKHR, HEAD, cl_kernel, cl_uint, const size_t *, const size_t *,
         const size_t *, TAIL);

static cl_device_id device;
static cl_context context;
static cl_program program;
static int rounds;

static const char source[] =
    "kernel void add(global int *data, int value) { data[get_global_id(0)] += value; }\n"
    "kernel void count(global int *data, int value) { atomic_add(data, value); }\n"
    "kernel void tree(global int *out, global const int *in, local int *scratch) {\n"
    "  int i = get_local_id(0);\n"
    "  scratch[i] = in[get_global_id(0)];\n"
    "  barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  for (int k = get_local_size(0) / 2; k; k /= 2) {\n"
    "    if (i < k) scratch[i] += scratch[i + k];\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  }\n"
    "  if (!i) out[get_group_id(0)] = scratch[0];\n"
    "}\n";

static cl_kernel kernel_of(const char *name, cl_mem data, cl_int value) {
    cl_int status;
    cl_kernel kernel = clCreateKernel(program, name, &status);
    OK(status);
    OK(clSetKernelArg(kernel, 0, sizeof data, &data));
    OK(clSetKernelArg(kernel, 1, sizeof value, &value));
    return kernel;
}

static cl_command_buffer_khr create(cl_uint count, const cl_command_queue *queues, cl_bitfield flags) {
    cl_command_buffer_properties_khr properties[] = {CLD_COMMAND_BUFFER_FLAGS, flags, 0};
    cl_int status;
    cl_command_buffer_khr buffer = clCreateCommandBufferKHR_(count, queues, properties, &status);
    OK(status);
    return buffer;
}

static void add_launch(cl_command_buffer_khr buffer, cl_command_queue queue, cl_kernel kernel,
                       const cl_sync_point_khr *after, cl_sync_point_khr *point,
                       cl_mutable_command_khr *handle) {
    const size_t items = ITEMS;
    OK(clCommandNDRangeKernelKHR_(buffer, queue, NULL, kernel, 1, NULL, &items, NULL, after != NULL, after,
                                  point, handle));
}

static cl_int update(cl_command_buffer_khr buffer, cl_mutable_command_khr command, cl_uint index,
                     cl_int value) {
    struct cld_mutable_dispatch_arg arg = {index, sizeof value, &value};
    struct cld_mutable_dispatch_config config = {.command = command, .num_args = 1, .arg_list = &arg};
    const cl_uint types[] = {CLD_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG};
    const void *configs[] = {&config};
    return clUpdateMutableCommandsKHR_(buffer, 1, types, configs);
}

static void expect(cl_command_queue queue, cl_mem data, cl_int value) {
    cl_int found[ITEMS];
    OK(clEnqueueReadBuffer(queue, data, CL_TRUE, 0, sizeof found, found, 0, NULL, NULL));
    for (int i = 0; i < ITEMS; i++)
        EXPECT(found[i], value);
}

/* A graph of its own: fills, two branches, a barrier, a copy; executed on two queues, updated between two
 * executions that nobody has waited for, remapped, released while it may be executed. */
static void use_own(cl_command_queue queue, int round) {
    cl_command_queue queues[] = {queue, make_queue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)};
    cl_mem left = make_buffer(context, ITEMS * sizeof(cl_int));
    cl_mem right = make_buffer(context, ITEMS * sizeof(cl_int));
    cl_kernel add = kernel_of("add", left, 1);
    cl_command_buffer_khr buffer = create(2, queues, CLD_COMMAND_BUFFER_MUTABLE);
    cl_sync_point_khr start, point;
    cl_mutable_command_khr first, again;
    const cl_int zero = 0;
    OK(clCommandFillBufferKHR_(buffer, queues[1], NULL, left, &zero, sizeof zero, 0, ITEMS * sizeof zero, 0,
                               NULL, &start, NULL));
    add_launch(buffer, queues[1], add, &start, &point, &first);
    for (int i = 1; i < COMMANDS; i++)
        add_launch(buffer, queues[i % 2], add, &point, &point, NULL);
    OK(clCommandBarrierWithWaitListKHR_(buffer, queues[0], NULL, 0, NULL, NULL, NULL));
    OK(clCommandCopyBufferKHR_(buffer, queues[0], NULL, left, right, 0, 0, ITEMS * sizeof zero, 0, NULL, NULL,
                               NULL));
    OK(clReleaseKernel(add));
    OK(clFinalizeCommandBufferKHR_(buffer));
    cl_event event;
    OK(clEnqueueCommandBufferKHR_(0, NULL, buffer, 0, NULL, NULL));
    OK(update(buffer, first, 1, 100 + round));
    OK(clEnqueueCommandBufferKHR_(2, queues, buffer, 0, NULL, &event));
    expect(queue, right, COMMANDS - 1 + 100 + round);
    OK(clWaitForEvents(1, &event));
    OK(clReleaseEvent(event));

    cl_int status;
    cl_command_buffer_khr copy =
        clRemapCommandBufferKHR_(buffer, CL_TRUE, 1, &queues[round % 2], 1, &first, &again, &status);
    OK(status);
    OK(update(copy, again, 1, 7));
    OK(clEnqueueCommandBufferKHR_(0, NULL, copy, 0, NULL, NULL));
    OK(clReleaseCommandBufferKHR_(copy));
    OK(clFinish(queues[round % 2]));
    expect(queue, right, COMMANDS - 1 + 7);
    OK(clEnqueueCommandBufferKHR_(0, NULL, buffer, 0, NULL, NULL));
    OK(clReleaseCommandBufferKHR_(buffer));
    OK(clReleaseMemObject(left));
    OK(clReleaseMemObject(right));
    OK(clReleaseCommandQueue(queues[1]));
}

/* What all threads share. */
static cl_command_buffer_khr shared, growing;
static cl_mutable_command_khr shared_command;
static cl_mem total;
static _Atomic int added;

/* Executions at the same time, while others change what is added: it is known at each enqueue or it is the
 * other value, so that only bounds are. Another command-buffer is recorded by all. */
static void use_shared(cl_command_queue queue, int round) {
    cl_event event;
    OK(update(shared, shared_command, 1, 1 + round % 2));
    OK(clEnqueueCommandBufferKHR_(1, &queue, shared, 0, NULL, &event));
    atomic_fetch_add(&added, 1);
    cl_int value, dimensions;
    OK(clGetMutableCommandInfoKHR_(shared_command, CLD_MUTABLE_DISPATCH_DIMENSIONS, sizeof dimensions,
                                   &dimensions, NULL));
    EXPECT(dimensions, 1);
    OK(clGetCommandBufferInfoKHR_(shared, CLD_COMMAND_BUFFER_STATE, sizeof value, &value, NULL));
    EXPECT(value, CLD_COMMAND_BUFFER_STATE_EXECUTABLE);
    OK(clRetainCommandBufferKHR_(shared));
    OK(clWaitForEvents(1, &event));
    OK(clReleaseEvent(event));
    OK(clReleaseCommandBufferKHR_(shared));
    if (round < COMMANDS) {
        cl_kernel add = kernel_of("add", total, 0);
        add_launch(growing, NULL, add, NULL, NULL, NULL);
        OK(clReleaseKernel(add));
    }
}

/* What every thread may be told, whatever the others do. */
static void use_wrongly(cl_command_queue queue, int round) {
    cl_mem data = make_buffer(context, ITEMS * sizeof(cl_int));
    cl_kernel add = kernel_of("add", data, round);
    cl_command_buffer_khr buffer = create(1, &queue, 0);
    const size_t items = ITEMS;
    cl_sync_point_khr wrong = 77;
    cl_mutable_command_khr command;
    cl_int status;
    CHECK(!clCreateCommandBufferKHR_(0, NULL, NULL, &status));
    EXPECT(status, CL_INVALID_VALUE);
    EXPECT(clCommandNDRangeKernelKHR_(buffer, NULL, NULL, add, 1, NULL, &items, NULL, 1, &wrong, NULL, NULL),
           CLD_INVALID_SYNC_POINT_WAIT_LIST);
    EXPECT(clCommandNDRangeKernelKHR_(buffer, NULL, NULL, NULL, 1, NULL, &items, NULL, 0, NULL, NULL, NULL),
           CL_INVALID_KERNEL);
    EXPECT(clCommandNDRangeKernelKHR_(buffer, NULL, NULL, add, 4, NULL, &items, NULL, 0, NULL, NULL, NULL),
           CL_INVALID_WORK_DIMENSION);
    EXPECT(clCommandFillBufferKHR_(buffer, NULL, NULL, data, &items, 3, 0, 6, 0, NULL, NULL, NULL),
           CL_INVALID_VALUE);
    EXPECT(clEnqueueCommandBufferKHR_(0, NULL, buffer, 0, NULL, NULL), CL_INVALID_OPERATION);
    add_launch(buffer, NULL, add, NULL, NULL, &command);
    OK(clFinalizeCommandBufferKHR_(buffer));
    EXPECT(clFinalizeCommandBufferKHR_(buffer), CL_INVALID_OPERATION);
    EXPECT(update(buffer, command, 1, 2), CL_INVALID_OPERATION);
    EXPECT(update(shared, command, 1, 2), CLD_INVALID_MUTABLE_COMMAND);
    EXPECT(update(shared, shared_command, 9, 2), CL_INVALID_ARG_INDEX);
    EXPECT(clEnqueueCommandBufferKHR_(1, NULL, buffer, 0, NULL, NULL), CL_INVALID_VALUE);
    EXPECT(clCommandBarrierWithWaitListKHR_(buffer, NULL, NULL, 0, NULL, NULL, NULL), CL_INVALID_OPERATION);
    EXPECT(clReleaseCommandBufferKHR_((cl_command_buffer_khr)(void *)queue), CLD_INVALID_COMMAND_BUFFER);
    CHECK(!clRemapCommandBufferKHR_(buffer, CL_FALSE, 2, &queue, 0, NULL, NULL, &status));
    EXPECT(status, CL_INVALID_VALUE);
    OK(clReleaseCommandBufferKHR_(buffer));
    EXPECT(clGetMutableCommandInfoKHR_(command, CLD_MUTABLE_DISPATCH_DIMENSIONS, 0, NULL, NULL),
           CLD_INVALID_MUTABLE_COMMAND);
    OK(clReleaseKernel(add));
    OK(clReleaseMemObject(data));
}

static void (*use)(cl_command_queue queue, int round);

static void *run(void *argument) {
    (void)argument;
    cl_command_queue queue = make_queue(context, device, 0);
    for (int round = 0; round < rounds; round++)
        use(queue, round);
    OK(clReleaseCommandQueue(queue));
    return NULL;
}

static void share(cl_command_queue queue) {
    total = make_buffer(context, ITEMS * sizeof(cl_int));
    const cl_int zero = 0;
    OK(clEnqueueFillBuffer(queue, total, &zero, sizeof zero, 0, ITEMS * sizeof zero, 0, NULL, NULL));
    OK(clFinish(queue));
    cl_kernel count = kernel_of("count", total, 1);
    shared = create(1, &queue, CLD_COMMAND_BUFFER_MUTABLE | CLD_COMMAND_BUFFER_SIMULTANEOUS_USE);
    growing = create(1, &queue, 0);
    add_launch(shared, NULL, count, NULL, NULL, &shared_command);
    for (int i = 1; i < COMMANDS; i++)
        add_launch(shared, NULL, count, NULL, NULL, NULL);
    OK(clReleaseKernel(count));
    OK(clFinalizeCommandBufferKHR_(shared));
}

static void check_shared(cl_command_queue queue) {
    cl_int found, executions = atomic_load(&added);
    OK(clFinalizeCommandBufferKHR_(growing));
    OK(clEnqueueCommandBufferKHR_(0, NULL, growing, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queue, total, CL_TRUE, 0, sizeof found, &found, 0, NULL, NULL));
    CHECK(found >= executions * COMMANDS * ITEMS && found <= executions * (COMMANDS + 1) * ITEMS);
    OK(clReleaseCommandBufferKHR_(shared));
    OK(clReleaseCommandBufferKHR_(growing));
    OK(clReleaseMemObject(total));
}

/* A kernel that gets better code when it has run for a while: only by what was recorded before. */
static void wait_for_hot_code(cl_command_queue queue) {
    enum { GROUP = 64, GROUPS = 1024 };
    const size_t items = GROUP * GROUPS, local = GROUP;
    static cl_int in[GROUP * GROUPS], out[GROUPS];
    for (int i = 0; i < GROUP * GROUPS; i++)
        in[i] = i % 1000;
    cl_int status;
    cl_mem given = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof in, in, &status);
    OK(status);
    cl_mem made = make_buffer(context, sizeof out);
    cl_kernel tree = clCreateKernel(program, "tree", &status);
    OK(status);
    OK(clSetKernelArg(tree, 0, sizeof made, &made));
    OK(clSetKernelArg(tree, 1, sizeof given, &given));
    OK(clSetKernelArg(tree, 2, GROUP * sizeof(cl_int), NULL));
    cl_command_buffer_khr buffer = create(1, &queue, 0);
    OK(clCommandNDRangeKernelKHR_(buffer, NULL, NULL, tree, 1, NULL, &items, &local, 0, NULL, NULL, NULL));
    OK(clFinalizeCommandBufferKHR_(buffer));
    for (double end = seconds() + rounds; seconds() < end;) {
        memset(out, 0, sizeof out);
        OK(clEnqueueCommandBufferKHR_(0, NULL, buffer, 0, NULL, NULL));
        OK(clEnqueueReadBuffer(queue, made, CL_TRUE, 0, sizeof out, out, 0, NULL, NULL));
        for (int group = 0, at = 0; group < GROUPS; group++) {
            cl_int sum = 0;
            for (int i = 0; i < GROUP; i++)
                sum += in[at++];
            EXPECT(out[group], sum);
        }
    }
    OK(clReleaseCommandBufferKHR_(buffer));
}

static double processor_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Prints what a recorded chain of small launches takes of the time that enqueueing each of them takes: the
 * least of many rounds, both ways in turns. */
static void compare_costs(cl_command_queue queue) {
    enum { LAUNCHES = 100, TURNS = 20 };
    const size_t items = 64;
    cl_mem data = make_buffer(context, items * sizeof(cl_int));
    cl_kernel add = kernel_of("add", data, 1);
    cl_command_buffer_khr buffer = create(1, &queue, 0);
    for (int i = 0; i < LAUNCHES; i++)
        OK(clCommandNDRangeKernelKHR_(buffer, NULL, NULL, add, 1, NULL, &items, NULL, 0, NULL, NULL, NULL));
    OK(clFinalizeCommandBufferKHR_(buffer));
    double best[2] = {1e9, 1e9};
    for (int turn = 0; turn < 2 * TURNS; turn++) {
        double start = processor_time();
        for (int round = 0; round < rounds; round++) {
            for (int i = 0; turn % 2 && i < LAUNCHES; i++)
                OK(clEnqueueNDRangeKernel(queue, add, 1, NULL, &items, NULL, 0, NULL, NULL));
            if (turn % 2 == 0)
                OK(clEnqueueCommandBufferKHR_(0, NULL, buffer, 0, NULL, NULL));
            OK(clFinish(queue));
        }
        double time = processor_time() - start;
        best[turn % 2] = time < best[turn % 2] ? time : best[turn % 2];
    }
    printf("%g\n", best[0] / best[1]);
    OK(clReleaseCommandBufferKHR_(buffer));
    OK(clReleaseKernel(add));
    OK(clReleaseMemObject(data));
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    rounds = atoi(argv[2]);
    device = the_device();
    GET_EXTENSION(clCreateCommandBufferKHR);
    GET_EXTENSION(clRemapCommandBufferKHR);
    GET_EXTENSION(clRetainCommandBufferKHR);
    GET_EXTENSION(clReleaseCommandBufferKHR);
    GET_EXTENSION(clFinalizeCommandBufferKHR);
    GET_EXTENSION(clEnqueueCommandBufferKHR);
    GET_EXTENSION(clGetCommandBufferInfoKHR);
    GET_EXTENSION(clGetMutableCommandInfoKHR);
    GET_EXTENSION(clUpdateMutableCommandsKHR);
    GET_EXTENSION(clCommandBarrierWithWaitListKHR);
    GET_EXTENSION(clCommandCopyBufferKHR);
    GET_EXTENSION(clCommandFillBufferKHR);
    GET_EXTENSION(clCommandNDRangeKernelKHR);
    context = make_context(device);
    const char *text = source;
    cl_int status;
    program = clCreateProgramWithSource(context, 1, &text, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 1, &device, "", NULL, NULL));
    cl_command_queue queue = make_queue(context, device, 0);
    if (!strcmp(argv[1], "hot")) {
        wait_for_hot_code(queue);
    } else if (!strcmp(argv[1], "cost")) {
        compare_costs(queue);
    } else {
        share(queue);
        use = !strcmp(argv[1], "own") ? use_own : !strcmp(argv[1], "shared") ? use_shared : use_wrongly;
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            CHECK(!pthread_create(&threads[i], NULL, run, NULL));
        for (int i = 0; i < THREADS; i++)
            CHECK(!pthread_join(threads[i], NULL));
        check_shared(queue);
    }
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseProgram(program));
    OK(clReleaseContext(context));
    return 0;
}
