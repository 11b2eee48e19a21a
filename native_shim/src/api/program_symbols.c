/* Addresses of a built program's variables and functions: clGetDeviceGlobalVariablePointerINTEL and
 * clGetDeviceFunctionPointerINTEL. No text of them is public; the errors are those of Intel's drivers. */
#include "kernel/program_symbols.h"
#include "api/common.h"
#include "kernel/device_executable.h"
#include "kernel/executable.h"
#include "object/call.h"

/* What both begin with: the program's executable for the device, held. */
static cl_int begin(cl_device_id device_handle, cl_program handle, const char *name, const void *answer,
                    struct cld_executable **executable) {
    struct cld_device *device = cld_object_check(device_handle, CLD_DEVICE);
    CLD_REQUIRE(device, CL_INVALID_DEVICE, "not a device");
    struct cld_program *program = cld_object_check(handle, CLD_PROGRAM);
    CLD_REQUIRE(program, CL_INVALID_PROGRAM, "not a program");
    CLD_REQUIRE(cld_program_is_for(program, device), CL_INVALID_DEVICE, "not a device of the program");
    CLD_REQUIRE(name && answer, CL_INVALID_ARG_VALUE, "the name, or where the answer goes, is NULL");
    return cld_program_hold_executable(program, device, executable);
}

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceGlobalVariablePointerINTEL(cl_device_id device, cl_program program,
                                                                      const char *name, size_t *size_ret,
                                                                      void **pointer_ret) {
    struct cld_executable *executable;
    CLD_TRY(begin(device, program, name, pointer_ret, &executable));
    const struct cld_program_variable *variable = cld_executable_variable(executable, name);
    if (variable) {
        *pointer_ret = executable->globals + variable->offset;
        if (size_ret)
            *size_ret = variable->size;
    }
    cld_executable_drop(executable);
    CLD_REQUIRE(variable, CL_INVALID_ARG_VALUE, "the program has no variable of that name for hosts");
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceFunctionPointerINTEL(cl_device_id device, cl_program program,
                                                                const char *name, cl_ulong *pointer_ret) {
    struct cld_executable *executable;
    CLD_TRY(begin(device, program, name, pointer_ret, &executable));
    const struct cld_program_function *function = cld_executable_function(executable, name);
    if (function)
        *pointer_ret = function->address;
    cld_executable_drop(executable);
    CLD_REQUIRE(function, CL_INVALID_ARG_VALUE,
                "the program has no function of that name that is called through pointers");
    return CL_SUCCESS;
}
