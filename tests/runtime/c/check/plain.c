/* check/plain.c does what check/access.c does: two launches make the same random accesses, one of them all
 * the long way, and find the same.
 *
 * Usage: plain [SEED [ROUNDS]] */
#include "../harness.h"
#include "check/shadow.h"

enum {
    SIZE = 256,  /* of the buffer */
    LOCAL = 128, /* bytes of local memory: a variable, and an argument's */
    VARIABLE = 64,
    ITEMS = 4,
    GROUPS = 8,
    THREADS = 2,
    SITES = 256,
    STEPS = 400,
    ROUNDS = 3000
};

static struct cld_kcheck_sites *sites;

static struct side {
    struct cld_kcheck_launch *launch;
    struct cld_kcheck_thread *threads[THREADS];
    uint8_t *buffer, *local[THREADS];
} sides[2];

static const uint32_t SIZES[] = {4, 4, 4, 8, 16, 64, 2, 1};

/* bytes: the sizes of accesses may be less than a granule's. */
static void random_sites(bool bytes) {
    for (uint32_t i = 0; i < SITES; i++) {
        struct cld_kcheck_site *site = &sites->sites[i];
        uint32_t size = SIZES[chance(bytes ? 8 : 6)], kind = (uint32_t)chance(8);
        *site = (struct cld_kcheck_site){.index = i, .size = size, .kind = CLD_CHECK_LOAD};
        site->alignment = (uint16_t)(size > 16 ? 16 : size);
        if (kind >= 4)
            site->kind = CLD_CHECK_STORE;
        if (kind == 7 && (size == 4 || size == 8)) {
            static const uint16_t orders[] = {0, CLD_CHECK_ACQUIRE, CLD_CHECK_RELEASE, CLD_CHECK_NO_READ,
                                              CLD_CHECK_NO_WRITE};
            site->kind = CLD_CHECK_ATOMIC;
            site->flags = orders[chance(5)];
        } else if (site->kind == CLD_CHECK_STORE && size <= 8 && !chance(2)) {
            site->flags = CLD_CHECK_HAS_VALUE;
        } else if (site->kind == CLD_CHECK_LOAD && !chance(8)) {
            site->flags = CLD_CHECK_ANY_CONTENT;
        }
        switch (chance(5)) {
        case 0: /* of no known origin */
            break;
        case 1:
            site->flags |= CLD_CHECK_OF_ARGUMENT | CLD_CHECK_LOCAL;
            site->argument = 1;
            break;
        case 2:
            site->flags |= CLD_CHECK_OF_VARIABLE | CLD_CHECK_LOCAL;
            site->bytes = VARIABLE;
            break;
        default:
            site->flags |= CLD_CHECK_OF_ARGUMENT;
        }
    }
}

static void begin(struct side *side, int skew, bool is_written, bool no_reads, bool no_writes) {
    static const struct cld_launch sizes = {
        .global_size = {ITEMS * GROUPS, 1, 1}, .local_size = {ITEMS, 1, 1}, .num_groups = {GROUPS, 1, 1}};
    side->buffer = calloc(1, SIZE + CLD_CHECK_GAP);
    CHECK(side->buffer);
    cld_kcheck_allocated(side->buffer + skew, SIZE, "plain", is_written);
    side->launch = cld_kcheck_launch_new(side, "plain", 2);
    CHECK(side->launch);
    cld_kcheck_launch_global(side->launch, 0, side->buffer + skew, SIZE, no_reads, no_writes, false);
    cld_kcheck_launch_local(side->launch, 1, VARIABLE, LOCAL - VARIABLE);
    cld_kcheck_launch_begin(side->launch, &sizes);
    for (int i = 0; i < THREADS; i++) {
        side->local[i] = calloc(1, LOCAL);
        CHECK(side->local[i]);
        const struct cld_thread thread = {.local_memory = side->local[i], .local_memory_size = LOCAL};
        side->threads[i] = cld_kcheck_enter(side->launch, &thread, 0);
        CHECK(side->threads[i]);
        cld_kcheck_group(side->threads[i], sites, (uint64_t)i, 0, 0);
    }
}

static void end(struct side *side, int skew) {
    for (int i = 0; i < THREADS; i++) {
        cld_kcheck_leave(side->threads[i]);
        free(side->local[i]);
    }
    cld_kcheck_launch_free(side);
    cld_kcheck_freed(side->buffer + skew);
    cld_kcheck_taken(side->buffer + skew, SIZE);
    free(side->buffer);
}

/* A barrier of these kinds of memory. */
static void pass_barrier(struct cld_kcheck_thread *thread, uint64_t kinds) {
    for (int i = 0; i < 2; i++)
        if (kinds >> i & 1) {
            thread->epoch[i]++;
            thread->base[i] =
                (thread->base[i] & ~CELL_EPOCH) | (thread->epoch[i] << CELL_EPOCH_AT & CELL_EPOCH);
        }
    thread->released_here = thread->acquired_item = 0;
}

/* What is remembered of local memory; launches have tags of their own. */
static void compare_cells(const struct shadow *one, const struct shadow *other) {
    for (int i = 0; i < 2 * LOCAL / GRANULE; i++) {
        CHECK_IS(one->cells[i] & ~CELL_TAG, other->cells[i] & ~CELL_TAG);
        CHECK_IS(one->sites[i], other->sites[i]);
    }
    CHECK(!memcmp(one->written, other->written, LOCAL));
}

/* Of one access. The number of what was found. */
static uint32_t compare(void) {
    struct cld_kcheck_launch *one = sides[0].launch, *other = sides[1].launch;
    uint32_t count = one->report_count;
    CHECK_IS(one->report_count, other->report_count);
    for (uint32_t i = 0; i < one->report_count; i++) {
        const struct report *a = &one->reports[i], *b = &other->reports[i];
        CHECK_IS(a->finding, b->finding);
        CHECK(a->site == b->site && a->other == b->other && a->count == b->count);
        CHECK(a->offset == b->offset && a->bytes == b->bytes && a->is_write_before == b->is_write_before);
        CHECK(a->is_other_unknown == b->is_other_unknown);
        CHECK(!memcmp(&a->place, &b->place, sizeof a->place));
        CHECK(!memcmp(&a->other_place, &b->other_place, sizeof a->other_place));
    }
    one->report_count = other->report_count = 0;
    return count;
}

static void step(int skew, uint64_t *done, uint64_t *told) {
    uint64_t which = chance(THREADS), item = chance(ITEMS), value = chance(2);
    if (!chance(20)) {
        uint64_t group = chance(GROUPS);
        for (int s = 0; s < 2; s++)
            cld_kcheck_group(sides[s].threads[which], sites, group, 0, 0);
    } else if (!chance(12)) {
        uint64_t kinds = chance(4);
        for (int s = 0; s < 2; s++)
            pass_barrier(sides[s].threads[which], kinds);
    }
    const struct cld_kcheck_site *site = &sites->sites[chance(SITES)];
    bool is_local = (site->flags & CLD_CHECK_SPACE) == CLD_CHECK_LOCAL;
    size_t size = is_local ? LOCAL / 2 : SIZE, at = chance(size / 4 + 2) * 4;
    if (chance(8))
        at = at / site->alignment * site->alignment; /* most are aligned, and some outside */
    else if (!chance(4))
        at++;
    if (site->flags & CLD_CHECK_OF_ARGUMENT && is_local)
        at += VARIABLE;
    uint64_t allowed[2];
    for (int s = 0; s < 2; s++) {
        struct cld_kcheck_thread *thread = sides[s].threads[which];
        uint8_t *address = (is_local ? sides[s].local[which] : sides[s].buffer + skew) + at;
        thread->item = item;
        allowed[s] =
            (uint64_t)((s ? access_in_full : cld_kcheck_access)(thread, address, site, value) - address);
        if (!allowed[s])
            ++*done;
    }
    CHECK_IS(!allowed[0], !allowed[1]);
    *told += compare();
    compare_cells(&sides[0].threads[which]->local, &sides[1].threads[which]->local);
}

int main(int argc, char **argv) {
    long rounds = argc > 2 ? atol(argv[2]) : ROUNDS;
    uint64_t done = 0, found = 0;
    if (argc > 1)
        chance_state += strtoull(argv[1], NULL, 0);
    sites = calloc(1, sizeof *sites + SITES * sizeof *sites->sites);
    CHECK(sites);
    sites->count = SITES;
    for (long i = 0; i < rounds; i++) {
        int skew = chance(4) ? 0 : 2; /* sub-buffers may begin anywhere */
        bool is_written = chance(2), no_reads = !chance(5), no_writes = !chance(5);
        random_sites(!chance(3));
        for (int s = 0; s < 2; s++)
            begin(&sides[s], skew, is_written, no_reads, no_writes);
        for (uint64_t k = 1 + chance(STEPS); k--;)
            step(skew, &done, &found);
        for (int s = 0; s < 2; s++)
            end(&sides[s], skew);
    }
    CHECK(done > (uint64_t)rounds && found > (uint64_t)rounds);
    free(sites);
    return 0;
}
