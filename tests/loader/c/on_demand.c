/* Kernels that clBuildProgram leaves to be compiled when they are asked for: on_demand <what>
 *   threads   several create the same kernels, and others, at once
 *   all       clCreateKernelsInProgram
 *   globals   variables of the program are those of all its kernels, and so is printf
 *   again     a program that is built again
 *   fork      a child creates kernels, also what its parent has not, and the parent goes on
 *   lost      the runtime process is gone: MARK in its environment tells which it is */
#include "client.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KERNELS = 12, ITEMS = 64 };

static cl_context context;
static cl_device_id device;
static cl_command_queue queue;

static const char *source(int seed) {
    static char text[8192];
    char *end = text + sprintf(text, "global int counter = %d;\n", seed);
    for (int i = 0; i < KERNELS; i++)
        end += sprintf(end,
                       "kernel __attribute__((reqd_work_group_size(%d, 1, 1))) void k%d(global int *a) {\n"
                       "    local int b[%d]; b[get_local_id(0)] = %d; barrier(CLK_LOCAL_MEM_FENCE);\n"
                       "    a[get_global_id(0)] = b[get_local_id(0)] + %d; }\n",
                       ITEMS >> i % 3, i, ITEMS, i, 100 * seed);
    sprintf(end, "kernel void count(global int *a) { a[0] = ++counter; }\n"
                 "kernel void say(global int *a) {\n"
                 "    a[0] = counter; printf(\"%%d and %%s\\n\", counter, \"x\"); }\n");
    return text;
}

static cl_program build(int seed) {
    const char *text = source(seed);
    cl_int status;
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 0, NULL, "-cl-std=CL3.0", NULL, NULL));
    return program;
}

static cl_kernel create(cl_program program, const char *name) {
    cl_int status;
    cl_kernel kernel = clCreateKernel(program, name, &status);
    OK(status);
    return kernel;
}

/* What a kernel leaves in a[0]. */
static int run(cl_kernel kernel, size_t items) {
    cl_int status, result = -1;
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, ITEMS * sizeof(int), NULL, &status);
    OK(status);
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof result, &result, 0, NULL, NULL));
    OK(clReleaseMemObject(buffer));
    return result;
}

/* What the queries say of a kernel of source(), and what it does. */
static void use(cl_kernel kernel, int number, int seed) {
    size_t size[3], length;
    cl_ulong local;
    char name[16];
    OK(clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof size, size, NULL));
    EXPECT(size[0], ITEMS >> number % 3);
    OK(clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local, &local, NULL));
    EXPECT(local, ITEMS * sizeof(int));
    OK(clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, &length));
    EXPECT(atoi(name + 1), number);
    OK(clGetKernelInfo(kernel, CL_KERNEL_ATTRIBUTES, 0, NULL, &length));
    CHECK(length > sizeof "reqd_work_group_size");
    EXPECT(run(kernel, ITEMS), number + 100 * seed);
}

static void create_and_use(cl_program program, int number, int seed) {
    char name[16];
    sprintf(name, "k%d", number);
    cl_kernel kernel = create(program, name);
    use(kernel, number, seed);
    OK(clReleaseKernel(kernel));
}

static cl_program shared;

static void *create_some(void *argument) {
    int first = (int)(intptr_t)argument;
    for (int i = 0; i < KERNELS; i++)
        create_and_use(shared, (first / 2 + i) % KERNELS, 5);
    return NULL;
}

static void threads(void) {
    pthread_t thread[8];
    shared = build(5);
    for (intptr_t i = 0; i < 8; i++)
        EXPECT(pthread_create(&thread[i], NULL, create_some, (void *)i), 0);
    for (int i = 0; i < 8; i++)
        EXPECT(pthread_join(thread[i], NULL), 0);
    OK(clReleaseProgram(shared));
}

static void all(void) {
    cl_program program = build(6);
    cl_kernel kernels[KERNELS + 2];
    cl_uint count = 0;
    size_t names = 0;
    cl_int status;
    CHECK(!clCreateKernel(program, "none", &status));
    EXPECT(status, CL_INVALID_KERNEL_NAME);
    OK(clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS, sizeof names, &names, NULL));
    EXPECT(names, KERNELS + 2);
    create_and_use(program, 3, 6);
    OK(clCreateKernelsInProgram(program, 0, NULL, &count));
    EXPECT(count, KERNELS + 2);
    EXPECT(clCreateKernelsInProgram(program, count - 1, kernels, NULL), CL_INVALID_VALUE);
    OK(clCreateKernelsInProgram(program, count, kernels, NULL));
    for (int i = 0; i < KERNELS; i++) {
        cl_kernel clone = clCloneKernel(kernels[i], &status);
        OK(status);
        use(kernels[i], i, 6);
        use(clone, i, 6);
        OK(clReleaseKernel(clone));
    }
    for (cl_uint i = 0; i < count; i++)
        OK(clReleaseKernel(kernels[i]));
    OK(clReleaseProgram(program));
}

static void globals(void) {
    cl_program program = build(7);
    cl_kernel count = create(program, "count");
    EXPECT(run(count, 1), 8);
    EXPECT(run(count, 1), 9);
    cl_kernel say = create(program, "say");
    EXPECT(run(say, 1), 9);
    EXPECT(run(count, 1), 10);
    EXPECT(run(say, 1), 10);
    OK(clReleaseKernel(count));
    OK(clReleaseKernel(say));
    OK(clReleaseProgram(program));
}

static void again(void) {
    cl_program program = build(8);
    create_and_use(program, 1, 8);
    OK(clBuildProgram(program, 0, NULL, "-cl-std=CL3.0 -cl-opt-disable", NULL, NULL));
    create_and_use(program, 1, 8);
    create_and_use(program, 2, 8);
    OK(clReleaseProgram(program));
}

static void forks(void) {
    cl_program program = build(9);
    create_and_use(program, 1, 9);
    pid_t pid = fork();
    if (!pid) {
        create_and_use(program, 1, 9);
        create_and_use(program, 2, 9);
        exit(0);
    }
    create_and_use(program, 3, 9);
    int status;
    EXPECT(waitpid(pid, &status, 0), pid);
    EXPECT(status, 0);
    create_and_use(program, 2, 9);
    OK(clReleaseProgram(program));
}

/* A file of a process, with its zeros as blanks. */
static const char *read_text(const char *pid, const char *file) {
    static char text[1 << 16];
    snprintf(text, sizeof text, "/proc/%s/%s", pid, file);
    FILE *stream = fopen(text, "r");
    size_t size = stream ? fread(text, 1, sizeof text - 1, stream) : 0;
    if (stream)
        fclose(stream);
    text[size] = 0;
    for (size_t i = 0; i < size; i++)
        text[i] = text[i] ? text[i] : ' ';
    return text;
}

static void lose_runtime_process(void) {
    DIR *folder = opendir("/proc");
    int killed = 0;
    char mark[64];
    snprintf(mark, sizeof mark, "MARK=%s ", getenv("MARK"));
    for (struct dirent *entry; (entry = readdir(folder));)
        if (strstr(read_text(entry->d_name, "cmdline"), "cl_driver.runtime") &&
            strstr(read_text(entry->d_name, "environ"), mark) && !kill(atoi(entry->d_name), SIGKILL))
            killed++;
    closedir(folder);
    EXPECT(killed, 1);
    usleep(500000); /* it does not end in the middle of a call, which would fail */
}

static void lost(void) {
    cl_program program = build(10);
    create_and_use(program, 1, 10);
    lose_runtime_process();
    cl_kernel kernels[2] = {create(program, "k1"), create(program, "k2")};
    EXPECT(run(kernels[0], ITEMS), 1001);
    EXPECT(run(kernels[1], ITEMS), 1002);
    cl_kernel more[KERNELS + 2];
    OK(clCreateKernelsInProgram(program, KERNELS + 2, more, NULL));
    EXPECT(run(more[KERNELS - 1], ITEMS), 1000 + KERNELS - 1);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"threads", threads}, {"all", all},    {"globals", globals},
                 {"again", again},     {"fork", forks}, {"lost", lost}};
    cl_int status;
    device = the_device();
    context = make_context(device);
    queue = clCreateCommandQueueWithProperties(context, device, NULL, &status);
    OK(status);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc > 1 && !strcmp(argv[1], cases[i].name)) {
            cases[i].run();
            OK(clReleaseCommandQueue(queue));
            OK(clReleaseContext(context));
            return 0;
        }
    return 2;
}
