/* A thread's stacks are one mapping, of which only the pages that code has used are there. Pages at the lower
 * end of each fault, so that an overflow ends the process and does not reach the next stack. */
#define _GNU_SOURCE
#include "base/stacks.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

/* Code of kernels touches each page that it takes (codegen/library/functions.py); C functions that they call
 * may pass over some. */
enum { GUARD = 64 << 10 };

enum { ADVISE_GUARD = 102 }; /* MADV_GUARD_INSTALL: Linux 6.13 and later */

/* Before that a guard takes two of the mappings that a process may have, 65,530 by default: so many guards at
 * most, for the host needs some, too. Other stacks then go without. */
enum { MOST_MAPPED = 8192 };

static _Thread_local struct cld_stacks own;
static _Thread_local size_t own_mapped; /* guards that are mappings */
static _Thread_local bool lacked;
static _Atomic size_t all_mapped;

static void guard(uint8_t *lowest) {
    if (!madvise(lowest, GUARD, ADVISE_GUARD))
        return;
    if (atomic_fetch_add(&all_mapped, 1) < MOST_MAPPED && !mprotect(lowest, GUARD, PROT_NONE))
        own_mapped++;
    else
        atomic_fetch_sub(&all_mapped, 1);
}

static bool map(struct cld_stacks *stacks, size_t size, size_t count) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t stride, whole;
    if (__builtin_add_overflow(size, GUARD + page - 1, &stride))
        return false;
    stride &= ~(page - 1);
    if (__builtin_mul_overflow(stride, count, &whole))
        return false;
    void *memory = mmap(NULL, whole, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    *stacks = (struct cld_stacks){memory, stride, count};
    for (size_t i = 0; i < count; i++)
        guard(stacks->memory + i * stride);
    return true;
}

bool cld_stacks_get(struct cld_stacks *stacks, size_t size, size_t count) {
    if (size + GUARD > own.stride || count > own.count) {
        /* Kernels with many and kernels with large ones may alternate. */
        size_t largest = size + GUARD > own.stride ? size : own.stride - GUARD;
        size_t most = count > own.count ? count : own.count;
        cld_stacks_drop();
        if (!map(&own, largest, most) && !map(&own, size, count)) {
            lacked = true;
            return false;
        }
    }
    *stacks = own;
    return true;
}

bool cld_stacks_lacked(void) {
    bool result = lacked;
    lacked = false;
    return result;
}

void cld_stacks_drop(void) {
    if (own.memory)
        munmap(own.memory, own.stride * own.count);
    atomic_fetch_sub(&all_mapped, own_mapped);
    own_mapped = 0;
    own = (struct cld_stacks){0};
}
