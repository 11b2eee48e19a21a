/* loader/sub_groups.c: sub-groups that wait for one another, with kernels that are C functions. */
#include "loader/sub_groups.h"

#include "harness.h"

enum { ITEMS = 4, STACK = 16 << 10, MOST = 64, GROUPS = 3 };

static uint8_t scratch[64 + MOST * STACK] __attribute__((aligned(128)));
static volatile uint64_t turn, ended;
static uint64_t order[MOST];

static void run(cld_sub_group_fn kernel, uint64_t items) {
    struct cld_launch launch = {.work_dim = 1, .local_size = {items, 1, 1}};
    struct cld_thread thread = {.scratch = scratch};
    struct cld_sub_groups_layout layout = {ITEMS, 64, STACK};
    ended = 0;
    cld_sub_groups_run(kernel, &layout, &launch, NULL, &thread, 5, 5 + GROUPS);
    CHECK_IS(ended, GROUPS * ((items + ITEMS - 1) / ITEMS));
}

static uint64_t count_of(const struct cld_launch *launch) {
    return (launch->local_size[0] + ITEMS - 1) / ITEMS;
}

/* The last goes first. What a function keeps in registers is still there, and the stack is aligned. */
static void backwards(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                      uint64_t group, uint64_t end, struct cld_sub_group *self, uint64_t index) {
    CHECK(!args && thread->scratch == scratch && end == group + 1);
    uint64_t count = count_of(launch), before = turn / count * count;
    double number = (double)index * 1.5;
    long a = (long)index, b = a * 3, c = a * 5, d = a * 7, e = a * 11, f = a * 13;
    volatile char own[64] __attribute__((aligned(64))) = {(char)index};
    while (turn != before + count - 1 - index) {
        cld_sub_group_yield(self);
        number += 1;
        a++, b++, c++, d++, e++, f++;
    }
    long turns = a - (long)index;
    CHECK(number == (double)index * 1.5 + (double)turns);
    CHECK_IS(b + c + d + e + f, (long)index * 39 + 5 * turns);
    CHECK_IS(own[0], (char)index);
    CHECK_IS((uintptr_t)own % 64, 0);
    order[turn++ % count] = index;
    ended++;
}

/* All come to a join, with the greatest of what they say, as often as they like. */
static void joins(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                  uint64_t group, uint64_t end, struct cld_sub_group *self, uint64_t index) {
    (void)args, (void)thread, (void)end;
    int32_t count = (int32_t)count_of(launch), sub_group = (int32_t)index;
    for (int32_t round = 0; round < 10; round++) {
        if (sub_group % 3 == round % 3)
            cld_sub_group_yield(self);
        CHECK_IS(cld_sub_group_join(self, round * 1000 + sub_group), round * 1000 + count - 1);
        CHECK_IS(cld_sub_group_join(self, -1 - sub_group), -1);
    }
    CHECK(group >= 5);
    ended++;
}

/* Pairs meet, and then all even ones, at barriers of their own. */
static volatile uint64_t met[MOST];
static void named(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                  uint64_t group, uint64_t end, struct cld_sub_group *self, uint64_t index) {
    (void)args, (void)thread, (void)group, (void)end;
    uint64_t count = count_of(launch), pair = index / 2;
    uint32_t of_pair = (uint32_t)(pair % 8 | 2 << CLD_NAMED_BARRIER_SHIFT);
    uint32_t of_even = (uint32_t)(63 | (count + 1) / 2 << CLD_NAMED_BARRIER_SHIFT);
    for (uint64_t round = 1; round < 5; round++) {
        met[index]++;
        if (index % 2 == 0)
            cld_sub_group_meet(self, of_even);
        if (pair < 8 && (index ^ 1) < count) {
            cld_sub_group_meet(self, of_pair);
            CHECK_IS(met[index ^ 1], met[index]);
            cld_sub_group_meet(self, of_pair);
        }
    }
    ended++;
}

/* A barrier for more sub-groups than there are: no reason to wait for ever. */
static void too_few(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                    uint64_t group, uint64_t end, struct cld_sub_group *self, uint64_t index) {
    (void)launch, (void)args, (void)thread, (void)group, (void)end, (void)index;
    cld_sub_group_meet(self, 3 | 200 << CLD_NAMED_BARRIER_SHIFT);
    ended++;
}

int main(void) {
    static const uint64_t sizes[] = {1, ITEMS, ITEMS + 1, 7 * ITEMS, 16 * ITEMS, MOST * ITEMS};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        uint64_t count = (sizes[k] + ITEMS - 1) / ITEMS;
        turn = 0;
        run(backwards, sizes[k]);
        CHECK_IS(turn, GROUPS * count);
        for (uint64_t i = 0; i < count; i++)
            CHECK_IS(order[i], count - 1 - i);
        run(joins, sizes[k]);
        memset((void *)met, 0, sizeof met);
        run(named, sizes[k]);
        for (uint64_t i = 0; i < count; i++)
            CHECK_IS(met[i], 4 * GROUPS);
        run(too_few, sizes[k]);
    }
    return 0;
}
