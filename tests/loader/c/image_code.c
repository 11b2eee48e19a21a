/* Kernels with images, of which launches get code for their formats and samplers. Argument: which of the
 * parts to run. */
#include "client.h"

#include <pthread.h>

enum { CHANNELS = 4, MOST_PIXELS = 320 * 256, THREADS = 4 };

static const char SOURCE[] =
    "#define AT (int2)(get_global_id(0) - get_global_offset(0), get_global_id(1))\n"
    "kernel void blur(read_only image2d_t from, write_only image2d_t to, sampler_t s) {\n"
    "  uint4 sum = 0;\n"
    "  for (int dy = -1; dy <= 1; dy++)\n"
    "    for (int dx = -1; dx <= 1; dx++) sum += read_imageui(from, s, AT + (int2)(dx, dy));\n"
    "  write_imageui(to, AT, sum / 9);\n"
    "}\n"
    "kernel void loops(read_only image2d_t from, write_only image2d_t to, sampler_t s) {\n" /* blur in two */
    "  uint4 sum = 0;\n"
    "  int last = get_work_dim() - 1;\n"
    "  for (int dy = -1; dy <= last; dy++)\n"
    "    for (int dx = -1; dx <= last; dx++) sum += read_imageui(from, s, AT + (int2)(dx, dy));\n"
    "  write_imageui(to, AT, sum / 9);\n"
    "}\n"
    "kernel void add(read_only image2d_t from, global int *c, global const int *a, int n) {\n"
    "  int i = get_global_id(0), more = read_imageui(from, (int2)(i, 0)).x;\n"
    "  for (int k = 0; k < n; k++) c[8 * i + 3] += a[8 * i + k] + more;\n"
    "}\n"
    "kernel void turn(read_only image2d_t from, write_only image2d_t to, sampler_t s) {\n"
    "  local uint4 tile[256];\n"
    "  size_t me = get_local_linear_id(), last = get_local_size(0) * get_local_size(1) - 1;\n"
    "  tile[me] = read_imageui(from, s, AT);\n"
    "  barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  write_imageui(to, AT, tile[last - me]);\n"
    "}\n";

static cl_device_id device;
static cl_context context;
static cl_program program;

struct launch {
    const char *kernel;
    size_t width, height, local[2]; /* zeros: NULL */
    cl_addressing_mode mode;
    size_t offset;
};

static cl_kernel new_kernel(const char *name) {
    cl_int status;
    cl_kernel kernel = clCreateKernel(program, name, &status);
    OK(status);
    return kernel;
}

static cl_mem new_image(const struct launch *of, void *pixels) {
    static const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    cl_image_desc desc = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = of->width, .image_height = of->height};
    cl_int status;
    cl_mem image = clCreateImage(context, pixels ? CL_MEM_COPY_HOST_PTR : 0, &format, &desc, pixels, &status);
    OK(status);
    return image;
}

static uint32_t read_pixel(const struct launch *of, const uint8_t *from, long x, long y, size_t channel) {
    long width = (long)of->width, height = (long)of->height;
    if (of->mode == CL_ADDRESS_CLAMP && (x < 0 || y < 0 || x >= width || y >= height))
        return 0;
    x = x < 0 ? 0 : x < width ? x : width - 1;
    y = y < 0 ? 0 : y < height ? y : height - 1;
    return from[((size_t)y * of->width + (size_t)x) * CHANNELS + channel];
}

static uint32_t expected(const struct launch *of, const uint8_t *from, size_t x, size_t y, size_t channel) {
    uint32_t sum = 0;
    if (!strcmp(of->kernel, "turn")) {
        size_t across = of->local[0], down = of->local[1], left = x / across * across, top = y / down * down;
        x = left + across - 1 - (x - left);
        y = top + down - 1 - (y - top);
        return read_pixel(of, from, (long)x, (long)y, channel);
    }
    for (long dy = -1; dy <= 1; dy++)
        for (long dx = -1; dx <= 1; dx++)
            sum += read_pixel(of, from, (long)x + dx, (long)y + dy, channel);
    return sum / 9;
}

static void run_with(cl_kernel kernel, const struct launch *of) {
    uint8_t from[MOST_PIXELS * CHANNELS], found[MOST_PIXELS * CHANNELS];
    size_t offset[2] = {of->offset, 0}, global[2] = {of->width, of->height}, origin[3] = {0};
    size_t region[3] = {of->width, of->height, 1};
    cl_int status;
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)(i * i * 7 + i / 3);
    cl_command_queue queue = make_queue(context, device, 0);
    cl_mem source = new_image(of, from), target = new_image(of, NULL);
    cl_sampler sampler = clCreateSampler(context, CL_FALSE, of->mode, CL_FILTER_NEAREST, &status);
    OK(status);
    OK(clSetKernelArg(kernel, 0, sizeof source, &source));
    OK(clSetKernelArg(kernel, 1, sizeof target, &target));
    OK(clSetKernelArg(kernel, 2, sizeof sampler, &sampler));
    OK(clEnqueueNDRangeKernel(queue, kernel, 2, offset, global, of->local[0] ? of->local : NULL, 0, NULL,
                              NULL));
    OK(clEnqueueReadImage(queue, target, CL_TRUE, origin, region, 0, 0, found, 0, NULL, NULL));
    for (size_t y = 0; y < of->height; y++)
        for (size_t x = 0; x < of->width; x++)
            for (size_t c = 0; c < CHANNELS; c++)
                EXPECT(found[(y * of->width + x) * CHANNELS + c], expected(of, from, x, y, c));
    OK(clReleaseSampler(sampler));
    OK(clReleaseMemObject(source));
    OK(clReleaseMemObject(target));
    OK(clReleaseCommandQueue(queue));
}

/* Launches of one kernel, in order, each twice. */
static void run(const struct launch *launches, size_t count) {
    cl_kernel kernel = new_kernel(launches->kernel);
    for (size_t i = 0; i < count; i++)
        for (int again = 0; again < 2; again++)
            run_with(kernel, &launches[i]);
    OK(clReleaseKernel(kernel));
}

static const struct launch WHOLE = {"blur", 64, 32, {0}, CL_ADDRESS_CLAMP_TO_EDGE, 0};
static const struct launch ODD = {"blur", 61, 13, {0}, CL_ADDRESS_CLAMP_TO_EDGE, 0};
static const struct launch NARROW = {"blur", 3, 32, {0}, CL_ADDRESS_CLAMP_TO_EDGE, 0};
static const struct launch BORDER = {"blur", 64, 32, {0}, CL_ADDRESS_CLAMP, 0};
static const struct launch FAR_AWAY = {"blur", 64, 32, {0}, CL_ADDRESS_CLAMP_TO_EDGE, 1u << 30};
static const struct launch TILES = {"turn", 64, 32, {16, 4}, CL_ADDRESS_CLAMP, 0};
static const struct launch OTHER_TILES = {"turn", 60, 32, {10, 4}, CL_ADDRESS_CLAMP, 0};

static const struct launch LARGE = {"loops", 320, 256, {0}, CL_ADDRESS_CLAMP_TO_EDGE, 0};
static const struct launch LARGE_ODD = {"loops", 317, 211, {0}, CL_ADDRESS_CLAMP_TO_EDGE, 0};
static const struct launch SMALL = {"loops", 61, 13, {0}, CL_ADDRESS_CLAMP_TO_EDGE, 0};

/* Of a kernel that sums up in memory what it reads there: apart from it, and in the same buffer. */
static void sums(void) {
    enum { ITEMS = 64, N = 8, WORDS = N * ITEMS };
    cl_int status, n = N, memory[2 * WORDS], found[2 * WORDS];
    uint8_t pixels[ITEMS * CHANNELS] = {0};
    cl_kernel kernel = new_kernel("add");
    cl_command_queue queue = make_queue(context, device, 0);
    struct launch row = {.width = ITEMS, .height = 1};
    for (size_t i = 0; i < ITEMS; i++)
        pixels[i * CHANNELS] = (uint8_t)(3 * i);
    cl_mem image = new_image(&row, pixels);
    for (int is_apart = 1; is_apart >= 0; is_apart--) {
        for (int i = 0; i < 2 * WORDS; i++)
            memory[i] = i % 13 - 5;
        cl_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
        cl_mem whole = clCreateBuffer(context, flags, sizeof memory, memory, &status);
        OK(status);
        cl_buffer_region region = {0, sizeof memory / 2};
        cl_mem c = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
        OK(status);
        region.origin = is_apart ? region.size : 0;
        cl_mem a = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
        OK(status);
        OK(clSetKernelArg(kernel, 0, sizeof image, &image));
        OK(clSetKernelArg(kernel, 1, sizeof c, &c));
        OK(clSetKernelArg(kernel, 2, sizeof a, &a));
        OK(clSetKernelArg(kernel, 3, sizeof n, &n));
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, (size_t[]){ITEMS}, (size_t[]){ITEMS / 2}, 0, NULL,
                                  NULL));
        OK(clEnqueueReadBuffer(queue, whole, CL_TRUE, 0, sizeof found, found, 0, NULL, NULL));
        for (int i = 0; i < ITEMS; i++)
            for (int k = 0; k < N; k++)
                memory[N * i + 3] += memory[is_apart * WORDS + N * i + k] + pixels[i * CHANNELS];
        for (int i = 0; i < 2 * WORDS; i++)
            EXPECT(found[i], memory[i]);
        OK(clReleaseMemObject(a));
        OK(clReleaseMemObject(c));
        OK(clReleaseMemObject(whole));
    }
    OK(clReleaseMemObject(image));
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
}

static void *use(void *argument) {
    struct launch mine = WHOLE;
    cl_kernel kernel = *(cl_kernel *)argument;
    for (size_t i = 0; i < 4; i++) {
        mine.width = i & 1 ? WHOLE.width : ODD.width;
        run_with(kernel, &mine);
    }
    return NULL;
}

static void threads(void) {
    pthread_t made[THREADS];
    cl_kernel kernels[THREADS];
    for (int i = 0; i < THREADS; i++) {
        kernels[i] = new_kernel("blur");
        CHECK(!pthread_create(&made[i], NULL, use, &kernels[i]));
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(made[i], NULL);
        OK(clReleaseKernel(kernels[i]));
    }
}

int main(int argc, char **argv) {
    static const char *source = SOURCE;
    cl_int status;
    CHECK(argc > 1);
    device = the_device();
    context = make_context(device);
    program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 1, &device, "-cl-std=CL3.0", NULL, NULL));
    if (!strcmp(argv[1], "whole"))
        run(&WHOLE, 1);
    else if (!strcmp(argv[1], "odd"))
        run((struct launch[]){ODD, NARROW, WHOLE}, 3); /* what suits any launch suits this, too */
    else if (!strcmp(argv[1], "sizes"))
        run((struct launch[]){WHOLE, ODD, WHOLE}, 3);
    else if (!strcmp(argv[1], "large"))
        run((struct launch[]){SMALL, LARGE, LARGE_ODD, SMALL}, 4);
    else if (!strcmp(argv[1], "samplers"))
        run((struct launch[]){WHOLE, BORDER, WHOLE}, 3);
    else if (!strcmp(argv[1], "far away"))
        run(&FAR_AWAY, 1);
    else if (!strcmp(argv[1], "groups"))
        run((struct launch[]){TILES, OTHER_TILES}, 2);
    else if (!strcmp(argv[1], "sums"))
        sums();
    else if (!strcmp(argv[1], "threads"))
        threads();
    else
        CHECK(!"such a part");
    OK(clReleaseProgram(program));
    OK(clReleaseContext(context));
    return 0;
}
