/* Signals of the host, and how long the driver's threads stay. Usage: signals SCENE */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"

enum { PAGES = 1 << 20, MANY = 1 << 20 };

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_kernel kernel;
static cl_mem buffer;
static char *memory;

static void set_up(const char *source) {
    cl_int status;
    device = the_device();
    context = make_context(device);
    queue = make_queue(context, device, 0);
    kernel = make_kernel(context, device, source, "k");
    memory = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    buffer = clCreateBuffer(context, CL_MEM_USE_HOST_PTR, PAGES, memory, &status);
    OK(status);
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
}

static void launch(size_t items) {
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
    OK(clFlush(queue));
}

static const char *store = "kernel void k(global int *a) { a[get_global_id(0) & 1023] = 1; }";
static const char *spin = "kernel void k(global volatile int *a) { a[1] = 1; while (a[0] == 0) a[2]++; }";

static _Atomic int faults, on_others, on_alternate, sent;

/* A write barrier: lets the kernel go on. */
static void on_fault(int number, siginfo_t *info, void *context_) {
    (void)number, (void)context_;
    char *address = info->si_addr;
    stack_t stack;
    if (address < memory || address >= memory + PAGES)
        _exit(77);
    bool other = gettid() != getpid();
    on_others += other;
    on_alternate += other && !sigaltstack(NULL, &stack) && stack.ss_flags & SS_ONSTACK;
    mprotect(memory, PAGES, PROT_READ | PROT_WRITE);
    faults++;
}

static void on_signal(int number) {
    (void)number;
    sent++;
}

/* A handler of the host's sees a fault in a kernel, on whichever thread, and resumes it. */
static void scene_resume(void) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    set_up(store);
    CHECK(!sigaction(SIGSEGV, &action, NULL));
    for (int i = 0; i < 50; i++) {
        CHECK(!mprotect(memory, PAGES, PROT_READ));
        int before = faults;
        launch(MANY);
        for (int j = 0; faults == before && j < 1000; j++) /* a thread of the driver's comes first */
            usleep(1000);
        OK(clFinish(queue));
        CHECK(faults > before);
        CHECK(((int *)memory)[1023] == 1);
        memset(memory, 0, 4096);
    }
    CHECK(on_others > 0);
    EXPECT(on_alternate, on_others);
}

/* What is sent to the process waits for a thread of the host's, and is not taken by one of the driver's. */
static void scene_sent(void) {
    sigset_t set, pending;
    set_up(store);
    signal(SIGUSR1, on_signal);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGTERM); /* of default action: for a thread in sigwait(), say */
    CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
    launch(MANY);
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGTERM);
    for (int i = 0; i < 20; i++) {
        launch(MANY);
        usleep(1000);
    }
    OK(clFinish(queue));
    EXPECT(sent, 0);
    CHECK(!sigpending(&pending) && sigismember(&pending, SIGUSR1) && sigismember(&pending, SIGTERM));
    int taken;
    sigdelset(&set, SIGUSR1);
    CHECK(!sigwait(&set, &taken));
    EXPECT(taken, SIGTERM);
    sigaddset(&set, SIGUSR1);
    CHECK(!pthread_sigmask(SIG_UNBLOCK, &set, NULL));
    EXPECT(sent, 1);
}

static int status_of(pid_t child) {
    int status;
    double end = seconds() + 30;
    while (waitpid(child, &status, WNOHANG) != child) {
        if (seconds() > end) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return -1;
        }
        usleep(10000);
    }
    return status;
}

/* In a child: its main thread ends while a kernel runs that never does. Shared memory tells that it runs. */
static pid_t child_without_main_thread(int *shared, bool blocks) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child)
        return child;
    alarm(60);
    set_up(spin);
    if (shared) {
        cl_int status;
        buffer = clCreateBuffer(context, CL_MEM_USE_HOST_PTR, 4096, shared, &status);
        OK(status);
        OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    } else {
        memory[0] = 1;
    }
    if (blocks) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
    }
    launch(1);
    if (!shared)
        OK(clFinish(queue));
    pthread_exit(NULL);
}

/* The main thread has ended: the process takes signals as if it had not, and ends with the kernels. */
static void scene_main_thread_ends(void) {
    volatile int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    int status = status_of(child_without_main_thread(NULL, false));
    EXPECT(status, 0);
    for (int blocks = 0; blocks < 2; blocks++) {
        shared[0] = shared[1] = 0;
        pid_t child = child_without_main_thread((int *)shared, blocks);
        for (int i = 0; !shared[1] && i < 3000; i++)
            usleep(10000);
        CHECK(shared[1]);
        usleep(1500000); /* what has nothing to do has ended */
        kill(child, SIGTERM);
        if (blocks) {
            usleep(200000);
            EXPECT(kill(child, 0), 0);
            EXPECT(waitpid(child, &status, WNOHANG), 0);
            shared[0] = 1;
        }
        status = status_of(child);
        EXPECT(status, blocks ? 0 : SIGTERM);
    }
}

static int threads(void) {
    int count = -2; /* . and .. */
    DIR *folder = opendir("/proc/self/task");
    CHECK(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void CL_CALLBACK on_complete(cl_event event, cl_int status, void *flag) {
    (void)event, (void)status;
    atomic_store((_Atomic int *)flag, 1);
}

static void *work(void *first) {
    _Atomic int called = 0;
    cl_event event;
    if (first)
        set_up(store);
    memset(memory, 0, 4096);
    for (int i = 0; i < 4; i++)
        launch(MANY);
    OK(clEnqueueMarkerWithWaitList(queue, 0, NULL, &event));
    OK(clSetEventCallback(event, CL_COMPLETE, on_complete, &called));
    OK(clFinish(queue));
    for (int i = 0; !called && i < 3000; i++)
        usleep(10000);
    CHECK(called);
    CHECK(((int *)memory)[1023] == 1);
    OK(clReleaseEvent(event));
    return NULL;
}

static void *nothing(void *argument) {
    return argument;
}

/* The driver's threads end after the host's that used it, and are made anew for others. */
static void scene_threads_end(void) {
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, nothing, NULL) && !pthread_join(thread, NULL));
    usleep(100000);
    int before = threads(); /* sanitizers may have one of their own */
    for (int i = 0; i < 3; i++) {
        CHECK(!pthread_create(&thread, NULL, work, i ? NULL : &thread));
        CHECK(!pthread_join(thread, NULL));
        if (i == 1) /* others come before they end */
            continue;
        CHECK(threads() > before);
        double end = seconds() + 20;
        while (threads() > before && seconds() < end)
            usleep(10000);
        EXPECT(threads(), before);
    }
    work(NULL); /* this thread stays */
    usleep(2500000);
    CHECK(threads() > before);
}

int main(int count, char **arguments) {
    const char *scene = count > 1 ? arguments[1] : "";
    if (!strcmp(scene, "resume"))
        scene_resume();
    else if (!strcmp(scene, "sent"))
        scene_sent();
    else if (!strcmp(scene, "main_thread_ends"))
        scene_main_thread_ends();
    else if (!strcmp(scene, "threads_end"))
        scene_threads_end();
    else
        CHECK(!"a scene");
    return 0;
}
