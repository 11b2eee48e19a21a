/* Reads and writes of program-scope variables (cl_intel_global_variable_access 0.9). */
#include "enqueue/enqueue.h"
#include "kernel/device_executable.h"
#include "kernel/executable.h"
#include "kernel/program_symbols.h"
#include "object/call.h"
#include "runtime/enqueue_check.h"

enum { CL_COMMAND_READ_GLOBAL_VARIABLE_INTEL = 0x418E, CL_COMMAND_WRITE_GLOBAL_VARIABLE_INTEL = 0x418F };

/* "CL_INVALID_ARG_VALUE if name does not identify a global variable defined in program."
 * "CL_INVALID_VALUE if the region being read or written specified by (offset, size) is not fully contained by
 * the size of the global variable."
 * "CL_INVALID_OPERATION if [...] a global variable [...] is not readable from the host", or not writable. */
static cl_int check_variable(const struct cld_executable *executable, const char *name, size_t size,
                             size_t offset, uint8_t access, uint8_t **inside) {
    const struct cld_program_variable *variable = cld_executable_variable(executable, name);
    CLD_REQUIRE(variable, CL_INVALID_ARG_VALUE, "the program has no variable of that name for hosts: name");
    CLD_REQUIRE(size <= variable->size && offset <= variable->size - size, CL_INVALID_VALUE,
                "%zu bytes from byte %zu on, the variable has %zu: name", size, offset,
                (size_t)variable->size);
    CLD_REQUIRE(variable->access & access, CL_INVALID_OPERATION,
                "the variable is not for the host to read, or not to write");
    *inside = executable->globals + variable->offset + offset;
    return CL_SUCCESS;
}

/* Reads where type says so, else writes. */
static cl_int transfer(cl_command_queue command_queue, cl_command_type type, cl_program handle,
                       const char *name, cl_bool blocking, size_t size, size_t offset, uint8_t *ptr,
                       const struct cld_wait *wait) {
    bool reads = type == CL_COMMAND_READ_GLOBAL_VARIABLE_INTEL;
    struct cld_queue *queue;
    CLD_TRY(cld_check_queue(command_queue, wait, &queue));
    CLD_TRY(cld_check_wait(queue, wait));
    struct cld_program *program = cld_object_check(handle, CLD_PROGRAM);
    CLD_REQUIRE(program, CL_INVALID_PROGRAM, "not a program");
    CLD_REQUIRE(program->context == queue->context, CL_INVALID_CONTEXT,
                "the context of program is not the context of command_queue");
    CLD_REQUIRE(name && ptr, CL_INVALID_VALUE, "name or ptr is NULL");
    struct cld_executable *executable;
    CLD_TRY(cld_program_hold_executable(program, queue->device, &executable));
    uint8_t *inside = NULL;
    cl_int status =
        check_variable(executable, name, size, offset, reads ? CLD_HOST_READS : CLD_HOST_WRITES, &inside);
    if (status) {
        cld_executable_drop(executable);
        return status;
    }
    struct cld_copy_region region = reads ? cld_linear(ptr, inside, size) : cld_linear(inside, ptr, size);
    return cld_enqueue_variable_copy(queue, type, executable, &region, blocking, wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueReadGlobalVariableINTEL(
    cl_command_queue command_queue, cl_program program, const char *name, cl_bool blocking_read, size_t size,
    size_t offset, void *ptr, cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
    cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return transfer(command_queue, CL_COMMAND_READ_GLOBAL_VARIABLE_INTEL, program, name, blocking_read, size,
                    offset, ptr, &wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueWriteGlobalVariableINTEL(
    cl_command_queue command_queue, cl_program program, const char *name, cl_bool blocking_write, size_t size,
    size_t offset, const void *ptr, cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
    cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    /* Of the host's memory a write reads only. */
    return transfer(command_queue, CL_COMMAND_WRITE_GLOBAL_VARIABLE_INTEL, program, name, blocking_write,
                    size, offset, (uint8_t *)(uintptr_t)ptr, &wait);
}
