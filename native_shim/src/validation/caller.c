/* Where in the program a call comes from: behind the loader, where that is what called us. Some loaders jump
 * to the driver, and the driver returns to the program; others call it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <string.h>

#include "validation/validation.h"

enum { FRAMES = 16, KNOWN = 512 /* a power of two */ };

/* What is known of addresses, by some of their bits. Loaders stay loaded. */
static _Atomic(uintptr_t) others[KNOWN];

/* Whether it is in a function of the call's own name. */
static bool is_in_loader(const struct cld_call *call) {
    uintptr_t address = (uintptr_t)call->caller;
    _Atomic(uintptr_t) *known = &others[(address ^ address >> 12) % KNOWN];
    if (atomic_load_explicit(known, memory_order_relaxed) == address)
        return false;
    Dl_info info;
    if (dladdr((const void *)(address - 1), &info) && info.dli_sname && call_is(call, info.dli_sname))
        return true;
    atomic_store_explicit(known, address, memory_order_relaxed);
    return false;
}

const void *caller_in_program(const struct cld_call *call) {
    if (!call->caller || !is_in_loader(call))
        return call->caller;
    void *frames[FRAMES];
    int count = backtrace(frames, FRAMES);
    for (int i = 0; i + 1 < count; i++)
        if (frames[i] == call->caller)
            return frames[i + 1];
    return call->caller;
}
