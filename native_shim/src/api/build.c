/* Building, compiling and linking programs (API specification, 5.8.4 and 5.8.5). */
#define _GNU_SOURCE
#include "api/common.h"

#include <pthread.h>
#include <stdlib.h>

#include "answers.h"
#include "api/program.h"
#include "kernel/executable.h"
#include "kernel/kernel.h"
#include "kernel/variant.h"
#include "object/call.h"
#include "python/door.h"
#include "python/requests.h"

typedef void(CL_CALLBACK *notify_fn)(cl_program, void *);

struct build {
    const char *call;
    struct cld_program *program; /* held */
    notify_fn notify;
    void *user_data;
};

/* Does the job that the program's peer has in hand; blocks until the compiler is done. call: the one that
 * left it. */
static cl_int run_build(const char *call, struct cld_program *program) {
    struct cld_msg request, reply;
    cld_builds_begin();
    cld_msg_init(&request);
    cld_put_int(&request, (int64_t)program->obj.key);
    cl_int status = cld_door_call("build_run", &request, &reply);
    cld_builds_end();
    bool is_executable = false;
    if (!status) {
        struct cld_answer_build answer;
        status = cld_answer_build_read(&reply, &answer) ? answer.status : CL_OUT_OF_HOST_MEMORY;
        is_executable = answer.is_executable;
        if (status)
            cld_refuse(call, status, "the program cannot be built, see its build log");
    }
    cld_msg_free(&request);
    cld_msg_free(&reply);
    if (!status && is_executable && cld_door_may_change())
        cld_program_load(program); /* while it is there to be had */
    return status;
}

static void *build_thread(void *argument) {
    struct build build = *(struct build *)argument;
    free(argument);
    run_build(build.call, build.program);
    pthread_cleanup_push(cld_object_drop, build.program); /* the host's function may end the thread */
    build.notify((cl_program)build.program, build.user_data);
    pthread_cleanup_pop(1);
    return NULL;
}

/* Starts a thread that builds and then notifies. False if there can be none. */
static bool build_in_background(const char *call, struct cld_program *program, notify_fn notify,
                                void *user_data) {
    struct build *build = malloc(sizeof *build);
    if (!build)
        return false;
    *build = (struct build){call, program, notify, user_data};
    cld_object_hold(program);
    bool started = cld_start_thread(build_thread, build);
    if (!started) {
        cld_object_drop(program);
        free(build);
    }
    return started;
}

/* The second part of each entry point: now, or in the background with a callback. */
static cl_int build_now_or_later(const char *call, struct cld_program *program, notify_fn notify,
                                 void *user_data) {
    if (notify && build_in_background(call, program, notify, user_data))
        return CL_SUCCESS;
    cl_int status = run_build(call, program);
    if (notify) {
        notify((cl_program)program, user_data);
        return CL_SUCCESS;
    }
    return status;
}

/* Calls the operation that checks and starts a build; frees the request. */
static cl_int start_build(const char *operation, struct cld_msg *request) {
    struct cld_msg reply;
    cl_int status = cld_door_call(operation, request, &reply);
    cld_msg_free(request);
    cld_msg_free(&reply);
    return status;
}

/* The rules that builds and compilations share; the request gets program and devices. */
static cl_int begin_request(struct cld_msg *request, struct cld_program *program, cl_uint num_devices,
                            const cl_device_id *device_list, notify_fn notify, void *user_data) {
    CLD_REQUIRE((device_list != NULL) == (num_devices > 0), CL_INVALID_VALUE,
                "device_list and num_devices contradict each other");
    /* "CL_INVALID_VALUE if pfn_notify is NULL but user_data is not NULL." */
    CLD_REQUIRE(notify || !user_data, CL_INVALID_VALUE, "user_data without pfn_notify");
    for (cl_uint i = 0; i < num_devices; i++) {
        const struct cld_device *device = cld_object_check(device_list[i], CLD_DEVICE);
        /* "CL_INVALID_DEVICE if any device in device_list is not in the list of devices associated with
         * program." */
        CLD_REQUIRE(device && cld_program_has_device(program, device), CL_INVALID_DEVICE,
                    "device_list[%u] is %s, not a device of the program", i,
                    cld_describe(device_list[i]).text);
    }
    /* "CL_INVALID_OPERATION if there are kernel objects attached to program." */
    CLD_REQUIRE(!atomic_load(&program->kernel_count), CL_INVALID_OPERATION,
                "%d kernels are attached to program", atomic_load(&program->kernel_count));
    cld_msg_init(request);
    cld_put_int(request, (int64_t)program->obj.key);
    if (device_list)
        cld_put_devices(request, (struct cld_device *const *)(const void *)device_list, num_devices);
    else
        cld_put_none(request);
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clBuildProgram(cl_program handle, cl_uint num_devices,
                                               const cl_device_id *device_list, const char *options,
                                               notify_fn pfn_notify, void *user_data) {
    struct cld_program *program = cld_object_check(handle, CLD_PROGRAM);
    CLD_REQUIRE(program, CL_INVALID_PROGRAM, "not a program");
    struct cld_msg request;
    cl_int status = begin_request(&request, program, num_devices, device_list, pfn_notify, user_data);
    if (status)
        return status;
    cld_put_string(&request, options);
    status = start_build("clBuildProgram", &request);
    if (status)
        return status;
    cld_program_unload(program);
    return build_now_or_later(__func__, program, pfn_notify, user_data);
}

CL_API_ENTRY cl_int CL_API_CALL clCompileProgram(cl_program handle, cl_uint num_devices,
                                                 const cl_device_id *device_list, const char *options,
                                                 cl_uint num_input_headers, const cl_program *input_headers,
                                                 const char **header_include_names, notify_fn pfn_notify,
                                                 void *user_data) {
    struct cld_program *program = cld_object_check(handle, CLD_PROGRAM);
    CLD_REQUIRE(program, CL_INVALID_PROGRAM, "not a program");
    /* "CL_INVALID_VALUE if num_input_headers is zero and header_include_names or input_headers are not NULL
     * or if num_input_headers is not zero and header_include_names or input_headers are NULL." */
    bool given = num_input_headers > 0;
    CLD_REQUIRE((header_include_names != NULL) == given && (input_headers != NULL) == given, CL_INVALID_VALUE,
                "num_input_headers contradicts input_headers or header_include_names");
    for (cl_uint i = 0; i < num_input_headers; i++) {
        const struct cld_program *input = cld_object_check(input_headers[i], CLD_PROGRAM);
        CLD_REQUIRE(input, CL_INVALID_PROGRAM, "input_headers[%u] is %s, not a program", i,
                    cld_describe(input_headers[i]).text);
        /* "CL_INVALID_CONTEXT if the context associated with program and programs in input_headers are not
         * the same." */
        CLD_REQUIRE(input->context == program->context, CL_INVALID_CONTEXT,
                    "input_headers[%u] is a program of another context", i);
        CLD_REQUIRE(header_include_names[i], CL_INVALID_VALUE, "header_include_names[%u] is NULL", i);
    }
    struct cld_msg request;
    cl_int status = begin_request(&request, program, num_devices, device_list, pfn_notify, user_data);
    if (status)
        return status;
    cld_put_string(&request, options);
    cld_put_list(&request, num_input_headers);
    for (cl_uint i = 0; i < num_input_headers; i++) {
        cld_put_list(&request, 2);
        cld_put_string(&request, header_include_names[i]);
        cld_put_int(&request, (int64_t)((struct cld_program *)input_headers[i])->obj.key);
    }
    status = start_build("clCompileProgram", &request);
    if (status)
        return status;
    cld_program_unload(program);
    return build_now_or_later(__func__, program, pfn_notify, user_data);
}

/* The handle of clLinkProgram's new peer: the answer is its key and the keys of its devices, which are the
 * list's, or the context's if there is none. */
static struct cld_program *linked_program(struct cld_context *context, cl_uint num_devices,
                                          const cl_device_id *device_list, uint64_t key) {
    struct cld_device *const *devices = context->devices;
    uint32_t count = context->device_count;
    if (device_list) {
        devices = (struct cld_device *const *)(const void *)device_list;
        count = num_devices;
    }
    struct cld_program *program = cld_program_new(context, devices, count);
    if (program)
        program->obj.key = key;
    else
        cld_door_forget(key);
    return program;
}

CL_API_ENTRY cl_program CL_API_CALL clLinkProgram(cl_context handle, cl_uint num_devices,
                                                  const cl_device_id *device_list, const char *options,
                                                  cl_uint num_input_programs,
                                                  const cl_program *input_programs, notify_fn pfn_notify,
                                                  void *user_data, cl_int *errcode_ret) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    CLD_REQUIRE_OR_NULL(context, CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE_LIVE_OR_NULL(context);
    struct cld_device *const *devices;
    uint32_t count;
    cl_int status = cld_check_devices(context, num_devices, device_list, &devices, &count);
    CLD_REQUIRE_OR_NULL(!status, status, "device_list is not valid");
    /* "CL_INVALID_VALUE if num_input_programs is zero and input_programs is NULL or if num_input_programs is
     * zero and input_programs is not NULL or if num_input_programs is not zero and input_programs is NULL."
     */
    CLD_REQUIRE_OR_NULL(num_input_programs && input_programs, CL_INVALID_VALUE,
                        "num_input_programs is 0 or input_programs NULL");
    CLD_REQUIRE_OR_NULL(pfn_notify || !user_data, CL_INVALID_VALUE, "user_data without pfn_notify");
    for (cl_uint i = 0; i < num_input_programs; i++) {
        const struct cld_program *input = cld_object_check(input_programs[i], CLD_PROGRAM);
        CLD_REQUIRE_OR_NULL(input, CL_INVALID_PROGRAM, "input_programs[%u] is %s, not a program", i,
                            cld_describe(input_programs[i]).text);
        /* "CL_INVALID_CONTEXT if the context associated with programs in input_programs is not the same as
         * context." */
        CLD_REQUIRE_OR_NULL(input->context == context, CL_INVALID_CONTEXT,
                            "input_programs[%u] is a program of another context", i);
    }
    struct cld_msg request;
    cld_msg_init(&request);
    cld_put_int(&request, (int64_t)context->obj.key);
    if (device_list)
        cld_put_devices(&request, devices, count);
    else
        cld_put_none(&request);
    cld_put_string(&request, options);
    cld_put_list(&request, num_input_programs);
    for (cl_uint i = 0; i < num_input_programs; i++)
        cld_put_int(&request, (int64_t)((struct cld_program *)input_programs[i])->obj.key);
    uint64_t key;
    status = cld_call_for_key("clLinkProgram", &request, &key);
    struct cld_program *program = NULL;
    if (!status) {
        program = linked_program(context, num_devices, device_list, key);
        /* "If the linking operation can begin, clLinkProgram returns a valid non-zero program object", also
         * where it fails later. */
        status =
            program ? build_now_or_later(__func__, program, pfn_notify, user_data) : CL_OUT_OF_HOST_MEMORY;
    }
    if (errcode_ret)
        *errcode_ret = status;
    return (cl_program)program;
}
