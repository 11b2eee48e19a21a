/* clRetain* and clRelease* of every kind. */
#include "object/call.h"
#include "object/objects.h"

#define RETAIN_RELEASE(Name, type, kind, invalid)                                                            \
    CL_API_ENTRY cl_int CL_API_CALL clRetain##Name(type handle) {                                            \
        cl_int status = cld_object_retain(handle, kind, invalid);                                            \
        CLD_REQUIRE(!status, invalid, "not %s that is referred to", cld_kind_name(kind));                    \
        return CL_SUCCESS;                                                                                   \
    }                                                                                                        \
    CL_API_ENTRY cl_int CL_API_CALL clRelease##Name(type handle) {                                           \
        cl_int status = cld_object_release(handle, kind, invalid);                                           \
        CLD_REQUIRE(!status, invalid, "not %s that is referred to", cld_kind_name(kind));                    \
        return CL_SUCCESS;                                                                                   \
    }

RETAIN_RELEASE(Context, cl_context, CLD_CONTEXT, CL_INVALID_CONTEXT)
RETAIN_RELEASE(CommandQueue, cl_command_queue, CLD_QUEUE, CL_INVALID_COMMAND_QUEUE)
RETAIN_RELEASE(MemObject, cl_mem, CLD_MEM, CL_INVALID_MEM_OBJECT)
RETAIN_RELEASE(Sampler, cl_sampler, CLD_SAMPLER, CL_INVALID_SAMPLER)
RETAIN_RELEASE(Program, cl_program, CLD_PROGRAM, CL_INVALID_PROGRAM)
RETAIN_RELEASE(Kernel, cl_kernel, CLD_KERNEL, CL_INVALID_KERNEL)
RETAIN_RELEASE(Event, cl_event, CLD_EVENT, CL_INVALID_EVENT)
RETAIN_RELEASE(CommandBufferKHR, cl_command_buffer_khr, CLD_COMMAND_BUFFER, CLD_INVALID_COMMAND_BUFFER)
RETAIN_RELEASE(SemaphoreKHR, cl_semaphore_khr, CLD_SEMAPHORE, CL_INVALID_SEMAPHORE_KHR)

/* "If device is a root-level device [...] the device reference count remains unchanged." */
CL_API_ENTRY cl_int CL_API_CALL clRetainDevice(cl_device_id handle) {
    struct cld_device *device = cld_object_check(handle, CLD_DEVICE);
    CLD_REQUIRE(device, CL_INVALID_DEVICE, "not a device");
    return device->parent ? cld_object_retain(device, CLD_DEVICE, CL_INVALID_DEVICE) : CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseDevice(cl_device_id handle) {
    struct cld_device *device = cld_object_check(handle, CLD_DEVICE);
    CLD_REQUIRE(device, CL_INVALID_DEVICE, "not a device");
    return device->parent ? cld_object_release(device, CLD_DEVICE, CL_INVALID_DEVICE) : CL_SUCCESS;
}
