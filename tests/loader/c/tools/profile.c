/* A program with known work, for tests of profiles: profile HOW. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"

enum { ITEMS = 1 << 16, LAUNCHES = 10, THREADS = 4 };

static const char SOURCE[] = "kernel void saxpy(float a, global const float *x, global float *y, int n) {\n"
                             "  int i = get_global_id(0);\n"
                             "  if (i < n) y[i] = a * x[i] + y[i];\n"
                             "}\n";

static cl_device_id device;
static cl_context context;

struct work {
    cl_command_queue queue;
    cl_kernel kernel;
    cl_mem x, y;
};

static struct work begin(void) {
    struct work work = {make_queue(context, device, 0), make_kernel(context, device, SOURCE, "saxpy"),
                        make_buffer(context, ITEMS * sizeof(float)),
                        make_buffer(context, ITEMS * sizeof(float))};
    const float a = 0.5f;
    const int n = ITEMS;
    OK(clSetKernelArg(work.kernel, 0, sizeof a, &a));
    OK(clSetKernelArg(work.kernel, 1, sizeof work.x, &work.x));
    OK(clSetKernelArg(work.kernel, 2, sizeof work.y, &work.y));
    OK(clSetKernelArg(work.kernel, 3, sizeof n, &n));
    return work;
}

static void launch(struct work *work, int count) {
    const size_t items = ITEMS;
    for (int i = 0; i < count; i++)
        OK(clEnqueueNDRangeKernel(work->queue, work->kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
    OK(clFinish(work->queue));
}

/* 2 writes of 4 ITEMS bytes, LAUNCHES, a fill of ITEMS bytes, a copy of 100 rows of 12, a map, a read of 40.
 */
static void work_plainly(void) {
    static float values[ITEMS];
    struct work work = begin();
    const cl_mem both[] = {work.x, work.y};
    for (int i = 0; i < 2; i++)
        OK(clEnqueueWriteBuffer(work.queue, both[i], CL_TRUE, 0, sizeof values, values, 0, NULL, NULL));
    launch(&work, LAUNCHES);
    OK(clEnqueueFillBuffer(work.queue, work.x, "", 1, 0, ITEMS, 0, NULL, NULL));
    const size_t origin[3] = {0}, region[3] = {12, 100, 1};
    OK(clEnqueueCopyBufferRect(work.queue, work.x, work.y, origin, origin, region, 256, 0, 256, 0, 0, NULL,
                               NULL));
    cl_int status;
    void *mapped =
        clEnqueueMapBuffer(work.queue, work.y, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL, NULL, &status);
    OK(status);
    OK(clEnqueueUnmapMemObject(work.queue, work.y, mapped, 0, NULL, NULL));
    OK(clEnqueueMarkerWithWaitList(work.queue, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(work.queue, work.y, CL_TRUE, 0, 40, values, 0, NULL, NULL));
    OK(clFinish(work.queue));
}

/* From now on the system answers perf_event_open with an error. */
static void refuse_counters(unsigned error) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static void *work_once(void *nothing) {
    (void)nothing;
    struct work work = begin();
    launch(&work, LAUNCHES);
    return NULL;
}

static void work_in_threads(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, work_once, NULL));
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(threads[i], NULL));
}

/* The child launches 3 times, after the parent has LAUNCHES times. */
static void work_in_child(void) {
    struct work work = begin();
    launch(&work, LAUNCHES);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        launch(&work, 3);
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
    printf("%d\n", (int)child);
}

/* A launch that waits for an event that fails. */
static void fail_once(void) {
    struct work work = begin();
    const size_t items = ITEMS;
    cl_int status;
    cl_event user = clCreateUserEvent(context, &status);
    OK(status);
    OK(clEnqueueNDRangeKernel(work.queue, work.kernel, 1, NULL, &items, NULL, 1, &user, NULL));
    OK(clSetUserEventStatus(user, -1));
    OK(clFinish(work.queue));
}

/* LAUNCHES of a command-buffer that has two. */
static void record(void) {
    clCreateCommandBufferKHR_fn clCreateCommandBufferKHR_;
    clCommandNDRangeKernelKHR_fn clCommandNDRangeKernelKHR_;
    clFinalizeCommandBufferKHR_fn clFinalizeCommandBufferKHR_;
    clEnqueueCommandBufferKHR_fn clEnqueueCommandBufferKHR_;
    GET_EXTENSION(clCreateCommandBufferKHR);
    GET_EXTENSION(clCommandNDRangeKernelKHR);
    GET_EXTENSION(clFinalizeCommandBufferKHR);
    GET_EXTENSION(clEnqueueCommandBufferKHR);
    struct work work = begin();
    const size_t items = ITEMS;
    cl_int status;
    cl_command_buffer_khr buffer = clCreateCommandBufferKHR_(1, &work.queue, NULL, &status);
    OK(status);
    for (int i = 0; i < 2; i++)
        OK(clCommandNDRangeKernelKHR_(buffer, NULL, NULL, work.kernel, 1, NULL, &items, NULL, 0, NULL, NULL,
                                      NULL));
    OK(clFinalizeCommandBufferKHR_(buffer));
    for (int i = 0; i < LAUNCHES; i++)
        OK(clEnqueueCommandBufferKHR_(0, NULL, buffer, 0, NULL, NULL));
    OK(clFinish(work.queue));
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    device = the_device();
    if (!strcmp(argv[1], "look"))
        return 0;
    if (!strcmp(argv[1], "forbidden"))
        refuse_counters(EACCES);
    if (!strcmp(argv[1], "absent"))
        refuse_counters(ENOENT);
    context = make_context(device);
    if (!strcmp(argv[1], "threads"))
        work_in_threads();
    else if (!strcmp(argv[1], "fork"))
        work_in_child();
    else if (!strcmp(argv[1], "fail"))
        fail_once();
    else if (!strcmp(argv[1], "record"))
        record();
    else
        work_plainly();
    if (!strcmp(argv[1], "terminate"))
        raise(SIGTERM);
    if (!strcmp(argv[1], "abort"))
        abort();
    return 0;
}
