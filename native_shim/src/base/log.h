/* What failed and why, for those who ask (CL_DRIVER_LOG). Never prints otherwise. */
#ifndef CLD_LOG_H
#define CLD_LOG_H

#include <stdbool.h>

extern _Atomic int cld_log_level; /* 0 off, 1 failed checks and errors, 2 every call */

/* Writes a line, if level is at most cld_log_level. Leaves errno as it is. */
void cld_log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns `code` from an entry point that returns cl_int unless the condition holds, and logs why. */
#define CLD_REQUIRE(condition, code, why)                                                                    \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            cld_log(1, "%s: %s (%s): %s", __func__, #code, #condition, why);                                 \
            return code;                                                                                     \
        }                                                                                                    \
    } while (0)

/* The same for entry points with an errcode_ret parameter (which must be named errcode_ret). */
#define CLD_REQUIRE_OR_NULL(condition, code, why)                                                            \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            cld_log(1, "%s: %s (%s): %s", __func__, #code, #condition, why);                                 \
            if (errcode_ret)                                                                                 \
                *errcode_ret = code;                                                                         \
            return NULL;                                                                                     \
        }                                                                                                    \
    } while (0)

/* Returns from an entry point with the error of a check. */
#define CLD_TRY(check)                                                                                       \
    do {                                                                                                     \
        cl_int status_ = (check);                                                                            \
        if (status_)                                                                                         \
            return status_;                                                                                  \
    } while (0)

#endif
