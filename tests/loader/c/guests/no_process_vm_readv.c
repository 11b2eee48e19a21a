/* A preloaded library: process_vm_readv() of a sandbox that forbids it, or an emulator that lacks it. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/uio.h>

ssize_t process_vm_readv(pid_t process, const struct iovec *to, unsigned long to_count,
                         const struct iovec *from, unsigned long from_count, unsigned long flags) {
    (void)process, (void)to, (void)to_count, (void)from, (void)from_count, (void)flags;
    errno = EPERM;
    return -1;
}
