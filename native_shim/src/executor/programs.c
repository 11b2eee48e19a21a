/* Programs and their kernels. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "executor/internal.h"

/* jit/bundle.py: what several modules, or constants of a specialisation, begin with. */
static const char bundle_magic[] = {'C', 'L', 'D', 'I', 'L', 0, 0, 1};

void cld_remote_program_free(struct cld_remote_program *program) {
    for (struct cld_remote_kernel *kernel = program->kernels, *next; kernel; kernel = next) {
        next = kernel->next;
        clReleaseKernel(kernel->handle);
        free(kernel);
    }
    if (program->handle)
        clReleaseProgram(program->handle);
    cld_msg_free(&program->source);
    free(program);
}

/* A map's pairs, to be read next. */
static uint32_t get_map(struct cld_msg *msg) {
    uint32_t count = 0;
    if (msg->failed || msg->size - msg->at < 1 + sizeof count || msg->data[msg->at] != 'm') {
        msg->failed = true;
        return 0;
    }
    memcpy(&count, msg->data + msg->at + 1, sizeof count);
    msg->at += 1 + sizeof count;
    return count;
}

/* The next module: [SPIR-V, {constant: value}]. */
static cl_int read_module(struct cld_executor *executor, struct cld_msg *msg, cl_program *program) {
    size_t size;
    cl_int status = CL_SUCCESS;
    uint32_t count = cld_get_list(msg);
    const void *il = cld_get_bytes(msg, &size);
    if (count != 2 || msg->failed)
        return CL_INVALID_BINARY;
    *program = clCreateProgramWithIL(executor->context, il, size, &status);
    count = get_map(msg);
    for (uint32_t i = 0; i < count && !status; i++) {
        cl_uint constant = (cl_uint)cld_get_int(msg);
        const void *value = cld_get_bytes(msg, &size);
        status = msg->failed ? CL_INVALID_BINARY
                             : clSetProgramSpecializationConstant(*program, constant, size, value);
    }
    return msg->failed ? CL_INVALID_BINARY : status;
}

static cl_int link_modules(struct cld_executor *executor, const cl_program *modules, uint32_t count,
                           const char *options, cl_program *result) {
    cl_int status = CL_SUCCESS;
    for (uint32_t i = 0; i < count && !status; i++)
        status = clCompileProgram(modules[i], 0, NULL, NULL, 0, NULL, NULL, NULL, NULL);
    if (!status)
        *result = clLinkProgram(executor->context, 0, NULL, options, count, modules, NULL, NULL, &status);
    return status;
}

/* Of one module, or of several, which are compiled and linked. */
static cl_int build_bundle(struct cld_executor *executor, const uint8_t *il, size_t size, const char *options,
                           cl_program *result) {
    struct cld_msg msg = {.data = (uint8_t *)(uintptr_t)il, .size = size, .at = sizeof bundle_magic};
    uint32_t count = cld_get_list(&msg);
    if (msg.failed || !count || count > size)
        return CL_INVALID_BINARY;
    cl_program *modules = calloc(count, sizeof *modules);
    cl_int status = modules ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
    for (uint32_t i = 0; i < count && !status; i++)
        status = read_module(executor, &msg, &modules[i]);
    if (!status && count == 1) {
        *result = modules[0];
        modules[0] = NULL;
        status = clBuildProgram(*result, 0, NULL, options, NULL, NULL);
    } else if (!status) {
        status = link_modules(executor, modules, count, options, result);
    }
    for (uint32_t i = 0; modules && i < count; i++)
        if (modules[i])
            clReleaseProgram(modules[i]);
    free(modules);
    return status;
}

static void tell_log(struct cld_executor *executor, const struct cld_remote_program *program) {
    char *text = NULL;
    size_t size = 0;
    if (program->handle)
        clGetProgramBuildInfo(program->handle, executor->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    if (size && (text = malloc(size)))
        clGetProgramBuildInfo(program->handle, executor->device, CL_PROGRAM_BUILD_LOG, size, text, NULL);
    cld_log(1, "cluster: a program does not build (%d): %s", program->status, text ? text : "");
    cld_answer_text(executor, CLD_BUILT_MESSAGE, program->numbered.number, program->status, text,
                    text ? size - 1 : 0);
    free(text);
}

static void build(struct cld_executor *executor, struct cld_remote_program *program) {
    size_t options_size, size;
    struct cld_msg *source = &program->source;
    program->is_built = true;
    const char *bytes = cld_get_bytes(source, &options_size);
    const uint8_t *il = cld_get_bytes(source, &size);
    char *options = strndup(bytes ? bytes : "", options_size);
    if (!options) {
        program->status = CL_OUT_OF_HOST_MEMORY;
    } else if (size > sizeof bundle_magic && !memcmp(il, bundle_magic, sizeof bundle_magic)) {
        program->status = build_bundle(executor, il, size, options, &program->handle);
    } else {
        program->handle = clCreateProgramWithIL(executor->context, il, size, &program->status);
        if (!program->status)
            program->status = clBuildProgram(program->handle, 0, NULL, options, NULL, NULL);
    }
    free(options);
    if (program->status)
        tell_log(executor, program);
    cld_msg_free(source);
}

static struct cld_remote_kernel *make_kernel(const struct cld_remote_program *program, const char *name,
                                             size_t name_size, cl_int *status) {
    struct cld_remote_kernel *kernel = calloc(1, sizeof *kernel + name_size + 1);
    *status = CL_OUT_OF_HOST_MEMORY;
    if (!kernel)
        return NULL;
    memcpy(kernel->name, name, name_size);
    kernel->name_size = name_size;
    kernel->handle = clCreateKernel(program->handle, kernel->name, status);
    if (!*status)
        return kernel;
    free(kernel);
    return NULL;
}

cl_int cld_remote_kernel_of(struct cld_executor *executor, uint64_t number, const char *name,
                            size_t name_size, cl_kernel *kernel) {
    struct cld_remote_program *program = cld_numbers_find(&executor->programs, number);
    if (!program)
        return CL_INVALID_PROGRAM;
    if (!program->is_built)
        build(executor, program);
    if (program->status)
        return program->status;
    struct cld_remote_kernel *found = program->kernels;
    while (found && (found->name_size != name_size || memcmp(found->name, name, name_size)))
        found = found->next;
    if (!found) {
        cl_int status;
        found = make_kernel(program, name, name_size, &status);
        if (!found)
            return status;
        found->next = program->kernels;
        program->kernels = found;
    }
    *kernel = found->handle;
    return CL_SUCCESS;
}
