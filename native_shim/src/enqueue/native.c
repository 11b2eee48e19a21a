/* Native kernels (API specification, 5.10). */
#include <stdlib.h>
#include <string.h>

#include "enqueue/enqueue.h"
#include "memory/mem.h"
#include "object/call.h"
#include "runtime/enqueue_check.h"

static void call_native(struct cld_event *command) {
    command->native.function(command->native.args);
}

static cl_int run_native(struct cld_event *command, struct cld_self *self, uint64_t first, uint64_t last) {
    (void)first, (void)last;
    return cld_command_call_user(command, self, call_native);
}

static void end_native(struct cld_event *command, cl_int status) {
    (void)status;
    if (command->native.owned)
        free(command->native.args);
}

static const struct cld_operation native_operation = {.run = run_native, .end = end_native};

CL_API_ENTRY cl_int CL_API_CALL clEnqueueNativeKernel(cl_command_queue command_queue,
                                                      void(CL_CALLBACK *user_func)(void *), void *args,
                                                      size_t cb_args, cl_uint num_mem_objects,
                                                      const cl_mem *mem_list, const void **args_mem_loc,
                                                      cl_uint num_events_in_wait_list,
                                                      const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    struct cld_queue *queue;
    CLD_TRY(cld_check_queue(command_queue, &wait, &queue));
    CLD_TRY(cld_check_wait(queue, &wait));
    /* "CL_INVALID_OPERATION if the device associated with command_queue cannot execute the native kernel." */
    CLD_REQUIRE(!queue->device->worker, CL_INVALID_OPERATION, "the device of the queue is another machine's");
    CLD_REQUIRE(user_func, CL_INVALID_VALUE, "user_func is NULL");
    CLD_REQUIRE(args || (!cb_args && !num_mem_objects), CL_INVALID_VALUE,
                "args is NULL: cb_args, num_mem_objects are not 0");
    CLD_REQUIRE(!args || cb_args, CL_INVALID_VALUE, "cb_args is 0 and args is not NULL");
    CLD_REQUIRE(num_mem_objects ? mem_list && args_mem_loc : !mem_list && !args_mem_loc, CL_INVALID_VALUE,
                "num_mem_objects contradicts mem_list or args_mem_loc");
    struct cld_event *command = cld_command_new(queue, CL_COMMAND_NATIVE_KERNEL, &native_operation, event);
    CLD_REQUIRE(command, CL_OUT_OF_HOST_MEMORY, "no memory");
    command->native.function = user_func;
    command->native.args = cb_args ? malloc(cb_args) : NULL;
    command->native.owned = true;
    cl_int status = cb_args && !command->native.args ? CL_OUT_OF_HOST_MEMORY : CL_SUCCESS;
    if (!status && cb_args)
        memcpy(command->native.args, args, cb_args);
    /* "Before the user function is executed, the memory object handles are replaced by pointers to global
     * memory." */
    for (cl_uint i = 0; i < num_mem_objects && !status; i++) {
        struct cld_mem *mem = NULL;
        void *pointer = NULL;
        uintptr_t at = (uintptr_t)args_mem_loc[i] - (uintptr_t)args;
        if (mem_list[i] && !(status = cld_check_buffer(queue, mem_list[i], &mem))) {
            pointer = mem->data;
            if (!cld_command_hold_mem(command, mem))
                status = CL_OUT_OF_HOST_MEMORY;
        }
        if (!status && (at > cb_args || cb_args - at < sizeof pointer))
            status = CL_INVALID_VALUE;
        if (!status)
            memcpy((uint8_t *)command->native.args + at, &pointer, sizeof pointer);
    }
    if (status)
        cld_command_discard(command);
    CLD_REQUIRE(!status, status, "a memory object or its place in args is not valid");
    return cld_command_enqueue(command, &wait, 0);
}
