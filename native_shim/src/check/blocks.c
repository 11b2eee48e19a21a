/* The allocations that kernels may access, by address, and what is remembered of their bytes. */
#define _GNU_SOURCE
#include "check/shadow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/settings.h"

bool cld_kcheck_is_on;

__attribute__((constructor)) static void read_setting(void) {
    cld_kcheck_is_on = cld_setting_is(CL_DRIVER_CHECK_SETTING, "1");
}

/* Sorted by address. Freed allocations stay until others take their place, or there are too many. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct block **blocks;
static size_t block_count, capacity;
static uint32_t made; /* of all time */
static size_t freed;

enum { MOST_FREED = 4096 };

/* Zeros that take no memory before they are touched. */
static void *zeros(size_t size) {
    void *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static size_t granules(const struct shadow *shadow) {
    return shadow->size / GRANULE + 2; /* the start need not be aligned */
}

bool shadow_make(struct shadow *shadow) {
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&making);
    if (!shadow->cells) {
        _Atomic uint64_t *cells = zeros(granules(shadow) * 2 * sizeof *cells);
        shadow->sites = cells ? zeros(granules(shadow) * 2 * sizeof *shadow->sites) : NULL;
        if (!shadow->sites && cells)
            munmap((void *)cells, granules(shadow) * 2 * sizeof *cells);
        else
            shadow->cells = cells;
    }
    pthread_mutex_unlock(&making);
    return shadow->cells != NULL;
}

bool shadow_make_bytes(struct shadow *shadow) {
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&making);
    size_t count = granules(shadow) * GRANULE * 2;
    if (!atomic_load(&shadow->byte_cells)) {
        _Atomic uint64_t *cells = zeros(count * sizeof *cells);
        uint16_t *sites = cells ? zeros(count * sizeof *sites) : NULL;
        if (sites) {
            atomic_store(&shadow->byte_sites, sites);
            atomic_store(&shadow->byte_cells, cells);
        } else if (cells) {
            munmap((void *)cells, count * sizeof *cells);
        }
    }
    pthread_mutex_unlock(&making);
    return atomic_load(&shadow->byte_cells) != NULL;
}

/* Gives the memory of zeros() back, which is zeros again: others may look at it at the same time. */
static void empty(void *memory, size_t size) {
    if (memory)
        madvise(memory, size, MADV_DONTNEED);
}

static void empty_cells(struct shadow *shadow) {
    size_t size = granules(shadow) * 2 * sizeof *shadow->cells;
    empty((void *)shadow->cells, size);
    empty((void *)atomic_load(&shadow->byte_cells), size * GRANULE);
}

/* While another launch looks at them, too, they are gone for it: it says less, and nothing that is wrong. */
void shadow_forget_older(struct shadow *shadow, uint32_t age) {
    uint32_t before = atomic_load_explicit(&shadow->age, memory_order_relaxed);
    if ((int32_t)(age - before) <= 0 || !atomic_compare_exchange_strong(&shadow->age, &before, age))
        return;
    empty_cells(shadow);
}

/* Of an allocation that is freed only its place is of interest. Some kernel may access it all the same, now.
 */
static void shadow_empty(struct shadow *shadow) {
    size_t sites = granules(shadow) * 2 * sizeof *shadow->sites;
    empty_cells(shadow);
    empty(shadow->sites, sites);
    empty(atomic_load(&shadow->byte_sites), sites * GRANULE);
    empty(shadow->written, shadow->size);
}

void shadow_free(struct shadow *shadow) {
    size_t count = granules(shadow);
    _Atomic uint64_t *byte_cells = atomic_load(&shadow->byte_cells);
    if (shadow->cells) {
        munmap((void *)shadow->cells, count * 2 * sizeof *shadow->cells);
        munmap(shadow->sites, count * 2 * sizeof *shadow->sites);
    }
    if (byte_cells) {
        munmap((void *)byte_cells, count * GRANULE * 2 * sizeof *byte_cells);
        munmap(atomic_load(&shadow->byte_sites), count * GRANULE * 2 * sizeof(uint16_t));
    }
    if (shadow->written)
        munmap(shadow->written, shadow->size);
    *shadow = (struct shadow){.start = shadow->start, .size = shadow->size};
}

void block_drop(struct block *block) {
    if (!block || atomic_fetch_sub(&block->holds, 1) != 1)
        return;
    shadow_free(&block->shadow);
    free(block);
}

/* The first block that ends behind an address. With the lock held. */
static size_t place_for(const uint8_t *address) {
    size_t low = 0, high = block_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (blocks[middle]->shadow.start + blocks[middle]->shadow.size <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void take_out(size_t at) {
    freed -= blocks[at]->is_freed;
    block_drop(blocks[at]);
    memmove(blocks + at, blocks + at + 1, (--block_count - at) * sizeof *blocks);
}

static void forget_one_freed(void) {
    size_t oldest = block_count;
    for (size_t i = 0; i < block_count; i++)
        if (blocks[i]->is_freed && (oldest == block_count || blocks[i]->number < blocks[oldest]->number))
            oldest = i;
    if (oldest < block_count)
        take_out(oldest);
}

void cld_kcheck_taken(const void *start, size_t size) {
    pthread_rwlock_wrlock(&lock);
    size_t at = place_for(start);
    while (at < block_count && blocks[at]->shadow.start < (const uint8_t *)start + size) {
        if (blocks[at]->is_freed)
            take_out(at);
        else
            at++;
    }
    pthread_rwlock_unlock(&lock);
}

/* Memory of the host may be that of several buffers: the first one stands for all. */
void cld_kcheck_allocated(const void *start, size_t size, const char *made_by, bool is_written) {
    struct block *block = calloc(1, sizeof *block);
    if (!block || !size) {
        free(block);
        return;
    }
    block->shadow.start = (uint8_t *)(uintptr_t)start;
    block->shadow.size = size;
    block->made_by = made_by;
    block->shadow.written = is_written ? NULL : zeros(size);
    atomic_init(&block->holds, 1);
    pthread_rwlock_wrlock(&lock);
    block->number = ++made;
    size_t at = place_for(start);
    bool is_taken = false;
    while (at < block_count && blocks[at]->shadow.start < block->shadow.start + size) {
        if (!blocks[at]->is_freed) {
            is_taken = true;
            break;
        }
        take_out(at);
    }
    if (!is_taken && block_count == capacity) {
        size_t more = capacity ? 2 * capacity : 64;
        struct block **larger = realloc(blocks, more * sizeof *blocks);
        if (larger) {
            blocks = larger;
            capacity = more;
        }
        is_taken = !larger;
    }
    if (!is_taken) {
        memmove(blocks + at + 1, blocks + at, (block_count++ - at) * sizeof *blocks);
        blocks[at] = block;
    }
    pthread_rwlock_unlock(&lock);
    if (is_taken)
        block_drop(block);
}

void cld_kcheck_freed(const void *start) {
    pthread_rwlock_wrlock(&lock);
    size_t at = place_for(start);
    if (at < block_count && blocks[at]->shadow.start == start && !blocks[at]->is_freed) {
        blocks[at]->is_freed = true;
        shadow_empty(&blocks[at]->shadow);
        if (++freed > MOST_FREED)
            forget_one_freed();
    }
    pthread_rwlock_unlock(&lock);
}

struct block *block_find(const void *address) {
    struct block *found = NULL;
    const uint8_t *at = address;
    pthread_rwlock_rdlock(&lock);
    size_t next = place_for(at);
    if (next < block_count && blocks[next]->shadow.start <= at)
        found = blocks[next];
    else if (next && !blocks[next - 1]->is_freed &&
             at - (blocks[next - 1]->shadow.start + blocks[next - 1]->shadow.size) < CLD_CHECK_GAP)
        found = blocks[next - 1];
    if (found)
        atomic_fetch_add(&found->holds, 1);
    pthread_rwlock_unlock(&lock);
    return found;
}

bool cld_kcheck_is_freed(const void *address) {
    struct block *block = block_find(address);
    const uint8_t *at = address;
    bool is_freed = block && block->is_freed && at >= block->shadow.start &&
                    at < block->shadow.start + block->shadow.size;
    block_drop(block);
    return is_freed;
}

/* Where a range of bytes is in a block; 0: nothing of it is remembered. */
static size_t part_of(const struct block *block, const uint8_t *start, size_t size, size_t *at) {
    if (!block || !block->shadow.written || start < block->shadow.start ||
        start >= block->shadow.start + block->shadow.size)
        return 0;
    *at = (size_t)(start - block->shadow.start);
    return size < block->shadow.size - *at ? size : block->shadow.size - *at;
}

void cld_kcheck_written(const void *start, size_t size) {
    struct block *block = size ? block_find(start) : NULL;
    size_t at = 0, count = part_of(block, start, size, &at);
    if (count)
        memset(block->shadow.written + at, 1, count);
    block_drop(block);
}

void cld_kcheck_copied(const void *destination, const void *source, size_t size) {
    struct block *to = block_find(destination), *from = block_find(source);
    size_t at = 0, before = 0, count = part_of(to, destination, size, &at);
    size_t known = part_of(from, source, count, &before);
    if (known)
        memmove(to->shadow.written + at, from->shadow.written + before, known);
    if (count > known)
        memset(to->shadow.written + at + known, 1, count - known);
    block_drop(to);
    block_drop(from);
}
