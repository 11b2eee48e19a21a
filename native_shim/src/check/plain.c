/* Accesses of which little needs to be known: loads and stores of whole granules, in bounds of an argument or
 * variable, where no other work-item's access to the same bytes can matter. Most are, so this is all that
 * they take; the others go to access.c, which does what was begun here once more. */
#include <string.h>

#include "check/shadow.h"

enum { ALL_WRITTEN = 0x01010101 };

/* What is to be known of where an access goes. */
struct target {
    struct shadow *shadow; /* NULL: more is to be known */
    const uint8_t *start;
    uint64_t size;
    bool is_local;
};

static inline struct target target_of(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site) {
    if (site->flags & CLD_CHECK_OF_ARGUMENT) {
        const struct range *range = &thread->ranges[site->argument];
        bool is_more =
            site->kind == CLD_CHECK_LOAD ? range->no_reads : range->no_writes || range->has_constants;
        is_more |= range->block && range->block->is_freed;
        return (struct target){is_more ? NULL : range->shadow, range->start, range->size, range->is_local};
    }
    bool is_local = (site->flags & CLD_CHECK_SPACE) == CLD_CHECK_LOCAL;
    if (!(site->flags & CLD_CHECK_OF_VARIABLE) || !is_local)
        return (struct target){0};
    return (struct target){&thread->local, thread->local.start + site->offset, site->bytes, true};
}

/* Whether what a word of a cell says is of no concern: of another launch, and of local memory of another
 * group or from before the last barrier. */
static inline bool is_past(const struct cld_kcheck_thread *thread, uint64_t before, uint64_t now,
                           bool is_local) {
    uint64_t of_concern = is_local ? CELL_TAG | CELL_EPOCH | group_bits(thread) : CELL_TAG;
    return ((before ^ now) & of_concern) != 0;
}

/* What a cell is to say of a reader, as access.c has it, where what it says now is past. */
static inline uint64_t reader(const struct cld_kcheck_thread *thread, uint64_t before, uint64_t now) {
    bool is_of_group = !((before ^ now) & (CELL_TAG | group_bits(thread)));
    bool was_plain = !(before & CELL_IS_ATOMIC) || before & CELL_PLAIN_BEFORE;
    return is_of_group && was_plain ? now | CELL_PLAIN_BEFORE : now;
}

/* Whether a cell says of readers all that it can: many groups have read it. */
static inline bool is_said(uint64_t read, uint64_t now) {
    return !((read ^ now) & CELL_TAG) && (read & (CELL_MANY_GROUPS | CELL_IS_ATOMIC)) == CELL_MANY_GROUPS;
}

/* Whether an access was one of these, and is noted. */
static inline bool note_plain(struct cld_kcheck_thread *thread, const uint8_t *address,
                              const struct cld_kcheck_site *site) {
    struct target target = target_of(thread, site);
    struct shadow *shadow = target.shadow;
    uint64_t offset = (uint64_t)(address - target.start), size = site->size;
    if (!shadow || !shadow->cells || atomic_load_explicit(&shadow->byte_cells, memory_order_acquire) ||
        offset >= target.size || size > target.size - offset ||
        ((uintptr_t)address & (site->alignment - 1u)) || (((uintptr_t)address | size) & (GRANULE - 1)))
        return false;
    bool is_load = site->kind == CLD_CHECK_LOAD;
    uint8_t *written = shadow->written ? shadow->written + (address - shadow->start) : NULL;
    uint64_t now = thread->base[target.is_local] | thread->item << CELL_ITEM_AT | (uint64_t)CELL_IS_WHOLE;
    uint64_t first = (uint64_t)(address - (shadow->start - ((uintptr_t)shadow->start & (GRANULE - 1))));
    for (uint64_t at = first / GRANULE; size; at++, size -= GRANULE) {
        uint32_t is_written = ALL_WRITTEN;
        uint64_t write = atomic_load_explicit(&shadow->cells[2 * at], memory_order_relaxed);
        uint64_t read = atomic_load_explicit(&shadow->cells[2 * at + 1], memory_order_relaxed);
        if (is_load && written)
            memcpy(&is_written, written, sizeof is_written);
        bool is_new = is_past(thread, read, now, target.is_local);
        if (is_written != ALL_WRITTEN || !(write == now || is_past(thread, write, now, target.is_local)) ||
            !(is_new || read == now || (is_load && is_said(read, now))))
            return false;
        if (!is_load && written)
            memcpy(written, &is_written, sizeof is_written);
        if (is_new || !is_load) {
            atomic_store_explicit(&shadow->cells[2 * at + is_load], is_load ? reader(thread, read, now) : now,
                                  memory_order_relaxed);
            shadow->sites[2 * at + is_load] = (uint16_t)site->index;
        }
        written = written ? written + GRANULE : NULL;
    }
    return true;
}

uint8_t *cld_kcheck_access(struct cld_kcheck_thread *thread, uint8_t *address,
                           const struct cld_kcheck_site *site, uint64_t value) {
    bool is_plain = site->kind <= CLD_CHECK_STORE && !(site->flags & CLD_CHECK_NO_READ);
    if (__builtin_expect(is_plain && note_plain(thread, address, site), 1))
        return address;
    return access_in_full(thread, address, site, value);
}
