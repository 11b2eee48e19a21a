/* Requests through the door: what many of them have in common. */
#include "python/requests.h"

#include "base/own_thread.h"

enum { STACK = 8 << 20 }; /* bytes: Python runs on it, and user code */

void cld_put_words(struct cld_msg *request, const intptr_t *words, size_t count) {
    cld_put_list(request, (uint32_t)count);
    for (size_t i = 0; i < count; i++)
        cld_put_int(request, (int64_t)words[i]);
}

void cld_put_devices(struct cld_msg *request, struct cld_device *const *devices, uint32_t count) {
    cld_put_list(request, count);
    for (uint32_t i = 0; i < count; i++)
        cld_put_int(request, (int64_t)devices[i]->obj.key);
}

cl_int cld_query(const char *operation, struct cld_msg *request, size_t param_value_size, void *param_value,
                 size_t *param_value_size_ret) {
    struct cld_msg reply;
    cl_int status = cld_door_call(operation, request, &reply);
    status = cld_info_reply(status, &reply, param_value_size, param_value, param_value_size_ret);
    cld_msg_free(request);
    cld_msg_free(&reply);
    return status;
}

cl_int cld_call_for_key(const char *operation, struct cld_msg *request, uint64_t *key) {
    struct cld_msg reply;
    cl_int status = cld_door_call(operation, request, &reply);
    *key = 0;
    if (!status) {
        *key = (uint64_t)cld_get_int(&reply);
        if (reply.failed)
            status = CL_OUT_OF_HOST_MEMORY;
    }
    cld_msg_free(request);
    cld_msg_free(&reply);
    return status;
}

bool cld_start_thread(void *(*run)(void *), void *argument) {
    return !cld_own_thread(NULL, NULL, STACK, CLD_DRIVER_THREAD, run, argument);
}
