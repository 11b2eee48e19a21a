/* Faults in kernels. Usage: fault SCENE [options of the build] */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"

static const char *source = "int shift(int x) {\n"
                            "    return x;\n"
                            "}\n"
                            "kernel void good(global int *a) {\n"
                            "    a[get_global_id(0)] = 1;\n"
                            "}\n"
                            "kernel void bad(global int *a, ulong far, int how) {\n"
                            "    size_t i = get_global_id(0);\n"
                            "    if (how == 1)\n"
                            "        a[i] = *(global int *)(far + i * 4);\n"
                            "    else if (how == 2)\n"
                            "        *(global int *)(far + i * 4) = shift(how);\n"
                            "}\n";

static cl_context context;
static cl_command_queue queue;
static cl_kernel good, bad;
static cl_mem buffer;

static void run(cl_kernel kernel, size_t items) {
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
    OK(clFinish(queue));
}

static void set_up(const char *options) {
    cl_device_id device = the_device();
    context = make_context(device);
    queue = make_queue(context, device, 0);
    buffer = make_buffer(context, 1 << 20);
    good = make_kernel_with(context, device, source, options, "good");
    bad = make_kernel_with(context, device, source, options, "bad");
    run(good, 16);
}

/* how: 1 reads, 2 writes. */
static void fault(cl_ulong far, cl_int how, size_t items) {
    OK(clSetKernelArg(bad, 1, sizeof far, &far));
    OK(clSetKernelArg(bad, 2, sizeof how, &how));
    run(bad, items);
}

static void on_fault(int number, siginfo_t *info, void *context_) {
    (void)number, (void)info, (void)context_;
    _exit(77);
}

static struct sigaction others;

static void pass_on(int number, siginfo_t *info, void *context_) {
    if (others.sa_flags & SA_SIGINFO)
        others.sa_sigaction(number, info, context_);
    else
        _exit(78);
}

static void take(void (*handler)(int, siginfo_t *, void *), struct sigaction *old) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    CHECK(!sigaction(SIGSEGV, &action, old));
}

/* Past the end of a file: the page is there, and nothing behind it. */
static cl_ulong behind_a_file(void) {
    char name[] = "/tmp/fault.XXXXXX";
    int file = mkstemp(name);
    CHECK(file >= 0 && !unlink(name));
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(page != MAP_FAILED);
    return (cl_ulong)(uintptr_t)page;
}

/* The host's data, where stderr was. */
static void data_in_place_of_stderr(void) {
    char name[] = "/tmp/fault.XXXXXX";
    close(STDERR_FILENO);
    EXPECT(mkstemp(name), STDERR_FILENO);
    printf("%s\n", name);
    fflush(stdout);
}

static void *use(void *nothing) {
    run(good, 16);
    return nothing;
}

int main(int count, char **arguments) {
    const struct rlimit none = {0, 0};
    const char *scene = count > 1 ? arguments[1] : "";
    const char *options = count > 2 ? arguments[2] : "";
    setrlimit(RLIMIT_CORE, &none);
    if (!strcmp(scene, "handler"))
        take(on_fault, NULL);
    set_up(options);
    if (!strcmp(scene, "later_handler"))
        take(on_fault, NULL);
    if (!strcmp(scene, "chained"))
        take(pass_on, &others);
    if (!strcmp(scene, "data"))
        data_in_place_of_stderr();
    if (!strcmp(scene, "own")) /* the host's fault, while the driver has nothing to do with it */
        *(volatile int *)0x1234 = 0;
    else if (!strcmp(scene, "raised"))
        raise(SIGSEGV);
    else if (!strcmp(scene, "sent"))
        kill(getpid(), SIGBUS);
    else if (!strcmp(scene, "ended_thread")) { /* what it executed is no longer what this one does */
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, use, NULL) && !pthread_join(thread, NULL));
        *(volatile int *)0x1234 = 0;
    } else if (!strcmp(scene, "child")) {
        pid_t child = fork();
        int status;
        if (!child)
            fault(0x10000, 2, 16);
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        raise(WTERMSIG(status)); /* this process's handler has had nothing to do */
    } else if (!strcmp(scene, "file")) {
        fault(behind_a_file(), 1, 16);
    } else if (!strcmp(scene, "no_address")) {
        fault((cl_ulong)1 << 62, 1, 16);
    } else if (!strcmp(scene, "many")) { /* on several threads at once */
        fault(0x10000, 2, 1 << 22);
    } else {
        fault(0x10000, strcmp(scene, "read") ? 2 : 1, 16);
    }
    return 1;
}
