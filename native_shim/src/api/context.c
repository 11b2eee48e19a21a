/* Contexts (API specification, 4.4). */
#include "api/common.h"

#include <stdlib.h>

#include "cluster/cluster.h"
#include "memory/allocations.h"
#include "object/call.h"
#include "object/info.h"
#include "python/door.h"
#include "python/requests.h"
#include "runtime/callback.h"
#include "runtime/terminate.h"

typedef void(CL_CALLBACK *notify_fn)(const char *, const void *, size_t, void *);

static void destroy_context(void *object) {
    struct cld_context *context = object;
    cld_destructors_run(context, &context->destructors);
    cld_allocations_free_all(context);
    cld_door_forget(context->obj.key);
    for (uint32_t i = 0; i < context->device_count; i++)
        cld_object_drop(context->devices[i]);
    free(context->devices);
    free(context->default_queues);
    free(context->properties);
}

__attribute__((constructor)) static void register_context(void) {
    cld_object_on_destroy(CLD_CONTEXT, destroy_context);
}

/* The list's words; a platform handle becomes 1 if it is this driver's and 0 if not. */
static void put_properties(struct cld_msg *request, const cl_context_properties *properties) {
    if (!properties) {
        cld_put_none(request);
        return;
    }
    size_t words = 0;
    while (properties[words])
        words += 2;
    cld_put_list(request, (uint32_t)words + 1);
    for (size_t i = 0; i < words; i += 2) {
        bool platform = properties[i] == CL_CONTEXT_PLATFORM;
        cld_put_int(request, properties[i]);
        cld_put_int(request, platform ? cld_object_check((void *)properties[i + 1], CLD_PLATFORM) != NULL
                                      : properties[i + 1]);
    }
    cld_put_int(request, 0);
}

/* The value of a property, or 0. */
static cl_context_properties property_of(const cl_context_properties *properties,
                                         cl_context_properties name) {
    for (; properties && *properties; properties += 2)
        if (*properties == name)
            return properties[1];
    return 0;
}

static bool is_available(const struct cld_device *device) {
    return !device->worker || cld_cluster_is_available(device);
}

/* devices: checked, unique. */
static cl_context make_context(const cl_context_properties *properties, uint32_t count,
                               struct cld_device **devices, notify_fn notify, void *user_data,
                               cl_int *errcode_ret) {
    cl_int status = CL_SUCCESS;
    for (uint32_t i = 0; i < count && !status; i++)
        status = cld_device_complete(devices[i]);
    /* "CL_DEVICE_NOT_AVAILABLE if a device in devices is currently not available even though the device was
     * returned by clGetDeviceIDs." */
    for (uint32_t i = 0; i < count && !status; i++)
        if (!is_available(devices[i]))
            status = cld_refuse("clCreateContext", CL_DEVICE_NOT_AVAILABLE,
                                "devices has one of a cluster's worker that has gone");
    for (uint32_t i = 0; i < count && !status; i++)
        if (devices[i]->worker && (property_of(properties, CL_CONTEXT_TERMINATE_KHR) ||
                                   property_of(properties, CL_CONTEXT_MEMORY_INITIALIZE_KHR)))
            status = cld_refuse("clCreateContext", CL_INVALID_PROPERTY,
                                "properties has one that devices of a cluster do not have");
    uint64_t key = 0;
    if (!status) {
        struct cld_msg request;
        cld_msg_init(&request);
        put_properties(&request, properties);
        cld_put_devices(&request, devices, count);
        status = cld_call_for_key("clCreateContext", &request, &key);
    }
    struct cld_context *context = NULL;
    if (!status) {
        context = cld_object_new(CLD_CONTEXT);
        if (!context || !cld_copy_properties(properties, &context->property_count, &context->properties) ||
            !(context->default_queues = calloc(count, sizeof *context->default_queues)))
            status = CL_OUT_OF_HOST_MEMORY;
    }
    if (context) {
        context->obj.key = key;
        context->devices = devices;
        context->device_count = count;
        context->is_terminable = property_of(properties, CL_CONTEXT_TERMINATE_KHR) != CL_FALSE;
        context->notify = notify;
        context->notify_data = user_data;
        for (uint32_t i = 0; i < count; i++) {
            cld_object_hold(devices[i]);
            context->is_spread |= devices[i]->worker != NULL;
            context->is_elsewhere = (!i || context->is_elsewhere) && devices[i]->worker;
        }
        if (status)
            cld_object_release(context, CLD_CONTEXT, CL_INVALID_CONTEXT);
    } else {
        if (key)
            cld_door_forget(key);
        free(devices);
    }
    if (errcode_ret)
        *errcode_ret = status;
    return status ? NULL : (cl_context)context;
}

CL_API_ENTRY cl_context CL_API_CALL clCreateContext(const cl_context_properties *properties,
                                                    cl_uint num_devices, const cl_device_id *devices,
                                                    notify_fn pfn_notify, void *user_data,
                                                    cl_int *errcode_ret) {
    /* "CL_INVALID_VALUE if devices is NULL." "CL_INVALID_VALUE if num_devices is equal to zero." */
    CLD_REQUIRE_OR_NULL(devices && num_devices, CL_INVALID_VALUE, "num_devices is 0 or devices NULL");
    /* "CL_INVALID_VALUE if pfn_notify is NULL but user_data is not NULL." */
    CLD_REQUIRE_OR_NULL(pfn_notify || !user_data, CL_INVALID_VALUE, "user_data without pfn_notify");
    struct cld_device **unique = calloc(num_devices, sizeof *unique);
    CLD_REQUIRE_OR_NULL(unique, CL_OUT_OF_HOST_MEMORY, "no memory");
    uint32_t count = 0;
    for (cl_uint i = 0; i < num_devices; i++) {
        struct cld_device *device = cld_object_check(devices[i], CLD_DEVICE);
        if (!device)
            free(unique);
        /* "CL_INVALID_DEVICE if any device in devices is not a valid device." */
        CLD_REQUIRE_OR_NULL(device, CL_INVALID_DEVICE, "devices[%u] is %s, not a device", i,
                            cld_describe(devices[i]).text);
        uint32_t at = 0;
        while (at < count && unique[at] != device)
            at++;
        unique[at] = device; /* "Duplicate devices specified in devices are ignored." */
        count += at == count;
    }
    return make_context(properties, count, unique, pfn_notify, user_data, errcode_ret);
}

CL_API_ENTRY cl_context CL_API_CALL clCreateContextFromType(const cl_context_properties *properties,
                                                            cl_device_type device_type, notify_fn pfn_notify,
                                                            void *user_data, cl_int *errcode_ret) {
    CLD_REQUIRE_OR_NULL(pfn_notify || !user_data, CL_INVALID_VALUE, "user_data without pfn_notify");
    cl_uint count;
    cl_int status = clGetDeviceIDs(NULL, device_type, 0, NULL, &count);
    CLD_REQUIRE_OR_NULL(status != CL_INVALID_DEVICE_TYPE, CL_INVALID_DEVICE_TYPE, "not a device type");
    /* "CL_DEVICE_NOT_FOUND if no devices that match device_type [...] were found." */
    CLD_REQUIRE_OR_NULL(!status, CL_DEVICE_NOT_FOUND, "no such device");
    struct cld_device **devices = calloc(count, sizeof *devices);
    CLD_REQUIRE_OR_NULL(devices, CL_OUT_OF_HOST_MEMORY, "no memory");
    clGetDeviceIDs(NULL, device_type, count, (cl_device_id *)devices, NULL);
    /* "CL_DEVICE_NOT_AVAILABLE if no devices that match device_type and property values specified in
     * properties are currently available": others are none of it. This machine's is always. */
    uint32_t available = 0;
    for (uint32_t i = 0; i < count; i++)
        if (is_available(devices[i]))
            devices[available++] = devices[i];
    count = available;
    return make_context(properties, count, devices, pfn_notify, user_data, errcode_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clGetContextInfo(cl_context handle, cl_context_info param_name,
                                                 size_t param_value_size, void *param_value,
                                                 size_t *param_value_size_ret) {
    const struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    CLD_REQUIRE(context, CL_INVALID_CONTEXT, "not a context");
    cl_uint number;
    const void *answer = &number;
    size_t size = sizeof number;
    switch (param_name) {
    case CL_CONTEXT_REFERENCE_COUNT:
        number = cld_object_refs(context);
        break;
    case CL_CONTEXT_NUM_DEVICES:
        number = context->device_count;
        break;
    case CL_CONTEXT_DEVICES:
        answer = context->devices;
        size = context->device_count * sizeof(cl_device_id);
        break;
    case CL_CONTEXT_PROPERTIES:
        answer = context->properties;
        size = context->property_count * sizeof *context->properties;
        break;
    default:
        return cld_lack(__func__, CL_INVALID_VALUE, "param_name is not a context query");
    }
    return cld_info(answer, size, param_value_size, param_value, param_value_size_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clSetContextDestructorCallback(
    cl_context handle, void(CL_CALLBACK *pfn_notify)(cl_context, void *), void *user_data) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    CLD_REQUIRE(context, CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE_LIVE(context);
    CLD_REQUIRE(pfn_notify, CL_INVALID_VALUE, "pfn_notify is NULL");
    return cld_destructor_add(context, &context->destructors, (void (*)(void *, void *))(void *)pfn_notify,
                              user_data);
}

CL_API_ENTRY cl_int CL_API_CALL clTerminateContextKHR(cl_context handle) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    CLD_REQUIRE(context, CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE(context->is_terminable, CL_INVALID_OPERATION,
                "the context was not created with CL_CONTEXT_TERMINATE_KHR");
    CLD_REQUIRE(cld_context_terminate(context), CL_CONTEXT_TERMINATED_KHR,
                "the context was terminated before");
    return CL_SUCCESS;
}
