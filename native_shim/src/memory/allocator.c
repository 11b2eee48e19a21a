/* Memory of buffers: alignment, huge pages. */
#define _GNU_SOURCE
#include "memory/allocator.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "check/check.h"
#include "object/observer.h"

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

/* Freed storage that the next of about that size gets: fresh pages cost more than to fill them. Of one word
 * each, so that no lock is held when a program forks: the start, and in its low bits the class of its size.
 */
enum { KEPT = 16, CLASS_BITS = 12, STEPS = 8 };
#define MOST_KEPT ((size_t)64 << 20) /* bytes in all */
static _Atomic uint64_t kept[KEPT];
static _Atomic size_t kept_bytes;
static _Atomic unsigned next_victim;

_Static_assert(PAGE == 1 << CLASS_BITS, "the start leaves these bits");

/* Storage of a size is kept. Address sanitizers are to see that it is gone. */
static bool is_kept(size_t size) {
#ifdef __SANITIZE_ADDRESS__
    (void)size;
    return false;
#else
    return align_of(size) == PAGE;
#endif
}

/* Of a size that is kept: eight classes from one power of two to the next. Equal sizes have equal classes,
 * wherever they begin. */
static unsigned class_of(size_t size) {
    unsigned log = 63 - (unsigned)__builtin_clzll(size);
    size_t step = ((size_t)1 << log) / STEPS;
    return log * 2 * STEPS + (unsigned)((size + PAGE + step - 1) / step) - STEPS;
}

/* Bytes that are allocated for a class. */
static size_t room_of(unsigned class) {
    return (class % (2 * STEPS) + STEPS) * (((size_t)1 << class / (2 * STEPS)) / STEPS);
}

static void *take_kept(unsigned class) {
    for (unsigned i = 0; i < KEPT; i++) {
        uint64_t word = atomic_load(&kept[i]);
        if (word && (word & (PAGE - 1)) == class && atomic_compare_exchange_strong(&kept[i], &word, 0)) {
            atomic_fetch_sub(&kept_bytes, room_of(class));
            return (void *)(uintptr_t)(word - class);
        }
    }
    return NULL;
}

static void drop_kept(uint64_t word) {
    if (!word)
        return;
    unsigned class = word & (PAGE - 1);
    atomic_fetch_sub(&kept_bytes, room_of(class));
    free((void *)(uintptr_t)(word - class));
}

/* Those that were kept first make room, or nearly those. */
static void keep(void *start, unsigned class) {
    size_t bytes = atomic_fetch_add(&kept_bytes, room_of(class)) + room_of(class);
    for (unsigned i = 0; i < KEPT && bytes > MOST_KEPT; i++, bytes = atomic_load(&kept_bytes))
        drop_kept(atomic_exchange(&kept[atomic_fetch_add(&next_victim, 1) % KEPT], 0));
    unsigned at = atomic_load(&next_victim);
    for (unsigned i = 0; i < KEPT; i++) {
        uint64_t none = 0;
        if (atomic_compare_exchange_strong(&kept[(at + i) % KEPT], &none, (uintptr_t)start + class))
            return;
    }
    drop_kept(atomic_exchange(&kept[atomic_fetch_add(&next_victim, 1) % KEPT], (uintptr_t)start + class));
}

void *cld_allocate(size_t size) {
    size_t align = align_of(size), shift = next_shift(align), room = size + shift;
    void *start = NULL;
    if (size > SIZE_MAX - HUGE_PAGE)
        return NULL;
    if (is_kept(size)) {
        room = room_of(class_of(size));
        start = take_kept(class_of(size));
    }
    if (!start && posix_memalign(&start, align, room))
        return NULL;
    /* Where the system does not give them of itself: they are for programs that say so. */
    if (align == HUGE_PAGE)
        madvise(start, room & ~(size_t)(PAGE - 1), MADV_HUGEPAGE);
    CLD_TELL(allocated, (int64_t)size);
    return (uint8_t *)start + shift;
}

static void give_back(void *storage, size_t size) {
    void *start = (void *)((uintptr_t)storage & ~(uintptr_t)(align_of(size) - 1));
    if (storage)
        CLD_TELL(allocated, -(int64_t)size);
    if (storage && is_kept(size))
        keep(start, class_of(size));
    else
        free(start);
}

/* What is held back where kernels have checks: for a while nobody gets it, so that whoever uses it after its
 * end can be told of, and harms nobody. Of one word each, as what is kept. */
enum { HELD_BACK = 1024 };
#define MOST_HELD_BACK ((size_t)256 << 20)
struct held_back {
    void *storage;
    size_t size;
};
static _Atomic(struct held_back *) held_back[HELD_BACK];
static _Atomic size_t held_back_bytes;
static _Atomic unsigned next_held_back;

static void let_go(struct held_back *held) {
    if (!held)
        return;
    atomic_fetch_sub(&held_back_bytes, held->size);
    cld_kcheck_taken(held->storage, held->size);
    give_back(held->storage, held->size);
    free(held);
}

static void hold_back(void *storage, size_t size) {
    struct held_back *held = storage ? malloc(sizeof *held) : NULL;
    if (!held) {
        cld_kcheck_taken(storage, size);
        give_back(storage, size);
        return;
    }
    *held = (struct held_back){storage, size};
    size_t bytes = atomic_fetch_add(&held_back_bytes, size) + size;
    unsigned at = atomic_fetch_add(&next_held_back, 1);
    let_go(atomic_exchange(&held_back[at % HELD_BACK], held));
    for (unsigned i = 1; i <= HELD_BACK && bytes > MOST_HELD_BACK; i++, bytes = atomic_load(&held_back_bytes))
        let_go(atomic_exchange(&held_back[(at + i) % HELD_BACK], NULL));
}

void cld_allocate_free(void *storage, size_t size) {
    if (__builtin_expect(cld_kcheck_is_on, false))
        hold_back(storage, size);
    else
        give_back(storage, size);
}
