/* Programs and kernels from several threads at once: programs <what>
 *   threads  builds, queries, kernels and releases in parallel, some builds in the background
 *   exit     returns from main while builds are under way
 *   leak     many programs, kernels and sub-devices come and go: their memory comes back */
#include "client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static cl_context context;
static cl_device_id device;
static atomic_int notified;

static const char *const sources[] = {
    "kernel void k(global int *a, int b) { a[get_global_id(0)] = b; }",
    "kernel void k(global int *a, int b) { a[get_global_id(0)] = b + 1; } kernel void other(void) {}",
    "kernel void k(global int *a) { a[0] = undeclared; }",
};

static void CL_CALLBACK count(cl_program program, void *data) {
    (void)program, (void)data;
    atomic_fetch_add(&notified, 1);
}

static cl_program create(const char *source) {
    cl_int status;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    OK(status);
    return program;
}

static cl_build_status status_of(cl_program program) {
    cl_build_status status;
    OK(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_STATUS, sizeof status, &status, NULL));
    return status;
}

static void use_kernels(cl_program program, int which) {
    cl_uint count;
    OK(clCreateKernelsInProgram(program, 0, NULL, &count));
    EXPECT(count, which + 1);
    cl_int status;
    cl_kernel kernel = clCreateKernel(program, "k", &status);
    OK(status);
    cl_kernel clone = clCloneKernel(kernel, &status);
    OK(status);
    EXPECT(clBuildProgram(program, 0, NULL, "", NULL, NULL), CL_INVALID_OPERATION);
    size_t size;
    OK(clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof size, &size, NULL));
    CHECK(size > 0);
    cl_ulong bytes;
    OK(clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_PRIVATE_MEM_SIZE, sizeof bytes, &bytes, NULL));
    OK(clReleaseKernel(kernel));
    OK(clReleaseKernel(clone));
}

static void *build_and_use(void *argument) {
    int seed = (int)(intptr_t)argument;
    for (int i = 0; i < 20; i++) {
        int which = (seed + i) % 3;
        cl_program program = create(sources[which]);
        if (i % 4 == 3) {
            OK(clBuildProgram(program, 0, NULL, "", count, NULL));
            while (status_of(program) == CL_BUILD_IN_PROGRESS)
                usleep(1000);
        } else {
            cl_int status = clBuildProgram(program, 0, NULL, "", NULL, NULL);
            EXPECT(status, which == 2 ? CL_BUILD_PROGRAM_FAILURE : CL_SUCCESS);
        }
        EXPECT(status_of(program), which == 2 ? CL_BUILD_ERROR : CL_BUILD_SUCCESS);
        if (which != 2)
            use_kernels(program, which);
        OK(clReleaseProgram(program));
    }
    return NULL;
}

static void threads(void) {
    pthread_t thread[6];
    for (int i = 0; i < 6; i++)
        CHECK(!pthread_create(&thread[i], NULL, build_and_use, (void *)(intptr_t)i));
    for (int i = 0; i < 6; i++)
        pthread_join(thread[i], NULL);
    for (int wait = 0; atomic_load(&notified) < 30 && wait < 10000; wait++)
        usleep(1000);
    EXPECT(atomic_load(&notified), 30); /* every fourth build of each thread was in the background */
}

static void builds_at_exit(void) {
    char source[256];
    for (int i = 0; i < 4; i++) {
        snprintf(source, sizeof source, "kernel void k(global float *a) { a[0] = sin(a[%d] + %d); }", i,
                 (int)getpid());
        cl_program program = create(source);
        OK(clBuildProgram(program, 0, NULL, "", count, NULL));
        OK(clReleaseProgram(program)); /* the build keeps it */
    }
}

static long resident_kib(void) {
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld %ld", &pages, &resident) == 2);
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void come_and_go(int rounds) {
    for (int i = 0; i < rounds; i++) {
        cl_program program = create(sources[1]);
        OK(clBuildProgram(program, 0, NULL, "", NULL, NULL));
        use_kernels(program, 1);
        OK(clReleaseProgram(program));
        cl_device_id parts[16];
        cl_uint number = 0;
        const cl_device_partition_property equally[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
        if (!clCreateSubDevices(device, equally, 16, parts, &number))
            for (cl_uint k = 0; k < number; k++)
                OK(clReleaseDevice(parts[k]));
    }
}

static void leak(void) {
    come_and_go(100);
    long before = resident_kib();
    come_and_go(1000);
    long after = resident_kib();
    if (after - before > 4096) {
        fprintf(stderr, "%ld KiB more after 1000 programs\n", after - before);
        exit(1);
    }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "threads";
    device = the_device();
    context = make_context(device);
    if (!strcmp(what, "threads"))
        threads();
    else if (!strcmp(what, "exit"))
        builds_at_exit();
    else
        leak();
    return 0;
}
