/* Contexts that are terminated while kernels that never end run (cl_khr_terminate_context). argv[1]: the
 * kernel, or what else is in flight; argv[2]: options of the build. */
#define _GNU_SOURCE
#include "client.h"

#include <pthread.h>
#include <unistd.h>

#define FUNCTION(name) static name##_fn name##_
static cl_int (*clTerminateContextKHR_)(cl_context context);
FUNCTION(clCreateSemaphoreWithPropertiesKHR);
FUNCTION(clEnqueueWaitSemaphoresKHR);
FUNCTION(clReleaseSemaphoreKHR);
FUNCTION(clCreateCommandBufferKHR);
FUNCTION(clCommandNDRangeKernelKHR);
FUNCTION(clFinalizeCommandBufferKHR);
FUNCTION(clEnqueueCommandBufferKHR);
FUNCTION(clReleaseCommandBufferKHR);

enum {
    ITEMS = 640,
    LOCAL = 64,
    COMMANDS = 4,
    PATIENCE = 100,
    TERMINATED = -1121 /* CL_CONTEXT_TERMINATED_KHR */
};

/* p[0] says that the kernel runs, p[1] stays 0. */
static const char *source =
    "#define KERNEL(name) kernel void name(volatile global int *p, local int *l)\n"
    "#define ID ((int)get_global_id(0))\n"
    "KERNEL(waits) { p[0] = 1; while (p[1] == 0); p[2] = 3; }\n"
    "KERNEL(diverges) { p[0] = 1; int n = ID; do { n = n * 5 + p[4 + (n & 63)]; if (n == 77) break; }\n"
    "    while (p[1] + n != 78); p[2] = n; }\n"
    "KERNEL(nested) { p[0] = 1; for (int i = 0; p[1] == 0; i++) for (int k = 0; k < ID; k++)\n"
    "    switch ((i + k) & 3) { case 0: p[3] += k; case 1: continue; case 2: if (p[1]) return; } }\n"
    "KERNEL(jumps) { p[0] = 1; int n = ID; if (n & 1) goto second; first: n += p[4]; if (n & 4) n ^= 3;\n"
    "    second: n ^= 5; if (p[1]) return; goto first; }\n"
    "KERNEL(meets) { p[0] = 1; while (1) { barrier(CLK_LOCAL_MEM_FENCE); l[get_local_id(0)] = p[1];\n"
    "    barrier(CLK_LOCAL_MEM_FENCE); if (l[(get_local_id(0) + 1) % get_local_size(0)]) break; } p[2] = 1; "
    "}\n"
    "KERNEL(locks) { p[0] = 1; while (atomic_cmpxchg(p + 1, 1, 2) != 1); p[2]++; atomic_xchg(p + 1, 1); }\n"
    "KERNEL(nothing) { p[0] = 1; while (1); }\n"
    "void deep(volatile global int *p, int n) { for (int i = 0; p[1] == 0; i++) if (i == n) p[3] = n; }\n"
    "__attribute__((noinline)) int *pointer(volatile global int *p, private int *a) {\n"
    "    while (p[1] == 0); return a; }\n"
    "KERNEL(calls) { int a[3] = {1, 2, 3}; p[0] = 1; if (ID & 1) deep(p, ID); *pointer(p, a) = ID; p[2] = "
    "a[0]; }\n"
    "KERNEL(many) { p[0] = 1; for (int i = 0; i < 100; i++) if (p[1]) p[2] = i; }\n"
    "KERNEL(plain) { p[0] = 1; p[4 + (ID & 255)] = p[1]; }\n"
    "kernel void paints(volatile global int *p, local int *l, read_only image2d_t i) {\n"
    "    p[0] = 1; float f = 0; int n = 0; while (p[1] == 0) f += read_imagef(i, (int2)(n++ & 7, ID & "
    "7)).x;\n"
    "    p[2] = f; }\n";

/* Nobody writes to the pipe, or reads from it. Reservations that are never committed hold others up, too. */
static const char *piping =
    "#define KERNEL(name, how) kernel void name(volatile global int *p, how pipe int q)\n"
    "KERNEL(reads, read_only) { int n; p[0] = 1; while (read_pipe(q, &n)); p[2] = n; }\n"
    "KERNEL(writes, write_only) { int n = get_global_id(0); p[1] = 1; while (write_pipe(q, &n)); }\n"
    "KERNEL(keeps, write_only) { p[2] = 1; for (;;) { reserve_id_t id = reserve_write_pipe(q, 1); } }\n"
    "KERNEL(reserves, write_only) { p[3] = 1; reserve_id_t id;\n"
    "    do id = work_group_reserve_write_pipe(q, 3); while (is_valid_reserve_id(id) || p[5] == 0);\n"
    "    work_group_commit_write_pipe(q, id); }\n";

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_int *words;
static cl_mem buffer;
static cl_kernel kernel;
static _Atomic int told, called;

static void CL_CALLBACK tell(const char *text, const void *info, size_t size, void *data) {
    (void)info, (void)size;
    CHECK(strstr(text, "terminated") && data == &told);
    told++;
}

static void CL_CALLBACK call(cl_event event, cl_int status, void *data) {
    (void)event;
    EXPECT(status, TERMINATED);
    CHECK(data == &called);
    called++;
}

static void nap(void) {
    usleep(1000);
}

#define AWAIT(condition)                                                                                     \
    for (double until = seconds() + PATIENCE; !(condition); nap())                                           \
    CHECK(seconds() < until)

static cl_int status_of(cl_event event) {
    cl_int status;
    OK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    return status;
}

static cl_mem make_image(void) {
    const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
    const cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 8, .image_height = 8};
    cl_int status;
    cl_mem image = clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, NULL, &status);
    OK(status);
    return image;
}

static void begin(const char *name, const char *options, cl_command_queue_properties properties) {
    const cl_context_properties wanted[] = {CL_CONTEXT_TERMINATE_KHR, CL_TRUE, 0};
    cl_int status;
    device = the_device();
    context = clCreateContext(wanted, 1, &device, tell, &told, &status);
    OK(status);
    queue = make_queue(context, device, properties);
    words = aligned_alloc(4096, 4096);
    memset(words, 0, 4096);
    buffer = clCreateBuffer(context, CL_MEM_USE_HOST_PTR, 4096, words, &status);
    OK(status);
    kernel = make_kernel_with(context, device, source, options, name);
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    OK(clSetKernelArg(kernel, 1, LOCAL * sizeof(cl_int), NULL));
    if (!strcmp(name, "paints")) {
        cl_mem image = make_image();
        OK(clSetKernelArg(kernel, 2, sizeof image, &image));
    }
}

static cl_event launch(cl_command_queue on, size_t items, cl_event after) {
    cl_event event;
    size_t local = LOCAL;
    OK(clEnqueueNDRangeKernel(on, kernel, 1, NULL, &items, &local, after != NULL, after ? &after : NULL,
                              &event));
    OK(clFlush(on));
    return event;
}

static void await_start(void) {
    AWAIT(__atomic_load_n(words, __ATOMIC_RELAXED) == 1);
}

static void terminate(void) {
    GET_EXTENSION(clTerminateContextKHR);
    OK(clTerminateContextKHR_(context));
    EXPECT(clTerminateContextKHR_(context), TERMINATED);
}

static void ends(cl_event event) {
    EXPECT(clWaitForEvents(1, &event), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    EXPECT(status_of(event), TERMINATED);
    cl_ulong time;
    EXPECT(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof time, &time, NULL),
           CL_PROFILING_INFO_NOT_AVAILABLE);
    OK(clReleaseEvent(event));
}

/* All objects can be released, in any order; the context goes last. */
static void release_all(void) {
    AWAIT(told == 1);
    OK(clReleaseKernel(kernel));
    OK(clFlush(queue));
    OK(clFinish(queue));
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseMemObject(buffer));
    cl_uint references;
    OK(clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof references, &references, NULL));
    EXPECT(references, 1);
    OK(clReleaseContext(context));
}

/* One that runs, others behind it, of its queue and of another, and behind an event that nobody sets. */
static void kernels(const char *name, const char *options) {
    for (int order = 0; order < 2; order++) {
        told = called = 0;
        begin(name, options,
              CL_QUEUE_PROFILING_ENABLE | (order ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0));
        size_t items = strcmp(name, "many") && strcmp(name, "plain") ? ITEMS : (size_t)1 << 40;
        cl_int status;
        cl_event never = clCreateUserEvent(context, &status), events[COMMANDS + 2];
        OK(status);
        cl_command_queue other = make_queue(context, device, CL_QUEUE_PROFILING_ENABLE);
        for (int i = 0; i < COMMANDS; i++)
            events[i] = launch(queue, items, NULL);
        events[COMMANDS] = launch(other, items, never);
        events[COMMANDS + 1] = launch(other, items, events[COMMANDS]);
        for (int i = 0; i < COMMANDS + 2; i++)
            OK(clSetEventCallback(events[i], CL_COMPLETE, call, &called));
        await_start();
        terminate();
        for (int i = 0; i < COMMANDS + 2; i++)
            ends(events[i]);
        AWAIT(called == COMMANDS + 2);
        EXPECT(status_of(never), CL_SUBMITTED);
        OK(clSetUserEventStatus(never, CL_COMPLETE)); /* "The status of user events can be set." */
        EXPECT(status_of(never), CL_COMPLETE);
        OK(clReleaseEvent(never));
        OK(clReleaseCommandQueue(other));
        release_all();
    }
}

/* The host waits in every way while the context is terminated. */
static void *wait_in_finish(void *unused) {
    OK(clFinish(queue));
    return unused;
}

static void *wait_in_read(void *unused) {
    cl_int word;
    EXPECT(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof word, &word, 0, NULL, NULL), TERMINATED);
    return unused;
}

static void *wait_for_event(void *event) {
    EXPECT(clWaitForEvents(1, (cl_event *)event), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    return NULL;
}

/* They begin to wait before the context is terminated, at that moment, and behind it. */
static void waiting_hosts(const char *options) {
    for (int delay = 100000; delay; delay /= 2) {
        told = 0;
        begin("waits", options, 0);
        cl_event event = launch(queue, ITEMS, NULL);
        pthread_t threads[3];
        await_start();
        OK(pthread_create(&threads[0], NULL, wait_in_read, NULL));
        OK(pthread_create(&threads[1], NULL, wait_in_finish, NULL));
        OK(pthread_create(&threads[2], NULL, wait_for_event, &event));
        usleep((useconds_t)delay);
        terminate();
        for (int i = 0; i < 3; i++)
            OK(pthread_join(threads[i], NULL));
        ends(event);
        release_all();
    }
}

static void command_buffers(const char *options) {
    GET_EXTENSION(clCreateCommandBufferKHR);
    GET_EXTENSION(clCommandNDRangeKernelKHR);
    GET_EXTENSION(clFinalizeCommandBufferKHR);
    GET_EXTENSION(clEnqueueCommandBufferKHR);
    GET_EXTENSION(clReleaseCommandBufferKHR);
    for (int count = 1; count < 4; count += 2) {
        told = 0;
        begin("waits", options, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        cl_int status;
        cl_command_buffer_khr recorded = clCreateCommandBufferKHR_(1, &queue, NULL, &status);
        OK(status);
        size_t items = ITEMS, local = LOCAL;
        for (int i = 0; i < count; i++)
            OK(clCommandNDRangeKernelKHR_(recorded, NULL, NULL, kernel, 1, NULL, &items, &local, 0, NULL,
                                          NULL, NULL));
        OK(clFinalizeCommandBufferKHR_(recorded));
        cl_event events[2];
        for (int i = 0; i < 2; i++)
            OK(clEnqueueCommandBufferKHR_(0, NULL, recorded, 0, NULL, &events[i]));
        OK(clFlush(queue));
        await_start();
        terminate();
        for (int i = 0; i < 2; i++)
            ends(events[i]);
        EXPECT(clEnqueueCommandBufferKHR_(0, NULL, recorded, 0, NULL, NULL), TERMINATED);
        OK(clReleaseCommandBufferKHR_(recorded));
        release_all();
    }
}

static void semaphores(void) {
    const cl_semaphore_properties_khr plain[] = {CL_SEMAPHORE_TYPE_KHR, CL_SEMAPHORE_TYPE_BINARY_KHR, 0};
    const cl_semaphore_properties_khr shared[] = {CL_SEMAPHORE_TYPE_KHR,
                                                  CL_SEMAPHORE_TYPE_BINARY_KHR,
                                                  CL_SEMAPHORE_EXPORT_HANDLE_TYPES_KHR,
                                                  CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR,
                                                  CL_SEMAPHORE_EXPORT_HANDLE_TYPES_LIST_END_KHR,
                                                  0};
    GET_EXTENSION(clCreateSemaphoreWithPropertiesKHR);
    GET_EXTENSION(clEnqueueWaitSemaphoresKHR);
    GET_EXTENSION(clReleaseSemaphoreKHR);
    begin("plain", "", 0);
    cl_int status;
    cl_semaphore_khr both[] = {clCreateSemaphoreWithPropertiesKHR_(context, plain, &status),
                               clCreateSemaphoreWithPropertiesKHR_(context, shared, &status)};
    OK(status);
    cl_command_queue other = make_queue(context, device, 0);
    cl_event events[4];
    OK(clEnqueueWaitSemaphoresKHR_(queue, 2, both, NULL, 0, NULL, &events[0]));
    OK(clEnqueueWaitSemaphoresKHR_(queue, 1, both, NULL, 0, NULL, &events[1]));
    OK(clEnqueueWaitSemaphoresKHR_(other, 1, both + 1, NULL, 0, NULL, &events[2]));
    OK(clFlush(queue));
    events[3] = launch(other, ITEMS, NULL);
    usleep(20000);
    terminate();
    for (int i = 0; i < 4; i++)
        ends(events[i]);
    EXPECT(clEnqueueWaitSemaphoresKHR_(queue, 1, both, NULL, 0, NULL, NULL), TERMINATED);
    for (int i = 0; i < 2; i++)
        OK(clReleaseSemaphoreKHR_(both[i]));
    OK(clReleaseCommandQueue(other));
    release_all();
}

/* Kernels that wait for one another's packets, more of them than there are threads. */
static void pipes(void) {
    static const char *const names[] = {"reads", "writes", "keeps", "reserves"};
    enum { KERNELS = 4, TIMES = 2 };
    begin("plain", "", 0);
    cl_int status;
    cl_program program = clCreateProgramWithSource(context, 1, &piping, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 1, &device, "-cl-std=CL3.0", NULL, NULL));
    cl_event events[KERNELS * TIMES];
    cl_command_queue queues[KERNELS * TIMES];
    for (int i = 0; i < KERNELS * TIMES; i++) {
        cl_mem pipe = clCreatePipe(context, 0, sizeof(cl_int), 100, NULL, &status);
        OK(status);
        cl_kernel made = clCreateKernel(program, names[i % KERNELS], &status);
        OK(status);
        OK(clSetKernelArg(made, 0, sizeof buffer, &buffer));
        OK(clSetKernelArg(made, 1, sizeof pipe, &pipe));
        queues[i] = make_queue(context, device, 0);
        const size_t items = ITEMS, local = LOCAL;
        OK(clEnqueueNDRangeKernel(queues[i], made, 1, NULL, &items, &local, 0, NULL, &events[i]));
        OK(clFlush(queues[i]));
        OK(clReleaseKernel(made));
        OK(clReleaseMemObject(pipe));
    }
    for (int i = 0; i < KERNELS; i++)
        AWAIT(__atomic_load_n(words + i, __ATOMIC_RELAXED) == 1);
    terminate();
    for (int i = 0; i < KERNELS * TIMES; i++) {
        ends(events[i]);
        OK(clReleaseCommandQueue(queues[i]));
    }
    OK(clReleaseProgram(program));
    release_all();
}

/* Threads enqueue what they can until they are told that the context is gone; nobody hangs. */
static void *enqueue(void *argument) {
    cl_int made;
    cl_command_queue own = clCreateCommandQueueWithProperties(context, device, NULL, &made);
    if (!own) { /* it was terminated first */
        EXPECT(made, TERMINATED);
        return argument;
    }
    for (cl_event last = NULL, user = NULL;;) {
        cl_int status;
        cl_event event;
        if (user)
            OK(clReleaseEvent(user));
        user = clCreateUserEvent(context, &status);
        if (!user) {
            EXPECT(status, TERMINATED);
            break;
        }
        status = clEnqueueTask(own, kernel, 1, &user, &event);
        if (status) {
            EXPECT(status, TERMINATED);
            OK(clReleaseEvent(user));
            break;
        }
        status = clEnqueueMarkerWithWaitList(own, 1, &event, NULL);
        CHECK(!status || status == TERMINATED);
        OK(clSetUserEventStatus(user, CL_COMPLETE));
        if (last)
            OK(clReleaseEvent(last));
        last = event;
    }
    OK(clFinish(own));
    OK(clReleaseCommandQueue(own));
    return NULL;
}

static void racing_threads(void) {
    for (int round = 0; round < 20; round++) {
        pthread_t threads[4];
        told = 0;
        begin("plain", "", 0);
        for (int i = 0; i < 4; i++)
            OK(pthread_create(&threads[i], NULL, enqueue, NULL));
        usleep(3000 * (unsigned)round);
        terminate();
        for (int i = 0; i < 4; i++)
            OK(pthread_join(threads[i], NULL));
        release_all();
        free(words);
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    const char *what = argv[1], *options = argv[2];
    if (!strcmp(what, "waiting hosts"))
        waiting_hosts(options);
    else if (!strcmp(what, "command buffers"))
        command_buffers(options);
    else if (!strcmp(what, "semaphores"))
        semaphores();
    else if (!strcmp(what, "pipes"))
        pipes();
    else if (!strcmp(what, "racing threads"))
        racing_threads();
    else
        kernels(what, options);
    return 0;
}
