/* Images and samplers as arguments of kernels, and commands on images from several threads. What the commands
 * do to pixels, and their errors, are in tests/loader/images. */
#define _GNU_SOURCE
#include <pthread.h>

#include "harness.h"
#include "memory/image.h"

static cl_context context;

static const cl_image_format rgba8 = {CL_RGBA, CL_UNORM_INT8}, depth_float = {CL_DEPTH, CL_FLOAT};

static cl_mem test_image(cl_mem_flags flags, const cl_image_format *format, cl_mem_object_type type,
                         size_t width, size_t height, size_t layers, cl_mem memory) {
    cl_int status;
    cl_image_desc desc = {.image_type = type,
                          .image_width = width,
                          .image_height = height,
                          .image_depth = layers,
                          .image_array_size = layers,
                          .mem_object = memory};
    cl_mem image = clCreateImage(context, flags, format, &desc, NULL, &status);
    OK(status);
    return image;
}

/* What the kernel was given. */
static struct {
    const struct cld_image_desc *image;
    struct cld_image_desc desc;
    uint64_t sampler;
} seen;

static void look(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                 uint64_t first, uint64_t last) {
    (void)launch, (void)thread, (void)first, (void)last;
    memcpy(&seen.image, args, sizeof seen.image);
    memcpy(&seen.sampler, args + 8, sizeof seen.sampler);
    seen.desc = *seen.image;
}

static cl_kernel look_kernel(cl_mem_object_type type, uint8_t access, bool depth) {
    cl_kernel kernel = test_kernel(context, look, "gi");
    struct cld_arg_info *args = info_of(kernel)->args;
    args[0].kind = CLD_ARG_IMAGE;
    args[0].image_type = type;
    args[0].access = access;
    args[0].depth = depth;
    args[1].kind = CLD_ARG_SAMPLER;
    args[1].size = args[1].align = 8;
    return kernel;
}

static cl_int set(cl_kernel kernel, cl_uint index, const void *object) {
    return clSetKernelArg(kernel, index, sizeof object, &object);
}

static cl_sampler test_sampler(const cl_sampler_properties *properties) {
    cl_int status;
    cl_sampler sampler = clCreateSamplerWithProperties(context, properties, &status);
    OK(status);
    return sampler;
}

static cl_int launch(cl_command_queue queue, cl_kernel kernel) {
    size_t one = 1;
    return clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL);
}

static const cl_mem_object_type types[] = {CL_MEM_OBJECT_IMAGE1D,       CL_MEM_OBJECT_IMAGE1D_BUFFER,
                                           CL_MEM_OBJECT_IMAGE1D_ARRAY, CL_MEM_OBJECT_IMAGE2D,
                                           CL_MEM_OBJECT_IMAGE2D_ARRAY, CL_MEM_OBJECT_IMAGE3D};
enum { TYPES = sizeof types / sizeof *types };

/* Each argument takes images of its own type, and no others; the kernel sees the descriptor. */
static void arguments(void) {
    cl_command_queue queue = test_queue(context, 0);
    cl_mem buffer = test_buffer(context, 4096), images[TYPES];
    cl_sampler sampler = test_sampler(NULL);
    for (int i = 0; i < TYPES; i++)
        images[i] = test_image(0, &rgba8, types[i], 20, 10, 3,
                               types[i] == CL_MEM_OBJECT_IMAGE1D_BUFFER ? buffer : NULL);
    for (int i = 0; i < TYPES; i++) {
        cl_kernel kernel = look_kernel(types[i], CLD_READ_WRITE, false);
        for (int k = 0; k < TYPES; k++)
            CHECK_IS(set(kernel, 0, images[k]), i == k ? CL_SUCCESS : CL_INVALID_MEM_OBJECT);
        CHECK_IS(set(kernel, 0, buffer), CL_INVALID_MEM_OBJECT);
        CHECK_IS(set(kernel, 0, sampler), CL_INVALID_MEM_OBJECT);
        CHECK_IS(set(kernel, 0, NULL), CL_INVALID_MEM_OBJECT);
        CHECK_IS(clSetKernelArg(kernel, 0, sizeof(cl_mem), NULL), CL_INVALID_MEM_OBJECT);
        CHECK_IS(clSetKernelArg(kernel, 0, 4, &images[i]), CL_INVALID_ARG_SIZE);
        CHECK_IS(clSetKernelArgSVMPointer(kernel, 0, &seen), CL_INVALID_ARG_VALUE);
        CHECK_IS(launch(queue, kernel), CL_INVALID_KERNEL_ARGS); /* no sampler */
        OK(set(kernel, 1, sampler));
        OK(launch(queue, kernel));
        OK(clFinish(queue));
        bool is_3d = types[i] == CL_MEM_OBJECT_IMAGE3D, is_array = cld_image_is_array(types[i]);
        int height = is_3d || types[i] == CL_MEM_OBJECT_IMAGE2D || types[i] == CL_MEM_OBJECT_IMAGE2D_ARRAY;
        const struct cld_image_desc *desc = &seen.desc;
        CHECK((uintptr_t)seen.image % 64 == 0 && desc->data == ((struct cld_mem *)images[i])->data);
        CHECK_IS(desc->width, 20);
        CHECK_IS(desc->height, height ? 10 : 1);
        CHECK_IS(desc->depth, is_3d ? 3 : 1);
        CHECK_IS(desc->array_size, is_array ? 3 : 1);
        CHECK_IS(desc->row_pitch, 80);
        CHECK_IS(desc->slice_pitch, height ? 800 : 80);
        CHECK(desc->channel_order == CL_RGBA && desc->channel_data_type == CL_UNORM_INT8);
        CHECK(desc->element_size == 4 && desc->levels == 1);
        CHECK(desc->level->width == 20 && desc->level->row_pitch == 80 && !desc->level->offset);
        OK(clReleaseKernel(kernel));
    }
    for (int i = 0; i < TYPES; i++)
        OK(clReleaseMemObject(images[i]));
    OK(clReleaseMemObject(buffer));
    OK(clReleaseSampler(sampler));
    OK(clReleaseCommandQueue(queue));
}

static void access_and_depth(void) {
    static const cl_mem_flags flags[] = {CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY, CL_MEM_READ_WRITE, 0};
    for (int i = 0; i < 4; i++) {
        cl_mem image = test_image(flags[i], &rgba8, CL_MEM_OBJECT_IMAGE2D, 4, 4, 0, NULL);
        for (uint8_t access = CLD_READ_ONLY; access <= CLD_READ_WRITE; access++) {
            cl_kernel kernel = look_kernel(CL_MEM_OBJECT_IMAGE2D, access, false);
            bool allowed = flags[i] == CL_MEM_READ_ONLY    ? access == CLD_READ_ONLY
                           : flags[i] == CL_MEM_WRITE_ONLY ? access == CLD_WRITE_ONLY
                                                           : true;
            CHECK_IS(set(kernel, 0, image), allowed ? CL_SUCCESS : CL_INVALID_ARG_VALUE);
            OK(clReleaseKernel(kernel));
        }
        OK(clReleaseMemObject(image));
    }
    cl_kernel kernel = look_kernel(CL_MEM_OBJECT_IMAGE2D, CLD_READ_ONLY, true);
    cl_mem color = test_image(0, &rgba8, CL_MEM_OBJECT_IMAGE2D, 4, 4, 0, NULL);
    cl_mem depth = test_image(0, &depth_float, CL_MEM_OBJECT_IMAGE2D, 4, 4, 0, NULL);
    CHECK_IS(set(kernel, 0, color), CL_INVALID_MEM_OBJECT);
    OK(set(kernel, 0, depth));
    OK(clReleaseKernel(kernel));
    kernel = look_kernel(CL_MEM_OBJECT_IMAGE2D, CLD_READ_ONLY, false);
    OK(set(kernel, 0, depth));
    OK(clReleaseKernel(kernel));
    OK(clReleaseMemObject(color));
    OK(clReleaseMemObject(depth));
}

/* CLK_* words of OpenCL C, levels of detail above them. */
static void samplers(void) {
    cl_command_queue queue = test_queue(context, 0);
    cl_kernel kernel = look_kernel(CL_MEM_OBJECT_IMAGE2D, CLD_READ_ONLY, false);
    cl_mem image = test_image(0, &rgba8, CL_MEM_OBJECT_IMAGE2D, 4, 4, 0, NULL);
    const uint64_t no_limit = (uint64_t)0xFFFF << 48;
    cl_uint low = 0x3FC00000, high = 0x40A00000; /* 1.5f and 5.0f */
    const struct {
        cl_sampler_properties properties[9];
        uint64_t word;
    } cases[] = {
        {{0}, 0x15 | no_limit},
        {{CL_SAMPLER_NORMALIZED_COORDS, 0, CL_SAMPLER_ADDRESSING_MODE, CL_ADDRESS_NONE}, 0x10 | no_limit},
        {{CL_SAMPLER_ADDRESSING_MODE, CL_ADDRESS_CLAMP_TO_EDGE}, 0x13 | no_limit},
        {{CL_SAMPLER_ADDRESSING_MODE, CL_ADDRESS_REPEAT}, 0x17 | no_limit},
        {{CL_SAMPLER_ADDRESSING_MODE, CL_ADDRESS_MIRRORED_REPEAT, CL_SAMPLER_FILTER_MODE, CL_FILTER_LINEAR},
         0x29 | no_limit},
        {{CL_SAMPLER_MIP_FILTER_MODE, CL_FILTER_LINEAR, CL_SAMPLER_LOD_MIN, low, CL_SAMPLER_LOD_MAX, high},
         0x55 | (uint64_t)3072 << 32 | (uint64_t)10240 << 48},
    };
    OK(set(kernel, 0, image));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cl_sampler sampler = test_sampler(cases[i].properties);
        OK(set(kernel, 1, sampler));
        OK(clReleaseSampler(sampler)); /* the kernel has what it is */
        OK(launch(queue, kernel));
        OK(clFinish(queue));
        CHECK_IS(seen.sampler, cases[i].word);
        CHECK_IS(set(kernel, 1, sampler), CL_INVALID_SAMPLER);
    }
    CHECK_IS(set(kernel, 1, image), CL_INVALID_SAMPLER);
    CHECK_IS(set(kernel, 1, NULL), CL_INVALID_SAMPLER);
    CHECK_IS(clSetKernelArg(kernel, 1, sizeof(cl_sampler), NULL), CL_INVALID_SAMPLER);
    CHECK_IS(clSetKernelArg(kernel, 1, 4, &image), CL_INVALID_ARG_SIZE);
    cl_context other = test_context(), saved = context;
    context = other;
    cl_sampler foreign = test_sampler(NULL);
    cl_mem elsewhere = test_image(0, &rgba8, CL_MEM_OBJECT_IMAGE2D, 4, 4, 0, NULL);
    context = saved;
    CHECK_IS(set(kernel, 1, foreign), CL_INVALID_SAMPLER);
    CHECK_IS(set(kernel, 0, elsewhere), CL_INVALID_MEM_OBJECT);
    OK(clReleaseSampler(foreign));
    OK(clReleaseMemObject(elsewhere));
    OK(clReleaseContext(other));
    OK(clReleaseMemObject(image));
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
}

/* Launches hold their images; an image that was released before is not an argument any more, and neither is
 * what has come into its place. */
static void lifetime(void) {
    cl_command_queue queue = test_queue(context, 0);
    cl_kernel kernel = look_kernel(CL_MEM_OBJECT_IMAGE2D, CLD_READ_ONLY, false);
    cl_mem image = test_image(0, &rgba8, CL_MEM_OBJECT_IMAGE2D, 4, 4, 0, NULL);
    cl_sampler sampler = test_sampler(NULL);
    cl_int status;
    cl_event gate = clCreateUserEvent(context, &status);
    size_t one = 1;
    OK(status);
    OK(set(kernel, 0, image));
    OK(set(kernel, 1, sampler));
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 1, &gate, NULL));
    OK(clReleaseMemObject(image));
    CHECK_IS(cld_object_check(image, CLD_MEM) != NULL, true);
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
    OK(clFinish(queue));
    CHECK_IS(seen.desc.width, 4);
    CHECK_IS(launch(queue, kernel), CL_INVALID_KERNEL_ARGS);
    cl_mem buffers[300];
    for (int i = 0; i < 300; i++)
        buffers[i] = test_buffer(context, 64);
    CHECK_IS(launch(queue, kernel), CL_INVALID_KERNEL_ARGS);
    for (int i = 0; i < 300; i++)
        OK(clReleaseMemObject(buffers[i]));
    OK(clReleaseEvent(gate));
    OK(clReleaseSampler(sampler));
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
}

enum { SIDE = 700, ROUNDS = 12, THREADS = 4 };

/* Writes, copies and reads of regions of the thread's own images, large enough to be shared out. */
static void *work(void *argument) {
    unsigned seed = (unsigned)(uintptr_t)argument;
    cl_command_queue queue = test_queue(context, 0);
    cl_mem a = test_image(0, &rgba8, CL_MEM_OBJECT_IMAGE2D, SIDE, SIDE, 0, NULL);
    cl_mem b = test_image(0, &rgba8, CL_MEM_OBJECT_IMAGE2D_ARRAY, SIDE, SIDE, 2, NULL);
    uint32_t *from = malloc(4 * SIDE * SIDE), *to = malloc(4 * SIDE * SIDE);
    CHECK(from && to);
    for (int round = 0; round < ROUNDS; round++) {
        size_t x = rand_r(&seed) % 50, y = rand_r(&seed) % 50, zero[3] = {0}, layer[3] = {x, y, 1};
        size_t region[3] = {SIDE - x, SIDE - y - (size_t)rand_r(&seed) % 600, 1};
        size_t pixels = region[0] * region[1];
        for (size_t i = 0; i < pixels; i++)
            from[i] = (uint32_t)rand_r(&seed);
        float color[4] = {0.5f, 0, 1, 0.25f};
        size_t all[3] = {SIDE, SIDE, 1}, last[3] = {SIDE - 1, y, 1}, one[3] = {1, 1, 1};
        cl_uint pixel = 0;
        OK(clEnqueueWriteImage(queue, a, CL_FALSE, zero, region, 0, 0, from, 0, NULL, NULL));
        OK(clEnqueueFillImage(queue, b, color, (size_t[3]){0, 0, 1}, all, 0, NULL, NULL));
        OK(clEnqueueCopyImage(queue, a, b, zero, layer, region, 0, NULL, NULL));
        OK(clEnqueueReadImage(queue, b, CL_TRUE, layer, region, 0, 0, to, 0, NULL, NULL));
        CHECK(!memcmp(from, to, 4 * pixels));
        OK(clEnqueueReadImage(queue, b, CL_TRUE, last, one, 0, 0, &pixel, 0, NULL, NULL));
        CHECK_IS(pixel, from[region[0] - 1]);
        size_t row, slice;
        cl_int status;
        void *mapped = clEnqueueMapImage(queue, b, CL_TRUE, CL_MAP_WRITE, layer, one, &row, &slice, 0, NULL,
                                         NULL, &status);
        OK(status);
        CHECK(row == 4 * SIDE && slice == 4 * SIDE * SIDE);
        memset(mapped, 1, 4);
        OK(clEnqueueUnmapMemObject(queue, b, mapped, 0, NULL, NULL));
    }
    free(from);
    free(to);
    OK(clReleaseMemObject(a));
    OK(clReleaseMemObject(b));
    OK(clReleaseCommandQueue(queue));
    return NULL;
}

static void threads(void) {
    pthread_t started[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&started[i], NULL, work, (void *)(i + 1)));
    for (int i = 0; i < THREADS; i++)
        pthread_join(started[i], NULL);
}

int main(void) {
    context = test_context();
    arguments();
    access_and_depth();
    samplers();
    lifetime();
    threads();
    OK(clReleaseContext(context));
    return 0;
}
