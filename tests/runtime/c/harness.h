/* What the C tests of the data plane share. They link the driver's sources, make a context without Python,
 * and kernels from C functions. A failed CHECK prints where and ends the program with status 1. */
#ifndef HARNESS_H
#define HARNESS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/common.h"
#include "api/platform.h"
#include "kernel/kernel.h"
#include "memory/mem.h"
#include "object/info.h"
#include "runtime/command.h"
#include "runtime/worker.h"

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                  \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

#define CHECK_IS(value, expected)                                                                            \
    do {                                                                                                     \
        long long value_ = (long long)(value), expected_ = (long long)(expected);                            \
        if (value_ != expected_) {                                                                           \
            fprintf(stderr, "%s:%d: %s is %lld, not %s (%lld)\n", __FILE__, __LINE__, #value, value_,        \
                    #expected, expected_);                                                                   \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

#define OK(call) CHECK_IS(call, CL_SUCCESS)

/* Marsaglia's xorshift: the same numbers below a bound in each run, from the same state. */
static uint64_t chance_state = 88172645463325252;

static inline uint64_t chance(uint64_t below) {
    chance_state ^= chance_state << 13;
    chance_state ^= chance_state >> 7;
    chance_state ^= chance_state << 17;
    return below ? (chance_state >> 11) % below : 0;
}

/* LeakSanitizer does not look through mapped memory for pointers unless it is told. */
__attribute__((weak)) void __lsan_register_root_region(const void *start, size_t size);

/* The root device, with limits that otherwise come from Python. */
static inline cl_device_id test_device(void) {
    struct cld_device *device = cld_root_device();
    CHECK(device);
    if (!atomic_load(&device->complete)) {
        if (__lsan_register_root_region)
            __lsan_register_root_region(atomic_load(&cld_slots), (size_t)1 << 30);
        device->max_group_size = 4096;
        for (int i = 0; i < 3; i++)
            device->max_item_sizes[i] = i < 2 ? 4096 : 1024;
        device->local_memory_size = 1 << 16;
        device->max_alloc_size = (uint64_t)1 << 36;
        device->base_align = 128;
        atomic_store(&device->complete, true);
    }
    return (cl_device_id)device;
}

/* A sub-device of the first count CPUs. */
static inline cl_device_id test_sub_device(uint32_t count) {
    struct cld_device *parent = (struct cld_device *)test_device(), *device = cld_object_new(CLD_DEVICE);
    CHECK(device && count <= parent->compute_units);
    device->parent = parent;
    cld_object_hold(parent);
    device->compute_units = count;
    device->cpus = malloc(count * sizeof *device->cpus);
    memcpy(device->cpus, parent->cpus, count * sizeof *device->cpus);
    device->max_group_size = parent->max_group_size;
    memcpy(device->max_item_sizes, parent->max_item_sizes, sizeof device->max_item_sizes);
    device->local_memory_size = parent->local_memory_size;
    device->max_alloc_size = parent->max_alloc_size;
    device->base_align = parent->base_align;
    atomic_store(&device->complete, true);
    return (cl_device_id)device;
}

static inline cl_context test_context_of(cl_uint count, const cl_device_id *devices) {
    struct cld_context *context = cld_object_new(CLD_CONTEXT);
    CHECK(context);
    context->devices = calloc(count, sizeof *context->devices);
    context->default_queues = calloc(count, sizeof *context->default_queues);
    context->device_count = count;
    for (cl_uint i = 0; i < count; i++) {
        context->devices[i] = (struct cld_device *)devices[i];
        cld_object_hold(devices[i]);
    }
    return (cl_context)context;
}

static inline cl_context test_context(void) {
    cl_device_id device = test_device();
    return test_context_of(1, &device);
}

static inline cl_command_queue test_queue(cl_context context, cl_command_queue_properties properties) {
    cl_int status;
    cl_device_id device = (cl_device_id)((struct cld_context *)context)->devices[0];
    cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, properties, 0};
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, list, &status);
    OK(status);
    return queue;
}

static inline cl_mem test_buffer(cl_context context, size_t size) {
    cl_int status;
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &status);
    OK(status);
    return buffer;
}

/* A kernel whose arguments are described by a string of letters: g global pointer, l local pointer, i int,
 * d double. Each takes 8 bytes of the block, in order. */
static inline cl_kernel test_kernel(cl_context context, cld_kernel_fn entry, const char *args) {
    struct cld_program *program = cld_object_new(CLD_PROGRAM);
    struct cld_kernel *kernel = cld_object_new(CLD_KERNEL);
    struct cld_kernel_info *info = calloc(1, sizeof *info);
    uint32_t count = (uint32_t)strlen(args);
    CHECK(program && kernel && info);
    program->context = (struct cld_context *)context;
    cld_object_hold(context);
    info->holds = 1;
    info->name = strdup("test");
    info->entry = entry;
    info->arg_count = count;
    info->args = calloc(count + 1, sizeof *info->args);
    info->block_size = 8 * count;
    info->max_group_size = 4096;
    info->width = 8;
    for (uint32_t i = 0; i < count; i++) {
        struct cld_arg_info *arg = &info->args[i];
        arg->kind = args[i] == 'g' ? CLD_ARG_GLOBAL : args[i] == 'l' ? CLD_ARG_LOCAL : CLD_ARG_VALUE;
        arg->size = args[i] == 'i' ? 4 : 8;
        arg->align = args[i] == 'l' ? 16 : arg->size;
        arg->offset = 8 * i;
    }
    kernel->program = program; /* takes over its only reference */
    atomic_fetch_add(&program->kernel_count, 1);
    kernel->info = info;
    kernel->block = calloc(1, 8 * count + 8);
    kernel->mems = calloc(count + 1, sizeof *kernel->mems);
    kernel->is_set = calloc(1, count + 1);
    return (cl_kernel)kernel;
}

static inline struct cld_kernel_info *info_of(cl_kernel kernel) {
    return ((struct cld_kernel *)kernel)->info;
}

static inline cl_int status_of(cl_event event) {
    cl_int status;
    OK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    return status;
}

#endif
