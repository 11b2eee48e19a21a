/* The driver as a guest of a process: what it may not change there, whatever the process does to its own
 * descriptors, stacks and threads. Usage: process SCENE [arguments] */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <linux/capability.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

/* Nothing of the process is changed: signals, mask, locale, floating-point mode, folder, environment. */
static void scene_quiet(void) {
    struct sigaction before[65], after;
    sigset_t mask, mask_after;
    char folder[4096], folder_after[4096];
    setlocale(LC_ALL, "C");
    fesetround(FE_UPWARD);
    for (int i = 1; i <= 64; i++)
        if (sigaction(i, NULL, &before[i]))
            before[i].sa_handler = SIG_ERR;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    CHECK(getcwd(folder, sizeof folder));
    char *home = getenv("HOME");
    umask(027);
    set_up();
    run(kernel, 0);
    use(1);
    tear_down();
    bool tells = !getenv("CL_DRIVER_FAULT_MESSAGE"); /* of faults that had their default action */
    for (int i = 1; i <= 64; i++) {
        bool is_told = tells && (i == SIGSEGV || i == SIGBUS || i == SIGFPE || i == SIGILL);
        if (!sigaction(i, NULL, &after) && !(is_told && before[i].sa_handler == SIG_DFL))
            CHECK(after.sa_handler == before[i].sa_handler &&
                  !((after.sa_flags ^ before[i].sa_flags) & ~0x04000000)); /* glibc sets SA_RESTORER itself */
    }
    pthread_sigmask(SIG_BLOCK, NULL, &mask_after);
    CHECK(!memcmp(&mask, &mask_after, sizeof mask));
    CHECK(!strcmp(setlocale(LC_ALL, NULL), "C"));
    EXPECT(fegetround(), FE_UPWARD);
    CHECK(getcwd(folder_after, sizeof folder_after) && !strcmp(folder, folder_after));
    CHECK(getenv("HOME") == home);
    EXPECT(umask(0), 027);
}

static volatile sig_atomic_t children_signalled;

static void on_child(int number) {
    (void)number;
    children_signalled = 1;
}

/* Helper processes are there, and this process sees nothing of them. argv: "subreaper" makes it one. */
static void scene_children(int subreaper) {
    signal(SIGCHLD, on_child);
    if (subreaper)
        CHECK(!prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
    CHECK(open("/dev/null", O_RDWR) >= 3); /* without close-on-exec: must not reach the helpers */
    set_up();
    for (int i = 1; i < 4; i++)
        use(i);
    EXPECT(waitpid(-1, NULL, WNOHANG), -1);
    EXPECT(errno, ECHILD);
    /* A child of the program's own is what wait finds, and nothing but it. */
    pid_t own = fork();
    if (!own)
        _exit(7);
    int status;
    EXPECT(wait(&status), own);
    EXPECT(WEXITSTATUS(status), 7);
    EXPECT(wait(&status), -1);
    children_signalled = 0;
    printf("ready\n"); /* the test looks at the helpers now */
    fflush(stdout);
    char line[16];
    CHECK(fgets(line, sizeof line, stdin));
    EXPECT(waitpid(-1, NULL, WNOHANG), -1);
    CHECK(!children_signalled);
    if (!strcmp(line, "die\n"))
        raise(SIGKILL);
    tear_down();
}

/* Whether this thread may change the root folder from now on, which it could already if it wanted to. */
static void may_change_root(bool may) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    CHECK(!syscall(SYS_capget, &header, data));
    data[0].effective = may ? data[0].permitted : data[0].effective & ~(1U << CAP_SYS_CHROOT);
    CHECK(!syscall(SYS_capset, &header, data));
}

/* A program is made and built after the root folder has changed: it works, or says that it does not.
 * prepared: something that compiles is outside of the folder. */
static void scene_chroot(const char *folder, bool prepared) {
    cl_int status;
    if (!prepared)
        may_change_root(false);
    cl_device_id device = the_device();
    cl_context context = make_context(device);
    may_change_root(true);
    CHECK(!chroot(folder) && !chdir("/"));
    const char *text = "kernel void k(global int *a) { *a = 1; }";
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &status);
    OK(status);
    char log[4096] = "", source[256] = "";
    cl_build_status built;
    OK(clGetProgramInfo(program, CL_PROGRAM_SOURCE, sizeof source, source, NULL));
    CHECK(!strcmp(source, text));
    status = clBuildProgram(program, 1, &device, "", NULL, NULL);
    OK(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL));
    OK(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_STATUS, sizeof built, &built, NULL));
    if (prepared) {
        OK(status);
        EXPECT(built, CL_BUILD_SUCCESS);
    } else {
        EXPECT(status, CL_BUILD_PROGRAM_FAILURE);
        EXPECT(built, CL_BUILD_ERROR);
        CHECK(strstr(log, "root folder (chroot)"));
        cl_kernel none = clCreateKernel(program, "k", &status);
        CHECK(!none && status == CL_INVALID_PROGRAM_EXECUTABLE);
        cl_program object = clCreateProgramWithSource(context, 1, &text, NULL, &status);
        OK(status);
        EXPECT(clCompileProgram(object, 1, &device, "", 0, NULL, NULL, NULL, NULL),
               CL_COMPILE_PROGRAM_FAILURE);
        EXPECT(clBuildProgram(object, 1, &device, "-no-such-option", NULL, NULL), CL_INVALID_BUILD_OPTIONS);
        OK(clReleaseProgram(object));
    }
    OK(clReleaseProgram(program));
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    OK(status);
    int value = 5, back = 0;
    cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof value, &value, &status);
    OK(status);
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof back, &back, 0, NULL, NULL));
    EXPECT(back, 5);
}

static void *on_small_stack(void *number) {
    use((int)(intptr_t)number);
    return NULL;
}

/* Everything from threads with the smallest stacks that there are. */
static void scene_small_stack(int kib) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    size_t size = (size_t)kib << 10, least = (size_t)sysconf(_SC_THREAD_STACK_MIN);
    CHECK(!pthread_attr_setstacksize(&attributes, size < least ? least : size));
    set_up();
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        CHECK(!pthread_create(&thread, &attributes, on_small_stack, (void *)(intptr_t)(i + 10)));
        pthread_join(thread, NULL);
    }
    tear_down();
}

static void *set_up_on_thread(void *unused) {
    (void)unused;
    set_up();
    return NULL;
}

/* The control plane is started from a thread that ends. */
static void scene_first_on_thread(int kib) {
    pthread_attr_t attributes;
    pthread_t thread;
    long least = sysconf(_SC_THREAD_STACK_MIN), size = (long)kib << 10; /* it differs by architecture */
    pthread_attr_init(&attributes);
    CHECK(!pthread_attr_setstacksize(&attributes, (size_t)(size < least ? least : size)));
    CHECK(!pthread_create(&thread, &attributes, set_up_on_thread, NULL));
    pthread_join(thread, NULL);
    use(3);
    tear_down();
}

static void *many(void *number) {
    for (int i = 0; i < 200; i++) {
        cl_int status;
        cl_context own = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
        OK(status);
        cl_uint devices;
        OK(clGetContextInfo(own, CL_CONTEXT_NUM_DEVICES, sizeof devices, &devices, NULL));
        EXPECT(devices, 1);
        OK(clReleaseContext(own));
    }
    return number;
}

/* Many threads start the control plane and use it at once. */
static void scene_threads(void) {
    pthread_t threads[8];
    device = the_device();
    for (int i = 0; i < 8; i++)
        CHECK(!pthread_create(&threads[i], NULL, many, NULL));
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
}

static int release_late;

/* After exit handlers, in the order of static destructors of C++ programs. */
__attribute__((destructor)) static void late(void) {
    if (!release_late)
        return;
    cl_int type;
    clGetMemObjectInfo(buffer, CL_MEM_TYPE, sizeof type, &type, NULL);
    clFinish(queue);
    tear_down();
}

/* Ends with kernels running; argv: 0 leaks everything, 1 releases it in a destructor. */
static void scene_exit(int late_release) {
    set_up();
    cl_kernel slow = make_kernel(context, device,
                                 "kernel void add(global int *a, int n) {\n"
                                 "    for (int i = 0; i < n; i++) a[get_global_id(0)] += a[i % 1000] * i;\n"
                                 "}\n",
                                 "add");
    int n = late_release ? 20000 : 1000000000;
    size_t global = COUNT;
    OK(clSetKernelArg(slow, 0, sizeof buffer, &buffer));
    OK(clSetKernelArg(slow, 1, sizeof n, &n));
    for (int i = 0; i < 3; i++)
        OK(clEnqueueNDRangeKernel(queue, slow, 1, NULL, &global, NULL, 0, NULL, NULL));
    OK(clFlush(queue));
    release_late = late_release;
}

/* The program closes every descriptor that it does not know, and opens files of its own in their place. What
 * was built stays. */
static void scene_close_descriptors(void) {
    set_up();
    use(1);
    cl_int status;
    const char *doubling = "kernel void twice(global int *a, int n) { int i = get_global_id(0);"
                           " for (int k = 0; k < 2; k++) a[i] += n; a[i] -= n; }";
    cl_program built = clCreateProgramWithSource(context, 1, &doubling, NULL, &status);
    OK(status);
    OK(clBuildProgram(built, 1, &device, "", NULL, NULL));
    int first = open("/dev/null", O_RDONLY);
    for (int i = 3; i < 256; i++)
        close(i);
    FILE *files[32];
    for (int i = 0; i < 32; i++)
        CHECK(files[i] = tmpfile());
    (void)first;
    run(kernel,
        0); /* a first launch, whose size needs code that was not made: 1000 is no multiple of vectors */
    run(kernel, 0);
    cl_kernel twice = clCreateKernel(built, "twice", &status);
    OK(status);
    run(twice, 0);
    OK(clReleaseKernel(twice));
    OK(clReleaseProgram(built));
    const char *source = "kernel void k(void) {}";
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    if (program) { /* may fail, cleanly */
        clBuildProgram(program, 1, &device, "-DOTHER", NULL, NULL);
        OK(clReleaseProgram(program));
    }
    for (int i = 0; i < 32; i++) {
        struct stat file;
        CHECK(!fstat(fileno(files[i]), &file) && S_ISREG(file.st_mode));
        EXPECT(file.st_size, 0);
    }
}

enum { MOST = 64 };

static int count_descriptors(void) {
    int count = 0;
    for (int i = 0; i < MOST; i++)
        count += fcntl(i, F_GETFD) >= 0;
    return count;
}

/* The program uses up its descriptors: with none left its kernels are built, and its files are what they
 * were. Afterwards there are no more than a compiler process takes. before: whether something was built
 * before. */
static void scene_used_up_descriptors(int before) {
    enum { OF_COMPILER = 3 };
    struct rlimit limit = {MOST, MOST};
    int count_null = 0;
    struct stat null, file;
    device = the_device();
    context = make_context(device);
    queue = make_queue(context, device, 0);
    buffer = make_buffer(context, COUNT * sizeof(int));
    kernel = NULL;
    if (before)
        use(1);
    OK(setrlimit(RLIMIT_NOFILE, &limit));
    int first = open("/dev/null", O_RDONLY), last = first;
    CHECK(first >= 0 && !fstat(first, &null));
    int count = count_descriptors() - 1;
    for (int next; (next = open("/dev/null", O_RDONLY)) >= 0;)
        last = next;
    EXPECT(last, MOST - 1);
    use(2);
    use(3);
    EXPECT(count_descriptors(), MOST);
    for (int i = first; i < MOST; i++)
        if (!fstat(i, &file) && S_ISCHR(file.st_mode) && file.st_rdev == null.st_rdev)
            count_null += !close(i);
    EXPECT(count_null, MOST - count);
    use(4);
    use(5);
    CHECK(count_descriptors() <= count + (before ? 0 : OF_COMPILER));
}

/* The process may have so few descriptors from the start on. */
static void scene_few_descriptors(int most) {
    struct rlimit limit = {(rlim_t)most, (rlim_t)most};
    OK(setrlimit(RLIMIT_NOFILE, &limit));
    set_up();
    use(1);
    use(2);
    tear_down();
}

/* The standard descriptors are closed when the driver starts. */
static void scene_no_standard_descriptors(void) {
    int report = fcntl(2, F_DUPFD_CLOEXEC, 50);
    close(0), close(1), close(2);
    set_up();
    use(1);
    tear_down();
    dup2(report, 2);
}

int main(int argc, char **argv) {
    CHECK(argc >= 2);
    const char *scene = argv[1];
    int number = argc > 2 ? atoi(argv[2]) : 0;
    if (!strcmp(scene, "quiet"))
        scene_quiet();
    else if (!strcmp(scene, "children"))
        scene_children(number);
    else if (!strcmp(scene, "chroot"))
        scene_chroot(argv[2], argc > 3);
    else if (!strcmp(scene, "small_stack"))
        scene_small_stack(number);
    else if (!strcmp(scene, "first_on_thread"))
        scene_first_on_thread(number);
    else if (!strcmp(scene, "threads"))
        scene_threads();
    else if (!strcmp(scene, "exit"))
        scene_exit(number);
    else if (!strcmp(scene, "few_descriptors"))
        scene_few_descriptors(number);
    else if (!strcmp(scene, "close_descriptors"))
        scene_close_descriptors();
    else if (!strcmp(scene, "used_up_descriptors"))
        scene_used_up_descriptors(number);
    else if (!strcmp(scene, "no_standard_descriptors"))
        scene_no_standard_descriptors();
    else
        CHECK(!"a scene");
    return 0;
}
