/* Device queries, sub-devices, timers (API specification, 4.2 and 4.3). */
#include "api/common.h"

#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "api/platform.h"
#include "base/thread.h"
#include "cluster/cluster.h"
#include "memory/svm_types.h"
#include "object/call.h"
#include "object/info.h"
#include "object/lock.h"
#include "python/door.h"
#include "python/requests.h"
#include "runtime/worker.h"

/* Answers never change: each is asked for once and kept. Devices are few and live long, so the list of a
 * device's answers is never trimmed while it lives. */
struct answer {
    struct answer *next;
    uint64_t device_key;
    cl_device_info param_name;
    size_t size;
    uint8_t bytes[];
};

static _Atomic(struct answer *) answers;

static const struct answer *known_answer(uint64_t key, cl_device_info param_name) {
    for (const struct answer *at = atomic_load_explicit(&answers, memory_order_acquire); at; at = at->next)
        if (at->device_key == key && at->param_name == param_name)
            return at;
    return NULL;
}

static void keep_answer(uint64_t key, cl_device_info param_name, const void *bytes, size_t size) {
    struct answer *answer = malloc(sizeof *answer + size);
    if (!answer)
        return;
    answer->device_key = key;
    answer->param_name = param_name;
    answer->size = size;
    memcpy(answer->bytes, bytes, size);
    answer->next = atomic_load_explicit(&answers, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&answers, &answer->next, answer, memory_order_release,
                                                  memory_order_relaxed))
        ;
}

/* const char *[] queries of cl_khr_spirv_queries, which Debian 12's headers do not have. Python's answer is
 * the strings with their NULs; what the host gets are pointers to them, so they stay for ever, like all
 * answers. */
enum { SPIRV_EXTENDED_INSTRUCTION_SETS = 0x12B9, SPIRV_EXTENSIONS = 0x12BA };

static bool keep_strings(uint64_t key, cl_device_info param_name, const char *strings, size_t size) {
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += !strings[i];
    char *copy = malloc(size ? size : 1);
    const char **pointers = malloc((count ? count : 1) * sizeof *pointers);
    bool whole = copy && pointers;
    if (whole) {
        memcpy(copy, strings, size);
        for (size_t i = 0, at = 0; i < count; i++, at += strlen(copy + at) + 1)
            pointers[i] = copy + at;
        keep_answer(key, param_name, pointers, count * sizeof *pointers);
    } else {
        free(copy);
    }
    free(pointers);
    return whole;
}

static void put_cpus(struct cld_msg *request, const struct cld_device *device) {
    cld_put_list(request, device->compute_units);
    for (uint32_t i = 0; i < device->compute_units; i++)
        cld_put_int(request, device->cpus[i]);
}

static uint64_t number_of(const struct cld_device *device, cl_device_info query) {
    size_t size;
    const void *bytes = cld_cluster_answer(device, query, &size);
    uint64_t number = 0;
    memcpy(&number, bytes, bytes && size < sizeof number ? size : bytes ? sizeof number : 0);
    return number;
}

/* A worker's device: its limits are the worker's, and of memory both have what one of them has. */
static cl_int complete_worker(struct cld_device *device) {
    struct cld_device *root = cld_root_device();
    CLD_TRY(cld_device_complete(root));
    struct cld_msg request;
    uint64_t key;
    cld_msg_init(&request);
    cld_put_int(&request, (int64_t)root->obj.key);
    CLD_TRY(cld_call_for_key("cluster_device", &request, &key));
    size_t size;
    const void *sizes = cld_cluster_answer(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, &size);
    uint64_t most = number_of(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    cld_lock(device);
    bool is_first = !device->obj.key;
    if (is_first) {
        device->obj.key = key;
        device->max_group_size = number_of(device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
        if (sizes && size == sizeof device->max_item_sizes)
            memcpy(device->max_item_sizes, sizes, size);
        device->local_memory_size = number_of(device, CL_DEVICE_LOCAL_MEM_SIZE);
        device->max_alloc_size = most < root->max_alloc_size ? most : root->max_alloc_size;
        device->base_align = (uint32_t)(number_of(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8);
    }
    cld_unlock(device);
    if (!is_first)
        cld_door_forget(key);
    atomic_store_explicit(&device->complete, true, memory_order_release);
    return CL_SUCCESS;
}

/* How Python learns the root device's CPUs, and the data plane the limits. */
cl_int cld_device_complete(struct cld_device *device) {
    if (atomic_load_explicit(&device->complete, memory_order_acquire))
        return CL_SUCCESS;
    if (device->worker)
        return complete_worker(device);
    struct cld_msg request, reply;
    cld_msg_init(&request);
    cld_put_int(&request, (int64_t)device->obj.key);
    put_cpus(&request, device);
    cl_int status = cld_door_call("device_limits", &request, &reply);
    if (!status) {
        struct cld_answer_limits limits; /* has nothing to be freed */
        if (!cld_answer_limits_read(&reply, &limits) || limits.max_item_sizes_count != 3) {
            status = CL_OUT_OF_HOST_MEMORY;
        } else {
            cld_lock(device);
            device->max_group_size = limits.max_group_size;
            memcpy(device->max_item_sizes, limits.max_item_sizes, sizeof device->max_item_sizes);
            device->local_memory_size = limits.local_memory_size;
            device->max_alloc_size = limits.max_alloc_size;
            device->base_align = limits.base_align;
            cld_unlock(device);
            atomic_store_explicit(&device->complete, true, memory_order_release);
        }
    }
    cld_msg_free(&request);
    cld_msg_free(&reply);
    return status;
}

static cl_int worker_info(const struct cld_device *device, cl_device_info param_name, size_t param_value_size,
                          void *param_value, size_t *param_value_size_ret) {
    static const cl_uint one = 1;
    const void *object = param_name == CL_DEVICE_PLATFORM ? cld_platform() : NULL;
    cl_bool is_available;
    size_t size;
    switch (param_name) {
    case CL_DEVICE_PLATFORM:
    case CL_DEVICE_PARENT_DEVICE:
        return cld_info(&object, sizeof object, param_value_size, param_value, param_value_size_ret);
    case CL_DEVICE_REFERENCE_COUNT:
        return cld_info(&one, sizeof one, param_value_size, param_value, param_value_size_ret);
    case CL_DEVICE_AVAILABLE:
        is_available = cld_cluster_is_available(device);
        return cld_info(&is_available, sizeof is_available, param_value_size, param_value,
                        param_value_size_ret);
    }
    const void *bytes = cld_cluster_answer(device, param_name, &size);
    if (!bytes)
        return cld_lack("clGetDeviceInfo", CL_INVALID_VALUE, "param_name is no query of a worker's device");
    return cld_info(bytes, size, param_value_size, param_value, param_value_size_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceInfo(cl_device_id handle, cl_device_info param_name,
                                                size_t param_value_size, void *param_value,
                                                size_t *param_value_size_ret) {
    struct cld_device *device = cld_object_check(handle, CLD_DEVICE);
    CLD_REQUIRE(device, CL_INVALID_DEVICE, "not a device");
    if (device->worker)
        return worker_info(device, param_name, param_value_size, param_value, param_value_size_ret);
    const void *object;
    switch (param_name) {
    case CL_DEVICE_PLATFORM:
        object = cld_platform();
        return cld_info(&object, sizeof object, param_value_size, param_value, param_value_size_ret);
    case CL_DEVICE_PARENT_DEVICE:
        object = device->parent;
        return cld_info(&object, sizeof object, param_value_size, param_value, param_value_size_ret);
    /* "Return the list of root devices device can use device-side synchronization with": the only one, whose
     * threads need no host for commands to wait for one another. */
    case CLD_DEVICE_COMMAND_BUFFER_NUM_SYNC_DEVICES: {
        const cl_uint count = 1;
        return cld_info(&count, sizeof count, param_value_size, param_value, param_value_size_ret);
    }
    case CLD_DEVICE_SVM_TYPE_CAPABILITIES:
        return cld_info(cld_svm_types, sizeof cld_svm_types, param_value_size, param_value,
                        param_value_size_ret);
    case CLD_DEVICE_COMMAND_BUFFER_SYNC_DEVICES:
        object = cld_root_device();
        return cld_info(&object, sizeof object, param_value_size, param_value, param_value_size_ret);
    case CL_DEVICE_REFERENCE_COUNT: {
        /* "If the device is a root-level device, a reference count of one is returned." */
        cl_uint count = device->parent ? cld_object_refs(device) : 1;
        return cld_info(&count, sizeof count, param_value_size, param_value, param_value_size_ret);
    }
    case CL_DEVICE_TYPE: {
        cl_device_type type = cld_device_type();
        return cld_info(&type, sizeof type, param_value_size, param_value, param_value_size_ret);
    }
    case CL_DEVICE_MAX_COMPUTE_UNITS:
        return cld_info(&device->compute_units, sizeof device->compute_units, param_value_size, param_value,
                        param_value_size_ret);
    }
    const struct answer *known = known_answer(device->obj.key, param_name);
    if (known)
        return cld_info(known->bytes, known->size, param_value_size, param_value, param_value_size_ret);

    cl_int status = cld_device_complete(device);
    if (status)
        return status;
    struct cld_msg request, reply;
    cld_msg_init(&request);
    cld_put_int(&request, (int64_t)device->obj.key);
    put_cpus(&request, device);
    cld_put_int(&request, param_name);
    status = cld_door_call("clGetDeviceInfo", &request, &reply);
    if (!status) {
        size_t size;
        const void *bytes = cld_get_bytes(&reply, &size);
        bool strings = param_name == SPIRV_EXTENDED_INSTRUCTION_SETS || param_name == SPIRV_EXTENSIONS;
        if (reply.failed || (strings && !keep_strings(device->obj.key, param_name, bytes, size))) {
            status = CL_OUT_OF_HOST_MEMORY;
        } else if (strings) {
            known = known_answer(device->obj.key, param_name);
            status = known ? cld_info(known->bytes, known->size, param_value_size, param_value,
                                      param_value_size_ret)
                           : CL_OUT_OF_HOST_MEMORY;
        } else {
            keep_answer(device->obj.key, param_name, bytes, size);
            status = cld_info(bytes, size, param_value_size, param_value, param_value_size_ret);
        }
    }
    cld_msg_free(&request);
    cld_msg_free(&reply);
    return status;
}

static void destroy_device(void *object) {
    struct cld_device *device = object;
    cld_pools_free(device);
    cld_door_forget(device->obj.key);
    free(device->cpus);
    if (device->parent)
        cld_object_drop(device->parent);
}

__attribute__((constructor)) static void register_device(void) {
    cld_object_on_destroy(CLD_DEVICE, destroy_device);
}

/* One [key, [cpus]] of the answer; NULL when out of memory. Takes over the key. */
static struct cld_device *make_sub_device(struct cld_device *parent, struct cld_msg *reply) {
    cld_get_list(reply);
    uint64_t key = (uint64_t)cld_get_int(reply);
    uint32_t count = cld_get_list(reply);
    struct cld_device *device = reply->failed ? NULL : cld_object_new(CLD_DEVICE);
    uint32_t *cpus = malloc((count ? count : 1) * sizeof *cpus);
    for (uint32_t i = 0; i < count && !reply->failed; i++) {
        uint32_t cpu = (uint32_t)cld_get_int(reply);
        if (cpus)
            cpus[i] = cpu;
    }
    if (!device) {
        cld_door_forget(key);
        free(cpus);
        return NULL;
    }
    device->obj.key = key;
    device->cpus = cpus;
    device->compute_units = cpus ? count : 0;
    device->parent = parent;
    cld_object_hold(parent);
    device->max_group_size = parent->max_group_size;
    memcpy(device->max_item_sizes, parent->max_item_sizes, sizeof device->max_item_sizes);
    device->local_memory_size = parent->local_memory_size;
    device->max_alloc_size = parent->max_alloc_size;
    device->base_align = parent->base_align;
    atomic_store_explicit(&device->complete, true, memory_order_release);
    if (!cpus) {
        cld_object_release(device, CLD_DEVICE, CL_INVALID_DEVICE);
        return NULL;
    }
    return device;
}

/* The words of a partition list with its final 0. By counts, the list of counts has an end of its own, which
 * is 0 too; hosts leave out the second one, so what follows the first is not read. */
static size_t partition_words(const cl_device_partition_property *properties) {
    size_t words = 0;
    while (properties[words])
        words++;
    return words + 1;
}

CL_API_ENTRY cl_int CL_API_CALL clCreateSubDevices(cl_device_id in_device,
                                                   const cl_device_partition_property *properties,
                                                   cl_uint num_devices, cl_device_id *out_devices,
                                                   cl_uint *num_devices_ret) {
    struct cld_device *parent = cld_object_check(in_device, CLD_DEVICE);
    CLD_REQUIRE(parent, CL_INVALID_DEVICE, "not a device");
    CLD_REQUIRE(properties, CL_INVALID_VALUE, "properties is NULL");
    CLD_REQUIRE(!parent->worker, CL_INVALID_VALUE, "a worker's device cannot be partitioned");
    cl_int status = cld_device_complete(parent);
    if (status)
        return status;
    struct cld_msg request, reply;
    cld_msg_init(&request);
    cld_put_int(&request, (int64_t)parent->obj.key);
    put_cpus(&request, parent);
    cld_put_words(&request, properties, partition_words(properties));
    if (out_devices)
        cld_put_int(&request, num_devices);
    else
        cld_put_none(&request);
    status = cld_door_call("clCreateSubDevices", &request, &reply);
    if (!status) {
        uint32_t count = cld_get_list(&reply);
        bool complete = !reply.failed;
        if (num_devices_ret)
            *num_devices_ret = count;
        for (uint32_t i = 0; out_devices && i < count && complete; i++) {
            struct cld_device *device = make_sub_device(parent, &reply);
            out_devices[i] = (cl_device_id)device;
            if (!device) {
                while (i-- > 0)
                    cld_object_release(out_devices[i], CLD_DEVICE, CL_INVALID_DEVICE);
                complete = false;
            }
        }
        if (!complete)
            status = CL_OUT_OF_HOST_MEMORY;
    }
    cld_msg_free(&request);
    cld_msg_free(&reply);
    return status;
}

/* Host and device have the same clock, the one of event profiling. */
CL_API_ENTRY cl_int CL_API_CALL clGetDeviceAndHostTimer(cl_device_id handle, cl_ulong *device_timestamp,
                                                        cl_ulong *host_timestamp) {
    CLD_REQUIRE(cld_object_check(handle, CLD_DEVICE), CL_INVALID_DEVICE, "not a device");
    /* "CL_INVALID_VALUE if host_timestamp or device_timestamp is NULL." */
    CLD_REQUIRE(device_timestamp && host_timestamp, CL_INVALID_VALUE, "a time stamp is NULL");
    *device_timestamp = *host_timestamp = cld_now();
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetHostTimer(cl_device_id handle, cl_ulong *host_timestamp) {
    CLD_REQUIRE(cld_object_check(handle, CLD_DEVICE), CL_INVALID_DEVICE, "not a device");
    CLD_REQUIRE(host_timestamp, CL_INVALID_VALUE, "host_timestamp is NULL");
    *host_timestamp = cld_now();
    return CL_SUCCESS;
}
