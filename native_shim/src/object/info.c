/* Answers of info queries. */
#include "object/info.h"

#include <string.h>

#include "object/call.h"

cl_int cld_info(const void *bytes, size_t size, size_t param_value_size, void *param_value,
                size_t *param_value_size_ret) {
    CLD_REQUIRE(!param_value || param_value_size >= size, CL_INVALID_VALUE,
                "param_value_size is %zu, the answer has %zu bytes: param_name", param_value_size, size);
    if (param_value && size)
        memcpy(param_value, bytes, size);
    if (param_value_size_ret)
        *param_value_size_ret = size;
    return CL_SUCCESS;
}

cl_int cld_info_string(const char *string, size_t param_value_size, void *param_value,
                       size_t *param_value_size_ret) {
    return cld_info(string, strlen(string) + 1, param_value_size, param_value, param_value_size_ret);
}

cl_int cld_info_reply(cl_int status, struct cld_msg *reply, size_t param_value_size, void *param_value,
                      size_t *param_value_size_ret) {
    if (status)
        return status;
    size_t size;
    const void *bytes = cld_get_bytes(reply, &size);
    CLD_REQUIRE(!reply->failed, CL_OUT_OF_HOST_MEMORY, "the control plane's answer is malformed");
    return cld_info(bytes, size, param_value_size, param_value, param_value_size_ret);
}
