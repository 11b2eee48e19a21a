/* Kernels whose integer arguments keep their values, or do not: the results are always those of the values.
 * Argument: which of the parts to run. */
#include "client.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ITEMS = 1000, MOST_LAUNCHES = 20000 };

static cl_device_id device;
static cl_context context;

/* One kernel per type: products, quotients, remainders, shifts, a loop, and places by the argument. */
#define KERNEL(type)                                                                                         \
    "kernel void of_" #type "(global long *out, " #type " v) {\n"                                            \
    "  long id = get_global_id(0), sum = id * v + id / (v | 1) + id % (v | 1) + (id << (v & 31));\n"         \
    "  for (" #type " k = 0; k < (" #type ")(v & 15); k++) sum += sum * k ^ id;\n"                           \
    "  out[id] = v > 0 ? sum : -sum;\n"                                                                      \
    "}\n"

static const char TYPES[] = KERNEL(char) KERNEL(uchar) KERNEL(short) KERNEL(ushort) KERNEL(int) KERNEL(uint)
    KERNEL(long) "typedef struct { int a; float b; } pair;\n"
                 "kernel void of_others(global long *out, int2 two, int4 four, float f, pair p, ulong ul, "
                 "global long *in,\n"
                 "                      local long *kept) {\n"
                 "  size_t id = get_global_id(0) - get_global_offset(0), me = get_local_id(0);\n"
                 "  kept[me] = in[id % ul] * two.x + two.y;\n"
                 "  barrier(CLK_LOCAL_MEM_FENCE);\n"
                 "  size_t n = get_local_size(0), at = (me + two.x) % n;\n"
                 "  out[id] = kept[at] * p.a + four.w + (long)(f * p.b) + id / ul;\n"
                 "}\n";

#define DEFINE(type, name)                                                                                   \
    static long long expected_##name(long long id, long long value) {                                        \
        type v = (type)value;                                                                                \
        long long odd = (long long)(v | 1);                                                                  \
        unsigned long long sum = (unsigned long long)id * (unsigned long long)v +                            \
                                 (unsigned long long)(id / odd + id % odd) +                                 \
                                 ((unsigned long long)id << (v & 31));                                       \
        for (type k = 0; k < (type)(v & 15); k++)                                                            \
            sum += (sum * (unsigned long long)k) ^ (unsigned long long)id;                                   \
        return (long long)(v > 0 ? sum : 0 - sum);                                                           \
    }
DEFINE(cl_char, char)
DEFINE(cl_uchar, uchar)
DEFINE(cl_short, short)
DEFINE(cl_ushort, ushort)
DEFINE(cl_int, int)
DEFINE(cl_uint, uint)
DEFINE(cl_long, long)

static cl_kernel kernel_of(cl_program program, const char *name) {
    cl_int status;
    cl_kernel kernel = clCreateKernel(program, name, &status);
    OK(status);
    return kernel;
}

static cl_program build(const char *source) {
    cl_int status;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 1, &device, "", NULL, NULL));
    return program;
}

static void read_all(cl_command_queue queue, cl_mem buffer, cl_long *out) {
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, ITEMS * sizeof *out, out, 0, NULL, NULL));
}

static void types(void) {
    static const struct {
        const char *name;
        size_t size;
        long long (*expected)(long long id, long long value);
    } rows[] = {
        {"of_char", 1, expected_char},     {"of_uchar", 1, expected_uchar}, {"of_short", 2, expected_short},
        {"of_ushort", 2, expected_ushort}, {"of_int", 4, expected_int},     {"of_uint", 4, expected_uint},
        {"of_long", 8, expected_long},
    };
    static const long long values[] = {7, 7, 8, -1, 7, 1, 0, 255, 7, -128, 65535, 8, 3, -7};
    static cl_long out[ITEMS];
    cl_command_queue queue = make_queue(context, device, 0);
    cl_mem buffer = make_buffer(context, sizeof out);
    cl_program program = build(TYPES);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        cl_kernel kernel = kernel_of(program, rows[r].name);
        OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            size_t global = ITEMS;
            OK(clSetKernelArg(kernel, 1, rows[r].size, &values[v]));
            OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL));
            read_all(queue, buffer, out);
            for (int id = 0; id < ITEMS; id++)
                if (out[id] != rows[r].expected(id, values[v])) {
                    fprintf(stderr, "%s(%lld)[%d] is %lld\n", rows[r].name, values[v], id,
                            (long long)out[id]);
                    exit(1);
                }
        }
        OK(clReleaseKernel(kernel));
    }
    OK(clReleaseProgram(program));
    OK(clReleaseMemObject(buffer));
    OK(clReleaseCommandQueue(queue));
}

/* Vectors, structures, floats, local memory, an offset, a sub-buffer, and groups of two sizes. */
static void others(void) {
    static cl_long in[2 * ITEMS], out[ITEMS];
    cl_int status;
    cl_command_queue queue = make_queue(context, device, 0);
    cl_mem buffer = make_buffer(context, sizeof out), whole = make_buffer(context, sizeof in);
    for (int i = 0; i < 2 * ITEMS; i++)
        in[i] = 3 * i - 700;
    cl_buffer_region region = {4096, sizeof in - 4096};
    cl_mem part = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
    OK(status);
    OK(clEnqueueWriteBuffer(queue, whole, CL_TRUE, 0, sizeof in, in, 0, NULL, NULL));
    cl_program program = build(TYPES);
    cl_kernel kernel = kernel_of(program, "of_others");
    for (int round = 0; round < 24; round++) {
        cl_int2 two = {{1 + round % 2, round / 2 % 3}};
        cl_int4 four = {{0, 0, 0, round}};
        cl_float f = (cl_float)round + 0.5f;
        struct {
            cl_int a;
            cl_float b;
        } pair = {round - 5, 4.0f};
        cl_ulong ul = 900 + (cl_ulong)(round / 12);
        size_t global = 800, offset = (size_t)round * 8, local = round % 4 < 2 ? 32 : 16;
        OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
        OK(clSetKernelArg(kernel, 1, sizeof two, &two));
        OK(clSetKernelArg(kernel, 2, sizeof four, &four));
        OK(clSetKernelArg(kernel, 3, sizeof f, &f));
        OK(clSetKernelArg(kernel, 4, sizeof pair, &pair));
        OK(clSetKernelArg(kernel, 5, sizeof ul, &ul));
        OK(clSetKernelArg(kernel, 6, sizeof part, round % 3 ? &part : &whole));
        OK(clSetKernelArg(kernel, 7, local * sizeof(cl_long), NULL));
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, &offset, &global, &local, 0, NULL, NULL));
        read_all(queue, buffer, out);
        const cl_long *from = round % 3 ? in + 4096 / sizeof *in : in;
        for (size_t id = 0; id < global; id++) {
            size_t other = id / local * local + (id % local + (size_t)two.s[0]) % local;
            cl_long kept = from[other % ul] * two.s[0] + two.s[1];
            cl_long want = kept * pair.a + round + (cl_long)(f * pair.b) + (cl_long)(id / ul);
            EXPECT(out[id], want);
        }
    }
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(program));
    OK(clReleaseMemObject(part));
    OK(clReleaseMemObject(whole));
    OK(clReleaseMemObject(buffer));
    OK(clReleaseCommandQueue(queue));
}

/* Divisions, which cost a multiple of what those by constants do. */
static const char HOT[] = "kernel void hot(global uint *out, uint n, uint rounds, uint salt) {\n"
                          "  uint id = get_global_id(0), sum = id + salt;\n"
                          "  for (uint i = 0; i < rounds; i++) sum += (sum ^ i) % n + sum / n;\n"
                          "  out[id] = sum;\n"
                          "}\n";

enum { HOT_ITEMS = 4096 };

static cl_uint expected_hot(cl_uint id, cl_uint n, cl_uint rounds, cl_uint salt) {
    cl_uint sum = id + salt;
    for (cl_uint i = 0; i < rounds; i++)
        sum += (sum ^ i) % n + sum / n;
    return sum;
}

struct hot {
    cl_command_queue queue;
    cl_kernel kernel;
    cl_mem buffer;
};

static struct hot make_hot(cl_program program) {
    struct hot hot = {make_queue(context, device, 0), kernel_of(program, "hot"),
                      make_buffer(context, HOT_ITEMS * sizeof(cl_uint))};
    OK(clSetKernelArg(hot.kernel, 0, sizeof hot.buffer, &hot.buffer));
    return hot;
}

static void drop_hot(struct hot *hot) {
    OK(clReleaseKernel(hot->kernel));
    OK(clReleaseMemObject(hot->buffer));
    OK(clReleaseCommandQueue(hot->queue));
}

/* Launches, and checks a few of the results. */
static void run_hot(struct hot *hot, cl_uint n, cl_uint rounds, cl_uint salt) {
    size_t global = HOT_ITEMS;
    OK(clSetKernelArg(hot->kernel, 1, sizeof n, &n));
    OK(clSetKernelArg(hot->kernel, 2, sizeof rounds, &rounds));
    OK(clSetKernelArg(hot->kernel, 3, sizeof salt, &salt));
    OK(clEnqueueNDRangeKernel(hot->queue, hot->kernel, 1, NULL, &global, NULL, 0, NULL, NULL));
    cl_uint out[16];
    size_t first = salt % (HOT_ITEMS - 16);
    OK(clEnqueueReadBuffer(hot->queue, hot->buffer, CL_TRUE, first * sizeof *out, sizeof out, out, 0, NULL,
                           NULL));
    for (cl_uint i = 0; i < 16; i++)
        EXPECT(out[i], expected_hot((cl_uint)first + i, n, rounds, salt));
}

/* So long that code was asked for, and made, and tried, if there was to be any. */
static void hot_for(struct hot *hot, double time, cl_uint n, cl_uint rounds) {
    double end = seconds() + time;
    for (cl_uint i = 0; seconds() < end; i++)
        run_hot(hot, n, rounds, i);
}

/* How often the log says that code for values is used. */
static int adopted(void) {
    char line[1024];
    int count = 0;
    FILE *log = fopen(getenv("CL_DRIVER_LOG_FILE"), "r");
    CHECK(log);
    while (fgets(line, sizeof line, log))
        count += strstr(line, "of the time, and is used") != NULL;
    fclose(log);
    return count;
}

/* The salt changes all the time, the other arguments seldom. */
static void hot(void) {
    cl_program program = build(HOT);
    struct hot hot = make_hot(program);
    double end = seconds() + 90;
    while (adopted() < 1 && seconds() < end)
        hot_for(&hot, 0.05, 64, 96);
    for (cl_uint i = 0; i < 60; i++)
        run_hot(&hot, i % 3 ? 64 : 64 + i, i % 5 ? 96 : 95, i);
    while (adopted() < 2 && seconds() < end)
        hot_for(&hot, 0.05, 100, 96);
    hot_for(&hot, 0.1, 64, 96);
    drop_hot(&hot);
    OK(clReleaseProgram(program));
}

static void *use(void *argument) {
    cl_program program = argument;
    struct hot hot = make_hot(program);
    double end = seconds() + 2;
    for (cl_uint i = 0; seconds() < end; i++)
        run_hot(&hot, i % 16 ? 32 : 33, 64, i);
    drop_hot(&hot);
    return NULL;
}

static void threads(void) {
    cl_program program = build(HOT);
    pthread_t made[4];
    for (int i = 0; i < 4; i++)
        CHECK(!pthread_create(&made[i], NULL, use, program));
    for (int i = 0; i < 4; i++)
        pthread_join(made[i], NULL);
    OK(clReleaseProgram(program));
}

/* Everything is released while code is made, or is about to be: the time that it takes to be hot is not
 * known. */
static void release(void) {
    for (int i = 0; i < 6; i++) {
        context = make_context(device);
        cl_program program = build(HOT);
        struct hot hot = make_hot(program);
        hot_for(&hot, 0.15 + 0.06 * i, 40 + (cl_uint)i, 96);
        drop_hot(&hot);
        OK(clReleaseProgram(program));
        OK(clReleaseContext(context));
    }
    context = make_context(device); /* the process ends while the last one is made */
    cl_program program = build(HOT);
    struct hot hot = make_hot(program);
    hot_for(&hot, 0.2, 99, 96);
}

/* A child that was forked while the parent's code is made. */
static void forked(void) {
    cl_program program = build(HOT);
    struct hot hot = make_hot(program);
    hot_for(&hot, 0.25, 77, 96);
    pid_t child = fork();
    CHECK(child >= 0);
    hot_for(&hot, 1.5, 77, 96);
    if (!child)
        _exit(0);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    drop_hot(&hot);
    OK(clReleaseProgram(program));
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"types", types},     {"others", others},   {"hot", hot},
                 {"threads", threads}, {"release", release}, {"forked", forked}};
    device = the_device();
    context = make_context(device);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (argc == 2 && !strcmp(argv[1], parts[i].name)) {
            parts[i].run();
            return 0;
        }
    return 2;
}
