/* The driver in a process that forks: parent and child use it, whoever began and whatever was going on.
 * Usage: forks SCENE [arguments] */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

static void in_child(void (*work)(int), int number) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        alarm(60);
        work(number);
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0), child);
    EXPECT(status, 0);
}

static void use_all(int number) {
    run(kernel, 0); /* the parent's objects */
    use(number);    /* new ones */
}

static void grandchild(int number) {
    use_all(number);
    in_child(use_all, number + 1);
    use_all(number + 2);
}

/* A child uses the driver that its parent has used, and the parent goes on. */
static void scene_fork(int times) {
    set_up();
    use(1);
    for (int i = 0; i < times; i++) {
        in_child(use_all, 100 + i);
        run(kernel, 0);
    }
    in_child(grandchild, 200);
    use(2);
    tear_down();
}

static void wait_for(pid_t child) {
    int status;
    EXPECT(waitpid(child, &status, 0), child);
    EXPECT(status, 0);
}

/* Parent and child go on at the same time, with the same objects and with new ones, while the parent's
 * kernels run; the child releases what both have and ends by exit(). Both see their own results only. */
static void scene_fork_both(int times) {
    set_up();
    for (int i = 0; i < times; i++) {
        size_t global = COUNT;
        OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
        OK(clSetKernelArg(kernel, 1, sizeof i, &i));
        for (int k = 0; k < 100; k++)
            OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL));
        OK(clFlush(queue));
        pid_t child = fork();
        CHECK(child >= 0);
        if (!child) {
            alarm(60);
            use_all(1000 + i);
            tear_down();
            exit(0);
        }
        use(2000 + i);
        run(kernel, 0);
        wait_for(child);
    }
    use(1);
    tear_down();
}

/* The parent ends at once; its child does all of the work, and of a build that was never seen before. */
static void scene_fork_orphan(int number) {
    int ends[2];
    char byte = 0;
    CHECK(!pipe(ends));
    pid_t parent = fork(); /* so that the test can wait for the orphan */
    CHECK(parent >= 0);
    if (!parent) {
        set_up();
        use(1);
        pid_t before = getpid(), child = fork();
        CHECK(child >= 0);
        if (child)
            exit(0);
        alarm(60);
        while (getppid() == before)
            usleep(1000);
        use_all(number);
        tear_down();
        CHECK(write(ends[1], "d", 1) == 1);
        _exit(0);
    }
    close(ends[1]);
    wait_for(parent);
    CHECK(read(ends[0], &byte, 1) == 1 && byte == 'd');
}

static void set_up_and_use(int number) {
    set_up();
    use(number);
    tear_down();
}

/* Fork between the platform list and the first use. */
static void scene_fork_first(void) {
    device = the_device();
    in_child(set_up_and_use, 1);
    set_up_and_use(2);
}

static _Atomic int stop;

static void *keep_calling(void *unused) {
    (void)unused;
    while (!stop) {
        cl_int status;
        const char *source = "kernel void k(void) {}";
        cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
        OK(status);
        char text[64];
        OK(clGetProgramInfo(program, CL_PROGRAM_SOURCE, sizeof text, text, NULL));
        CHECK(!strcmp(text, source));
        OK(clReleaseProgram(program));
    }
    return NULL;
}

static void *keep_building(void *unused) {
    for (int i = 0; !stop; i++)
        OK(clReleaseKernel(build(5000 + i)));
    return unused;
}

/* Other threads are in the control plane, and compilers at work for them, while this one forks. */
static void scene_fork_busy(int times) {
    pthread_t threads[3];
    set_up();
    for (int i = 0; i < 3; i++)
        CHECK(!pthread_create(&threads[i], NULL, i ? keep_calling : keep_building, NULL));
    for (int i = 0; i < times; i++)
        in_child(use_all, i);
    stop = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    tear_down();
}

/* Runs code in the Python that the driver embeds. */
static void *run_python(void *code) {
    int (*ensure)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
    void (*release)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
    int (*run_string)(const char *, void *) =
        (int (*)(const char *, void *))dlsym(RTLD_DEFAULT, "PyRun_SimpleStringFlags");
    CHECK(ensure && release && run_string);
    int gil = ensure();
    CHECK(!run_string(code, NULL));
    release(gil);
    return NULL;
}

/* A fork while another thread imports a module, which makes the file "begun" and waits for the file "end". */
static void scene_fork_import(const char *folder) {
    char code[512], begun[512], end[512];
    snprintf(code, sizeof code, "import sys; sys.path.insert(0, '%s'); import slow", folder);
    snprintf(begun, sizeof begun, "%s/begun", folder);
    snprintf(end, sizeof end, "%s/end", folder);
    set_up();
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, run_python, code));
    while (access(begun, F_OK))
        usleep(1000);
    in_child(use_all, 1);
    close(creat(end, 0600));
    pthread_join(thread, NULL);
    tear_down();
}

int main(int argc, char **argv) {
    CHECK(argc >= 2);
    const char *scene = argv[1];
    int number = argc > 2 ? atoi(argv[2]) : 0;
    if (!strcmp(scene, "fork"))
        scene_fork(number);
    else if (!strcmp(scene, "fork_first"))
        scene_fork_first();
    else if (!strcmp(scene, "fork_both"))
        scene_fork_both(number);
    else if (!strcmp(scene, "fork_orphan"))
        scene_fork_orphan(number);
    else if (!strcmp(scene, "fork_busy"))
        scene_fork_busy(number);
    else if (!strcmp(scene, "fork_import"))
        scene_fork_import(argv[2]);
    else
        CHECK(!"a scene");
    return 0;
}
