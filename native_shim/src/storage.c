/* Memory of buffers: alignment, huge pages. */
#define _GNU_SOURCE
#include "storage.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    ALIGN = 128, /* of long16, CL_DEVICE_MEM_BASE_ADDR_ALIGN, and what kernels' vector code likes */
    PAGE = 4096,
    PAGE_FROM = 64 << 10,
    HUGE_PAGE = 2 << 20,
    /* Of less, a core's cache may hold much, and pages that lie anywhere spread over its sets what lies at
     * distances of powers of two. */
    HUGE_FROM = 8 * HUGE_PAGE,
};

static size_t align_of(size_t size) {
    return size >= HUGE_FROM ? HUGE_PAGE : size >= PAGE_FROM ? PAGE : ALIGN;
}

/* Large ones would all begin at the same place of a page, so that equal indices of several buffers compete
 * for the same sets of a cache, and a load looks as if it hit the last store to another buffer. */
static size_t next_shift(size_t align) {
    enum { LINES = 3 * ALIGN, PAGES = 5 * PAGE, SHIFTS = 8 };
    static _Atomic unsigned count;
    unsigned at = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) % SHIFTS;
    return align == HUGE_PAGE ? at * (size_t)(PAGES + LINES) : align == PAGE ? at * (size_t)LINES : 0;
}

void *cld_storage(size_t size) {
    size_t align = align_of(size), shift = next_shift(align);
    void *start = NULL;
    if (size > SIZE_MAX - HUGE_PAGE || posix_memalign(&start, align, size + shift))
        return NULL;
    /* Where the system does not give them of itself: they are for programs that say so. */
    if (align == HUGE_PAGE)
        madvise(start, (size + shift) & ~(size_t)(PAGE - 1), MADV_HUGEPAGE);
    return (uint8_t *)start + shift;
}

void cld_storage_free(void *storage, size_t size) {
    free((void *)((uintptr_t)storage & ~(uintptr_t)(align_of(size) - 1)));
}
