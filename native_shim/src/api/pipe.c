/* Pipes (API specification, 5.4): absent, as CL_DEVICE_PIPE_SUPPORT says. What is left of the entry points is
 * the order of their errors. */
#include "api/common.h"

#include "base/log.h"

CL_API_ENTRY cl_mem CL_API_CALL clCreatePipe(cl_context context, cl_mem_flags flags, cl_uint pipe_packet_size,
                                             cl_uint pipe_max_packets, const cl_pipe_properties *properties,
                                             cl_int *errcode_ret) {
    (void)flags, (void)pipe_packet_size, (void)pipe_max_packets, (void)properties;
    const struct cld_context *checked = cld_object_check(context, CLD_CONTEXT);
    CLD_REQUIRE_OR_NULL(checked, CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE_LIVE_OR_NULL(checked);
    /* "CL_INVALID_OPERATION if no devices in context support pipes." */
    CLD_REQUIRE_OR_NULL(false, CL_INVALID_OPERATION, "no device of the context supports pipes");
    return NULL;
}

CL_API_ENTRY cl_int CL_API_CALL clGetPipeInfo(cl_mem pipe, cl_pipe_info param_name, size_t param_value_size,
                                              void *param_value, size_t *param_value_size_ret) {
    (void)pipe, (void)param_name, (void)param_value_size, (void)param_value, (void)param_value_size_ret;
    /* "CL_INVALID_MEM_OBJECT if pipe is a not a valid pipe object." */
    CLD_REQUIRE(false, CL_INVALID_MEM_OBJECT, "there are no pipe objects");
}
