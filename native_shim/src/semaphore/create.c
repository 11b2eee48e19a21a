/* Semaphores and their queries (API specification, 5.13). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "object/call.h"
#include "object/info.h"
#include "object/semaphore_khr.h"
#include "runtime/semaphore.h"

static void destroy_semaphore(void *object) {
    struct cld_semaphore *semaphore = object;
    if (semaphore->descriptor >= 0)
        close(semaphore->descriptor);
    free(semaphore->properties);
    cld_object_drop(semaphore->device);
    cld_object_drop(semaphore->context);
}

__attribute__((constructor)) static void register_semaphore(void) {
    cld_object_on_destroy(CLD_SEMAPHORE, destroy_semaphore);
}

/* What the properties say. */
struct wishes {
    struct cld_device *device; /* NULL: no device is named */
    bool has_type, has_device, has_export, has_import;
    int descriptor;
    size_t words; /* with the final 0 */
};

static bool is_of(const struct cld_context *context, const struct cld_device *device) {
    for (uint32_t i = 0; i < context->device_count; i++)
        if (context->devices[i] == device)
            return true;
    return false;
}

/* "CL_INVALID_DEVICE [...] if it does not identify exactly one valid device". *at: behind the list then. */
static cl_int read_devices(const struct cld_context *context, const cl_semaphore_properties_khr **at,
                           struct wishes *wishes) {
    const cl_semaphore_properties_khr *list = *at;
    CLD_REQUIRE(!wishes->has_device, CL_INVALID_PROPERTY, "two lists of devices");
    wishes->has_device = true;
    CLD_REQUIRE(list[0] && !list[1], CL_INVALID_DEVICE,
                "sema_props has no or several devices, and a semaphore has one");
    wishes->device = cld_object_check((const void *)(uintptr_t)list[0], CLD_DEVICE);
    CLD_REQUIRE(wishes->device && is_of(context, wishes->device), CL_INVALID_DEVICE,
                "sema_props has %s, not a device of the context",
                cld_describe((const void *)(uintptr_t)list[0]).text);
    *at = list + 2;
    return CL_SUCCESS;
}

static cl_int read_export(const cl_semaphore_properties_khr **at, struct wishes *wishes) {
    const cl_semaphore_properties_khr *list = *at;
    CLD_REQUIRE(!wishes->has_export, CL_INVALID_PROPERTY, "two lists of types to export");
    wishes->has_export = true;
    CLD_REQUIRE(!list[0] || !list[1], CL_INVALID_VALUE, "more than one type to export");
    CLD_REQUIRE(list[0] == CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR, CL_INVALID_PROPERTY,
                "nothing can be exported as type %#lx", (unsigned long)list[0]);
    *at = list + 2;
    return CL_SUCCESS;
}

static cl_int read_properties(const struct cld_context *context,
                              const cl_semaphore_properties_khr *properties, struct wishes *wishes) {
    const cl_semaphore_properties_khr *at = properties;
    while (*at) {
        cl_semaphore_properties_khr name = *at++;
        if (name == CLD_SEMAPHORE_DEVICE_HANDLE_LIST) {
            CLD_TRY(read_devices(context, &at, wishes));
        } else if (name == CL_SEMAPHORE_EXPORT_HANDLE_TYPES_KHR) {
            CLD_TRY(read_export(&at, wishes));
        } else if (name == CL_SEMAPHORE_TYPE_KHR) {
            CLD_REQUIRE(!wishes->has_type, CL_INVALID_PROPERTY, "two types");
            wishes->has_type = true;
            CLD_REQUIRE(*at++ == CL_SEMAPHORE_TYPE_BINARY_KHR, CL_INVALID_PROPERTY,
                        "CL_SEMAPHORE_TYPE_KHR is %#lx, not CL_SEMAPHORE_TYPE_BINARY_KHR",
                        (unsigned long)at[-1]);
        } else {
            CLD_REQUIRE(name == CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR, CL_INVALID_PROPERTY,
                        "sema_props has %#lx, which is none of semaphores", (unsigned long)name);
            CLD_REQUIRE(!wishes->has_import, CL_INVALID_PROPERTY, "two handles");
            wishes->has_import = true;
            wishes->descriptor = (int)*at++;
        }
    }
    wishes->words = (size_t)(at - properties) + 1;
    CLD_REQUIRE(wishes->has_type, CL_INVALID_VALUE, "CL_SEMAPHORE_TYPE_KHR is missing");
    CLD_REQUIRE(!wishes->has_import || !wishes->has_export, CL_INVALID_OPERATION,
                "what is imported is not exported");
    CLD_REQUIRE(!wishes->has_import || cld_semaphore_is_descriptor(wishes->descriptor), CL_INVALID_PROPERTY,
                "descriptor %d in sema_props is not one of a semaphore of this driver", wishes->descriptor);
    CLD_REQUIRE(wishes->device || context->device_count == 1, CL_INVALID_PROPERTY,
                "the context has several devices, of which none is named");
    if (!wishes->device)
        wishes->device = context->devices[0];
    return CL_SUCCESS;
}

static cl_int make(struct cld_context *context, const cl_semaphore_properties_khr *properties,
                   const struct wishes *wishes, struct cld_semaphore **made) {
    intptr_t *copy = malloc(wishes->words * sizeof *copy);
    CLD_REQUIRE(copy, CL_OUT_OF_HOST_MEMORY, "no memory");
    memcpy(copy, properties, wishes->words * sizeof *copy);
    int descriptor = wishes->has_import ? wishes->descriptor : -1;
    if (wishes->has_export)
        descriptor = cld_semaphore_new_descriptor();
    bool lacks = wishes->has_export && descriptor < 0;
    struct cld_semaphore *semaphore = lacks ? NULL : cld_object_new_zeroed();
    if (!semaphore) {
        free(copy);
        if (wishes->has_export && !lacks)
            close(descriptor);
    }
    CLD_REQUIRE(!lacks, CL_OUT_OF_RESOURCES, "no descriptor");
    CLD_REQUIRE(semaphore, CL_OUT_OF_HOST_MEMORY, "no memory");
    cld_object_hold(context);
    cld_object_hold(wishes->device);
    semaphore->context = context;
    semaphore->device = wishes->device;
    semaphore->is_exportable = wishes->has_export;
    semaphore->descriptor = descriptor;
    semaphore->properties = copy;
    semaphore->property_count = wishes->words;
    cld_object_publish(semaphore, CLD_SEMAPHORE);
    *made = semaphore;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_semaphore_khr CL_API_CALL clCreateSemaphoreWithPropertiesKHR(
    cl_context handle, const cl_semaphore_properties_khr *sema_props, cl_int *errcode_ret) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    CLD_REQUIRE_OR_NULL(context, CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE_LIVE_OR_NULL(context);
    CLD_REQUIRE_OR_NULL(sema_props, CL_INVALID_VALUE, "sema_props is NULL");
    struct wishes wishes = {0};
    struct cld_semaphore *semaphore = NULL;
    cl_int status = read_properties(context, sema_props, &wishes);
    CLD_REQUIRE_OR_NULL(!status, status, "sema_props are not valid");
    status = make(context, sema_props, &wishes, &semaphore);
    CLD_REQUIRE_OR_NULL(!status, status, "it cannot be made");
    if (errcode_ret)
        *errcode_ret = CL_SUCCESS;
    return (cl_semaphore_khr)semaphore;
}

CL_API_ENTRY cl_int CL_API_CALL clGetSemaphoreInfoKHR(cl_semaphore_khr handle,
                                                      cl_semaphore_info_khr param_name,
                                                      size_t param_value_size, void *param_value,
                                                      size_t *param_value_size_ret) {
    struct cld_semaphore *semaphore = cld_object_check(handle, CLD_SEMAPHORE);
    CLD_REQUIRE(semaphore, CL_INVALID_SEMAPHORE_KHR, "not a semaphore");
    cl_uint number;
    cl_semaphore_payload_khr payload;
    const void *answer = &number;
    size_t size = sizeof number;
    switch (param_name) {
    case CL_SEMAPHORE_CONTEXT_KHR:
        answer = &semaphore->context;
        size = sizeof semaphore->context;
        break;
    case CL_SEMAPHORE_REFERENCE_COUNT_KHR:
        number = cld_object_refs(semaphore);
        break;
    case CL_SEMAPHORE_PROPERTIES_KHR:
        answer = semaphore->properties;
        size = semaphore->property_count * sizeof *semaphore->properties;
        break;
    case CL_SEMAPHORE_TYPE_KHR:
        number = CL_SEMAPHORE_TYPE_BINARY_KHR;
        break;
    case CL_SEMAPHORE_PAYLOAD_KHR:
        payload = cld_semaphore_is_signaled(semaphore);
        answer = &payload;
        size = sizeof payload;
        break;
    case CLD_SEMAPHORE_DEVICE_HANDLE_LIST:
        answer = &semaphore->device;
        size = sizeof semaphore->device;
        break;
    case CL_SEMAPHORE_EXPORT_HANDLE_TYPES_KHR:
        number = CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR;
        size = semaphore->is_exportable ? sizeof number : 0;
        break;
    case CLD_SEMAPHORE_EXPORTABLE:
        number = semaphore->is_exportable;
        break;
    default:
        return cld_lack(__func__, CL_INVALID_VALUE, "param_name is not a query of semaphores");
    }
    return cld_info(answer, size, param_value_size, param_value, param_value_size_ret);
}

CL_API_ENTRY cl_int CL_API_CALL
clGetSemaphoreHandleForTypeKHR(cl_semaphore_khr sema_object, cl_device_id device_handle,
                               cl_external_semaphore_handle_type_khr handle_type, size_t handle_size,
                               void *handle_ptr, size_t *handle_size_ret) {
    struct cld_semaphore *semaphore = cld_object_check(sema_object, CLD_SEMAPHORE);
    CLD_REQUIRE(semaphore && semaphore->is_exportable, CL_INVALID_SEMAPHORE_KHR,
                "not a semaphore that can be exported");
    struct cld_device *device = cld_object_check(device_handle, CLD_DEVICE);
    CLD_REQUIRE(device && device == semaphore->device, CL_INVALID_DEVICE, "device is %s, not the semaphore's",
                cld_describe(device).text);
    CLD_REQUIRE(handle_type == CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR, CL_INVALID_VALUE,
                "not the type that the semaphore is exported as");
    CLD_REQUIRE(!handle_ptr || handle_size >= sizeof(int), CL_INVALID_VALUE,
                "handle_size is %zu, sizeof(int) is %zu", handle_size, sizeof(int));
    if (handle_ptr) { /* each descriptor that is given out is the application's to close */
        int copy = fcntl(semaphore->descriptor, F_DUPFD_CLOEXEC, 0);
        CLD_REQUIRE(copy >= 0, CL_OUT_OF_RESOURCES, "no descriptor");
        memcpy(handle_ptr, &copy, sizeof copy);
    }
    if (handle_size_ret)
        *handle_size_ret = sizeof(int);
    return CL_SUCCESS;
}
