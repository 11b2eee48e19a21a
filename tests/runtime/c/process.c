/* fork, exit, and what kills. argv[1] says which; what is left behind on purpose is left to the end of the
 * process. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "harness.h"

static cl_context context;
static cl_command_queue queue;
static cl_mem buffer;
static cl_kernel kernel;
static _Atomic bool stop;

static void spin(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                 uint64_t first, uint64_t last) {
    int rounds;
    (void)launch, (void)thread;
    memcpy(&rounds, args, sizeof rounds);
    for (uint64_t group = first; group < last; group++)
        for (volatile int i = 0; i < rounds; i++)
            ;
}

static void set_up(int rounds) {
    context = test_context();
    queue = test_queue(context, 0);
    buffer = test_buffer(context, 4 << 20);
    kernel = test_kernel(context, spin, "i");
    OK(clSetKernelArg(kernel, 0, sizeof rounds, &rounds));
}

static void launch(size_t groups, cl_event *event) {
    size_t one = 1;
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &groups, &one, 0, NULL, event));
}

/* Everything that needs locks, threads and memory. */
static void use(void) {
    static char data[4 << 20];
    cl_event event;
    memset(data, 5, sizeof data);
    launch(2000, NULL);
    OK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL));
    launch(3, &event);
    OK(clWaitForEvents(1, &event));
    OK(clReleaseEvent(event));
    data[77] = 0;
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL));
    CHECK_IS(data[77], 5);
    cl_command_queue other = test_queue(context, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    OK(clEnqueueMarkerWithWaitList(other, 0, NULL, NULL));
    OK(clFinish(other));
    OK(clReleaseCommandQueue(other));
}

static _Atomic int called, asked;

static void CL_CALLBACK note(cl_event event, cl_int status, void *data) {
    (void)event, (void)status, (void)data;
    atomic_fetch_add(&called, 1);
}

static void expect_child(pid_t child) {
    int status;
    for (int i = 0; i < 2000; i++) {
        if (waitpid(child, &status, WNOHANG) == child) {
            CHECK_IS(status, 0);
            return;
        }
        usleep(10000);
    }
    CHECK(!"the child hangs");
}

/* The child uses the parent's objects, and events of its own with callbacks, and forks again. */
static void fork_idle(void) {
    set_up(20);
    use();
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        if (!child) {
            use();
            cl_event event;
            launch(1, &event);
            OK(clSetEventCallback(event, CL_COMPLETE, note, NULL));
            for (int k = 0; k < 2000 && !atomic_load(&called); k++)
                usleep(1000);
            CHECK_IS(atomic_load(&called), 1);
            pid_t grandchild = fork();
            if (!grandchild) {
                use();
                _exit(0);
            }
            expect_child(grandchild);
            exit(0);
        }
        use();
        expect_child(child);
    }
}

/* Commands in flight are the parent's: in the child they have failed. User events can be set in both. */
static void fork_in_flight(void) {
    set_up(20000);
    cl_event user = clCreateUserEvent(context, NULL), running, waiting, deferred;
    cl_command_queue second = test_queue(context, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    launch(20000, &running);
    OK(clFlush(queue));
    OK(clEnqueueMarkerWithWaitList(second, 1, &user, &waiting));
    OK(clEnqueueMarkerWithWaitList(second, 1, &running, &deferred));
    pid_t child = fork();
    if (!child) {
        CHECK(status_of(running) < 0 && status_of(waiting) < 0 && status_of(deferred) < 0);
        CHECK_IS(clWaitForEvents(1, &running), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        OK(clFinish(queue));
        OK(clFinish(second));
        CHECK_IS(status_of(user), CL_SUBMITTED);
        cl_event event;
        OK(clEnqueueMarkerWithWaitList(second, 1, &user, &event));
        OK(clSetUserEventStatus(user, CL_COMPLETE));
        OK(clWaitForEvents(1, &event));
        int few = 10;
        OK(clSetKernelArg(kernel, 0, sizeof few, &few));
        use();
        exit(0);
    }
    expect_child(child);
    OK(clSetUserEventStatus(user, CL_COMPLETE));
    OK(clWaitForEvents(1, &waiting));
    OK(clWaitForEvents(1, &running));
    OK(clFinish(second));
}

static void *keep_busy(void *nothing) {
    cl_command_queue own = test_queue(context, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    while (!atomic_load(&stop)) {
        cl_event event = clCreateUserEvent(context, NULL), marker;
        /* Callbacks that are due keep their events: this loop must not be faster for long. */
        while (atomic_load(&asked) - atomic_load(&called) > 1000)
            usleep(100);
        atomic_fetch_add(&asked, 1);
        OK(clSetEventCallback(event, CL_COMPLETE, note, NULL));
        OK(clEnqueueMarkerWithWaitList(own, 1, &event, &marker));
        OK(clReleaseMemObject(test_buffer(context, 100)));
        OK(clSetUserEventStatus(event, CL_COMPLETE));
        OK(clWaitForEvents(1, &marker));
        OK(clReleaseEvent(event));
        OK(clReleaseEvent(marker));
    }
    OK(clReleaseCommandQueue(own));
    return nothing;
}

/* Forks while other threads are in the middle of everything. */
static void fork_busy(void) {
    pthread_t threads[2];
    set_up(20);
    for (int i = 0; i < 2; i++)
        CHECK(!pthread_create(&threads[i], NULL, keep_busy, NULL));
    for (int i = 0; i < 30; i++) {
        pid_t child = fork();
        if (!child) {
            use();
            _exit(0);
        }
        expect_child(child);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void CL_CALLBACK sleep_long(cl_event event, cl_int status, void *data) {
    (void)event, (void)status, (void)data;
    sleep(100);
}

/* Returns from main with a kernel running for seconds, callbacks due and one asleep, nothing released. */
static void exit_running(void) {
    set_up(2000000);
    cl_event event, user = clCreateUserEvent(context, NULL);
    OK(clSetEventCallback(user, CL_COMPLETE, sleep_long, NULL));
    OK(clSetEventCallback(user, CL_COMPLETE, note, NULL));
    OK(clSetUserEventStatus(user, CL_COMPLETE));
    launch(10000, &event);
    OK(clFlush(queue));
    while (status_of(event) > CL_RUNNING) /* threads start late where others take the CPUs */
        usleep(1000);
    usleep(20000);
    CHECK_IS(status_of(event), CL_RUNNING);
}

/* What destructors of static objects do after main. */
__attribute__((destructor)) static void release_all(void) {
    if (!context || stop)
        return;
    cl_uint count;
    OK(clRetainMemObject(buffer));
    OK(clGetMemObjectInfo(buffer, CL_MEM_REFERENCE_COUNT, sizeof count, &count, NULL));
    CHECK_IS(count, 2);
    OK(clReleaseMemObject(buffer));
    OK(clReleaseMemObject(buffer));
    OK(clReleaseKernel(kernel));
    OK(clFlush(queue));
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseContext(context));
}

static void exit_idle(void) {
    set_up(20);
    use();
    for (int i = 0; i < 10; i++)
        launch(1, NULL); /* never flushed */
}

/* Instructions that a processor refuses or traps, which compiled kernels have none of: the kernels are C
 * functions.
 */
static void illegal(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                    uint64_t first, uint64_t last) {
    (void)launch, (void)args, (void)thread, (void)first, (void)last;
#if defined(__x86_64__)
    __asm__ volatile("ud2");
#elif defined(__aarch64__)
    __asm__ volatile("udf #0");
#endif
}

/* aarch64 traps no division: it has no such test. */
static void divide(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                   uint64_t first, uint64_t last) {
    (void)launch, (void)args, (void)thread, (void)first, (void)last;
#if defined(__x86_64__)
    int quotient = 1, remainder = 0, zero = 0;
    __asm__ volatile("idivl %2" : "+a"(quotient), "+d"(remainder) : "r"(zero));
#endif
}

/* The process ends of it. */
static void run_trapping(cld_kernel_fn function, const char *name) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    set_up(0);
    kernel = test_kernel(context, function, "");
    free(info_of(kernel)->name);
    info_of(kernel)->name = strdup(name);
    launch(64, NULL);
    OK(clFinish(queue));
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"fork_idle", fork_idle},
               {"fork_in_flight", fork_in_flight},
               {"fork_busy", fork_busy},
               {"exit_running", exit_running},
               {"exit_idle", exit_idle}};
    if (argc > 2)
        run_trapping(!strcmp(argv[1], "divide") ? divide : illegal, argv[2]);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (argc > 1 && !strcmp(argv[1], all[i].name)) {
            all[i].run();
            return 0;
        }
    return 2;
}
