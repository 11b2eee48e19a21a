/* Waits until somebody wants compiler processes, and becomes what starts them: `holder PROGRAM ARGUMENT...`,
 * with a socket as descriptor 3.
 *
 * A host that may change its root folder can start nothing afterwards, so something has to be there before;
 * most of these hosts never do, or have their programs in the cache. So it is small: it has a few pages, no C
 * library, and nothing of the host's folders. It ends when nobody can ask it any more. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/system_call.h"

enum { SOCKET = 3 };

/* words: the number of arguments; they, and the environment, with a zero after each. */
__attribute__((noreturn, used)) static void start(long *words) {
    long count = words[0];
    char **arguments = (char **)(words + 1), **environment = arguments + count + 1;
    struct pollfd polled = {SOCKET, POLLIN | POLLRDHUP, 0};
    /* It may do what the host has given up since. */
    cld_system_call(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0);
    cld_system_call(SYS_chdir, (long)"/", 0, 0, 0);
    while (cld_system_call(SYS_ppoll, (long)&polled, 1, 0, 0) == -EINTR)
        ;
    bool is_asked = count > 1 && polled.revents == POLLIN;
    if (is_asked)
        cld_system_call(SYS_execve, (long)arguments[1], (long)(arguments + 1), (long)environment, 0);
    cld_system_call(SYS_exit_group, is_asked ? 127 : 0, 0, 0, 0);
    __builtin_unreachable();
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall start\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tmov x0, sp\n\tbl start\n");
#endif
