/* Program objects: creation and queries (API specification, 5.8.1 to 5.8.3 and 5.8.9). */
#include "api/common.h"

#include <stdlib.h>
#include <string.h>

#include "api/program.h"
#include "kernel/executable.h"
#include "object/call.h"
#include "object/info.h"
#include "python/door.h"
#include "python/requests.h"

static void destroy_program(void *object) {
    struct cld_program *program = object;
    cld_program_unload(program);
    cld_door_forget(program->obj.key);
    for (uint32_t i = 0; i < program->device_count; i++)
        cld_object_drop(program->devices[i]);
    free(program->devices);
    cld_object_drop(program->context);
}

__attribute__((constructor)) static void register_program(void) {
    cld_object_on_destroy(CLD_PROGRAM, destroy_program);
}

struct cld_program *cld_program_new(struct cld_context *context, struct cld_device *const *devices,
                                    uint32_t count) {
    struct cld_device **unique = malloc((count ? count : 1) * sizeof *unique);
    struct cld_program *program = unique ? cld_object_new(CLD_PROGRAM) : NULL;
    if (!program) {
        free(unique);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = 0;
        while (at < program->device_count && unique[at] != devices[i])
            at++;
        if (at < program->device_count)
            continue;
        unique[program->device_count++] = devices[i];
        cld_object_hold(devices[i]);
    }
    program->devices = unique;
    program->context = context;
    cld_object_hold(context);
    return program;
}

/* Sends the request, whose answer is the peer's key, and makes the handle of it. Frees the request. */
static cl_program program_of_request(const char *operation, struct cld_msg *request,
                                     struct cld_context *context, cl_int *errcode_ret) {
    uint64_t key;
    cl_int status = cld_call_for_key(operation, request, &key);
    struct cld_program *program = NULL;
    if (!status) {
        program = cld_program_new(context, context->devices, context->device_count);
        if (program) {
            program->obj.key = key;
        } else {
            cld_door_forget(key);
            status = CL_OUT_OF_HOST_MEMORY;
        }
    }
    if (errcode_ret)
        *errcode_ret = status;
    return (cl_program)program;
}

CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithSource(cl_context handle, cl_uint count,
                                                              const char **strings, const size_t *lengths,
                                                              cl_int *errcode_ret) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    CLD_REQUIRE_OR_NULL(context, CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE_LIVE_OR_NULL(context);
    /* "CL_INVALID_VALUE if count is zero or if strings or any entry in strings is NULL." */
    CLD_REQUIRE_OR_NULL(count && strings, CL_INVALID_VALUE, "count is 0 or strings NULL");
    for (cl_uint i = 0; i < count; i++)
        CLD_REQUIRE_OR_NULL(strings[i], CL_INVALID_VALUE, "strings[%u] is NULL", i);
    struct cld_msg request;
    cld_msg_init(&request);
    cld_put_int(&request, (int64_t)context->obj.key);
    cld_put_list(&request, count);
    for (cl_uint i = 0; i < count; i++)
        /* "If an element in lengths is zero, its accompanying string is null-terminated." */
        cld_put_bytes(&request, strings[i], lengths && lengths[i] ? lengths[i] : strlen(strings[i]));
    return program_of_request("clCreateProgramWithSource", &request, context, errcode_ret);
}

CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithIL(cl_context handle, const void *il, size_t length,
                                                          cl_int *errcode_ret) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    CLD_REQUIRE_OR_NULL(context, CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE_LIVE_OR_NULL(context);
    /* "CL_INVALID_VALUE if il is NULL or if length is zero." */
    CLD_REQUIRE_OR_NULL(il && length, CL_INVALID_VALUE, "il is NULL or length 0");
    struct cld_msg request;
    cld_msg_init(&request);
    cld_put_int(&request, (int64_t)context->obj.key);
    cld_put_bytes(&request, il, length);
    return program_of_request("clCreateProgramWithIL", &request, context, errcode_ret);
}

/* "CL_INVALID_VALUE if device_list is NULL or num_devices is zero." */
static cl_int check_device_list(const struct cld_context *context, cl_uint num_devices,
                                const cl_device_id *device_list, struct cld_device *const **devices,
                                uint32_t *count) {
    CLD_REQUIRE(device_list && num_devices, CL_INVALID_VALUE, "num_devices is 0 or device_list NULL");
    return cld_check_devices(context, num_devices, device_list, devices, count);
}

CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithBinary(cl_context handle, cl_uint num_devices,
                                                              const cl_device_id *device_list,
                                                              const size_t *lengths,
                                                              const unsigned char **binaries,
                                                              cl_int *binary_status, cl_int *errcode_ret) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    CLD_REQUIRE_OR_NULL(context, CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE_LIVE_OR_NULL(context);
    struct cld_device *const *devices;
    uint32_t count;
    cl_int status = check_device_list(context, num_devices, device_list, &devices, &count);
    CLD_REQUIRE_OR_NULL(!status, status, "device_list is not valid");
    CLD_REQUIRE_OR_NULL(lengths && binaries, CL_INVALID_VALUE, "lengths or binaries is NULL");
    /* "CL_INVALID_VALUE [...] if any entry in lengths[i] is zero or binaries[i] is NULL", for which
     * binary_status[i] is CL_INVALID_VALUE, too. */
    bool given = true;
    for (uint32_t i = 0; i < count; i++) {
        bool here = lengths[i] && binaries[i];
        given = given && here;
        if (binary_status)
            binary_status[i] = here ? CL_SUCCESS : CL_INVALID_VALUE;
    }
    CLD_REQUIRE_OR_NULL(given, CL_INVALID_VALUE, "a binary is empty or NULL: lengths, binaries");

    struct cld_msg request, reply;
    cld_msg_init(&request);
    cld_put_int(&request, (int64_t)context->obj.key);
    cld_put_devices(&request, devices, count);
    cld_put_list(&request, count);
    for (uint32_t i = 0; i < count; i++)
        cld_put_bytes(&request, binaries[i], lengths[i]);
    status = cld_door_call("clCreateProgramWithBinary", &request, &reply);
    struct cld_program *program = NULL;
    if (!status) {
        uint64_t key = (uint64_t)cld_get_int(&reply);
        uint32_t statuses = cld_get_list(&reply);
        for (uint32_t i = 0; i < statuses && i < count; i++) {
            cl_int one = (cl_int)cld_get_int(&reply);
            if (binary_status)
                binary_status[i] = one;
        }
        size_t size;
        const void *why = cld_get_bytes(&reply, &size);
        if (!key && !reply.failed)
            cld_refuse(__func__, CL_INVALID_BINARY, "%.*s", (int)size, (const char *)why);
        program = key ? cld_program_new(context, devices, count) : NULL;
        if (program)
            program->obj.key = key;
        else if (key)
            cld_door_forget(key);
        status = !key ? CL_INVALID_BINARY : program ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
    }
    cld_msg_free(&request);
    cld_msg_free(&reply);
    if (errcode_ret)
        *errcode_ret = status;
    return (cl_program)program;
}

CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithBuiltInKernels(cl_context handle, cl_uint num_devices,
                                                                      const cl_device_id *device_list,
                                                                      const char *kernel_names,
                                                                      cl_int *errcode_ret) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    CLD_REQUIRE_OR_NULL(context, CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE_LIVE_OR_NULL(context);
    struct cld_device *const *devices;
    uint32_t count;
    cl_int status = check_device_list(context, num_devices, device_list, &devices, &count);
    CLD_REQUIRE_OR_NULL(!status, status, "device_list is not valid");
    /* "CL_INVALID_VALUE if kernel_names is NULL". */
    CLD_REQUIRE_OR_NULL(kernel_names, CL_INVALID_VALUE, "kernel_names is NULL");
    struct cld_msg request;
    cld_msg_init(&request);
    cld_put_int(&request, (int64_t)context->obj.key);
    cld_put_devices(&request, devices, count);
    cld_put_string(&request, kernel_names);
    return program_of_request("clCreateProgramWithBuiltInKernels", &request, context, errcode_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clSetProgramReleaseCallback(cl_program handle,
                                                            void(CL_CALLBACK *pfn_notify)(cl_program, void *),
                                                            void *user_data) {
    (void)user_data;
    CLD_REQUIRE(cld_object_check(handle, CLD_PROGRAM), CL_INVALID_PROGRAM, "not a program");
    CLD_REQUIRE(pfn_notify, CL_INVALID_VALUE, "pfn_notify is NULL");
    /* "CL_INVALID_OPERATION if no devices in the context associated with program support destructors for
     * program scope global variables." */
    CLD_REQUIRE(false, CL_INVALID_OPERATION, "no device supports destructors of program-scope variables");
}

CL_API_ENTRY cl_int CL_API_CALL clSetProgramSpecializationConstant(cl_program handle, cl_uint spec_id,
                                                                   size_t spec_size, const void *spec_value) {
    struct cld_program *program = cld_object_check(handle, CLD_PROGRAM);
    CLD_REQUIRE(program, CL_INVALID_PROGRAM, "not a program");
    /* "CL_INVALID_VALUE if spec_size does not match the size of the specialization constant in the module, or
     * if spec_value is NULL." */
    CLD_REQUIRE(spec_value, CL_INVALID_VALUE, "spec_value is NULL");
    CLD_REQUIRE(spec_size <= 16, CL_INVALID_VALUE, "spec_size is %zu, at most 16", spec_size);
    struct cld_msg request, reply;
    cld_msg_init(&request);
    cld_put_int(&request, (int64_t)program->obj.key);
    cld_put_int(&request, spec_id);
    cld_put_bytes(&request, spec_value, spec_size);
    cl_int status = cld_door_call("clSetProgramSpecializationConstant", &request, &reply);
    cld_msg_free(&request);
    cld_msg_free(&reply);
    return status;
}

static cl_int unload_compiler(void) {
    struct cld_msg request, reply;
    cld_msg_init(&request);
    cl_int status = cld_door_call("clUnloadCompiler", &request, &reply);
    cld_msg_free(&request);
    cld_msg_free(&reply);
    return status;
}

CL_API_ENTRY cl_int CL_API_CALL clUnloadPlatformCompiler(cl_platform_id platform) {
    CLD_REQUIRE(cld_object_check(platform, CLD_PLATFORM), CL_INVALID_PLATFORM, "not this driver's platform");
    unload_compiler();
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clUnloadCompiler(void) {
    unload_compiler();
    return CL_SUCCESS; /* "clUnloadCompiler will always return CL_SUCCESS." */
}

/* CL_PROGRAM_BINARIES: an array of pointers to which the binaries are copied; NULL ones are skipped. */
static cl_int copy_binaries(struct cld_program *program, size_t param_value_size, void *param_value,
                            size_t *param_value_size_ret) {
    size_t size = program->device_count * sizeof(unsigned char *);
    CLD_REQUIRE(!param_value || param_value_size >= size, CL_INVALID_VALUE,
                "param_value_size is %zu, the answer has %zu bytes: param_name", param_value_size, size);
    if (param_value_size_ret)
        *param_value_size_ret = size;
    if (!param_value)
        return CL_SUCCESS;
    struct cld_msg request, reply;
    cld_msg_init(&request);
    cld_put_int(&request, (int64_t)program->obj.key);
    cl_int status = cld_door_call("program_binaries", &request, &reply);
    if (!status) {
        uint32_t count = cld_get_list(&reply);
        for (uint32_t i = 0; i < count && i < program->device_count; i++) {
            size_t length;
            const void *binary = cld_get_bytes(&reply, &length);
            unsigned char *target = ((unsigned char **)param_value)[i];
            if (!reply.failed && target && length)
                memcpy(target, binary, length);
        }
        if (reply.failed)
            status = CL_OUT_OF_HOST_MEMORY;
    }
    cld_msg_free(&request);
    cld_msg_free(&reply);
    return status;
}

CL_API_ENTRY cl_int CL_API_CALL clGetProgramInfo(cl_program handle, cl_program_info param_name,
                                                 size_t param_value_size, void *param_value,
                                                 size_t *param_value_size_ret) {
    struct cld_program *program = cld_object_check(handle, CLD_PROGRAM);
    CLD_REQUIRE(program, CL_INVALID_PROGRAM, "not a program");
    cl_uint number;
    switch (param_name) {
    case CL_PROGRAM_REFERENCE_COUNT:
        number = cld_object_refs(program);
        return cld_info(&number, sizeof number, param_value_size, param_value, param_value_size_ret);
    case CL_PROGRAM_CONTEXT:
        return cld_info(&program->context, sizeof program->context, param_value_size, param_value,
                        param_value_size_ret);
    case CL_PROGRAM_NUM_DEVICES:
        return cld_info(&program->device_count, sizeof program->device_count, param_value_size, param_value,
                        param_value_size_ret);
    case CL_PROGRAM_DEVICES:
        return cld_info(program->devices, program->device_count * sizeof *program->devices, param_value_size,
                        param_value, param_value_size_ret);
    case CL_PROGRAM_BINARIES:
        return copy_binaries(program, param_value_size, param_value, param_value_size_ret);
    }
    struct cld_msg request;
    cld_msg_init(&request);
    cld_put_int(&request, (int64_t)program->obj.key);
    cld_put_int(&request, param_name);
    return cld_query("clGetProgramInfo", &request, param_value_size, param_value, param_value_size_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clGetProgramBuildInfo(cl_program handle, cl_device_id device_handle,
                                                      cl_program_build_info param_name,
                                                      size_t param_value_size, void *param_value,
                                                      size_t *param_value_size_ret) {
    struct cld_program *program = cld_object_check(handle, CLD_PROGRAM);
    CLD_REQUIRE(program, CL_INVALID_PROGRAM, "not a program");
    const struct cld_device *device = cld_object_check(device_handle, CLD_DEVICE);
    /* "CL_INVALID_DEVICE if device is not in the list of devices associated with program." */
    CLD_REQUIRE(device && cld_program_has_device(program, device), CL_INVALID_DEVICE,
                "not a device of the program");
    struct cld_msg request;
    cld_msg_init(&request);
    cld_put_int(&request, (int64_t)program->obj.key);
    cld_put_int(&request, (int64_t)device->obj.key);
    cld_put_int(&request, param_name);
    return cld_query("clGetProgramBuildInfo", &request, param_value_size, param_value, param_value_size_ret);
}
