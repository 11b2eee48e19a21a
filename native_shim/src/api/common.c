/* What the files of the control plane's C side share. */
#define _GNU_SOURCE
#include "api/common.h"

#include <stdlib.h>
#include <string.h>

#include "object/call.h"

bool cld_copy_properties(const intptr_t *properties, size_t *count, intptr_t **copy) {
    *count = 0;
    *copy = NULL;
    if (!properties)
        return true;
    size_t words = 0;
    while (properties[words])
        words += 2;
    words++;
    *copy = malloc(words * sizeof **copy);
    if (!*copy)
        return false;
    memcpy(*copy, properties, words * sizeof **copy);
    *count = words;
    return true;
}

cl_int cld_check_devices(const struct cld_context *context, cl_uint num_devices,
                         const cl_device_id *device_list, struct cld_device *const **devices,
                         uint32_t *count) {
    /* "CL_INVALID_VALUE if device_list is NULL and num_devices is greater than zero, or if device_list is not
     * NULL and num_devices is zero." */
    CLD_REQUIRE((device_list != NULL) == (num_devices > 0), CL_INVALID_VALUE,
                "device_list and num_devices contradict each other");
    if (!device_list) {
        *devices = context->devices;
        *count = context->device_count;
        return CL_SUCCESS;
    }
    for (cl_uint i = 0; i < num_devices; i++) {
        struct cld_device *device = cld_object_check(device_list[i], CLD_DEVICE);
        CLD_REQUIRE(device && cld_context_has_device(context, device), CL_INVALID_DEVICE,
                    "device_list[%u] is %s, not a device of the context", i,
                    cld_describe(device_list[i]).text);
    }
    /* A cl_device_id is the address of its struct cld_device. */
    *devices = (struct cld_device *const *)(const void *)device_list;
    *count = num_devices;
    return CL_SUCCESS;
}
