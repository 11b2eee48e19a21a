/* Command-queues (API specification, 5.1 and 5.15). */
#include <stdlib.h>
#include <string.h>

#include "api/common.h"
#include "base/settings.h"
#include "base/thread.h"
#include "check/check.h"
#include "enqueue/enqueue.h"
#include "object/call.h"
#include "object/info.h"
#include "object/lock.h"
#include "runtime/command.h"
#include "runtime/worker.h"

enum { SUPPORTED = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE };

/* Of queues on the device; cl_driver/device/limits.py has the same. */
enum { PREFERRED_SIZE = 16 << 20, MAX_SIZE = 1 << 30 };

static bool has_device_queues(void) {
    return cld_setting_is(CL_DRIVER_DEVICE_ENQUEUE_SETTING, "1");
}

static void destroy_queue(void *object) {
    struct cld_queue *queue = object;
    cld_lock(queue->context);
    *(queue->previous ? &queue->previous->next : &queue->context->queues) = queue->next;
    if (queue->next)
        queue->next->previous = queue->previous;
    cld_unlock(queue->context);
    pthread_mutex_destroy(&queue->lock);
    free(queue->property_list);
    cld_object_drop(queue->device);
    cld_object_drop(queue->context);
}

/* "clReleaseCommandQueue performs an implicit flush." */
static void release_queue(void *object) {
    struct cld_queue *queue = object;
    struct cld_context *context = queue->context;
    cld_queue_flush(queue, NULL);
    for (uint32_t i = 0; queue->properties & CL_QUEUE_ON_DEVICE && i < context->device_count; i++) {
        struct cld_queue *is_default = queue;
        atomic_compare_exchange_strong(&context->default_queues[i], &is_default, NULL);
    }
}

__attribute__((constructor)) static void register_queue(void) {
    cld_object_on_destroy(CLD_QUEUE, destroy_queue);
    cld_object_on_release(CLD_QUEUE, release_queue);
}

static _Atomic(struct cld_queue *) *default_place(struct cld_context *context,
                                                  const struct cld_device *device) {
    uint32_t i = 0;
    while (context->devices[i] != device)
        i++;
    return &context->default_queues[i];
}

/* cl_khr_priority_hints and cl_khr_throttle_hints, a bit each. */
struct hints {
    cl_queue_properties priority, throttle;
};

static bool is_hint(cl_queue_properties value) {
    return value == CL_QUEUE_PRIORITY_HIGH_KHR || value == CL_QUEUE_PRIORITY_MED_KHR ||
           value == CL_QUEUE_PRIORITY_LOW_KHR;
}

_Static_assert(CL_QUEUE_PRIORITY_HIGH_KHR == CL_QUEUE_THROTTLE_HIGH_KHR &&
                   CL_QUEUE_PRIORITY_MED_KHR == CL_QUEUE_THROTTLE_MED_KHR &&
                   CL_QUEUE_PRIORITY_LOW_KHR == CL_QUEUE_THROTTLE_LOW_KHR,
               "both have the same values");

/* "It is expected that the user guides [...] will describe the scheduling behavior guarantees": README.md. */
static void follow_hints(struct cld_queue *queue, struct hints hints) {
    uint32_t units = queue->device->compute_units;
    queue->pool = hints.priority == CL_QUEUE_PRIORITY_LOW_KHR ? CLD_BACKGROUND : CLD_FOREGROUND;
    queue->is_urgent = hints.priority == CL_QUEUE_PRIORITY_HIGH_KHR;
    queue->threads = hints.throttle == CL_QUEUE_THROTTLE_LOW_KHR ? (units + 3) / 4 : units;
}

/* size: of one on the device. */
static cl_command_queue make_queue(struct cld_context *context, struct cld_device *device,
                                   cl_command_queue_properties properties, uint64_t size, struct hints hints,
                                   const cl_queue_properties *property_list, cl_int *errcode_ret) {
    struct cld_queue *queue = cld_object_new(CLD_QUEUE);
    CLD_REQUIRE_OR_NULL(queue, CL_OUT_OF_HOST_MEMORY, "no memory");
    cld_object_hold(context);
    cld_object_hold(device);
    queue->context = context;
    queue->device = device;
    queue->local = device->worker ? device->local : device;
    queue->properties =
        properties | (cld_observers[0] ? CLD_OBSERVED : 0) | (context->is_spread ? CLD_SPREAD : 0);
    queue->size = size;
    follow_hints(queue, hints);
    pthread_mutex_init(&queue->lock, NULL);
    cld_lock(context);
    queue->next = context->queues;
    if (queue->next)
        queue->next->previous = queue;
    context->queues = queue;
    bool is_terminated = context->is_ending;
    atomic_store_explicit(&queue->is_terminated, is_terminated, memory_order_relaxed);
    atomic_store_explicit(&queue->refuses, is_terminated || properties & CL_QUEUE_ON_DEVICE,
                          memory_order_relaxed);
    cld_unlock(context);
    if (property_list) {
        size_t count = 0;
        while (property_list[count])
            count += 2;
        count++;
        queue->property_list = malloc(count * sizeof *property_list);
        if (!queue->property_list)
            cld_object_release(queue, CLD_QUEUE, CL_INVALID_COMMAND_QUEUE);
        CLD_REQUIRE_OR_NULL(queue->property_list, CL_OUT_OF_HOST_MEMORY, "no memory");
        memcpy(queue->property_list, property_list, count * sizeof *property_list);
        queue->property_count = count;
    }
    if (properties & CL_QUEUE_ON_DEVICE_DEFAULT)
        atomic_store(default_place(context, device), queue);
    if (errcode_ret)
        *errcode_ret = CL_SUCCESS;
    return (cl_command_queue)queue;
}

/* Bytes of several pages for each thread of a large machine. */
enum { WORTH_SHARING = 4 << 20 };

void cld_context_copy(struct cld_context *context, void *to, const void *from, size_t size) {
    struct cld_device *device = context->devices[0];
    const struct cld_self *self = cld_self();
    bool may_share = size >= WORTH_SHARING && device->compute_units > 1 && !cld_kcheck_is_on &&
                     self->role == CLD_HOST_THREAD && !self->executing;
    struct cld_queue *queue = NULL;
    bool is_done = false;
    unsigned threads;
    if (may_share)
        queue = (struct cld_queue *)make_queue(context, device, 0, 0, (struct hints){0}, NULL, NULL);
    if (queue && cld_pool_places(queue, &threads)) {
        const struct cld_copy_region region = {
            .destination = to, .source = from, .width = size, .height = 1, .depth = 1};
        const struct cld_wait wait = {0};
        queue->properties = 0; /* nobody is to see it */
        is_done = !cld_enqueue_copy(queue, CL_COMMAND_WRITE_BUFFER, NULL, NULL, &region, true, &wait);
    }
    if (queue)
        cld_object_release(queue, CLD_QUEUE, CL_INVALID_COMMAND_QUEUE);
    if (!is_done) /* by this thread; so if the context is at its end, or there is no memory for a command */
        memcpy(to, from, size);
}

CL_API_ENTRY cl_command_queue CL_API_CALL
clCreateCommandQueueWithProperties(cl_context context_handle, cl_device_id device_handle,
                                   const cl_queue_properties *properties, cl_int *errcode_ret) {
    struct cld_context *context = cld_object_check(context_handle, CLD_CONTEXT);
    CLD_REQUIRE_OR_NULL(context, CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE_LIVE_OR_NULL(context);
    struct cld_device *device = cld_object_check(device_handle, CLD_DEVICE);
    CLD_REQUIRE_OR_NULL(device && cld_context_has_device(context, device), CL_INVALID_DEVICE,
                        "not a device of the context");
    cl_command_queue_properties bits = 0;
    bool has_size = false;
    uint64_t size = 0;
    struct hints hints = {0};
    for (size_t i = 0; properties && properties[i]; i += 2) {
        cl_queue_properties name = properties[i], value = properties[i + 1];
        bool hints_at = name == CL_QUEUE_PRIORITY_KHR || name == CL_QUEUE_THROTTLE_KHR;
        CLD_REQUIRE_OR_NULL(name == CL_QUEUE_PROPERTIES || name == CL_QUEUE_SIZE || hints_at,
                            CL_INVALID_VALUE, "properties has %#lx, which is none of queues",
                            (unsigned long)name);
        CLD_REQUIRE_OR_NULL(!hints_at || is_hint(value), CL_INVALID_VALUE,
                            "properties has %#lx for a hint, not one priority or throttle",
                            (unsigned long)value);
        if (name == CL_QUEUE_PROPERTIES)
            bits = value;
        else if (hints_at)
            *(name == CL_QUEUE_PRIORITY_KHR ? &hints.priority : &hints.throttle) = value;
        else {
            has_size = true;
            size = value;
        }
    }
    CLD_REQUIRE_OR_NULL(
        !(bits & ~(cl_command_queue_properties)(SUPPORTED | CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT)),
        CL_INVALID_VALUE, "CL_QUEUE_PROPERTIES is %#lx, with an unknown bit", (unsigned long)bits);
    /* "If CL_QUEUE_ON_DEVICE is set, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE must also be set." */
    CLD_REQUIRE_OR_NULL(
        !(bits & CL_QUEUE_ON_DEVICE) || (bits & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE), CL_INVALID_VALUE,
        "CL_QUEUE_PROPERTIES is %#lx: a queue on the device is out-of-order", (unsigned long)bits);
    CLD_REQUIRE_OR_NULL(!(bits & CL_QUEUE_ON_DEVICE_DEFAULT) || (bits & CL_QUEUE_ON_DEVICE), CL_INVALID_VALUE,
                        "CL_QUEUE_ON_DEVICE_DEFAULT is for device queues");
    CLD_REQUIRE_OR_NULL(!has_size || (bits & CL_QUEUE_ON_DEVICE), CL_INVALID_VALUE,
                        "CL_QUEUE_SIZE is for device queues");
    CLD_REQUIRE_OR_NULL(!(bits & CL_QUEUE_ON_DEVICE) || (has_device_queues() && !device->worker),
                        CL_INVALID_QUEUE_PROPERTIES, "the device has no on-device queues");
    /* cl_khr_priority_hints, cl_khr_throttle_hints: of queues on the host alone. */
    CLD_REQUIRE_OR_NULL(!(bits & CL_QUEUE_ON_DEVICE) || !(hints.priority | hints.throttle),
                        CL_INVALID_QUEUE_PROPERTIES, "hints are for queues of the host");
    /* "CL_QUEUE_SIZE [...] must be a value <= CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE." */
    CLD_REQUIRE_OR_NULL(size <= MAX_SIZE, CL_INVALID_QUEUE_PROPERTIES, "CL_QUEUE_SIZE is %lu, at most %lu",
                        (unsigned long)size, (unsigned long)MAX_SIZE);
    if (bits & CL_QUEUE_ON_DEVICE && !size)
        size = PREFERRED_SIZE;
    /* "If a default device queue has already been created [...], clCreateCommandQueueWithProperties will
     * return the default device queue and increment its retain count by 1." */
    struct cld_queue *found =
        bits & CL_QUEUE_ON_DEVICE_DEFAULT ? atomic_load(default_place(context, device)) : NULL;
    if (found && !cld_object_retain(found, CLD_QUEUE, CL_INVALID_COMMAND_QUEUE)) {
        if (errcode_ret)
            *errcode_ret = CL_SUCCESS;
        return (cl_command_queue)found;
    }
    return make_queue(context, device, bits, size, hints, properties, errcode_ret);
}

CL_API_ENTRY cl_command_queue CL_API_CALL clCreateCommandQueue(cl_context context_handle,
                                                               cl_device_id device_handle,
                                                               cl_command_queue_properties properties,
                                                               cl_int *errcode_ret) {
    struct cld_context *context = cld_object_check(context_handle, CLD_CONTEXT);
    CLD_REQUIRE_OR_NULL(context, CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE_LIVE_OR_NULL(context);
    struct cld_device *device = cld_object_check(device_handle, CLD_DEVICE);
    CLD_REQUIRE_OR_NULL(device && cld_context_has_device(context, device), CL_INVALID_DEVICE,
                        "not a device of the context");
    CLD_REQUIRE_OR_NULL(!(properties & ~(cl_command_queue_properties)SUPPORTED), CL_INVALID_VALUE,
                        "properties has an unknown bit");
    return make_queue(context, device, properties, 0, (struct hints){0}, NULL, errcode_ret);
}

/* "Support for modifying the properties of a command-queue is required only for OpenCL 1.0 devices." */
CL_API_ENTRY cl_int CL_API_CALL clSetCommandQueueProperty(cl_command_queue handle,
                                                          cl_command_queue_properties properties,
                                                          cl_bool enable,
                                                          cl_command_queue_properties *old_properties) {
    (void)properties, (void)enable, (void)old_properties;
    CLD_REQUIRE(cld_queue_check(handle), CL_INVALID_COMMAND_QUEUE, "not a command-queue");
    CLD_REQUIRE(false, CL_INVALID_OPERATION, "queue properties cannot be changed since OpenCL 1.1");
}

CL_API_ENTRY cl_int CL_API_CALL clSetDefaultDeviceCommandQueue(cl_context context_handle,
                                                               cl_device_id device_handle,
                                                               cl_command_queue queue_handle) {
    struct cld_context *context = cld_object_check(context_handle, CLD_CONTEXT);
    CLD_REQUIRE(context, CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE_LIVE(context);
    struct cld_device *device = cld_object_check(device_handle, CLD_DEVICE);
    CLD_REQUIRE(device && cld_context_has_device(context, device), CL_INVALID_DEVICE,
                "not a device of the context");
    CLD_REQUIRE(has_device_queues() && !device->worker, CL_INVALID_OPERATION,
                "the device has no on-device queues");
    /* "CL_INVALID_COMMAND_QUEUE if command_queue is not a valid command-queue for device." */
    struct cld_queue *queue = cld_queue_check(queue_handle);
    CLD_REQUIRE(queue && queue->properties & CL_QUEUE_ON_DEVICE && queue->context == context &&
                    queue->device == device,
                CL_INVALID_COMMAND_QUEUE, "not a queue on the device of the call");
    atomic_store(default_place(context, device), queue);
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetCommandQueueInfo(cl_command_queue handle,
                                                      cl_command_queue_info param_name,
                                                      size_t param_value_size, void *param_value,
                                                      size_t *param_value_size_ret) {
    struct cld_queue *queue = cld_queue_check(handle);
    CLD_REQUIRE(queue, CL_INVALID_COMMAND_QUEUE, "not a command-queue");
    cl_uint count;
    cl_command_queue_properties properties;
    const struct cld_queue *default_queue;
    const void *answer;
    size_t size;
    switch (param_name) {
    case CL_QUEUE_CONTEXT:
        answer = &queue->context;
        size = sizeof(cl_context);
        break;
    case CL_QUEUE_DEVICE:
        answer = &queue->device;
        size = sizeof(cl_device_id);
        break;
    case CL_QUEUE_REFERENCE_COUNT:
        count = cld_object_refs(queue);
        answer = &count;
        size = sizeof count;
        break;
    case CL_QUEUE_PROPERTIES:
        properties = queue->properties & ~(cl_command_queue_properties)(CLD_OBSERVED | CLD_SPREAD);
        answer = &properties;
        size = sizeof properties;
        break;
    case CL_QUEUE_PROPERTIES_ARRAY:
        answer = queue->property_list;
        size = queue->property_count * sizeof *queue->property_list;
        break;
    case CL_QUEUE_DEVICE_DEFAULT:
        default_queue = cld_context_default_queue(queue->context, queue->device);
        answer = &default_queue;
        size = sizeof default_queue;
        break;
    case CL_QUEUE_SIZE:
        /* "CL_INVALID_COMMAND_QUEUE if command_queue is not a valid command-queue for param_name." */
        CLD_REQUIRE(queue->properties & CL_QUEUE_ON_DEVICE, CL_INVALID_COMMAND_QUEUE,
                    "only device queues have a size");
        count = (cl_uint)queue->size;
        answer = &count;
        size = sizeof count;
        break;
    default:
        return cld_lack(__func__, CL_INVALID_VALUE, "param_name is not a queue query");
    }
    return cld_info(answer, size, param_value_size, param_value, param_value_size_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clFlush(cl_command_queue handle) {
    struct cld_queue *queue = cld_queue_check(handle);
    CLD_REQUIRE(queue && !(queue->properties & CL_QUEUE_ON_DEVICE), CL_INVALID_COMMAND_QUEUE,
                "not a host command-queue");
    cld_queue_flush(queue, NULL);
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clFinish(cl_command_queue handle) {
    struct cld_queue *queue = cld_queue_check(handle);
    CLD_REQUIRE(queue && !(queue->properties & CL_QUEUE_ON_DEVICE), CL_INVALID_COMMAND_QUEUE,
                "not a host command-queue");
    return cld_queue_finish(queue);
}
