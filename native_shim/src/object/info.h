/* The one place for the rules of param_value_size, param_value and param_value_size_ret. */
#ifndef CLD_INFO_H
#define CLD_INFO_H

#include "base/codec.h"
#include "object/object.h"

/* Answers an info query with size bytes. CL_INVALID_VALUE if param_value is given and too small. A size that
 * is larger than needed is legal; so is param_value == NULL, which asks for the size alone. */
cl_int cld_info(const void *bytes, size_t size, size_t param_value_size, void *param_value,
                size_t *param_value_size_ret);

/* The same for a C string, with its NUL. */
cl_int cld_info_string(const char *string, size_t param_value_size, void *param_value,
                       size_t *param_value_size_ret);

/* The same from the door's answer, which is one value of bytes; status is passed on if it is an error. */
cl_int cld_info_reply(cl_int status, struct cld_msg *reply, size_t param_value_size, void *param_value,
                      size_t *param_value_size_ret);

#endif
