/* What kernels call before they access memory. */
#include <string.h>

#include "check/shadow.h"

static __attribute__((noinline)) void found(struct cld_kcheck_thread *thread, enum finding finding,
                                            const struct cld_kcheck_site *site, const struct range *range,
                                            const uint8_t *address, uint64_t bytes) {
    struct report report = {.finding = finding,
                            .site = site,
                            .place = place_of(thread->launch, thread->group_index, thread->item),
                            .bytes = bytes};
    if (range && range->start) {
        report.has_object = true;
        report.offset = address - range->start;
        report.size = range->size;
        report.is_local = range->is_local;
        report.made_by = range->block ? range->block->made_by : NULL;
        report.number = range->block ? range->block->number : 0;
    }
    report_add(thread, &report);
}

/* What the address of an access that comes from anywhere may point into. */
static struct range range_of(struct cld_kcheck_thread *thread, const uint8_t *address,
                             const struct cld_kcheck_site *site) {
    if (address >= thread->local.start && address < thread->local.start + thread->local.size)
        return (struct range){thread->local.start, thread->local.size, &thread->local, NULL, true, true};
    struct block *block = thread->recent;
    if (!block || address < block->shadow.start || address >= block->shadow.start + block->shadow.size ||
        block->is_freed) {
        block_drop(block);
        block = thread->recent = block_find(address);
    }
    if (!block || (site->flags & CLD_CHECK_SPACE) == CLD_CHECK_LOCAL)
        return (struct range){.is_known = false};
    return (struct range){block->shadow.start, block->shadow.size, &block->shadow, block, false, true};
}

static bool is_ordered_by_atomics(const struct cld_kcheck_thread *thread, uint64_t before,
                                  bool is_same_group) {
    const struct cld_kcheck_launch *launch = thread->launch;
    if (is_same_group)
        return thread->released_here && thread->acquired_item == thread->item + 1;
    if (!launch->released || !thread->acquired)
        return false;
    uint64_t group = (before & CELL_ITEM) >> CELL_ITEM_AT >> launch->local_bits;
    uint32_t since = atomic_load_explicit(&launch->released[group % RELEASED], memory_order_relaxed);
    return since && since <= thread->acquired;
}

/* Whether what a cell says is not ordered with an access of this work-item to the same bytes. */
static inline bool is_concurrent(const struct cld_kcheck_thread *thread, uint64_t before, uint64_t now,
                                 bool is_local) {
    uint64_t difference = before ^ now;
    if (difference & CELL_TAG || (before & now & CELL_IS_ATOMIC))
        return false;
    uint64_t group = CELL_ITEM & ~(((UINT64_C(1) << thread->launch->local_bits) - 1) << CELL_ITEM_AT);
    bool is_other_group = difference & group;
    if (is_local && is_other_group)
        return false;
    if (before & CELL_MANY_GROUPS)
        return !is_ordered_by_atomics(thread, before, false);
    if (is_other_group)
        return !is_ordered_by_atomics(thread, before, false);
    if (difference & CELL_EPOCH)
        return false;
    if (!(difference & CELL_ITEM) && !(before & CELL_MANY_ITEMS))
        return false;
    return !is_ordered_by_atomics(thread, before, true);
}

static __attribute__((noinline)) void found_race(struct cld_kcheck_thread *thread,
                                                 const struct cld_kcheck_site *site,
                                                 const struct range *range, const uint8_t *address,
                                                 uint64_t before, uint16_t where, bool is_write_before) {
    const struct cld_kcheck_launch *launch = thread->launch;
    uint64_t item = (before & CELL_ITEM) >> CELL_ITEM_AT, mask = (UINT64_C(1) << launch->local_bits) - 1;
    struct report report = {
        .finding = RACE,
        .site = site,
        .other = where < thread->sites->count ? &thread->sites->sites[where] : NULL,
        .place = place_of(launch, thread->group_index, thread->item),
        .other_place = place_of(launch, item >> launch->local_bits, item & mask),
        .has_object = true,
        .offset = address - range->start,
        .size = range->size,
        .is_local = range->is_local,
        .made_by = range->block ? range->block->made_by : NULL,
        .number = range->block ? range->block->number : 0,
        .is_write_before = is_write_before,
        .bytes = site->size,
    };
    report_add(thread, &report);
}

/* A write of what is there already is no race with another write: nobody can tell. */
static bool changes_nothing(const struct cld_kcheck_site *site, const uint8_t *address, uint64_t value) {
    return site->flags & CLD_CHECK_HAS_VALUE && site->size <= sizeof value &&
           !memcmp(address, &value, site->size);
}

/* One cell: the word of this access, the cell's two words and sites. False: it is part of a race. */
static inline bool cell(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site,
                        const struct range *range, const uint8_t *address, uint64_t value, uint64_t now,
                        _Atomic uint64_t *words, uint16_t *sites, bool reads, bool writes) {
    uint64_t write = atomic_load_explicit(&words[0], memory_order_relaxed);
    bool is_local = range->is_local;
    if (is_concurrent(thread, write, now, is_local) &&
        !(writes && !reads && changes_nothing(site, address, value))) {
        found_race(thread, site, range, address, write, sites[0], true);
        return false;
    }
    uint64_t read = atomic_load_explicit(&words[1], memory_order_relaxed);
    if (writes) {
        /* Who has read and written, in vain as it turned out, is told of as a writer. */
        if (read != write && is_concurrent(thread, read, now, is_local)) {
            found_race(thread, site, range, address, read, sites[1], false);
            return false;
        }
        atomic_store_explicit(&words[0], now, memory_order_relaxed);
        sites[0] = (uint16_t)site->index;
    }
    bool is_stale = (read ^ now) & CELL_TAG;
    if (!reads || read == now ||
        (!is_stale && read & CELL_MANY_GROUPS && (now & CELL_IS_ATOMIC || !(read & CELL_IS_ATOMIC))))
        return true;
    if (!is_stale) {
        uint64_t difference = read ^ now;
        uint64_t group = CELL_ITEM & ~(((UINT64_C(1) << thread->launch->local_bits) - 1) << CELL_ITEM_AT);
        if (difference & group) {
            if (!is_local)
                now |= CELL_MANY_GROUPS;
        } else if (!(difference & CELL_EPOCH) && (difference & CELL_ITEM || read & CELL_MANY_ITEMS)) {
            now |= CELL_MANY_ITEMS;
        }
        if (!(difference & group) && difference & CELL_EPOCH)
            ; /* what the group read before a barrier is of no matter to it, and others see the newest */
        else if (!(read & CELL_IS_ATOMIC))
            now &= ~CELL_IS_ATOMIC;
    }
    if (read != now) {
        atomic_store_explicit(&words[1], now, memory_order_relaxed);
        sites[1] = (uint16_t)site->index;
    }
    return true;
}

/* Notes an access to bytes that are there. */
static inline void note(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site,
                        const struct range *range, uint8_t *address, uint64_t size, uint64_t value) {
    struct shadow *shadow = range->shadow;
    bool is_atomic = site->kind == CLD_CHECK_ATOMIC;
    bool reads = site->kind != CLD_CHECK_STORE, writes = site->kind != CLD_CHECK_LOAD;
    uint64_t now = thread->base[range->is_local] | thread->item << CELL_ITEM_AT | is_atomic;
    uint64_t at = (uint64_t)(address - shadow->start) + ((uintptr_t)shadow->start & (GRANULE - 1));
    uint64_t end = at + size;
    uint8_t *first = shadow->start - ((uintptr_t)shadow->start & (GRANULE - 1));
    while (at < end) {
        uint64_t granule = at / GRANULE, begin = at % GRANULE;
        uint64_t stop = end - granule * GRANULE < GRANULE ? end - granule * GRANULE : GRANULE;
        _Atomic uint64_t *words = &shadow->cells[2 * granule];
        uint16_t *sites = &shadow->sites[2 * granule];
        _Atomic uint64_t *bytes = atomic_load_explicit(&shadow->byte_cells, memory_order_acquire);
        if (begin == 0 && stop == GRANULE) {
            if (!cell(thread, site, range, first + at, value, now | CELL_IS_WHOLE, words, sites, reads,
                      writes))
                return;
            for (uint64_t k = 1; bytes && k < GRANULE; k++) {
                uint64_t index = 2 * (granule * GRANULE + k);
                uint64_t write = atomic_load_explicit(&bytes[index], memory_order_relaxed);
                uint64_t read = atomic_load_explicit(&bytes[index + 1], memory_order_relaxed);
                bool is_write = is_concurrent(thread, write, now, range->is_local);
                if (is_write || (writes && is_concurrent(thread, read, now, range->is_local))) {
                    uint16_t where = atomic_load(&shadow->byte_sites)[index + !is_write];
                    found_race(thread, site, range, first + at + k, is_write ? write : read, where, is_write);
                    return;
                }
            }
        } else {
            if (!bytes) {
                if (!shadow_make_bytes(shadow))
                    return;
                bytes = atomic_load_explicit(&shadow->byte_cells, memory_order_acquire);
            }
            uint16_t *byte_sites = atomic_load(&shadow->byte_sites);
            for (uint64_t k = begin; k < stop; k++) {
                uint64_t index = 2 * (granule * GRANULE + k);
                uint64_t write = atomic_load_explicit(&words[0], memory_order_relaxed);
                uint64_t read = atomic_load_explicit(&words[1], memory_order_relaxed);
                bool is_write =
                    k && write & CELL_IS_WHOLE && is_concurrent(thread, write, now, range->is_local);
                if (is_write || (k && writes && read & CELL_IS_WHOLE &&
                                 is_concurrent(thread, read, now, range->is_local))) {
                    found_race(thread, site, range, first + at, is_write ? write : read, sites[!is_write],
                               is_write);
                    return;
                }
                bool is_fine =
                    k ? cell(thread, site, range, first + granule * GRANULE + k, value, now, &bytes[index],
                             &byte_sites[index], reads, writes)
                      : cell(thread, site, range, first + at, value, now, words, sites, reads, writes);
                if (!is_fine)
                    return;
            }
        }
        at = (granule + 1) * GRANULE;
    }
}

static inline bool is_unwritten(const uint8_t *written, uint64_t size) {
    if (size == 4) {
        uint32_t word;
        memcpy(&word, written, sizeof word);
        return word != 0x01010101;
    }
    return memchr(written, 0, size) != NULL;
}

static __attribute__((noinline)) uint8_t *outside(struct cld_kcheck_thread *thread,
                                                  const struct cld_kcheck_site *site,
                                                  const struct range *range, const uint8_t *address,
                                                  uint64_t size) {
    bool is_null = (uintptr_t)address < CLD_CHECK_GAP && !range->start;
    bool is_freed = range->block && range->block->is_freed && address >= range->start &&
                    address < range->start + range->size;
    found(thread,
          is_null    ? NULL_POINTER
          : is_freed ? USE_AFTER_FREE
                     : OUT_OF_BOUNDS,
          site, range, address, size);
    memset(thread->nowhere, 0, size <= CLD_CHECK_GAP ? size : CLD_CHECK_GAP);
    return thread->nowhere;
}

static inline uint8_t *check(struct cld_kcheck_thread *thread, uint8_t *address,
                             const struct cld_kcheck_site *site, uint64_t size, uint64_t value) {
    struct range other;
    const struct range *range = &other;
    if (site->flags & CLD_CHECK_OF_ARGUMENT) {
        range = &thread->ranges[site->argument];
    } else if (site->flags & CLD_CHECK_OF_VARIABLE) {
        bool is_local = (site->flags & CLD_CHECK_SPACE) == CLD_CHECK_LOCAL;
        other = (struct range){.start = (is_local ? thread->local.start : thread->globals) + site->offset,
                               .size = site->bytes,
                               .shadow = is_local ? &thread->local : NULL,
                               .is_local = is_local,
                               .is_known = true};
    } else {
        other = range_of(thread, address, site);
    }
    uint64_t offset = (uint64_t)(address - range->start);
    if (__builtin_expect(offset >= range->size || size > range->size - offset ||
                             (range->block && range->block->is_freed),
                         0)) {
        bool is_null = (uintptr_t)address < CLD_CHECK_GAP;
        return range->is_known || is_null ? outside(thread, site, range, address, size) : address;
    }
    if (__builtin_expect(((uintptr_t)address & (site->alignment - 1u)) != 0, 0))
        found(thread, MISALIGNED, site, range, address, size);
    struct shadow *shadow = range->shadow;
    if (!shadow)
        return address;
    if (shadow->written) {
        uint8_t *written = shadow->written + (address - shadow->start);
        if (site->kind != CLD_CHECK_STORE && !(site->flags & CLD_CHECK_ANY_CONTENT) &&
            __builtin_expect(is_unwritten(written, size), 0)) {
            found(thread, UNWRITTEN, site, range, address, size);
            memset(written, 1, size); /* once is enough */
        }
        if (site->kind != CLD_CHECK_LOAD)
            memset(written, 1, size);
    }
    if (shadow->cells)
        note(thread, site, range, address, size, value);
    return address;
}

/* Atomics that order other accesses. */
static __attribute__((noinline)) void order(struct cld_kcheck_thread *thread, uint64_t flags) {
    struct cld_kcheck_launch *launch = thread->launch;
    if (flags & CLD_CHECK_RELEASE) {
        uint32_t now = atomic_fetch_add(&launch->clock, 1) + 1, never = 0;
        thread->released_here++;
        if (launch->released)
            atomic_compare_exchange_strong(&launch->released[thread->group_index % RELEASED], &never, now);
    }
    if (flags & CLD_CHECK_ACQUIRE) {
        thread->acquired = atomic_load(&launch->clock);
        thread->acquired_item = thread->item + 1;
    }
}

uint8_t *cld_kcheck_access(struct cld_kcheck_thread *thread, uint8_t *address,
                           const struct cld_kcheck_site *site, uint64_t value) {
    uint8_t *allowed = check(thread, address, site, site->size, value);
    if (site->kind == CLD_CHECK_ATOMIC) {
        uint64_t flags = site->flags;
        if (thread->has_fenced && thread->fenced_item == thread->item)
            flags |= CLD_CHECK_RELEASE;
        order(thread, flags);
    }
    return allowed;
}

uint8_t *cld_kcheck_range(struct cld_kcheck_thread *thread, uint8_t *address,
                          const struct cld_kcheck_site *site, uint64_t size) {
    return size ? check(thread, address, site, size, 0) : address;
}

uint8_t *cld_kcheck_outside(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site,
                            int64_t offset) {
    struct range range = {.start = thread->nowhere, .size = site->bytes, .is_known = true};
    found(thread, OUT_OF_BOUNDS, site, &range, thread->nowhere + offset, site->size);
    memset(thread->nowhere, 0, site->size <= CLD_CHECK_GAP ? site->size : CLD_CHECK_GAP);
    return thread->nowhere;
}

void cld_kcheck_unwritten(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site,
                          int64_t offset) {
    struct range range = {.start = thread->nowhere, .size = site->bytes, .is_known = true};
    found(thread, UNWRITTEN, site, &range, thread->nowhere + offset, site->size);
}

void cld_kcheck_fence(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site) {
    (void)site;
    thread->has_fenced = true;
    thread->fenced_item = thread->item;
    order(thread, CLD_CHECK_ACQUIRE);
}

void cld_kcheck_unknown(struct cld_kcheck_thread *thread, uint8_t *address) {
    if (address >= thread->local.start && address < thread->local.start + thread->local.size) {
        memset(thread->local.written, 1, thread->local.size);
        return;
    }
    struct block *block = block_find(address);
    if (block && block->shadow.written)
        memset(block->shadow.written, 1, block->shadow.size);
    block_drop(block);
}
