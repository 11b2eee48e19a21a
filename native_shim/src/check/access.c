/* What kernels call before they access memory. */
#include <string.h>

#include "check/shadow.h"

/* A vector, of which a component is asked about, begins before it. */
enum { NOWHERE_AT = 256 };

static inline bool has_read(const struct cld_kcheck_site *site) {
    return site->kind != CLD_CHECK_STORE && !(site->flags & CLD_CHECK_NO_READ);
}

static inline bool has_write(const struct cld_kcheck_site *site) {
    return site->kind == CLD_CHECK_STORE ||
           (site->kind == CLD_CHECK_ATOMIC && !(site->flags & CLD_CHECK_NO_WRITE));
}

bool range_has_constants(const struct cld_kcheck_launch *launch, const uint8_t *start, size_t size) {
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const struct range *range = &launch->ranges[i];
        if (range->is_constant && start < range->start + range->size && range->start < start + size)
            return true;
    }
    return false;
}

/* What the address of an access that comes from anywhere may point into. */
static struct range range_of(struct cld_kcheck_thread *thread, const uint8_t *address,
                             const struct cld_kcheck_site *site) {
    if (address >= thread->local.start && address < thread->local.start + thread->local.size)
        return (struct range){.start = thread->local.start,
                              .size = thread->local.size,
                              .shadow = &thread->local,
                              .is_local = true,
                              .is_known = true};
    struct block *block = thread->recent;
    if (!block || address < block->shadow.start || address >= block->shadow.start + block->shadow.size ||
        block->is_freed) {
        block_drop(block);
        block = thread->recent = block_find(address);
    }
    if (!block || (site->flags & CLD_CHECK_SPACE) == CLD_CHECK_LOCAL)
        return (struct range){.has_constants = thread->launch->has_constants};
    shadow_forget_older(&block->shadow, thread->launch->age);
    return (struct range){.start = block->shadow.start,
                          .size = block->shadow.size,
                          .shadow = &block->shadow,
                          .block = block,
                          .has_constants = thread->launch->has_constants,
                          .is_known = true};
}

static bool is_ordered_by_atomics(const struct cld_kcheck_thread *thread, uint64_t before,
                                  bool is_same_group) {
    const struct cld_kcheck_launch *launch = thread->launch;
    if (is_same_group)
        return thread->released_here && thread->acquired_item == thread->item + 1;
    if (!launch->released || !thread->has_acquired)
        return false;
    uint64_t group = (before & CELL_ITEM) >> CELL_ITEM_AT >> launch->local_bits;
    if (before & CELL_MANY_GROUPS) /* which they are nobody knows */
        return atomic_load_explicit(&launch->has_released, memory_order_relaxed);
    /* What is acquired is seen after this was asked for, so that it does not matter which came first. */
    return atomic_load_explicit(&launch->released[group % RELEASED], memory_order_relaxed);
}

/* Whether what a cell says is not ordered with an access of this work-item to the same bytes. */
static inline bool is_concurrent(const struct cld_kcheck_thread *thread, uint64_t before, uint64_t now,
                                 bool is_local) {
    uint64_t difference = before ^ now;
    if (difference & CELL_TAG)
        return false;
    bool is_other_group = difference & group_bits(thread), are_atomics = before & now & CELL_IS_ATOMIC;
    if (is_local && is_other_group)
        return false;
    if (before & CELL_MANY_GROUPS || is_other_group)
        return !(are_atomics && !(before & CELL_PLAIN_BEFORE)) &&
               !is_ordered_by_atomics(thread, before, false);
    if (are_atomics || difference & CELL_EPOCH || (!(difference & CELL_ITEM) && !(before & CELL_MANY_ITEMS)))
        return false;
    return !is_ordered_by_atomics(thread, before, true);
}

/* What a cell is to say after reads, or atomics, none of which need be the only ones. */
static inline uint64_t merged(const struct cld_kcheck_thread *thread, uint64_t before, uint64_t now,
                              bool is_local) {
    uint64_t difference = before ^ now;
    if (difference & CELL_TAG)
        return now;
    bool was_plain = !(before & CELL_IS_ATOMIC);
    if (difference & group_bits(thread)) {
        if (is_local)
            return now;
        now |= CELL_MANY_GROUPS;
        return was_plain ? now & ~CELL_IS_ATOMIC : now | (before & CELL_PLAIN_BEFORE);
    }
    now |= before & CELL_MANY_GROUPS;
    if (was_plain || before & CELL_PLAIN_BEFORE)
        now |= CELL_PLAIN_BEFORE;
    if (difference & CELL_EPOCH)
        return now;
    if (difference & CELL_ITEM || before & CELL_MANY_ITEMS)
        now |= CELL_MANY_ITEMS;
    return was_plain ? now & ~CELL_IS_ATOMIC : now;
}

static __attribute__((noinline)) void found_race(struct cld_kcheck_thread *thread,
                                                 const struct cld_kcheck_site *site,
                                                 const struct range *range, const uint8_t *address,
                                                 uint64_t before, uint16_t where, bool is_write_before) {
    const struct cld_kcheck_launch *launch = thread->launch;
    if (thread->has_diverged) /* which nothing is ordered after */
        return;
    uint64_t item = (before & CELL_ITEM) >> CELL_ITEM_AT, mask = (UINT64_C(1) << launch->local_bits) - 1;
    uint64_t own = (thread->base[range->is_local] | thread->item << CELL_ITEM_AT) & CELL_ITEM;
    struct report report = {
        .finding = RACE,
        /* Of several the cell has the last one, which may be the one that does not race: this one. */
        .is_other_unknown = before & (CELL_MANY_ITEMS | CELL_MANY_GROUPS) && (before & CELL_ITEM) == own,
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

/* A write of what is there already is no race with another write: nobody can tell. value: its bytes, or the
 * address of more. */
static bool changes_nothing(const struct cld_kcheck_site *site, const uint8_t *address, uint64_t value) {
    const void *stored = site->size <= sizeof value ? (const void *)&value : (const void *)(uintptr_t)value;
    return site->flags & CLD_CHECK_HAS_VALUE && !memcmp(address, stored, site->size);
}

/* One cell: the word of this access, the cell's two words and sites. False: it is part of a race. */
static inline bool cell(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site,
                        const struct range *range, const uint8_t *address, const uint8_t *start,
                        uint64_t value, uint64_t now, _Atomic uint64_t *words, uint16_t *sites, bool reads,
                        bool writes) {
    uint64_t write = atomic_load_explicit(&words[0], memory_order_relaxed);
    bool is_local = range->is_local, is_atomic = now & CELL_IS_ATOMIC;
    if (is_concurrent(thread, write, now, is_local) &&
        !(writes && !reads && changes_nothing(site, start, value))) {
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
        atomic_store_explicit(&words[0], is_atomic ? merged(thread, write, now, is_local) : now,
                              memory_order_relaxed);
        sites[0] = (uint16_t)site->index;
    }
    /* Of readers of many groups no more need be known. */
    bool is_known =
        !((read ^ now) & CELL_TAG) && read & CELL_MANY_GROUPS && (is_atomic || !(read & CELL_IS_ATOMIC));
    if (!reads || read == now || is_known)
        return true;
    uint64_t next = merged(thread, read, now, is_local);
    if (read != next) {
        atomic_store_explicit(&words[1], next, memory_order_relaxed);
        sites[1] = (uint16_t)site->index;
    }
    return true;
}

/* Notes an access to bytes that are there. */
static inline void note(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site,
                        const struct range *range, uint8_t *address, uint64_t size, uint64_t value) {
    struct shadow *shadow = range->shadow;
    bool is_atomic = site->kind == CLD_CHECK_ATOMIC;
    bool reads = has_read(site), writes = has_write(site);
    if (is_atomic && reads && writes &&
        site->flags & CLD_CHECK_HAS_VALUE) /* compare and exchange, which may not */
        writes = changes_nothing(site, address, value);
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
            if (!cell(thread, site, range, first + at, address, value, now | CELL_IS_WHOLE, words, sites,
                      reads, writes))
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
                bool is_fine = k ? cell(thread, site, range, first + granule * GRANULE + k, address, value,
                                        now, &bytes[index], &byte_sites[index], reads, writes)
                                 : cell(thread, site, range, first + at, address, value, now, words, sites,
                                        reads, writes);
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

/* Where accesses that must not be do no harm: zeros. */
static uint8_t *nowhere(struct cld_kcheck_thread *thread) {
    memset(thread->nowhere, 0, CLD_CHECK_GAP);
    return thread->nowhere + NOWHERE_AT;
}

static __attribute__((noinline)) uint8_t *outside(struct cld_kcheck_thread *thread,
                                                  const struct cld_kcheck_site *site,
                                                  const struct range *range, const uint8_t *address,
                                                  uint64_t size) {
    bool is_null = (uintptr_t)address < NULL_ZONE && !range->start;
    bool is_freed = range->block && range->block->is_freed && address >= range->start &&
                    address < range->start + range->size;
    found(thread,
          is_null    ? NULL_POINTER
          : is_freed ? USE_AFTER_FREE
                     : OUT_OF_BOUNDS,
          site, range, address, size);
    return nowhere(thread);
}

/* Of a generic pointer, from the function that a kernel calls. */
static bool is_private(const struct cld_kcheck_thread *thread, const uint8_t *address) {
    const uint8_t *stack = __builtin_frame_address(0);
    return (address > stack && address < thread->stack_end) ||
           (address >= thread->scratch && address < thread->scratch + thread->scratch_size);
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
        bool is_null = (uintptr_t)address < NULL_ZONE;
        return range->is_known || is_null ? outside(thread, site, range, address, size) : address;
    }
    if (__builtin_expect(range->no_reads && has_read(site), 0))
        found(thread, NO_ACCESS, site, range, address, size);
    if (__builtin_expect(range->no_writes && has_write(site), 0))
        found(thread, NO_ACCESS, site, range, address, size);
    if (__builtin_expect(range->has_constants && has_write(site), 0) &&
        range_has_constants(thread->launch, address, size))
        found(thread, CONSTANT, site, range, address, size);
    if (__builtin_expect(((uintptr_t)address & (site->alignment - 1u)) != 0, 0))
        found(thread, MISALIGNED, site, range, address, size);
    struct shadow *shadow = range->shadow;
    if (!shadow)
        return address;
    if (shadow->written) {
        uint8_t *written = shadow->written + (address - shadow->start);
        if (has_read(site) && !(site->flags & CLD_CHECK_ANY_CONTENT) &&
            __builtin_expect(is_unwritten(written, size), 0)) {
            found(thread, UNWRITTEN, site, range, address, size);
            memset(written, 1, size); /* once is enough */
        }
        if (has_write(site))
            memset(written, 1, size);
    }
    if (shadow->cells && (has_read(site) || has_write(site)))
        note(thread, site, range, address, size, value);
    return address;
}

/* Atomics that order other accesses. */
static __attribute__((noinline)) void order(struct cld_kcheck_thread *thread, uint64_t flags) {
    struct cld_kcheck_launch *launch = thread->launch;
    if (flags & CLD_CHECK_RELEASE) {
        thread->released_here++;
        atomic_store_explicit(&launch->has_released, true, memory_order_relaxed);
        if (launch->released)
            atomic_store_explicit(&launch->released[thread->group_index % RELEASED], true,
                                  memory_order_relaxed);
    }
    if (flags & CLD_CHECK_ACQUIRE) {
        thread->has_acquired = true;
        thread->acquired_item = thread->item + 1;
    }
}

uint8_t *access_in_full(struct cld_kcheck_thread *thread, uint8_t *address,
                        const struct cld_kcheck_site *site, uint64_t value) {
    uint8_t *allowed = check(thread, address, site, site->size, value);
    if (site->kind == CLD_CHECK_ATOMIC) {
#ifndef __x86_64__ /* other CPUs trap */
        if ((uintptr_t)allowed & (site->alignment - 1u))
            allowed = nowhere(thread);
#endif
        if ((site->flags & CLD_CHECK_SPACE) == CLD_CHECK_GENERIC && is_private(thread, address))
            cld_kcheck_fault(thread, site);
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

/* Whether the group did it since its last barrier: a copy is an access of all its work-items. */
static bool is_of_now(const struct cld_kcheck_thread *thread, uint64_t before, uint64_t now) {
    return !((before ^ now) & (CELL_TAG | CELL_EPOCH | group_bits(thread)));
}

/* One side of a copy. */
struct side {
    const struct cld_kcheck_site *site;
    uint8_t *address;
    uint64_t bytes; /* from the first to the last */
    bool is_dense;
    struct range range;
};

static struct side side_of(struct cld_kcheck_thread *thread, const struct copy *copy, int which) {
    struct side side = {.site = copy->site + which, .address = which ? copy->source : copy->target};
    bool is_local = (side.site->flags & CLD_CHECK_SPACE) == CLD_CHECK_LOCAL;
    side.is_dense = is_local || copy->stride <= 1; /* 0 is no stride */
    uint64_t elements = side.is_dense ? copy->count : (copy->count - 1) * copy->stride + 1;
    side.bytes = copy->count ? elements * side.site->size : 0;
    side.range = side.site->flags & CLD_CHECK_OF_ARGUMENT ? thread->ranges[side.site->argument]
                                                          : range_of(thread, side.address, side.site);
    return side;
}

bool copy_is_inside(struct cld_kcheck_thread *thread, const struct copy *copy) {
    bool is_inside = true;
    for (int i = 0; i < 2; i++) {
        struct side side = side_of(thread, copy, i);
        uint64_t offset = (uint64_t)(side.address - side.range.start);
        bool is_null = (uintptr_t)side.address < NULL_ZONE;
        bool is_outside = offset >= side.range.size || side.bytes > side.range.size - offset;
        if (!side.bytes || !is_outside || (!side.range.is_known && !is_null))
            continue;
        found(thread, is_null ? NULL_POINTER : OUT_OF_BOUNDS, side.site, &side.range, side.address,
              side.bytes);
        is_inside = false;
    }
    return is_inside;
}

/* The numbers of the cells of a side. */
#define FOR_CELLS(side, at)                                                                                  \
    for (uint64_t first_ = (uint64_t)((side).address - (side).range.shadow->start) +                         \
                           ((uintptr_t)(side).range.shadow->start & (GRANULE - 1)),                          \
                  at = first_ / GRANULE;                                                                     \
         at * GRANULE < first_ + (side).bytes; at++)

void copy_note(struct cld_kcheck_thread *thread, struct copy *copy) {
    for (int i = 0; i < 2; i++) {
        struct side side = side_of(thread, copy, i);
        struct shadow *shadow = side.range.shadow;
        if (!shadow || !side.is_dense)
            continue;
        uint8_t *written = shadow->written ? shadow->written + (side.address - shadow->start) : NULL;
        if (written && !i)
            memset(written, 1, side.bytes);
        else if (written && is_unwritten(written, side.bytes))
            found(thread, UNWRITTEN, side.site, &side.range, side.address, side.bytes);
        bool is_local = side.range.is_local, is_told = false;
        uint64_t now =
            thread->base[is_local] | thread->item << CELL_ITEM_AT | CELL_IS_WHOLE | CELL_MANY_ITEMS;
        copy->words[i] = now;
        if (!shadow->cells)
            continue;
        FOR_CELLS(side, at) {
            _Atomic uint64_t *words = &shadow->cells[2 * at];
            uint64_t write = atomic_load_explicit(&words[0], memory_order_relaxed);
            uint64_t read = atomic_load_explicit(&words[1], memory_order_relaxed);
            bool with_write = is_concurrent(thread, write, now, is_local) ||
                              (thread->group_items > 1 && is_of_now(thread, write, now));
            bool with_read = !i && (is_concurrent(thread, read, now, is_local) ||
                                    (thread->group_items > 1 && is_of_now(thread, read, now)));
            if (!is_told && (with_write || with_read)) {
                found_race(thread, side.site, &side.range, side.address + 4 * (at - first_ / GRANULE),
                           with_write ? write : read, shadow->sites[2 * at + !with_write], with_write);
                is_told = true;
            }
            atomic_store_explicit(&words[i], now, memory_order_relaxed);
            shadow->sites[2 * at + (uint64_t)i] = (uint16_t)side.site->index;
        }
    }
}

/* From now on the group's accesses come behind the copy; those of other groups do not. */
void copy_end(struct cld_kcheck_thread *thread, const struct copy *copy) {
    for (int i = 0; i < 2; i++) {
        struct side side = side_of(thread, copy, i);
        if (!side.range.shadow || !side.is_dense || !side.range.shadow->cells)
            continue;
        uint64_t word = copy->words[i];
        uint64_t before = (word & ~CELL_EPOCH & ~CELL_MANY_ITEMS) |
                          (((word & CELL_EPOCH) - (UINT64_C(1) << CELL_EPOCH_AT)) & CELL_EPOCH);
        FOR_CELLS(side, at) {
            _Atomic uint64_t *cell_word = &side.range.shadow->cells[2 * at + (uint64_t)i];
            if (atomic_load_explicit(cell_word, memory_order_relaxed) == word)
                atomic_store_explicit(cell_word, before, memory_order_relaxed);
        }
    }
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
