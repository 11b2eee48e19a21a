/* How one platform uses many threads, from C. Prints one line per figure: name, value, unit.
 *
 * Arguments: nothing, or "small" for the small launches alone, or "build" for the time of a build. Times are
 * the least of many rounds unless their name says otherwise. What kernels wrote is checked once. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_HOSTS = 64, LARGE = 1 << 25 };

static const char *source =
    "kernel void chain(global float *o, int n) {\n"
    "  float x = get_global_id(0) * 1e-9f, y = x + 1, z = x + 2, w = x + 3;\n"
    "  for (int i = 0; i < n; i++) { x = fma(x, 0.99f, 0.1f); y = fma(y, 0.98f, 0.1f);\n"
    "    z = fma(z, 0.97f, 0.1f); w = fma(w, 0.96f, 0.1f); }\n"
    "  o[get_global_id(0)] = x + y + z + w; }\n"
    "kernel void uneven(global int *o, int most) {\n"
    "  int g = get_global_id(0), n = most * (g & 0xfff) >> 12; uint x = g;\n"
    "  for (int i = 0; i < n; i++) x = x * 1664525u + 1013904223u;\n"
    "  o[g] = x; }\n"
    "kernel void product(global const float *a, global const float *b, global float *c, int n) {\n"
    "  local float x[16][16], y[16][16]; int i = get_local_id(0), j = get_local_id(1);\n"
    "  int col = get_global_id(0), row = get_global_id(1); float s = 0;\n"
    "  for (int t = 0; t < n; t += 16) { x[j][i] = a[row * n + t + i]; y[j][i] = b[(t + j) * n + col];\n"
    "    barrier(CLK_LOCAL_MEM_FENCE); for (int k = 0; k < 16; k++) s += x[j][k] * y[k][i];\n"
    "    barrier(CLK_LOCAL_MEM_FENCE); }\n"
    "  c[row * n + col] = s; }\n"
    "kernel void reduce(global const int *in, global int *out) {\n"
    "  local int s[256]; int l = get_local_id(0), sum = 0;\n"
    "  for (int i = 0; i < 64; i++) sum += in[(get_group_id(0) * 64 + i) * 256 + l];\n"
    "  s[l] = sum; barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  for (int d = 128; d; d >>= 1) { if (l < d) s[l] += s[l + d]; barrier(CLK_LOCAL_MEM_FENCE); }\n"
    "  if (!l) atomic_add(out, s[0]); }\n"
    "kernel void histogram(global const int *in, global int *bins) {\n"
    "  atomic_inc(&bins[in[get_global_id(0)] & 255]); }\n"
    "kernel void triad(global const float *a, global const float *b, global float *c) {\n"
    "  int i = get_global_id(0); c[i] = a[i] + 3 * b[i]; }\n"
    "kernel void one_group(global uint *o, int n) {\n"
    "  uint x = get_group_id(0); for (int i = 0; i < n; i++) x = x * 1664525u + 1013904223u;\n"
    "  o[get_group_id(0)] = x; }\n";

static cl_context context;
static cl_device_id device;
static cl_command_queue queue;
static cl_program program;
static cl_mem a, b, c;
static cl_uint units;

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void check(cl_int status, const char *what) {
    if (status != CL_SUCCESS) {
        fprintf(stderr, "%s: %d\n", what, status);
        exit(1);
    }
}

static cl_kernel kernel(const char *name, int memories, const cl_mem *memory, const int *number) {
    cl_int status;
    cl_kernel k = clCreateKernel(program, name, &status);
    check(status, name);
    for (int i = 0; i < memories; i++)
        check(clSetKernelArg(k, i, sizeof(cl_mem), &memory[i]), name);
    if (number)
        check(clSetKernelArg(k, memories, sizeof *number, number), name);
    return k;
}

struct launch {
    cl_kernel kernel;
    int dimensions;
    size_t global[2], local[2];
};

static void enqueue(cl_command_queue q, const struct launch *l, cl_event *event) {
    check(clEnqueueNDRangeKernel(q, l->kernel, l->dimensions, NULL, l->global, l->local[0] ? l->local : NULL,
                                 0, NULL, event),
          "enqueue");
}

/* The least time of a launch, from enqueue to finish, in ns: over at least `seconds`. */
static double mean; /* of what least() has measured last: threads that are not there when they should be */

static double least(const struct launch *l, double seconds) {
    double best = 1e30, sum = 0, end = now_ns() + seconds * 1e9;
    int i;
    for (i = 0; i < 10 || now_ns() < end; i++) {
        double start = now_ns();
        enqueue(queue, l, NULL);
        check(clFinish(queue), "clFinish");
        double time = now_ns() - start;
        best = time < best ? time : best;
        sum += time;
    }
    mean = sum / i;
    return best;
}

static int compare(const void *x, const void *y) {
    double d = *(const double *)x - *(const double *)y;
    return d < 0 ? -1 : d > 0;
}

/* The median, each launch after a pause in which threads fall asleep. */
static double after_pause(const struct launch *l, unsigned pause_us) {
    double times[101];
    for (int i = 0; i < 101; i++) {
        usleep(pause_us);
        double start = now_ns();
        enqueue(queue, l, NULL);
        check(clFinish(queue), "clFinish");
        times[i] = now_ns() - start;
    }
    qsort(times, 101, sizeof *times, compare);
    return times[50];
}

/* Iterations of one_group that take a thread so many ns. */
static int iterations(double ns) {
    int n = 1 << 20;
    struct launch l = {kernel("one_group", 1, &c, &n), 1, {1}, {1}};
    return (int)(ns * n / least(&l, 0.1));
}

static double two_queues(const struct launch *l, int count) {
    cl_int status;
    cl_command_queue other = clCreateCommandQueue(context, device, 0, &status);
    check(status, "clCreateCommandQueue");
    double best = 1e30;
    for (int round = 0; round < 20; round++) {
        double start = now_ns();
        for (int i = 0; i < count; i++) {
            enqueue(queue, l, NULL);
            enqueue(other, l, NULL);
        }
        check(clFlush(queue), "clFlush");
        check(clFlush(other), "clFlush");
        check(clFinish(queue), "clFinish");
        check(clFinish(other), "clFinish");
        double time = (now_ns() - start) / (2 * count);
        best = time < best ? time : best;
    }
    clReleaseCommandQueue(other);
    return best;
}

struct host {
    pthread_t thread;
    pthread_barrier_t *barrier;
    struct launch launch;
    int count;
};

static void *host(void *argument) {
    struct host *h = argument;
    cl_int status;
    cl_command_queue mine = clCreateCommandQueue(context, device, 0, &status);
    check(status, "clCreateCommandQueue");
    enqueue(mine, &h->launch, NULL);
    check(clFinish(mine), "clFinish");
    pthread_barrier_wait(h->barrier);
    for (int i = 0; i < h->count; i++) {
        enqueue(mine, &h->launch, NULL);
        check(clFinish(mine), "clFinish");
    }
    pthread_barrier_wait(h->barrier);
    clReleaseCommandQueue(mine);
    return NULL;
}

/* Launches per second of all threads together, each with a queue of its own. */
static double hosts(unsigned threads, int groups, int n, int count) {
    static struct host all[MOST_HOSTS];
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, threads + 1);
    for (unsigned i = 0; i < threads; i++) {
        all[i] = (struct host){.barrier = &barrier, .count = count};
        all[i].launch = (struct launch){kernel("one_group", 1, &c, &n), 1, {groups}, {1}};
        pthread_create(&all[i].thread, NULL, host, &all[i]);
    }
    pthread_barrier_wait(&barrier);
    double start = now_ns();
    pthread_barrier_wait(&barrier);
    double time = now_ns() - start;
    for (unsigned i = 0; i < threads; i++)
        pthread_join(all[i].thread, NULL);
    return threads * (double)count / time * 1e9;
}

/* ns until a program of 32 kernels that was never seen is built. */
static double build(void) {
    char *text = malloc(1 << 20), *at = text;
    struct timespec seed;
    clock_gettime(CLOCK_REALTIME, &seed);
    for (int i = 0; i < 32; i++)
        at += sprintf(at,
                      "kernel void k%d(global float *o, global const float *i, int n) {\n"
                      "  int g = get_global_id(0); float s = %ld;\n"
                      "  for (int j = 0; j < n; j++) s = s * %d.5f + sqrt(i[g + j * %d]) * sin(i[j]);\n"
                      "  local float t[64]; t[get_local_id(0) & 63] = s; barrier(CLK_LOCAL_MEM_FENCE);\n"
                      "  o[g] = t[(get_local_id(0) + %d) & 63]; }\n",
                      i, seed.tv_nsec + i, i, i + 1, i + 3);
    double start = now_ns();
    const char *one = text;
    cl_int status;
    cl_program p = clCreateProgramWithSource(context, 1, &one, NULL, &status);
    check(status, "clCreateProgramWithSource");
    check(clBuildProgram(p, 1, &device, "", NULL, NULL), "clBuildProgram");
    cl_uint count = 0;
    cl_kernel kernels[32];
    check(clCreateKernelsInProgram(p, 32, kernels, &count), "clCreateKernelsInProgram");
    double time = now_ns() - start;
    for (cl_uint i = 0; i < count; i++)
        clReleaseKernel(kernels[i]);
    clReleaseProgram(p);
    free(text);
    return time;
}

struct sleeper {
    pthread_mutex_t lock;
    pthread_cond_t called;
    double woken;
    bool is_called, stops;
};

static void *sleep_until_called(void *argument) {
    struct sleeper *s = argument;
    pthread_mutex_lock(&s->lock);
    while (!s->stops) {
        while (!s->is_called && !s->stops)
            pthread_cond_wait(&s->called, &s->lock);
        s->woken = now_ns();
        s->is_called = false;
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* What the system takes to wake one thread that sleeps, the median in ns: no driver can do better. */
static double wake_one(void) {
    struct sleeper s = {.lock = PTHREAD_MUTEX_INITIALIZER, .called = PTHREAD_COND_INITIALIZER};
    double times[101];
    pthread_t thread;
    pthread_create(&thread, NULL, sleep_until_called, &s);
    for (int i = 0; i < 101; i++) {
        usleep(2000);
        pthread_mutex_lock(&s.lock);
        double start = now_ns();
        s.is_called = true;
        pthread_cond_signal(&s.called);
        pthread_mutex_unlock(&s.lock);
        usleep(1000);
        pthread_mutex_lock(&s.lock);
        times[i] = s.woken - start;
        pthread_mutex_unlock(&s.lock);
    }
    pthread_mutex_lock(&s.lock);
    s.stops = true;
    pthread_cond_signal(&s.called);
    pthread_mutex_unlock(&s.lock);
    pthread_join(thread, NULL);
    qsort(times, 101, sizeof *times, compare);
    return times[50];
}

static void *map(cl_mem memory, size_t size) {
    cl_int status;
    void *p = clEnqueueMapBuffer(queue, memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, size, 0, NULL, NULL,
                                 &status);
    check(status, "clEnqueueMapBuffer");
    return p;
}

static void unmap(cl_mem memory, void *p) {
    check(clEnqueueUnmapMemObject(queue, memory, p, 0, NULL, NULL), "clEnqueueUnmapMemObject");
}

static void expect(const char *what, double got, double wanted) {
    if (got != wanted) {
        fprintf(stderr, "%s: %g, not %g\n", what, got, wanted);
        exit(1);
    }
}

/* Kernels that are worth all threads. */
static void large_launches(size_t size) {
    int n = 4000;
    struct launch l = {kernel("chain", 1, &c, &n), 1, {1 << 18}, {0}};
    printf("chain %.1f us\n", least(&l, 1) / 1e3);
    n = 4096;
    l = (struct launch){kernel("uneven", 1, &c, &n), 1, {1 << 19}, {0}};
    printf("uneven %.1f us\n", least(&l, 1) / 1e3);
    n = 1024;
    l = (struct launch){kernel("product", 3, (cl_mem[]){a, b, c}, &n), 2, {1024, 1024}, {16, 16}};
    printf("product %.1f us\n", least(&l, 1) / 1e3);

    int *in = map(a, size);
    for (int i = 0; i < LARGE; i++)
        in[i] = (int)(i * 2654435761u >> 8);
    int wanted = 0;
    for (int i = 0; i < LARGE; i++)
        wanted += in[i];
    unmap(a, in);
    int zero = 0;
    check(clEnqueueFillBuffer(queue, c, &zero, 4, 0, 4096, 0, NULL, NULL), "fill");
    l = (struct launch){kernel("reduce", 2, (cl_mem[]){a, c}, NULL), 1, {LARGE / 64}, {256}};
    enqueue(queue, &l, NULL);
    int *out = map(c, 4096);
    expect("reduce", out[0], wanted);
    unmap(c, out);
    printf("reduce %.1f us\n", least(&l, 1) / 1e3);
    check(clEnqueueFillBuffer(queue, c, &zero, 4, 0, 4096, 0, NULL, NULL), "fill");
    l = (struct launch){kernel("histogram", 2, (cl_mem[]){a, c}, NULL), 1, {LARGE}, {0}};
    enqueue(queue, &l, NULL);
    out = map(c, 4096);
    long sum = 0;
    for (int i = 0; i < 256; i++)
        sum += out[i];
    expect("histogram", (double)sum, LARGE);
    unmap(c, out);
    printf("histogram %.1f us\n", least(&l, 1) / 1e3);
    l = (struct launch){kernel("triad", 3, (cl_mem[]){a, b, c}, NULL), 1, {LARGE}, {0}};
    printf("triad %.2f GB/s\n", 3.0 * (double)size / least(&l, 1));
}

static void small_launches(void) {
    int n = iterations(5000);
    struct launch l = {kernel("one_group", 1, &c, &n), 1, {16}, {1}};
    printf("groups_16_of_5us %.2f us\n", least(&l, 0.5) / 1e3);
    printf("groups_16_of_5us_mean %.2f us\n", mean / 1e3);
    printf("groups_16_of_5us_median_after_pause %.2f us\n", after_pause(&l, 2000) / 1e3);
    n = iterations(312.5);
    l = (struct launch){kernel("one_group", 1, &c, &n), 1, {64}, {1}};
    printf("work_of_20us %.2f us\n", least(&l, 0.5) / 1e3);
    printf("work_of_20us_mean %.2f us\n", mean / 1e3);
    printf("work_of_20us_median_after_pause %.2f us\n", after_pause(&l, 2000) / 1e3);
    n = iterations(20000);
    l = (struct launch){kernel("one_group", 1, &c, &n), 1, {units}, {1}};
    printf("wake_all %.2f us\n", after_pause(&l, 2000) / 1e3 - 20);
    n = iterations(50000);
    l = (struct launch){kernel("one_group", 1, &c, &n), 1, {units > 1 ? units / 2 : 1}, {1}};
    printf("two_queues_of_50us %.2f us\n", two_queues(&l, 20) / 1e3);
    n = 1;
    printf("hosts_empty %.0f launches/s\n", hosts(units < MOST_HOSTS ? units : MOST_HOSTS, 1, n, 20000));
    n = iterations(20000);
    printf("hosts_20us %.0f launches/s\n", hosts(units < MOST_HOSTS ? units : MOST_HOSTS, 1, n, 2000));
    n = iterations(5000);
    printf("hosts_16_of_5us %.0f launches/s\n", hosts(units < MOST_HOSTS ? units : MOST_HOSTS, 16, n, 500));
    printf("thread_wakes %.2f us\n", wake_one() / 1e3);
}

int main(int count, char **arguments) {
    const char *part = count > 1 ? arguments[1] : "all";
    cl_platform_id platform;
    cl_int status;
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    check(clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL), "units");
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    check(status, "clCreateContext");
    queue = clCreateCommandQueue(context, device, 0, &status);
    check(status, "clCreateCommandQueue");
    if (!strcmp(part, "build")) {
        printf("build_32 %.1f ms\n", build() / 1e6);
        return 0;
    }
    size_t size = (size_t)LARGE * 4;
    cl_mem *all[] = {&a, &b, &c};
    for (int i = 0; i < 3; i++) {
        *all[i] = clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &status);
        check(status, "clCreateBuffer");
        float zero = 0;
        check(clEnqueueFillBuffer(queue, *all[i], &zero, 4, 0, size, 0, NULL, NULL), "fill");
    }
    check(clFinish(queue), "clFinish");
    program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    check(status, "clCreateProgramWithSource");
    check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
    printf("units %u threads\n", units);

    if (strcmp(part, "small"))
        large_launches(size);
    small_launches();
    return 0;
}
