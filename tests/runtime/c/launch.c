/* Kernel launches: every group exactly once, the argument block, local memory, sizes, errors, sub-devices.
 * The kernels are C functions of the type that compiled kernels have. */
#define _GNU_SOURCE
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "harness.h"
#include "launch/ndrange.h"

enum { MOST_GROUPS = 1 << 20 };

static cl_context context;
static _Atomic uint8_t runs[MOST_GROUPS];
static struct cld_launch last_launch;
static _Atomic int busy, most_busy;
static _Atomic uint64_t cpus;

static void work(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                 uint64_t first, uint64_t last) {
    int spin;
    (void)thread;
    int now = atomic_fetch_add(&busy, 1) + 1, most = atomic_load(&most_busy);
    while (most < now && !atomic_compare_exchange_weak(&most_busy, &most, now))
        ;
    memcpy(&spin, args, sizeof spin);
    if (!first)
        last_launch = *launch;
    for (uint64_t group = first; group < last; group++) {
        atomic_fetch_add(&runs[group], 1);
        for (volatile int i = 0; i < spin; i++)
            ;
    }
    atomic_fetch_or(&cpus, (uint64_t)1 << (sched_getcpu() & 63));
    atomic_fetch_sub(&busy, 1);
}

static void check_groups(uint64_t count) {
    for (uint64_t i = 0; i < MOST_GROUPS; i++)
        CHECK_IS(atomic_exchange(&runs[i], 0), i < count);
}

static void coverage(void) {
    cl_command_queue queue = test_queue(context, 0);
    cl_kernel kernel = test_kernel(context, work, "i");
    static const size_t sizes[][3] = {{1, 1, 1},     {7, 1, 1},       {64, 3, 2},     {1000, 1000, 1},
                                      {65536, 1, 1}, {100, 100, 100}, {1 << 20, 1, 1}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int spin = 0; spin <= 40; spin += 40) {
            size_t local[3] = {1, 1, 1};
            uint64_t groups = sizes[s][0] * sizes[s][1] * sizes[s][2];
            OK(clSetKernelArg(kernel, 0, sizeof spin, &spin));
            OK(clEnqueueNDRangeKernel(queue, kernel, 3, NULL, sizes[s], local, 0, NULL, NULL));
            OK(clFinish(queue));
            check_groups(groups);
            for (int i = 0; i < 3; i++)
                CHECK_IS(last_launch.num_groups[i], sizes[s][i]);
        }
    /* Where all groups along the last dimensions do the same, the first ones are enough. */
    struct cld_kernel_info *info = info_of(kernel);
    size_t global[3] = {50, 20, 12}, local[3] = {8, 4, 5};
    const uint64_t groups[4] = {7 * 5 * 3, 7 * 5, 7, 1};
    for (info->repeated_dimensions = 0; info->repeated_dimensions < 4; info->repeated_dimensions++) {
        OK(clEnqueueNDRangeKernel(queue, kernel, 3, NULL, global, local, 0, NULL, NULL));
        OK(clFinish(queue));
        check_groups(groups[info->repeated_dimensions]);
        CHECK(last_launch.num_groups[0] == 7 && last_launch.num_groups[1] == 5 &&
              last_launch.num_groups[2] == 3);
    }
    info->repeated_dimensions = 0;
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
}

static uint64_t last_groups(void) {
    return last_launch.num_groups[0] * last_launch.num_groups[1] * last_launch.num_groups[2];
}

static void sizes(void) {
    cl_command_queue queue = test_queue(context, 0);
    cl_kernel kernel = test_kernel(context, work, "i");
    struct cld_kernel_info *info = info_of(kernel);
    int spin = 0;
    size_t global[3] = {100, 30, 5}, local[3] = {16, 7, 2}, offset[3] = {5, 6, SIZE_MAX - 5}, suggested[3];
    size_t zero[3] = {100, 0, 5};
#define LAUNCH(dim, o, g, l) clEnqueueNDRangeKernel(queue, kernel, dim, o, g, l, 0, NULL, NULL)
    CHECK_IS(LAUNCH(1, NULL, global, NULL), CL_INVALID_KERNEL_ARGS);
    CHECK_IS(clGetKernelSuggestedLocalWorkSize(queue, kernel, 1, NULL, global, suggested),
             CL_INVALID_KERNEL_ARGS);
    OK(clSetKernelArg(kernel, 0, sizeof spin, &spin));
    CHECK_IS(clEnqueueNDRangeKernel(NULL, kernel, 1, NULL, global, NULL, 0, NULL, NULL),
             CL_INVALID_COMMAND_QUEUE);
    CHECK_IS(clEnqueueNDRangeKernel(queue, NULL, 1, NULL, global, NULL, 0, NULL, NULL), CL_INVALID_KERNEL);
    CHECK_IS(LAUNCH(0, NULL, global, NULL), CL_INVALID_WORK_DIMENSION);
    CHECK_IS(LAUNCH(4, NULL, global, NULL), CL_INVALID_WORK_DIMENSION);
    offset[2] = SIZE_MAX - 4;
    CHECK_IS(LAUNCH(3, offset, global, NULL), CL_INVALID_GLOBAL_OFFSET);
    offset[2] = SIZE_MAX - 5;
    OK(LAUNCH(3, offset, global, NULL));
    OK(clFinish(queue));
    for (int i = 0; i < 3; i++)
        CHECK(last_launch.global_offset[i] == offset[i] && last_launch.global_size[i] == global[i]);
    check_groups(last_groups());

    /* Groups at the edges are smaller. */
    OK(LAUNCH(3, NULL, global, local));
    OK(clFinish(queue));
    CHECK(last_launch.num_groups[0] == 7 && last_launch.num_groups[1] == 5 && last_launch.num_groups[2] == 3);
    CHECK(last_launch.local_size[0] == 16 && last_launch.local_size[1] == 7 &&
          last_launch.local_size[2] == 2);
    check_groups(105);
    info->flags = CLD_KERNEL_UNIFORM_GROUPS;
    CHECK_IS(LAUNCH(3, NULL, global, local), CL_INVALID_WORK_GROUP_SIZE);
    size_t even[3] = {20, 10, 5};
    OK(LAUNCH(3, NULL, global, even));
    /* What the driver chooses divides, and is what it suggests. */
    for (size_t n = 1; n < 3000; n += n < 300 ? 1 : 97) {
        size_t global2[2] = {n, 6};
        OK(LAUNCH(2, NULL, global2, NULL));
        OK(clFinish(queue));
        CHECK(n % last_launch.local_size[0] == 0 && 6 % last_launch.local_size[1] == 0);
        CHECK(last_launch.local_size[0] * last_launch.local_size[1] <= info->max_group_size);
        OK(clGetKernelSuggestedLocalWorkSize(queue, kernel, 2, NULL, global2, suggested));
        CHECK(suggested[0] == last_launch.local_size[0] && suggested[1] == last_launch.local_size[1]);
    }
    info->flags = 0;
    size_t prime[1] = {10007};
    OK(LAUNCH(1, NULL, prime, NULL));
    OK(clFinish(queue));
    CHECK(last_launch.local_size[0] % info->width == 0);
    CHECK_IS(clGetKernelSuggestedLocalWorkSize(queue, kernel, 2, NULL, zero, suggested),
             CL_INVALID_GLOBAL_WORK_SIZE);
    CHECK_IS(clGetKernelSuggestedLocalWorkSize(queue, kernel, 2, NULL, global, NULL), CL_INVALID_VALUE);

    size_t none[3] = {16, 0, 1}, too_many[3] = {4096, 2, 1}, too_long[3] = {1, 1, 1025}, wide[1] = {4097};
    CHECK_IS(LAUNCH(3, NULL, global, none), CL_INVALID_WORK_GROUP_SIZE);
    CHECK_IS(LAUNCH(3, NULL, global, too_many), CL_INVALID_WORK_GROUP_SIZE);
    CHECK_IS(LAUNCH(3, NULL, global, too_long), CL_INVALID_WORK_ITEM_SIZE);
    CHECK_IS(LAUNCH(1, NULL, global, wide), CL_INVALID_WORK_ITEM_SIZE);
    info->reqd_local_size[0] = 20, info->reqd_local_size[1] = 10, info->reqd_local_size[2] = 5;
    CHECK_IS(LAUNCH(3, NULL, global, local), CL_INVALID_WORK_GROUP_SIZE);
    OK(LAUNCH(3, NULL, global, even));
    OK(LAUNCH(3, NULL, global, NULL));
    OK(clFinish(queue));
    CHECK(last_launch.local_size[0] == 20 && last_launch.local_size[1] == 10 &&
          last_launch.local_size[2] == 5);
    CHECK_IS(clEnqueueTask(queue, kernel, 0, NULL, NULL), CL_INVALID_WORK_GROUP_SIZE);
    memset(info->reqd_local_size, 0, sizeof info->reqd_local_size);
    for (int i = 0; i < MOST_GROUPS; i++)
        atomic_store(&runs[i], 0);

    /* No work-items: a marker with an event of its own kind. */
    cl_event event;
    cl_command_type type;
    OK(clEnqueueNDRangeKernel(queue, kernel, 3, NULL, zero, NULL, 0, NULL, &event));
    OK(LAUNCH(2, NULL, NULL, NULL));
    OK(clWaitForEvents(1, &event));
    OK(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL));
    CHECK_IS(type, CL_COMMAND_NDRANGE_KERNEL);
    OK(clReleaseEvent(event));
    OK(clEnqueueTask(queue, kernel, 0, NULL, &event));
    OK(clWaitForEvents(1, &event));
    OK(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL));
    CHECK_IS(type, CL_COMMAND_TASK);
    check_groups(1);
    OK(clReleaseEvent(event));
    cl_context other = test_context();
    cl_command_queue foreign = test_queue(other, 0);
    CHECK_IS(clEnqueueTask(foreign, kernel, 0, NULL, NULL), CL_INVALID_CONTEXT);
    OK(clReleaseCommandQueue(foreign));
    OK(clReleaseContext(other));
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
}

static struct {
    uint8_t *pointer;
    uint64_t local[2];
    int number;
    uint64_t local_memory_size;
    bool aligned;
} seen;

static void look(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                 uint64_t first, uint64_t last) {
    (void)launch, (void)first, (void)last;
    memcpy(&seen.pointer, args, 8);
    memcpy(&seen.local[0], args + 8, 8);
    memcpy(&seen.number, args + 16, 4);
    memcpy(&seen.local[1], args + 24, 8);
    seen.local_memory_size = thread->local_memory_size;
    seen.aligned = (uintptr_t)thread->local_memory % 128 == 0 && (uintptr_t)thread->scratch % 128 == 0 &&
                   (uintptr_t)args % 128 == 0;
    memset(thread->local_memory, 1, thread->local_memory_size);
    memset(thread->scratch, 1, 1000 + 10 * 64);
}

static void nothing(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                    uint64_t first, uint64_t last) {
    (void)launch, (void)args, (void)thread, (void)first, (void)last;
}

static void arguments(void) {
    cl_command_queue queue = test_queue(context, 0);
    cl_kernel kernel = test_kernel(context, look, "glil");
    struct cld_kernel_info *info = info_of(kernel);
    cl_mem buffer = test_buffer(context, 64), none = NULL;
    int number = 5;
    size_t items = 64;
    info->local_static = 100;
    info->scratch_fixed = 1000;
    info->scratch_per_item = 10;
    CHECK_IS(clSetKernelArg(NULL, 0, 8, &buffer), CL_INVALID_KERNEL);
    CHECK_IS(clSetKernelArg(kernel, 4, 8, &buffer), CL_INVALID_ARG_INDEX);
    CHECK_IS(clSetKernelArg(kernel, 0, 4, &buffer), CL_INVALID_ARG_SIZE);
    CHECK_IS(clSetKernelArg(kernel, 0, 8, &queue), CL_INVALID_MEM_OBJECT);
    CHECK_IS(clSetKernelArg(kernel, 1, 8, &buffer), CL_INVALID_ARG_VALUE);
    CHECK_IS(clSetKernelArg(kernel, 1, 0, &buffer), CL_INVALID_ARG_VALUE);
    CHECK_IS(clSetKernelArg(kernel, 2, 8, &number), CL_INVALID_ARG_SIZE);
    CHECK_IS(clSetKernelArg(kernel, 2, 4, NULL), CL_INVALID_ARG_VALUE);
    CHECK_IS(clSetKernelArgSVMPointer(kernel, 2, &number), CL_INVALID_ARG_VALUE);
    CHECK_IS(clSetKernelArgSVMPointer(kernel, 9, &number), CL_INVALID_ARG_INDEX);
    OK(clSetKernelArg(kernel, 0, 8, &buffer));
    OK(clSetKernelArg(kernel, 1, 30, NULL));
    OK(clSetKernelArg(kernel, 2, 4, &number));
    OK(clSetKernelArg(kernel, 3, 200, NULL));
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &items, 0, NULL, NULL));
    number = 6; /* the launch has its own copy */
    OK(clSetKernelArg(kernel, 2, 4, &number));
    OK(clFinish(queue));
    CHECK(seen.pointer == ((struct cld_mem *)buffer)->data && seen.number == 5 && seen.aligned);
    CHECK_IS(seen.local[0], 128); /* behind the static variables, with room for vectors after each */
    CHECK_IS(seen.local[1], 256);
    CHECK_IS(seen.local_memory_size, 456);
    /* Local arguments of no bytes: behind what there is, and in front of what follows. */
    OK(clSetKernelArg(kernel, 1, 0, NULL));
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &items, 0, NULL, NULL));
    OK(clFinish(queue));
    CHECK(seen.local[0] == 128 && seen.local[1] == 128 && seen.local_memory_size == 328);
    OK(clSetKernelArg(kernel, 3, 0, NULL));
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &items, 0, NULL, NULL));
    OK(clFinish(queue));
    CHECK(seen.local[0] == 128 && seen.local[1] == 128 && seen.local_memory_size == 128);
    OK(clSetKernelArg(kernel, 1, 30, NULL));
    OK(clSetKernelArg(kernel, 0, 8, &none));
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &items, 0, NULL, NULL));
    OK(clFinish(queue));
    CHECK(!seen.pointer && seen.number == 6);
    OK(clSetKernelArg(kernel, 0, 8, NULL));
    OK(clSetKernelArgSVMPointer(kernel, 0, &number));
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &items, 0, NULL, NULL));
    OK(clFinish(queue));
    CHECK(seen.pointer == (uint8_t *)&number);
    OK(clSetKernelArg(kernel, 3, 1 << 16, NULL));
    CHECK_IS(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &items, 0, NULL, NULL),
             CL_OUT_OF_RESOURCES);
    OK(clSetKernelArg(kernel, 3, SIZE_MAX - 8, NULL));
    CHECK_IS(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &items, 0, NULL, NULL),
             CL_OUT_OF_RESOURCES);
    OK(clSetKernelArg(kernel, 3, 8, NULL));
    /* A buffer that was released after it was set. */
    OK(clSetKernelArg(kernel, 0, 8, &buffer));
    OK(clReleaseMemObject(buffer));
    CHECK_IS(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &items, 0, NULL, NULL),
             CL_INVALID_KERNEL_ARGS);
    void *pointers[2] = {&number, &seen};
    cl_bool yes = CL_TRUE;
    OK(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof pointers, pointers));
    OK(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, sizeof yes, &yes));
    CHECK_IS(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, 7, pointers), CL_INVALID_VALUE);
    CHECK_IS(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, 8, NULL), CL_INVALID_VALUE);
    CHECK_IS(clSetKernelExecInfo(kernel, 1, 8, pointers), CL_INVALID_VALUE);
    OK(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, 0, NULL));
    OK(clReleaseKernel(kernel));

    /* More arguments than fit inside a command, each buffer used until the command has ended. */
    char many[101] = {0};
    memset(many, 'g', 100);
    kernel = test_kernel(context, nothing, many);
    cl_mem buffers[100];
    for (cl_uint i = 0; i < 100; i++) {
        buffers[i] = test_buffer(context, 64);
        OK(clSetKernelArg(kernel, i, 8, &buffers[i]));
    }
    cl_event user = clCreateUserEvent(context, NULL);
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &items, 1, &user, NULL));
    for (cl_uint i = 0; i < 100; i++)
        OK(clReleaseMemObject(buffers[i]));
    CHECK_IS(atomic_load(&((struct cld_object *)buffers[57])->holds), 1);
    OK(clSetUserEventStatus(user, CL_COMPLETE));
    OK(clFinish(queue));
    CHECK_IS(clRetainMemObject(buffers[57]), CL_INVALID_MEM_OBJECT);
    OK(clReleaseEvent(user));
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
}

/* A sub-device's commands run on its CPUs, as many at once as it has. */
static void sub_devices(void) {
    struct cld_device *root = (struct cld_device *)test_device();
    for (uint32_t count = 1; count <= 2 && count <= root->compute_units; count++) {
        cl_device_id part = test_sub_device(count);
        cl_context own = test_context_of(1, &part);
        cl_command_queue queue = test_queue(own, 0);
        cl_kernel kernel = test_kernel(own, work, "i");
        int spin = 3000;
        size_t global = 4000, local = 1;
        uint64_t mask = 0;
        for (uint32_t i = 0; i < count; i++)
            mask |= (uint64_t)1 << (root->cpus[i] & 63);
        OK(clSetKernelArg(kernel, 0, sizeof spin, &spin));
        atomic_store(&most_busy, 0);
        atomic_store(&cpus, 0);
        for (int i = 0; i < 3; i++)
            OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL));
        OK(clFinish(queue));
        for (int i = 0; i < MOST_GROUPS; i++)
            CHECK_IS(atomic_exchange(&runs[i], 0), i < 4000 ? 3 : 0);
        CHECK(atomic_load(&most_busy) >= 1 && atomic_load(&most_busy) <= (int)count);
        CHECK(!(atomic_load(&cpus) & ~mask));
        OK(clReleaseKernel(kernel));
        OK(clReleaseCommandQueue(queue));
        OK(clReleaseContext(own));
        OK(clReleaseDevice(part));
    }
}

/* All threads of the device take part in long work, whoever waits: each group stays until all are there. */
static void gather(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                   uint64_t first, uint64_t last) {
    int wanted;
    (void)launch, (void)thread;
    memcpy(&wanted, args, sizeof wanted);
    int now = atomic_fetch_add(&busy, 1) + 1, most = atomic_load(&most_busy);
    while (most < now && !atomic_compare_exchange_weak(&most_busy, &most, now))
        ;
    for (uint64_t group = first; group < last; group++)
        for (int i = 0; i < 10 && atomic_load(&most_busy) < wanted; i++)
            usleep(1000);
    atomic_fetch_sub(&busy, 1);
}

static void parallel(void) {
    struct cld_device *root = (struct cld_device *)test_device();
    cl_command_queue queue = test_queue(context, 0);
    cl_kernel kernel = test_kernel(context, gather, "i");
    int wanted = (int)root->compute_units;
    size_t global = 1000, local = 1;
    OK(clSetKernelArg(kernel, 0, sizeof wanted, &wanted));
    atomic_store(&most_busy, 0);
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL));
    OK(clFinish(queue));
    CHECK_IS(atomic_load(&most_busy), wanted);
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
}

static _Atomic int rounding;

static void ask_rounding(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                         uint64_t first, uint64_t last) {
    (void)launch, (void)args, (void)thread, (void)first, (void)last;
    volatile float tiny = 1e-40f, half = 0.5f, one = 1;
    atomic_store(&rounding, one + tiny == one && tiny * half > 0 ? 1 : 2);
    fesetround(FE_DOWNWARD);
}

/* The host's rounding mode is neither used nor changed. */
static void floating_point(void) {
    cl_command_queue queue = test_queue(context, 0);
    cl_kernel kernel = test_kernel(context, ask_rounding, "");
    volatile float one = 1, tiny = 1e-40f;
    fesetround(FE_UPWARD);
    OK(clEnqueueTask(queue, kernel, 0, NULL, NULL));
    OK(clFinish(queue));
    CHECK_IS(atomic_load(&rounding), 1);
    CHECK(one + tiny > one);
    fesetround(FE_TONEAREST);
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
}

static void *from_small_stack(void *kernel) {
    cl_command_queue queue = test_queue(context, 0);
    size_t items = 1 << 16;
    for (int i = 0; i < 100; i++) {
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
        OK(clFinish(queue));
    }
    OK(clReleaseCommandQueue(queue));
    return NULL;
}

static void small_stacks(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    cl_kernel kernel = test_kernel(context, work, "i");
    int spin = 1;
    OK(clSetKernelArg(kernel, 0, sizeof spin, &spin));
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    CHECK(!pthread_create(&thread, &attributes, from_small_stack, kernel));
    pthread_join(thread, NULL);
    OK(clReleaseKernel(kernel));
}

int main(void) {
    context = test_context();
    coverage();
    sizes();
    arguments();
    sub_devices();
    parallel();
    floating_point();
    small_stacks();
    OK(clReleaseContext(context));
}
