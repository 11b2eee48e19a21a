/* The API call that a thread is in, and how calls fail: with a code, and a line of the log that says why. */
#ifndef CLD_CALL_H
#define CLD_CALL_H

#include "object/object.h"

/* A call with its arguments. Only where there is a log, or an observer of calls (icd/dispatch.h): otherwise
 * nobody makes one. */
struct cld_call {
    const char
        *form; /* "clSetKernelArg hkernel uarg_index uarg_size parg_value", as gen/calls.py writes it */
    const uintptr_t *values;
    struct cld_call *outer; /* the one that called the host back */
    bool is_told;           /* the log has why it fails */
    uint64_t number;        /* of who watches, as the next two */
    const void *caller;     /* where it returns to */
    uintptr_t result;       /* what it returns, if that is no status: at its end */
};

/* Registers what is called before and after each call, with its status. To be called by a constructor, before
 * any call. */
void cld_call_watch(void (*before)(struct cld_call *call),
                    void (*after)(struct cld_call *call, cl_int status));

void cld_call_begin(struct cld_call *call, const char *form, const uintptr_t *values, const void *caller);

/* Writes a line even if no check did: no call fails in silence. Returns status. */
cl_int cld_call_end(struct cld_call *call, cl_int status);

/* Returns code, and writes why to the log: what the text names of the call's arguments, or what the code is
 * about, is added with its value, unless the text has it ("arg_index is 7, the kernel has 3 arguments"). A
 * text that says what an argument is not ("not a kernel") is a sentence about it. function: the caller's
 * name, which the line begins with if it is of the API and the call is not known. */
cl_int cld_refuse(const char *function, cl_int code, const char *format, ...)
    __attribute__((cold, noinline, format(printf, 3, 4)));

/* The same for what programs ask all drivers, which is no error: only the log of calls has it. */
cl_int cld_lack(const char *function, cl_int code, const char *format, ...)
    __attribute__((cold, noinline, format(printf, 3, 4)));

/* "a kernel", of CLD_KERNEL. */
const char *cld_kind_name(enum cld_kind kind);

/* What a handle is, in words: "NULL", "0x7f0012345680 (a kernel)". */
struct cld_words {
    char text[64];
};
struct cld_words cld_describe(const void *handle);

/* Returns `code` from an entry point that returns cl_int unless the condition holds, and logs why: a format
 * of printf and its values. */
#define CLD_REQUIRE(condition, code, ...)                                                                    \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            cld_refuse(__func__, code, __VA_ARGS__);                                                         \
            return code;                                                                                     \
        }                                                                                                    \
    } while (0)

/* The same for entry points with an errcode_ret parameter (which must be named errcode_ret). */
#define CLD_REQUIRE_OR_NULL(condition, code, ...)                                                            \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            cld_refuse(__func__, code, __VA_ARGS__);                                                         \
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
