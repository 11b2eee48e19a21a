/* Division of a command's units between threads: ranges, chunks, stealing. */
#include "schedule/work_stealing.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

enum { LINE = 64, CHUNKS = 4 /* of what is left of a range */ };

/* In one word, so that owner and thieves cannot both get a quantum: the next one in the low half, the end in
 * the high half. A range of the same two numbers never comes back: what was taken stays taken. */
struct range {
    _Alignas(LINE) _Atomic uint64_t quanta;
    uint64_t step; /* the most quanta of the next chunk; of the thread that has the slot */
    bool taken;
    /* Slots that share the cache with this one, and those that share the memory node, up to the second number
     * of each: all of them where the machine has one of each. */
    uint16_t cache[2], node[2];
};

struct cld_work {
    uint64_t first, total, quantum; /* units */
    uint64_t usual;                 /* quanta that chunks have at least, except first ones */
    unsigned slots;
    _Atomic bool stopped, drained;
    struct range ranges[];
};

static uint64_t pack(uint64_t next, uint64_t end) {
    return next | end << 32;
}

static uint64_t next_of(uint64_t quanta) {
    return (uint32_t)quanta;
}

static uint64_t end_of(uint64_t quanta) {
    return quanta >> 32;
}

/* Where the range of a slot begins, of so many quanta; of the slot behind the last one, where all end. */
static uint64_t begin_of(uint64_t count, unsigned slots, unsigned slot) {
    uint64_t more = count % slots;
    return count / slots * slot + (slot < more ? slot : more);
}

/* The places of slots are in order, so that those that are as near have no others between them. */
static void find_neighbours(struct cld_work *share, unsigned slot, const struct cld_place *places,
                            unsigned threads) {
    struct range *range = &share->ranges[slot];
    range->cache[0] = range->node[0] = 0;
    range->cache[1] = range->node[1] = (uint16_t)share->slots;
    if (!places)
        return;
    struct cld_place own = places[cld_home_of_slot(slot, share->slots, threads)];
    range->cache[0] = range->node[0] = range->cache[1] = range->node[1] = (uint16_t)slot;
    for (unsigned i = slot; i-- > 0;) {
        unsigned nearness = cld_nearness(own, places[cld_home_of_slot(i, share->slots, threads)]);
        if (nearness == 2)
            range->cache[0] = (uint16_t)i;
        if (nearness)
            range->node[0] = (uint16_t)i;
        else
            break;
    }
    for (unsigned i = slot; i < share->slots; i++) {
        unsigned nearness = cld_nearness(own, places[cld_home_of_slot(i, share->slots, threads)]);
        if (nearness == 2)
            range->cache[1] = (uint16_t)(i + 1);
        if (nearness)
            range->node[1] = (uint16_t)(i + 1);
        else
            break;
    }
}

struct cld_work *cld_work_new(uint64_t first, uint64_t total, uint64_t grain, uint64_t usual, unsigned slots,
                              const struct cld_place *places, unsigned threads) {
    struct cld_work *share =
        aligned_alloc(LINE, offsetof(struct cld_work, ranges) + slots * sizeof(struct range));
    if (!share)
        return NULL;
    uint64_t units = total - first, least = units / UINT32_MAX + 1;
    share->first = first;
    share->total = total;
    share->quantum = grain > least ? grain : least;
    share->usual = usual > share->quantum ? usual / share->quantum : 1;
    share->slots = slots;
    atomic_init(&share->stopped, false);
    atomic_init(&share->drained, false);
    uint64_t count = units / share->quantum + (units % share->quantum != 0);
    for (unsigned i = 0; i < slots; i++) {
        atomic_init(&share->ranges[i].quanta, pack(begin_of(count, slots, i), begin_of(count, slots, i + 1)));
        share->ranges[i].step = 1;
        share->ranges[i].taken = false;
        find_neighbours(share, i, places, threads);
    }
    return share;
}

/* Of the slots between two numbers: *slot, or the next one after it that nobody has, all around. */
static bool find_free(const struct cld_work *share, const unsigned between[2], unsigned *slot) {
    unsigned at = *slot;
    for (unsigned left = between[1] - between[0]; left; left--) {
        if (!share->ranges[at].taken) {
            *slot = at;
            return true;
        }
        at = at + 1 < between[1] ? at + 1 : between[0];
    }
    return false;
}

unsigned cld_work_join(struct cld_work *share, unsigned preferred) {
    unsigned slot = preferred < share->slots ? preferred : 0, all[2] = {0, share->slots};
    const struct range *wanted = &share->ranges[slot];
    const unsigned nearer[2][2] = {{wanted->cache[0], wanted->cache[1]}, {wanted->node[0], wanted->node[1]}};
    bool is_found = find_free(share, nearer[0], &slot) || find_free(share, nearer[1], &slot) ||
                    find_free(share, all, &slot);
    (void)is_found; /* there is one */
    share->ranges[slot].taken = true;
    return slot;
}

void cld_work_quit(struct cld_work *share, unsigned slot) {
    share->ranges[slot].step = 1;
    share->ranges[slot].taken = false;
}

/* Takes a part of a range; false if it changed meanwhile. */
static bool replace(struct range *range, uint64_t *seen, uint64_t next, uint64_t end) {
    return atomic_compare_exchange_weak_explicit(&range->quanta, seen, pack(next, end), memory_order_acq_rel,
                                                 memory_order_acquire);
}

static uint64_t chunk_of(const struct cld_work *share, uint64_t left, uint64_t step) {
    uint64_t chunk = (left + CHUNKS - 1) / CHUNKS;
    if (chunk < share->usual)
        chunk = share->usual;
    if (chunk > step)
        chunk = step;
    return chunk < left ? chunk : left;
}

static bool take_own(const struct cld_work *share, struct range *own, uint64_t *next, uint64_t *end) {
    uint64_t seen = atomic_load_explicit(&own->quanta, memory_order_acquire);
    do {
        *next = next_of(seen);
        if (*next >= end_of(seen))
            return false;
        *end = *next + chunk_of(share, end_of(seen) - *next, own->step);
    } while (!replace(own, &seen, *end, end_of(seen)));
    own->step *= own->step <= UINT32_MAX ? 2 : 1;
    return true;
}

static struct range *longest(struct cld_work *share, unsigned first, unsigned last, uint64_t *seen) {
    struct range *found = NULL;
    uint64_t most = 0;
    for (unsigned i = first; i < last; i++) {
        uint64_t quanta = atomic_load_explicit(&share->ranges[i].quanta, memory_order_acquire);
        uint64_t length = end_of(quanta) > next_of(quanta) ? end_of(quanta) - next_of(quanta) : 0;
        if (length > most) {
            most = length;
            found = &share->ranges[i];
            *seen = quanta;
        }
    }
    return found;
}

/* Whom to take from: of those that share the cache, then of the node, then of others. Each look at a range
 * fetches a line that its owner writes to, and hundreds of threads look at the end of a command; so once one
 * has found nothing anywhere the others look no further than among those that share their cache. */
static struct range *victim(struct cld_work *share, const struct range *own, uint64_t *seen) {
    bool is_one_node = own->node[1] - own->node[0] == (int)share->slots;
    bool is_one_cache = own->cache[1] - own->cache[0] == own->node[1] - own->node[0];
    struct range *found = longest(share, own->cache[0], own->cache[1], seen);
    if (found || atomic_load_explicit(&share->drained, memory_order_relaxed))
        return found;
    if (!is_one_cache)
        found = longest(share, own->node[0], own->node[1], seen);
    return found || is_one_node ? found : longest(share, 0, share->slots, seen);
}

/* Takes the second half of another's range: a chunk of it at once, the rest becomes the thread's own range,
 * which is empty, so that nobody else writes to it. */
static bool steal(struct cld_work *share, struct range *own, uint64_t *next, uint64_t *end) {
    uint64_t seen;
    for (struct range *from; (from = victim(share, own, &seen));) {
        uint64_t middle = next_of(seen) + (end_of(seen) - next_of(seen)) / 2, last = end_of(seen);
        if (!replace(from, &seen, next_of(seen), middle))
            continue;
        *next = middle;
        *end = middle + chunk_of(share, last - middle, 1);
        own->step = 2;
        atomic_store_explicit(&own->quanta, pack(*end, last), memory_order_release);
        return true;
    }
    return false;
}

bool cld_work_take(struct cld_work *share, unsigned slot, uint64_t *first, uint64_t *last) {
    struct range *own = &share->ranges[slot];
    uint64_t next, end;
    if (atomic_load_explicit(&share->stopped, memory_order_relaxed))
        return false;
    if (!take_own(share, own, &next, &end) && !steal(share, own, &next, &end)) {
        atomic_store_explicit(&share->drained, true, memory_order_relaxed);
        return false;
    }
    *first = share->first + next * share->quantum;
    *last = (share->total - share->first) / share->quantum >= end ? share->first + end * share->quantum
                                                                  : share->total;
    return true;
}

bool cld_work_is_own(const struct cld_work *share, unsigned slot, uint64_t first) {
    uint64_t units = share->total - share->first, at = (first - share->first) / share->quantum;
    uint64_t count = units / share->quantum + (units % share->quantum != 0);
    uint64_t begin = begin_of(count, share->slots, slot);
    return at >= begin && at < begin_of(count, share->slots, slot + 1);
}

void cld_work_stop(struct cld_work *share) {
    atomic_store_explicit(&share->stopped, true, memory_order_relaxed);
}

bool cld_work_is_open(const struct cld_work *share, unsigned participants) {
    return participants < share->slots && !atomic_load_explicit(&share->drained, memory_order_relaxed) &&
           !atomic_load_explicit(&share->stopped, memory_order_relaxed);
}

unsigned cld_work_places(const struct cld_work *share, unsigned participants) {
    return participants < share->slots ? share->slots - participants : 0;
}

unsigned cld_work_slots(const struct cld_work *share) {
    return share->slots;
}
