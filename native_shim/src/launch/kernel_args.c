/* Kernel arguments (API specification, 5.9.2). "clSetKernelArg is not safe to be called concurrently on the
 * same cl_kernel object": no lock. */
#include <string.h>

#include "kernel/kernel.h"
#include "launch/kernel_command.h"
#include "memory/image.h"
#include "memory/mem.h"
#include "object/call.h"
#include "object/objects.h"
#include "object/svm_khr.h"

static cl_int set_value(struct cld_kernel *kernel, const struct cld_arg_info *arg, size_t arg_size,
                        const void *arg_value) {
    CLD_REQUIRE(arg_size == arg->size, CL_INVALID_ARG_SIZE,
                "arg_size is %zu, the argument has %u bytes: arg_index", arg_size, (unsigned)arg->size);
    CLD_REQUIRE(arg_value, CL_INVALID_ARG_VALUE, "arg_value is NULL");
    uint8_t *place = kernel->block + arg->offset;
    if (arg_size == sizeof(uint32_t)) /* most are of these sizes, which take no call */
        memcpy(place, arg_value, sizeof(uint32_t));
    else if (arg_size == sizeof(uint64_t))
        memcpy(place, arg_value, sizeof(uint64_t));
    else
        memcpy(place, arg_value, arg_size);
    return CL_SUCCESS;
}

static void set_pointer(struct cld_kernel *kernel, cl_uint index, struct cld_mem *mem, const void *pointer) {
    memcpy(kernel->block + kernel->info->args[index].offset, &pointer, sizeof pointer);
    kernel->mems[index] = mem;
}

/* A memory object of the kernel's context, or NULL where that was given. */
static cl_int read_memory(const struct cld_kernel *kernel, size_t arg_size, const void *arg_value,
                          struct cld_mem **mem) {
    cl_mem handle = NULL;
    *mem = NULL;
    CLD_REQUIRE(arg_size == sizeof handle, CL_INVALID_ARG_SIZE,
                "arg_size is %zu, sizeof(cl_mem) is %zu: arg_index", arg_size, sizeof handle);
    if (arg_value)
        memcpy(&handle, arg_value, sizeof handle);
    if (!handle)
        return CL_SUCCESS;
    *mem = cld_object_check(handle, CLD_MEM);
    CLD_REQUIRE(*mem && (*mem)->context == kernel->program->context, CL_INVALID_MEM_OBJECT,
                "*arg_value is %s, not a memory object of the kernel's context: arg_index",
                cld_describe(handle).text);
    return CL_SUCCESS;
}

/* "If the argument is a buffer object, the arg_value pointer can be NULL or point to a NULL value." */
static __attribute__((noinline, cold)) cl_int set_odd_buffer(struct cld_kernel *kernel, cl_uint index,
                                                             size_t arg_size, const void *arg_value) {
    struct cld_mem *mem;
    CLD_TRY(read_memory(kernel, arg_size, arg_value, &mem));
    if (!mem) {
        set_pointer(kernel, index, NULL, NULL);
        return CL_SUCCESS;
    }
    CLD_REQUIRE(mem->type == CL_MEM_OBJECT_BUFFER, CL_INVALID_MEM_OBJECT,
                "*arg_value is %s, not a buffer: arg_index", cld_describe(mem).text);
    /* An immutable memory object "cannot be modified by the implementation after creation". */
    CLD_REQUIRE(!(mem->flags & CLD_MEM_IMMUTABLE && kernel->info->args[index].written), CL_INVALID_ARG_VALUE,
                "the kernel writes to the buffer that arg_value has, which never changes: arg_index");
    set_pointer(kernel, index, mem, mem->data);
    return CL_SUCCESS;
}

/* In most calls it is a buffer that may be written: those that set_odd_buffer() would make the same of. */
static inline cl_int set_buffer(struct cld_kernel *kernel, cl_uint index, size_t arg_size,
                                const void *arg_value) {
    cl_mem handle;
    if (__builtin_expect(arg_size == sizeof handle && arg_value, 1)) {
        memcpy(&handle, arg_value, sizeof handle);
        struct cld_mem *mem = cld_object_check(handle, CLD_MEM);
        if (__builtin_expect(mem && mem->context == kernel->program->context &&
                                 mem->type == CL_MEM_OBJECT_BUFFER && !(mem->flags & CLD_MEM_IMMUTABLE),
                             1)) {
            set_pointer(kernel, index, mem, mem->data);
            return CL_SUCCESS;
        }
    }
    return set_odd_buffer(kernel, index, arg_size, arg_value);
}

/* "arg_value must be NULL, and arg_size specifies the amount of local memory in bytes [...]. For OpenCL 3.1
 * and newer, arg_size may be zero". The kernel's pointer is then one behind other local memory. */
static cl_int set_local(struct cld_kernel *kernel, const struct cld_arg_info *arg, size_t arg_size,
                        const void *arg_value) {
    CLD_REQUIRE(!arg_value, CL_INVALID_ARG_VALUE,
                "arg_value is %p, and an argument of local memory has none: arg_index", arg_value);
    uint64_t size = arg_size;
    memcpy(kernel->block + arg->offset, &size, sizeof size);
    return CL_SUCCESS;
}

/* The block holds what the sampler is, so that nothing needs it any more. */
static cl_int set_sampler(struct cld_kernel *kernel, const struct cld_arg_info *arg, size_t arg_size,
                          const void *arg_value) {
    cl_sampler handle = NULL;
    CLD_REQUIRE(arg_size == sizeof handle, CL_INVALID_ARG_SIZE,
                "arg_size is %zu, sizeof(cl_sampler) is %zu: arg_index", arg_size, sizeof handle);
    if (arg_value)
        memcpy(&handle, arg_value, sizeof handle);
    const struct cld_sampler *sampler = cld_object_check(handle, CLD_SAMPLER);
    CLD_REQUIRE(sampler && sampler->context == kernel->program->context, CL_INVALID_SAMPLER,
                "*arg_value is %s, not a sampler of the kernel's context: arg_index",
                cld_describe(handle).text);
    memcpy(kernel->block + arg->offset, &sampler->word, sizeof sampler->word);
    return CL_SUCCESS;
}

/* "The memory object specified as argument value must be a 2D image object if the argument is declared to be
 * of type image2d_t", and so on. The block holds the address of the image's descriptor. */
static cl_int set_image(struct cld_kernel *kernel, cl_uint index, size_t arg_size, const void *arg_value) {
    const struct cld_arg_info *arg = &kernel->info->args[index];
    struct cld_mem *mem;
    CLD_TRY(read_memory(kernel, arg_size, arg_value, &mem));
    CLD_REQUIRE(mem && mem->image && mem->type == arg->image_type, CL_INVALID_MEM_OBJECT,
                "*arg_value is %s of type %#x, the argument wants an image of type %#x: arg_index",
                cld_describe(mem).text, mem ? mem->type : 0, arg->image_type);
    /* "must be a 2D image object with image channel order = CL_DEPTH if the argument is declared to be of
     * type image2d_depth_t." */
    CLD_REQUIRE(
        !arg->depth || mem->image->format.image_channel_order == CL_DEPTH, CL_INVALID_MEM_OBJECT,
        "the image that arg_value has is of channel order %#x, the argument wants CL_DEPTH: arg_index",
        mem->image->format.image_channel_order);
    /* "CL_INVALID_ARG_VALUE if the argument is an image declared with the read_only qualifier and arg_value
     * refers to an image object created with cl_mem_flags of CL_MEM_WRITE_ONLY or if the image argument is
     * declared with the write_only qualifier and arg_value refers to an image object created with
     * cl_mem_flags of CL_MEM_READ_ONLY" or CL_MEM_IMMUTABLE_EXT. A read_write image is both. */
    CLD_REQUIRE((arg->access == CLD_WRITE_ONLY || !(mem->flags & CL_MEM_WRITE_ONLY)) &&
                    (arg->access == CLD_READ_ONLY || !(mem->flags & (CL_MEM_READ_ONLY | CLD_MEM_IMMUTABLE))),
                CL_INVALID_ARG_VALUE,
                "the image that arg_value has was made with flags %#lx, and the argument is %s: arg_index",
                (unsigned long)mem->flags,
                arg->access == CLD_WRITE_ONLY  ? "write_only"
                : arg->access == CLD_READ_ONLY ? "read_only"
                                               : "read_write");
    set_pointer(kernel, index, mem, &mem->image->desc);
    return CL_SUCCESS;
}

/* "The memory object specified as argument value must be a pipe object if the argument is declared with the
 * pipe qualifier." A kernel whose packets have another size than the pipe's cannot reserve any. */
static cl_int set_pipe(struct cld_kernel *kernel, cl_uint index, size_t arg_size, const void *arg_value) {
    struct cld_mem *mem;
    CLD_TRY(read_memory(kernel, arg_size, arg_value, &mem));
    CLD_REQUIRE(mem && mem->type == CL_MEM_OBJECT_PIPE, CL_INVALID_MEM_OBJECT,
                "*arg_value is %s, not a pipe: arg_index", cld_describe(mem).text);
    set_pointer(kernel, index, mem, mem->data);
    return CL_SUCCESS;
}

/* "CL_INVALID_DEVICE_QUEUE for an argument declared to be of type queue_t when the specified arg_value is not
 * a valid device queue object." */
static cl_int set_queue(struct cld_kernel *kernel, cl_uint index, size_t arg_size, const void *arg_value) {
    cl_command_queue handle = NULL;
    CLD_REQUIRE(arg_size == sizeof handle, CL_INVALID_ARG_SIZE,
                "arg_size is %zu, sizeof(cl_command_queue) is %zu: arg_index", arg_size, sizeof handle);
    if (arg_value)
        memcpy(&handle, arg_value, sizeof handle);
    struct cld_queue *queue = cld_object_check(handle, CLD_QUEUE);
    CLD_REQUIRE(queue && queue->properties & CL_QUEUE_ON_DEVICE && queue->context == kernel->program->context,
                CL_INVALID_DEVICE_QUEUE,
                "*arg_value is %s, not a queue on a device of the kernel's context: arg_index",
                cld_describe(handle).text);
    memcpy(kernel->block + kernel->info->args[index].offset, &queue, sizeof queue);
    return CL_SUCCESS;
}

static __attribute__((noinline)) cl_int set_other(struct cld_kernel *kernel, cl_uint index, size_t arg_size,
                                                  const void *arg_value) {
    const struct cld_arg_info *arg = &kernel->info->args[index];
    switch (arg->kind) {
    case CLD_ARG_LOCAL:
        return set_local(kernel, arg, arg_size, arg_value);
    case CLD_ARG_SAMPLER:
        return set_sampler(kernel, arg, arg_size, arg_value);
    case CLD_ARG_QUEUE:
        return set_queue(kernel, index, arg_size, arg_value);
    case CLD_ARG_IMAGE:
        return set_image(kernel, index, arg_size, arg_value);
    case CLD_ARG_PIPE:
        return set_pipe(kernel, index, arg_size, arg_value);
    default:
        return CL_INVALID_KERNEL;
    }
}

cl_int cld_set_kernel_arg(struct cld_kernel *kernel, cl_uint arg_index, size_t arg_size,
                          const void *arg_value) {
    CLD_REQUIRE(arg_index < kernel->info->arg_count, CL_INVALID_ARG_INDEX,
                "arg_index is %u, the kernel has %u arguments", arg_index, kernel->info->arg_count);
    const struct cld_arg_info *arg = &kernel->info->args[arg_index];
    cl_int status = arg->kind == CLD_ARG_GLOBAL  ? set_buffer(kernel, arg_index, arg_size, arg_value)
                    : arg->kind == CLD_ARG_VALUE ? set_value(kernel, arg, arg_size, arg_value)
                                                 : set_other(kernel, arg_index, arg_size, arg_value);
    if (!status)
        kernel->is_set[arg_index] = 1;
    return status;
}

CL_API_ENTRY cl_int CL_API_CALL clSetKernelArg(cl_kernel handle, cl_uint arg_index, size_t arg_size,
                                               const void *arg_value) {
    struct cld_kernel *kernel = cld_object_check(handle, CLD_KERNEL);
    CLD_REQUIRE(kernel, CL_INVALID_KERNEL, "not a kernel");
    return cld_set_kernel_arg(kernel, arg_index, arg_size, arg_value);
}

cl_int cld_set_kernel_arg_pointer(struct cld_kernel *kernel, cl_uint arg_index, const void *arg_value) {
    CLD_REQUIRE(arg_index < kernel->info->arg_count, CL_INVALID_ARG_INDEX,
                "arg_index is %u, the kernel has %u arguments", arg_index, kernel->info->arg_count);
    /* "The SVM pointer can only be used for arguments that are declared to be a pointer to global or constant
     * memory." Any value may be one, because system pointers are. */
    CLD_REQUIRE(kernel->info->args[arg_index].kind == CLD_ARG_GLOBAL, CL_INVALID_ARG_VALUE,
                "arg_index is %u, an argument that is no pointer to global or constant memory", arg_index);
    set_pointer(kernel, arg_index, NULL, arg_value);
    kernel->is_set[arg_index] = 1;
    return CL_SUCCESS;
}

static cl_int set_address(cl_kernel handle, cl_uint arg_index, const void *arg_value) {
    struct cld_kernel *kernel = cld_object_check(handle, CLD_KERNEL);
    CLD_REQUIRE(kernel, CL_INVALID_KERNEL, "not a kernel");
    CLD_REQUIRE(!kernel->program->context->is_elsewhere, CL_INVALID_OPERATION,
                "no device of the context has memory of pointers");
    return cld_set_kernel_arg_pointer(kernel, arg_index, arg_value);
}

CL_API_ENTRY cl_int CL_API_CALL clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint arg_index,
                                                         const void *arg_value) {
    return set_address(kernel, arg_index, arg_value);
}

/* "For all devices, any pointer value is valid." */
CL_API_ENTRY cl_int CL_API_CALL clSetKernelArgMemPointerINTEL(cl_kernel kernel, cl_uint arg_index,
                                                              const void *arg_value) {
    return set_address(kernel, arg_index, arg_value);
}

#ifndef cl_ext_buffer_device_address
extern CL_API_ENTRY cl_int CL_API_CALL clSetKernelArgDevicePointerEXT(cl_kernel kernel, cl_uint arg_index,
                                                                      cl_mem_device_address_ext arg_value);
#endif

/* "It's legal to pass invalid pointers as the value [...] as long as the kernel doesn't dereference the
 * pointer." */
CL_API_ENTRY cl_int CL_API_CALL clSetKernelArgDevicePointerEXT(cl_kernel handle, cl_uint arg_index,
                                                               cl_mem_device_address_ext arg_value) {
    const struct cld_kernel *kernel = cld_object_check(handle, CLD_KERNEL);
    CLD_REQUIRE(kernel, CL_INVALID_KERNEL, "not a kernel");
    const struct cld_kernel_info *info = kernel->info;
    CLD_REQUIRE(arg_index < info->arg_count && info->args[arg_index].kind == CLD_ARG_GLOBAL &&
                    !info->args[arg_index].constant,
                CL_INVALID_ARG_INDEX, "arg_index is %u, no argument that is a pointer to global memory",
                arg_index);
    return set_address(handle, arg_index, (const void *)(uintptr_t)arg_value);
}

static bool is_pointers(cl_kernel_exec_info param_name) {
    return param_name == CL_KERNEL_EXEC_INFO_SVM_PTRS || param_name == CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL ||
           param_name == CL_KERNEL_EXEC_INFO_DEVICE_PTRS_EXT;
}

cl_int cld_set_kernel_exec_info(struct cld_kernel *kernel, cl_kernel_exec_info param_name,
                                size_t param_value_size, const void *param_value) {
    /* No pointers at all take back those of an earlier call. */
    bool none = is_pointers(param_name) && !param_value_size;
    CLD_REQUIRE(param_value || none, CL_INVALID_VALUE, "param_value is NULL");
    switch (param_name) {
    case CL_KERNEL_EXEC_INFO_SVM_PTRS:
    case CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL:
    case CL_KERNEL_EXEC_INFO_DEVICE_PTRS_EXT: /* every kernel may use every pointer: nothing to be kept */
        CLD_REQUIRE(param_value_size % sizeof(void *) == 0, CL_INVALID_VALUE,
                    "param_value_size is %zu, no multiple of %zu", param_value_size, sizeof(void *));
        return CL_SUCCESS;
    case CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM: {
        cl_bool value;
        CLD_REQUIRE(param_value_size == sizeof value, CL_INVALID_VALUE,
                    "param_value_size is %zu, sizeof(cl_bool) is %zu", param_value_size, sizeof(cl_bool));
        memcpy(&value, param_value, sizeof value);
        kernel->svm_fine_system = value;
        return CL_SUCCESS;
    }
    case CLD_KERNEL_EXEC_INFO_SVM_INDIRECT_ACCESS:
    case CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL:
    case CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL:
    case CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL: /* as for the sets of pointers */
        CLD_REQUIRE(param_value_size == sizeof(cl_bool), CL_INVALID_VALUE,
                    "param_value_size is %zu, sizeof(cl_bool) is %zu", param_value_size, sizeof(cl_bool));
        return CL_SUCCESS;
    default:
        CLD_REQUIRE(false, CL_INVALID_VALUE, "param_name is %#x, not one of clSetKernelExecInfo", param_name);
    }
}

CL_API_ENTRY cl_int CL_API_CALL clSetKernelExecInfo(cl_kernel handle, cl_kernel_exec_info param_name,
                                                    size_t param_value_size, const void *param_value) {
    struct cld_kernel *kernel = cld_object_check(handle, CLD_KERNEL);
    CLD_REQUIRE(kernel, CL_INVALID_KERNEL, "not a kernel");
    CLD_REQUIRE(!is_pointers(param_name) || !kernel->program->context->is_elsewhere, CL_INVALID_OPERATION,
                "no device of the context has memory of pointers");
    return cld_set_kernel_exec_info(kernel, param_name, param_value_size, param_value);
}
