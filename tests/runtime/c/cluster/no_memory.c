/* cluster/: memory that is not there, at each of the places where some is asked for. What fails says so, what
 * does not is right, the connection goes on, and workers keep nothing. */
#define _GNU_SOURCE
#include <errno.h>
#include <time.h>

#include "python/guest.h"
#include "stand_in.h"

enum { COUNT = 20000, SIZE = 2 * COUNT, PART = 8192, MOST_TRIES = 3000, WAIT_MS = 20000 };
#define LARGE ((size_t)9 << 20) /* bytes, which go in several messages */

static _Atomic long countdown; /* calls until one fails; 0: none does */
static _Atomic bool has_failed;

/* Of threads of the driver and of the host. */
static bool fails(void) {
    if (is_stand_in || atomic_load(&countdown) <= 0 || atomic_fetch_sub(&countdown, 1) != 1)
        return false;
    atomic_store(&has_failed, true);
    errno = ENOMEM;
    return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
int __real_posix_memalign(void **memory, size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
int __wrap_posix_memalign(void **memory, size_t align, size_t size);

void *__wrap_malloc(size_t size) {
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size) {
    return fails() ? NULL : __real_realloc(memory, size);
}

int __wrap_posix_memalign(void **memory, size_t align, size_t size) {
    return fails() ? ENOMEM : __real_posix_memalign(memory, align, size);
}

static cl_context context;
static cl_command_queue queues[WORKERS + 1]; /* the last one is of all workers */
static cl_kernel kernel;
static int expected[SIZE], found[SIZE];
static uint8_t large[LARGE], found_large[LARGE];
static bool is_told; /* something has failed */

static cl_int tell(cl_int status) {
    bool is_memory = status == CL_OUT_OF_HOST_MEMORY || status == CL_OUT_OF_RESOURCES ||
                     status == CL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (status && !is_memory)
        CHECK_IS(status, CL_OUT_OF_HOST_MEMORY);
    is_told |= status != CL_SUCCESS;
    return status;
}

static void no_code(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                    uint64_t first, uint64_t last) {
    (void)launch, (void)args, (void)thread, (void)first, (void)last;
    CHECK(false);
}

/* a[2 * id] += by, and a[2 * id + 1] is read; as the compiler says it (passes/extents/). */
static void set_extents(struct cld_kernel_info *info) {
    enum { END, NUMBER, ADD = 3, MULTIPLY, IDS = 10, GLOBAL_ID = 5 };
    static const int64_t extents[] = {
        0,
        CLD_EXTENT_READS,
        4,
        0,
        NUMBER,
        8,
        IDS,
        GLOBAL_ID,
        0,
        MULTIPLY,
        END,
        0,
        CLD_EXTENT_WRITES,
        4,
        0,
        NUMBER,
        8,
        IDS,
        GLOBAL_ID,
        0,
        MULTIPLY,
        END,
        0,
        CLD_EXTENT_READS,
        4,
        0,
        NUMBER,
        8,
        IDS,
        GLOBAL_ID,
        0,
        MULTIPLY,
        NUMBER,
        4,
        ADD,
        END,
    };
    info->extent_count = sizeof extents / sizeof *extents;
    info->extents = malloc(sizeof extents);
    memcpy(info->extents, extents, sizeof extents);
}

static cl_kernel make_kernel(void) {
    cl_kernel made = test_kernel(context, no_code, "gi");
    struct cld_executable *executable = calloc(1, sizeof *executable);
    executable->holds = 1;
    executable->il = strdup("program");
    executable->il_size = 7;
    executable->options = strdup("");
    info_of(made)->executable = executable;
    set_extents(info_of(made));
    return made;
}

static void set_up(void) {
    cl_platform_id platform;
    cl_device_id devices[WORKERS + 2];
    cl_uint count;
    test_device();
    OK(clGetPlatformIDs(1, &platform, NULL));
    OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, WORKERS + 2, devices, &count));
    CHECK_IS(count, WORKERS + 2);
    for (cl_uint i = 1; i < count; i++) {
        struct cld_device *device = (struct cld_device *)devices[i];
        const struct cld_device *root = (struct cld_device *)devices[0];
        device->max_group_size = root->max_group_size;
        memcpy(device->max_item_sizes, root->max_item_sizes, sizeof device->max_item_sizes);
        device->max_alloc_size = root->max_alloc_size;
        device->base_align = root->base_align;
        atomic_store(&device->complete, true);
    }
    context = test_context_of(WORKERS + 1, devices + 1);
    ((struct cld_context *)context)->is_spread = ((struct cld_context *)context)->is_elsewhere = true;
    for (cl_uint i = 0; i <= WORKERS; i++) {
        cl_int status;
        queues[i] = clCreateCommandQueueWithProperties(context, devices[i + 1], NULL, &status);
        OK(status);
    }
    kernel = make_kernel();
}

/* Its event, or NULL: it was refused. */
static cl_event launch(cl_command_queue queue, cl_mem buffer, size_t first, size_t count, int by) {
    const size_t local = 64;
    cl_event event = NULL;
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    OK(clSetKernelArg(kernel, 1, sizeof by, &by));
    if (tell(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &count, &local, 0, NULL, &event)))
        return NULL;
    for (size_t i = first; i < first + count; i++)
        expected[2 * i] += by;
    return event;
}

static void wait_for(cl_event event) {
    if (!event)
        return;
    cl_int waited = clWaitForEvents(1, &event);
    CHECK(!waited || waited == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST ||
          waited == CL_OUT_OF_HOST_MEMORY);
    tell(status_of(event) < 0 ? status_of(event) : CL_SUCCESS);
    OK(clReleaseEvent(event));
}

/* Launches of each device on a buffer and on a part of it, whose contents go from one to the other. */
static void launch_all(cl_mem buffer, cl_mem part) {
    cl_event events[16];
    int count = 0;
    for (int turn = 0; turn < 2; turn++) {
        events[count++] = launch(queues[WORKERS], buffer, 0, COUNT, 1);
        wait_for(events[--count]); /* workers may be connected by then */
        events[count++] = launch(queues[0], buffer, 0, COUNT, 10);
        if (part)
            events[count++] = launch(queues[0], part, PART, PART, 100);
        for (int i = 0; i < count; i++)
            wait_for(events[i]);
        count = 0;
        events[count++] = launch(queues[1], buffer, 0, COUNT, 1000);
        for (int i = 0; i < 3; i++)
            events[count++] = launch(queues[WORKERS], buffer, 0, COUNT - 100, 10000);
        for (int i = 0; i < count; i++)
            wait_for(events[i]);
        count = 0;
    }
}

static void scene(void) {
    const cl_buffer_region region = {2 * PART * sizeof(int), 2 * PART * sizeof(int)};
    cl_int status;
    for (int i = 0; i < SIZE; i++)
        expected[i] = i;
    is_told = false;
    cl_mem buffer =
        clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof expected, expected, &status);
    if (tell(status))
        return;
    cl_mem part = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
    if (tell(status))
        part = NULL;
    launch_all(buffer, part);
    tell(clEnqueueReadBuffer(queues[0], buffer, CL_TRUE, 0, sizeof found, found, 0, NULL, NULL));
    if (!is_told)
        CHECK(!memcmp(found, expected, sizeof found));
    if (part)
        OK(clReleaseMemObject(part));
    OK(clReleaseMemObject(buffer));
    for (int i = 0; i <= WORKERS; i++)
        tell(clFinish(queues[i]));
}

/* Nothing is kept but the program of the kernel, and that until its end. */
static void check_kept(int programs) {
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int ms = 0; ms < WAIT_MS; ms++) {
        bool is_none = true;
        for (int i = 0; i < WORKERS; i++)
            is_none &= !stand_ins[i].buffer_count && stand_ins[i].program_count <= programs;
        if (is_none)
            return;
        nanosleep(&pause, NULL);
    }
    for (int i = 0; i < WORKERS; i++) {
        CHECK_IS(stand_ins[i].buffer_count, 0);
        CHECK_IS(stand_ins[i].program_count, programs);
    }
}

static void begin_to_fail(long call) {
    atomic_store(&has_failed, false);
    atomic_store(&countdown, call);
}

/* Of a kernel that is not known to workers before, and is forgotten after. */
static void try(long call) {
    kernel = make_kernel();
    begin_to_fail(call);
    scene();
    OK(clReleaseKernel(kernel));
    atomic_store(&countdown, 0);
}

/* What is fetched in several messages. */
static void try_large(long call) {
    cl_int status, by = 1;
    const size_t size = LARGE / (2 * sizeof(int));
    memset(large, 5, LARGE);
    kernel = make_kernel();
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, LARGE, large, &status);
    OK(status);
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    OK(clSetKernelArg(kernel, 1, sizeof by, &by));
    OK(clEnqueueNDRangeKernel(queues[0], kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
    OK(clFinish(queues[0]));
    for (size_t i = 0; i < size; i++)
        large[2 * i * sizeof(int)]++;
    is_told = false;
    begin_to_fail(call);
    tell(clEnqueueReadBuffer(queues[0], buffer, CL_TRUE, 0, LARGE, found_large, 0, NULL, NULL));
    CHECK(is_told || !memcmp(large, found_large, LARGE));
    bool was_told = is_told;
    atomic_store(&countdown, 0);
    /* The worker has it still. */
    OK(clEnqueueReadBuffer(queues[0], buffer, CL_TRUE, 0, LARGE, found_large, 0, NULL, NULL));
    CHECK(!memcmp(large, found_large, LARGE));
    OK(clReleaseMemObject(buffer));
    OK(clReleaseKernel(kernel));
    is_told = was_told;
}

/* A worker has no memory for the first, or the second, of the messages that contents come in: what wants them
 * fails, and what wants them later does not. */
static void try_worker(int read, cl_int error, cl_int told) {
    cl_int status, by = 1;
    const size_t size = LARGE / (2 * sizeof(int));
    memset(large, 5, LARGE);
    kernel = make_kernel();
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, LARGE, large, &status);
    OK(status);
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    OK(clSetKernelArg(kernel, 1, sizeof by, &by));
    OK(clEnqueueNDRangeKernel(queues[0], kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
    OK(clFinish(queues[0]));
    for (size_t i = 0; i < size; i++)
        large[2 * i * sizeof(int)]++;
    read_error = error;
    read_countdown = read;
    CHECK_IS(clEnqueueReadBuffer(queues[0], buffer, CL_TRUE, 0, LARGE, found_large, 0, NULL, NULL), told);
    CHECK_IS(read_countdown, 0);
    OK(clEnqueueReadBuffer(queues[0], buffer, CL_TRUE, 0, LARGE, found_large, 0, NULL, NULL));
    CHECK(!memcmp(large, found_large, LARGE));
    OK(clReleaseMemObject(buffer));
    OK(clReleaseKernel(kernel));
}

static void try_workers(void) {
    for (int read = 1; read <= 2; read++) {
        try_worker(read, CL_OUT_OF_RESOURCES, CL_OUT_OF_RESOURCES);
        try_worker(read, CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES); /* the worker is the device */
        try_worker(read, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    }
}

static cl_uint device_count(void) {
    cl_platform_id platform;
    cl_uint count;
    OK(clGetPlatformIDs(1, &platform, NULL));
    OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count));
    return count;
}

/* A worker comes, which is a device or, without memory, is none. */
static void try_to_come(long call) {
    const struct timespec pause = {.tv_nsec = 1000000};
    cl_uint devices = device_count(), workers = cld_worker_count();
    struct cld_msg msg;
    is_stand_in = true;
    cld_msg_init(&msg);
    cld_put_list(&msg, 3);
    cld_put_string(&msg, "address");
    put_answers(&msg);
    cld_put_int(&msg, 0);
    begin_to_fail(call);
    send_frame(CLD_NOBODY, CLD_WORKER_FRAME, NULL, &msg);
    for (int ms = 0; ms < WAIT_MS && cld_worker_count() == workers; ms++)
        nanosleep(&pause, NULL);
    atomic_store(&countdown, 0);
    is_stand_in = false;
    cld_msg_free(&msg);
    CHECK_IS(cld_worker_count(), workers + 1);
    bool is_gone = cld_worker_at(workers)->is_gone;
    CHECK_IS(device_count(), devices + !is_gone);
    is_told = is_gone;
}

/* Each call fails once, until there is none of that number. */
static void try_all(void (*scene_of)(long), long least) {
    bool has_told = false, has_more = true;
    long call = 0;
    while (has_more) {
        scene_of(++call);
        has_told |= is_told;
        has_more = atomic_load(&has_failed);
        CHECK(has_more || !is_told);
        scene_of(0); /* nothing is broken by that */
        CHECK(!is_told);
        check_kept(0);
        CHECK(call < MOST_TRIES);
    }
    CHECK(has_told && call > least);
}

int main(int argc, char **argv) {
    if (!getenv("CL_DRIVER_CLUSTER")) { /* settings are read before main() */
        setenv("CL_DRIVER_CLUSTER", "stand-in;whole", 1);
        setenv("CL_DRIVER_CLUSTER_CUT", argc > 1 ? argv[1] : "always", 1);
        execv("/proc/self/exe", argv);
    }
    set_up();
    scene();
    CHECK(!is_told);
    OK(clReleaseKernel(kernel));
    try_workers();
    try_all(try, 50);
    try_all(try_large, 5);
    try_all(try_to_come, 2);
    try(0); /* as before */
    CHECK(!is_told);
    return 0;
}
