/* Hosts that have used up their descriptors.
 *
 * To start a compiler, to read a module of Python's or an entry of the cache takes some. A thread that begins
 * with a table of descriptors of its own has room for them, whatever the host has opened, and closes nothing
 * of the host's: what it opens is gone when it ends. Only our code may run on it, which knows that numbers
 * above the standard ones stand for nothing of the host's: it serves where Python is the driver's alone, and
 * not where finalizers of a host's Python may come to run. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "python/guest.h"

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

enum { NEEDED = 8 }; /* for a build that finds nothing ready */

static _Thread_local bool has_own;

bool cld_has_own_descriptors(void) {
    return has_own;
}

/* False if there are NEEDED that are free: the last ones. */
static bool may_lack_descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > INT_MAX)
        return false;
    for (int i = 1; i <= NEEDED; i++)
        if (fcntl((int)limit.rlim_cur - i, F_GETFD) >= 0)
            return true;
    return false;
}

struct call {
    void (*function)(void *argument);
    void *argument;
};

static void with_own(void *argument) {
    struct call *call = argument;
#ifdef SYS_close_range
    has_own = !syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_UNSHARE);
#endif
    cld_log(2, "few descriptors are left: %s", has_own ? "a thread with its own serves" : "it may fail");
    call->function(call->argument);
}

bool cld_with_descriptors(void (*function)(void *argument), void *argument) {
    struct call call = {function, argument};
    return (may_lack_descriptors() && cld_on_own_thread(with_own, &call)) ||
           cld_with_stack(function, argument);
}
