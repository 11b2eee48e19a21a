/* Memory of buffers: alignment, huge pages. */
#define _GNU_SOURCE
#include "storage.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    ALIGN = 128, /* of long16, CL_DEVICE_MEM_BASE_ADDR_ALIGN, and what kernels' vector code likes */
    PAGE = 4096,
    PAGE_FROM = 64 << 10, /* these start on a page of their own: zero-copy maps like it */
    HUGE_PAGE = 2 << 20,
    HUGE_FROM = 2 * HUGE_PAGE,
};

void *cld_storage(size_t size) {
    size_t align = size >= HUGE_FROM ? HUGE_PAGE : size >= PAGE_FROM ? PAGE : ALIGN;
    void *start = NULL;
    if (size > SIZE_MAX - HUGE_PAGE || posix_memalign(&start, align, size))
        return NULL;
    /* Where the system does not give them of itself: they are for programs that say so. */
    if (align == HUGE_PAGE)
        madvise(start, size & ~(size_t)(PAGE - 1), MADV_HUGEPAGE);
    return start;
}
