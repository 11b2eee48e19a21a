/* Pipes (API specification, 5.4). */
#include "api/common.h"

#include <string.h>

#include "api/memory.h"
#include "memory/pipe.h"
#include "object/call.h"
#include "object/info.h"
#include "runtime/callback.h"

static bool allocate(struct cld_mem *mem, uint32_t packet_size, uint32_t max_packets) {
    size_t data = cld_pipe_data(max_packets);
    mem->size = data + (size_t)packet_size * max_packets;
    /* A reservation has 31 bits for the number of its packets. */
    if (max_packets > INT32_MAX || mem->size > mem->context->devices[0]->max_alloc_size ||
        !cld_memory_allocate(mem))
        return false;
    memset(mem->data, 0, data);
    struct cld_pipe_ring ring = {.packet_size = packet_size, .max_packets = max_packets, .data = data};
    memcpy(mem->data, &ring, sizeof ring);
    return true;
}

CL_API_ENTRY cl_mem CL_API_CALL clCreatePipe(cl_context handle, cl_mem_flags flags, cl_uint pipe_packet_size,
                                             cl_uint pipe_max_packets, const cl_pipe_properties *properties,
                                             cl_int *errcode_ret) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    CLD_REQUIRE_OR_NULL(context, CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE_LIVE_OR_NULL(context);
    CLD_REQUIRE_OR_NULL(!context->is_elsewhere, CL_INVALID_OPERATION, "no device of the context has pipes");
    /* "Only CL_MEM_READ_WRITE and CL_MEM_HOST_NO_ACCESS can be specified when creating a pipe object." */
    CLD_REQUIRE_OR_NULL(!(flags & ~(cl_mem_flags)(CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS)),
                        CL_INVALID_VALUE,
                        "flags are not those of a pipe (CL_MEM_READ_WRITE, CL_MEM_HOST_NO_ACCESS)");
    /* "Currently, in all OpenCL versions, properties must be NULL." */
    CLD_REQUIRE_OR_NULL(!properties, CL_INVALID_VALUE, "properties is not NULL");
    /* "CL_INVALID_PIPE_SIZE if pipe_packet_size is 0 or the pipe_packet_size exceeds
     * CL_DEVICE_PIPE_MAX_PACKET_SIZE value [...] for all devices in context or if pipe_max_packets is 0." */
    CLD_REQUIRE_OR_NULL(pipe_packet_size && pipe_packet_size <= CLD_PIPE_PACKET_MOST && pipe_max_packets,
                        CL_INVALID_PIPE_SIZE,
                        "pipe_packet_size is %u and pipe_max_packets is %u, at least 1 and at most %u bytes",
                        pipe_packet_size, pipe_max_packets, CLD_PIPE_PACKET_MOST);
    struct cld_mem *mem = cld_memory_new(context, flags, 0);
    CLD_REQUIRE_OR_NULL(mem, CL_OUT_OF_HOST_MEMORY, "no memory for the handle");
    mem->type = CL_MEM_OBJECT_PIPE;
    if (!allocate(mem, pipe_packet_size, pipe_max_packets)) {
        cld_context_notify(context, "there is no memory for a pipe of %u packets of %u bytes",
                           pipe_max_packets, pipe_packet_size);
        cld_object_release(mem, CLD_MEM, CL_INVALID_MEM_OBJECT);
        CLD_REQUIRE_OR_NULL(false, CL_MEM_OBJECT_ALLOCATION_FAILURE, "no memory for the pipe");
    }
    if (errcode_ret)
        *errcode_ret = CL_SUCCESS;
    return (cl_mem)mem;
}

CL_API_ENTRY cl_int CL_API_CALL clGetPipeInfo(cl_mem handle, cl_pipe_info param_name, size_t param_value_size,
                                              void *param_value, size_t *param_value_size_ret) {
    const struct cld_mem *mem = cld_object_check(handle, CLD_MEM);
    /* "CL_INVALID_MEM_OBJECT if pipe is a not a valid pipe object." */
    CLD_REQUIRE(mem && mem->type == CL_MEM_OBJECT_PIPE, CL_INVALID_MEM_OBJECT, "not a pipe");
    struct cld_pipe_ring ring;
    memcpy(&ring, mem->data, sizeof ring);
    cl_uint number;
    size_t size = sizeof number;
    switch (param_name) {
    case CL_PIPE_PACKET_SIZE:
        number = ring.packet_size;
        break;
    case CL_PIPE_MAX_PACKETS:
        number = ring.max_packets;
        break;
    case CL_PIPE_PROPERTIES:
        /* "If the properties argument [...] was NULL, the implementation must return param_value_size_ret
         * equal to 0". */
        size = 0;
        break;
    default:
        return cld_lack(__func__, CL_INVALID_VALUE, "param_name is not a pipe query");
    }
    return cld_info(&number, size, param_value_size, param_value, param_value_size_ret);
}
