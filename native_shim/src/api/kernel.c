/* Kernel objects: creation, clones and queries (API specification, 5.9.1, 5.9.3 and 5.9.4). */
#include "api/common.h"

#include <stdlib.h>
#include <string.h>

#include "api/program.h"
#include "kernel/executable.h"
#include "kernel/kernel.h"
#include "memory/mem.h"
#include "object/call.h"
#include "object/info.h"
#include "object/lock.h"
#include "python/requests.h"

static void drop_device_infos(struct cld_kernel_info **infos, uint32_t count) {
    for (uint32_t i = 0; infos && i < count; i++)
        cld_kernel_info_drop(infos[i]);
    free(infos);
}

static void destroy_kernel(void *object) {
    struct cld_kernel *kernel = object;
    atomic_fetch_sub(&kernel->program->kernel_count, 1);
    cld_kernel_info_drop(kernel->info);
    drop_device_infos(kernel->infos, kernel->program->device_count);
    free(kernel->block);
    free(kernel->mems);
    free(kernel->is_set);
    cld_object_drop(kernel->program);
}

__attribute__((constructor)) static void register_kernel(void) {
    cld_object_on_destroy(CLD_KERNEL, destroy_kernel);
}

/* infos: for the program's devices, each held, taken over in every case; or NULL. The caller holds
 * the program's lock or a kernel of it, so that info stays. NULL when out of memory. */
static struct cld_kernel *new_kernel(struct cld_program *program, struct cld_kernel_info *info,
                                     struct cld_kernel_info **infos) {
    size_t args = info->arg_count ? info->arg_count : 1;
    uint8_t *block = calloc(1, info->block_size ? info->block_size : 1);
    struct cld_mem **mems = calloc(args, sizeof *mems);
    uint8_t *is_set = calloc(args, sizeof *is_set);
    struct cld_kernel *kernel = block && mems && is_set ? cld_object_new(CLD_KERNEL) : NULL;
    if (!kernel) {
        free(block);
        free(mems);
        free(is_set);
        drop_device_infos(infos, program->device_count);
        return NULL;
    }
    kernel->program = program;
    cld_object_hold(program);
    atomic_fetch_add(&program->kernel_count, 1);
    kernel->info = info;
    atomic_fetch_add(&info->holds, 1);
    kernel->infos = infos;
    kernel->block = block;
    kernel->mems = mems;
    kernel->is_set = is_set;
    return kernel;
}

static struct cld_kernel_info *find_info(const struct cld_program_build *build, const char *name) {
    int64_t place = cld_program_build_find(build, name);
    return place < 0 ? NULL : build->infos[place];
}

static bool same_definition(const struct cld_kernel_info *a, const struct cld_kernel_info *b) {
    if (a->arg_count != b->arg_count || a->block_size != b->block_size)
        return false;
    for (uint32_t i = 0; i < a->arg_count; i++) {
        const struct cld_arg_info *x = &a->args[i], *y = &b->args[i];
        if (x->kind != y->kind || x->constant != y->constant || x->size != y->size || x->align != y->align ||
            x->offset != y->offset)
            return false;
    }
    return true;
}

/* The kernel's code for each device of the program, held. *infos is NULL where one serves all devices of the
 * context. False when out of memory. The program is locked. */
static bool infos_of_devices(const struct cld_program *program, const char *name,
                             struct cld_kernel_info ***infos) {
    *infos = NULL;
    bool everywhere = program->build_count == 1 && program->device_count == program->context->device_count;
    for (uint32_t i = 0; i < program->device_count; i++)
        everywhere = everywhere && program->build_of[i] == 0;
    if (everywhere)
        return true;
    *infos = calloc(program->device_count, sizeof **infos);
    if (!*infos)
        return false;
    for (uint32_t i = 0; i < program->device_count; i++) {
        struct cld_kernel_info *info = NULL;
        if (program->build_of[i] >= 0)
            info = find_info(&program->builds[program->build_of[i]], name);
        if (info)
            atomic_fetch_add(&info->holds, 1);
        (*infos)[i] = info;
    }
    return true;
}

/* Makes the kernel of that name. The program is locked and loaded. */
static cl_int make_kernel(struct cld_program *program, const char *name, struct cld_kernel **kernel) {
    struct cld_kernel_info *info = NULL;
    for (uint32_t i = 0; i < program->build_count; i++) {
        struct cld_kernel_info *other = find_info(&program->builds[i], name);
        /* "CL_INVALID_KERNEL_DEFINITION if the function definition for __kernel function given by kernel_name
         * such as the number of arguments, the argument types are not the same for all devices for which the
         * program executable has been built." */
        if (info && other && !same_definition(info, other))
            return CL_INVALID_KERNEL_DEFINITION;
        if (!info)
            info = other;
    }
    /* "CL_INVALID_KERNEL_NAME if kernel_name is not found in program." */
    if (!info)
        return CL_INVALID_KERNEL_NAME;
    struct cld_kernel_info **infos;
    if (!infos_of_devices(program, name, &infos) || !(*kernel = new_kernel(program, info, infos)))
        return CL_OUT_OF_HOST_MEMORY;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_kernel CL_API_CALL clCreateKernel(cl_program handle, const char *kernel_name,
                                                  cl_int *errcode_ret) {
    struct cld_program *program = cld_object_check(handle, CLD_PROGRAM);
    CLD_REQUIRE_OR_NULL(program, CL_INVALID_PROGRAM, "not a program");
    CLD_REQUIRE_LIVE_OR_NULL(program->context);
    CLD_REQUIRE_OR_NULL(kernel_name, CL_INVALID_VALUE, "kernel_name is NULL");
    cl_int status = cld_program_load_kernels(program, kernel_name);
    CLD_REQUIRE_OR_NULL(!status, status, "the program has no executable, or none that can be loaded");
    struct cld_kernel *kernel = NULL;
    cld_lock(program);
    status = make_kernel(program, kernel_name, &kernel);
    cld_unlock(program);
    CLD_REQUIRE_OR_NULL(!status, status, "the program has no kernel of that name: kernel_name");
    if (errcode_ret)
        *errcode_ret = CL_SUCCESS;
    return (cl_kernel)kernel;
}

/* "Kernel objects are not created for any __kernel functions in program that do not have the same function
 * definition across all devices for which a program executable has been successfully built." */
static bool same_everywhere(const struct cld_program *program, uint32_t place) {
    const struct cld_program_build *first = program->builds;
    for (uint32_t i = 1; i < program->build_count; i++) {
        const struct cld_kernel_info *other = find_info(&program->builds[i], first->executable->names[place]);
        if (!first->infos[place] || !other || !same_definition(first->infos[place], other))
            return false;
    }
    return true;
}

CL_API_ENTRY cl_int CL_API_CALL clCreateKernelsInProgram(cl_program handle, cl_uint num_kernels,
                                                         cl_kernel *kernels, cl_uint *num_kernels_ret) {
    struct cld_program *program = cld_object_check(handle, CLD_PROGRAM);
    CLD_REQUIRE(program, CL_INVALID_PROGRAM, "not a program");
    CLD_REQUIRE_LIVE(program->context);
    cl_int status = cld_program_load(program);
    /* Their number is known before they are compiled, where they are not to be compared. */
    if (!status && (kernels || program->build_count > 1))
        status = cld_program_load_kernels(program, NULL);
    CLD_REQUIRE(!status, status, "the program has no executable, or none that can be loaded");
    cld_lock(program);
    const struct cld_program_build *build = program->builds;
    uint32_t count = 0, made = 0, most = 0;
    if (build)
        most = build->executable->name_count - build->executable->block_count;
    for (uint32_t i = 0; i < most; i++)
        count += same_everywhere(program, i);
    bool room = !kernels || num_kernels >= count;
    for (uint32_t i = 0; kernels && room && !status && i < most; i++)
        if (same_everywhere(program, i)) {
            struct cld_kernel *kernel = NULL;
            status = make_kernel(program, build->executable->names[i], &kernel);
            if (!status)
                kernels[made++] = (cl_kernel)kernel;
        }
    cld_unlock(program);
    /* "CL_INVALID_VALUE if kernels is not NULL and num_kernels is less than the number of kernels". */
    CLD_REQUIRE(room, CL_INVALID_VALUE, "num_kernels is %u, the program has %u kernels", num_kernels, count);
    if (status) {
        while (made-- > 0)
            cld_object_release(kernels[made], CLD_KERNEL, CL_INVALID_KERNEL);
        return status;
    }
    if (num_kernels_ret)
        *num_kernels_ret = count;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_kernel CL_API_CALL clCloneKernel(cl_kernel handle, cl_int *errcode_ret) {
    struct cld_kernel *source = cld_object_check(handle, CLD_KERNEL);
    CLD_REQUIRE_OR_NULL(source, CL_INVALID_KERNEL, "not a kernel");
    CLD_REQUIRE_LIVE_OR_NULL(source->program->context);
    struct cld_kernel_info **infos = NULL;
    uint32_t devices = source->program->device_count;
    if (source->infos) {
        infos = calloc(devices, sizeof *infos);
        CLD_REQUIRE_OR_NULL(infos, CL_OUT_OF_HOST_MEMORY, "no memory");
    }
    for (uint32_t i = 0; infos && i < devices; i++) {
        infos[i] = source->infos[i];
        if (infos[i])
            atomic_fetch_add(&infos[i]->holds, 1);
    }
    struct cld_kernel *kernel = new_kernel(source->program, source->info, infos);
    CLD_REQUIRE_OR_NULL(kernel, CL_OUT_OF_HOST_MEMORY, "no memory");
    /* "an exact copy of source_kernel": its arguments, and what clSetKernelExecInfo set. */
    memcpy(kernel->block, source->block, source->info->block_size);
    memcpy(kernel->mems, source->mems, source->info->arg_count * sizeof *source->mems);
    memcpy(kernel->is_set, source->is_set, source->info->arg_count * sizeof *source->is_set);
    kernel->svm_fine_system = source->svm_fine_system;
    if (errcode_ret)
        *errcode_ret = CL_SUCCESS;
    return (cl_kernel)kernel;
}

/* A query that Python answers: of the program's executable, by the kernel's name. */
static cl_int query_peer(const char *operation, const struct cld_kernel *kernel, const cl_uint *arg_index,
                         cl_uint param_name, size_t param_value_size, void *param_value,
                         size_t *param_value_size_ret) {
    struct cld_msg request;
    cld_msg_init(&request);
    cld_put_int(&request, (int64_t)kernel->program->obj.key);
    cld_put_string(&request, kernel->info->name);
    if (arg_index)
        cld_put_int(&request, *arg_index);
    cld_put_int(&request, param_name);
    return cld_query(operation, &request, param_value_size, param_value, param_value_size_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clGetKernelInfo(cl_kernel handle, cl_kernel_info param_name,
                                                size_t param_value_size, void *param_value,
                                                size_t *param_value_size_ret) {
    const struct cld_kernel *kernel = cld_object_check(handle, CLD_KERNEL);
    CLD_REQUIRE(kernel, CL_INVALID_KERNEL, "not a kernel");
    cl_uint number;
    switch (param_name) {
    case CL_KERNEL_FUNCTION_NAME:
        return cld_info_string(kernel->info->name, param_value_size, param_value, param_value_size_ret);
    case CL_KERNEL_NUM_ARGS:
        return cld_info(&kernel->info->arg_count, sizeof kernel->info->arg_count, param_value_size,
                        param_value, param_value_size_ret);
    case CL_KERNEL_REFERENCE_COUNT:
        number = cld_object_refs(kernel);
        return cld_info(&number, sizeof number, param_value_size, param_value, param_value_size_ret);
    case CL_KERNEL_CONTEXT:
        return cld_info(&kernel->program->context, sizeof kernel->program->context, param_value_size,
                        param_value, param_value_size_ret);
    case CL_KERNEL_PROGRAM:
        return cld_info(&kernel->program, sizeof kernel->program, param_value_size, param_value,
                        param_value_size_ret);
    }
    return query_peer("clGetKernelInfo", kernel, NULL, param_name, param_value_size, param_value,
                      param_value_size_ret);
}

/* "CL_INVALID_DEVICE if device is not in the list of devices associated with kernel or if device is NULL but
 * there is more than one device associated with kernel." */
static const struct cld_device *kernel_device(const struct cld_kernel *kernel, cl_device_id handle) {
    const struct cld_program *program = kernel->program;
    if (!handle)
        return program->device_count == 1 ? program->devices[0] : NULL;
    const struct cld_device *device = cld_object_check(handle, CLD_DEVICE);
    return device && cld_program_has_device(program, device) ? device : NULL;
}

/* Variables of the kernel's scope and local arguments, "If the local memory size, for any pointer argument
 * [...] is not specified, its size is assumed to be 0." */
static cl_ulong local_memory_size(struct cld_kernel *kernel) {
    const struct cld_kernel_info *info = kernel->info;
    cl_ulong total = info->local_static;
    for (uint32_t i = 0; i < info->arg_count; i++)
        if (info->args[i].kind == CLD_ARG_LOCAL && kernel->is_set[i]) {
            uint64_t size;
            memcpy(&size, kernel->block + info->args[i].offset, sizeof size);
            total += size;
        }
    return total;
}

CL_API_ENTRY cl_int CL_API_CALL clGetKernelWorkGroupInfo(cl_kernel handle, cl_device_id device_handle,
                                                         cl_kernel_work_group_info param_name,
                                                         size_t param_value_size, void *param_value,
                                                         size_t *param_value_size_ret) {
    struct cld_kernel *kernel = cld_object_check(handle, CLD_KERNEL);
    CLD_REQUIRE(kernel, CL_INVALID_KERNEL, "not a kernel");
    const struct cld_device *device = kernel_device(kernel, device_handle);
    CLD_REQUIRE(device, CL_INVALID_DEVICE, "not a device of the kernel, or one of several must be named");
    const struct cld_kernel_info *info = cld_kernel_info_for(kernel, device);
    if (!info)
        info = kernel->info; /* what a build for this device would give: the devices are alike */
    size_t sizes[3];
    cl_ulong bytes;
    switch (param_name) {
    case CL_KERNEL_GLOBAL_WORK_SIZE:
        /* "CL_INVALID_VALUE if param_name is CL_KERNEL_GLOBAL_WORK_SIZE and device is not a custom device and
         * kernel is not a built-in kernel." */
        CLD_REQUIRE(false, CL_INVALID_VALUE, "neither a custom device nor a built-in kernel");
    case CL_KERNEL_WORK_GROUP_SIZE:
        sizes[0] =
            info->max_group_size < device->max_group_size ? info->max_group_size : device->max_group_size;
        return cld_info(sizes, sizeof *sizes, param_value_size, param_value, param_value_size_ret);
    case CL_KERNEL_COMPILE_WORK_GROUP_SIZE:
        for (int i = 0; i < 3; i++)
            sizes[i] = info->reqd_local_size[i];
        return cld_info(sizes, sizeof sizes, param_value_size, param_value, param_value_size_ret);
    case CL_KERNEL_LOCAL_MEM_SIZE:
        bytes = local_memory_size(kernel);
        return cld_info(&bytes, sizeof bytes, param_value_size, param_value, param_value_size_ret);
    }
    return query_peer("clGetKernelWorkGroupInfo", kernel, NULL, param_name, param_value_size, param_value,
                      param_value_size_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clGetKernelSubGroupInfo(cl_kernel handle, cl_device_id device_handle,
                                                        cl_kernel_sub_group_info param_name,
                                                        size_t input_value_size, const void *input_value,
                                                        size_t param_value_size, void *param_value,
                                                        size_t *param_value_size_ret) {
    const struct cld_kernel *kernel = cld_object_check(handle, CLD_KERNEL);
    CLD_REQUIRE(kernel, CL_INVALID_KERNEL, "not a kernel");
    const struct cld_device *device = kernel_device(kernel, device_handle);
    CLD_REQUIRE(device, CL_INVALID_DEVICE, "not a device of the kernel, or one of several must be named");
    CLD_REQUIRE(!device->worker, CL_INVALID_OPERATION, "the device has no sub-groups");
    const struct cld_kernel_info *info = cld_kernel_info_for(kernel, device);
    if (!info)
        info = kernel->info; /* what a build for this device would give: the devices are alike */
    size_t most =
        info->max_group_size < device->max_group_size ? info->max_group_size : device->max_group_size;
    size_t input[3] = {1, 1, 1}, output[3] = {1, 1, 1}, size = info->sub_group_size;
    size_t dimensions = input_value_size / sizeof *input;
    switch (param_name) {
    case CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE:
    case CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE:
    case CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT:
        /* "CL_INVALID_VALUE if [...] the size in bytes specified by input_value_size is not valid or if
         * input_value is NULL." */
        CLD_REQUIRE(input_value, CL_INVALID_VALUE, "input_value is NULL");
        CLD_REQUIRE(input_value_size % sizeof *input == 0 && dimensions >= 1 &&
                        dimensions <= (param_name == CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT ? 1 : 3),
                    CL_INVALID_VALUE, "input_value_size is not that of a local size or count");
        memcpy(input, input_value, input_value_size);
    }
    switch (param_name) {
    case CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE:
        break;
    case CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE:
        if (__builtin_mul_overflow(input[0], input[1], &input[0]) ||
            __builtin_mul_overflow(input[0], input[2], &input[0]))
            input[0] = SIZE_MAX;
        size = input[0] / size + (input[0] % size != 0);
        break;
    case CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT:
        /* "If no work-group size can accommodate the requested number of sub-groups, 0 will be returned in
         * each element of the return array." */
        if (!input[0] || input[0] > most / size)
            memset(output, 0, sizeof output);
        else
            output[0] = input[0] * size;
        CLD_REQUIRE(!param_value ||
                        (param_value_size >= sizeof *output && param_value_size % sizeof *output == 0 &&
                         param_value_size <= sizeof output),
                    CL_INVALID_VALUE, "param_value_size is not that of a local size");
        return cld_info(output, param_value ? param_value_size : sizeof output, param_value_size, param_value,
                        param_value_size_ret);
    case CL_KERNEL_MAX_NUM_SUB_GROUPS:
        size = most / size + (most % size != 0);
        break;
    case CL_KERNEL_COMPILE_NUM_SUB_GROUPS:
        size = info->reqd_sub_groups;
        break;
    case CL_KERNEL_COMPILE_SUB_GROUP_SIZE_INTEL:
        size = info->reqd_sub_group_size;
        break;
    default:
        return cld_lack(__func__, CL_INVALID_VALUE, "param_name is no query that this driver knows");
    }
    return cld_info(&size, sizeof size, param_value_size, param_value, param_value_size_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clGetKernelArgInfo(cl_kernel handle, cl_uint arg_index,
                                                   cl_kernel_arg_info param_name, size_t param_value_size,
                                                   void *param_value, size_t *param_value_size_ret) {
    const struct cld_kernel *kernel = cld_object_check(handle, CLD_KERNEL);
    CLD_REQUIRE(kernel, CL_INVALID_KERNEL, "not a kernel");
    CLD_REQUIRE(arg_index < kernel->info->arg_count, CL_INVALID_ARG_INDEX, "no such argument");
    return query_peer("clGetKernelArgInfo", kernel, &arg_index, param_name, param_value_size, param_value,
                      param_value_size_ret);
}
