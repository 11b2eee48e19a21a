/* The names of error codes: native_shim/gen/dispatch.py reads them from the OpenCL headers. */
#ifndef CLD_ERROR_NAMES_H
#define CLD_ERROR_NAMES_H

#include <stdint.h>

/* "CL_INVALID_VALUE" for -30, and so on; a phrase for codes that no header names. */
const char *cld_error_name(int32_t code);

#endif
