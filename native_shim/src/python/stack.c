/* Python wants more stack than some threads of hosts have. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>

#include "base/log.h"
#include "base/own_thread.h"
#include "python/guest.h"

enum { ENOUGH = 512 << 10, OWN = 16 << 20 };

/* Bytes between here and the end of this thread's stack; 0 on a stack that is not the thread's (a
 * coroutine's, a signal handler's), of which nothing is known. */
static size_t stack_left(void) {
    static __thread uintptr_t low, high;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (!high) {
        pthread_attr_t attributes;
        void *address;
        size_t size, guard = 0;
        if (pthread_getattr_np(pthread_self(), &attributes))
            return 0;
        if (!pthread_attr_getstack(&attributes, &address, &size)) {
            pthread_attr_getguardsize(&attributes, &guard);
            low = (uintptr_t)address + guard;
            high = (uintptr_t)address + size;
        }
        pthread_attr_destroy(&attributes);
    }
    return here > low && here <= high ? here - low : 0;
}

struct call {
    void (*function)(void *argument);
    void *argument;
};

static void *run(void *argument) {
    struct call *call = argument;
    call->function(call->argument);
    return NULL;
}

bool cld_with_stack(void (*function)(void *argument), void *argument) {
    if (stack_left() < ENOUGH)
        return cld_on_own_thread(function, argument);
    function(argument);
    return true;
}

bool cld_on_own_thread(void (*function)(void *argument), void *argument) {
    struct call call = {function, argument};
    pthread_t thread;
    int error = cld_own_thread(&thread, NULL, OWN, CLD_DRIVER_THREAD, run, &call);
    if (error) {
        cld_log(1, "no thread for Python: error %d", error);
        return false;
    }
    pthread_join(thread, NULL);
    return true;
}
