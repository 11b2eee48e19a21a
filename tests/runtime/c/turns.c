/* loader/sub_groups.c: sub-groups that wait for one another, with kernels that are C functions. Arguments:
 * what else to do, and "mapped" for a Linux whose guards are mappings. */
#define _GNU_SOURCE
#include "loader/sub_groups.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/stacks.h"
#include "harness.h"

enum { ITEMS = 4, STACK = 16 << 10, MOST = 64, GROUPS = 3 };

static uint8_t scratch[64] __attribute__((aligned(128)));
static volatile uint64_t turn, ended;
static uint64_t order[MOST];

static void run(cld_sub_group_fn kernel, uint64_t items) {
    struct cld_launch launch = {.work_dim = 1, .local_size = {items, 1, 1}};
    struct cld_thread thread = {.scratch = scratch};
    struct cld_sub_groups_layout layout = {ITEMS, STACK};
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

static bool is_older, has_no_memory;

int __real_madvise(void *address, size_t size, int advice);
int __wrap_madvise(void *address, size_t size, int advice) {
    if (is_older && advice == 102) {
        errno = EINVAL;
        return -1;
    }
    return __real_madvise(address, size, advice);
}

void *__real_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
    return has_no_memory && flags & MAP_STACK ? MAP_FAILED
                                              : __real_mmap(address, size, protection, flags, file, offset);
}

static bool can_be_read(const uint8_t *byte) {
    int ends[2];
    CHECK(!pipe(ends));
    ssize_t written = write(ends[1], byte, 1);
    CHECK(written == 1 || errno == EFAULT);
    close(ends[0]);
    close(ends[1]);
    return written == 1;
}

/* A thread's stacks: as large as any were that were asked for, each above a guard. most: with guards. */
static void stacks_and_guards(size_t most) {
    static const struct {
        size_t size, count;
    } wanted[] = {{1 << 12, 3}, {100000, 2}, {5000, 600}, {1 << 20, 7}, {1 << 12, 9000}, {1, 1}};
    struct cld_stacks stacks, before = {0};
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
        CHECK(cld_stacks_get(&stacks, wanted[k].size, wanted[k].count));
        CHECK(stacks.count >= wanted[k].count && stacks.count >= before.count);
        CHECK(stacks.stride > wanted[k].size && stacks.stride >= before.stride);
        for (size_t i = 0; i < stacks.count; i += i == most - 1 || i + 2 == stacks.count ? 1 : 7) {
            uint8_t *end = stacks.memory + (i + 1) * stacks.stride;
            end[-1] = *(end - wanted[k].size) = 1;
            CHECK(can_be_read(end - wanted[k].size));
            CHECK_IS(can_be_read(end - stacks.stride), i >= most);
        }
        before = stacks;
    }
    CHECK(cld_stacks_get(&stacks, 1, 1) && stacks.memory == before.memory);
    cld_stacks_drop();
    CHECK(cld_stacks_get(&stacks, 1, 1) && stacks.count == 1 && !can_be_read(stacks.memory));
    has_no_memory = true;
    CHECK(!cld_stacks_get(&stacks, 1, 2) && cld_stacks_lacked() && !cld_stacks_lacked());
    has_no_memory = false;
}

/* Takes all of its stack and more. */
static __attribute__((noinline)) void take(volatile char *outer, uint64_t left) {
    volatile char own[512];
    own[0] = outer[0];
    if (left)
        take(own, left - 1);
    outer[0] = own[0];
}

static uint64_t depth;

static void deep(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                 uint64_t group, uint64_t end, struct cld_sub_group *self, uint64_t index) {
    (void)launch, (void)args, (void)thread, (void)group, (void)end;
    volatile char own[4] = {1};
    cld_sub_group_join(self, 0);
    if (index == 1)
        take(own, depth);
    ended++;
}

static void deep_kernel(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                        uint64_t first, uint64_t last) {
    const struct cld_sub_groups_layout layout = {ITEMS, STACK};
    cld_sub_groups_run(deep, &layout, launch, args, thread, first, last);
}

static cl_int launch_deep(uint64_t bytes) {
    static cl_context context;
    static cl_command_queue queue;
    static cl_kernel kernel;
    if (!context) {
        context = test_context();
        queue = test_queue(context, 0);
        kernel = test_kernel(context, deep_kernel, "");
        info_of(kernel)->flags |= CLD_KERNEL_TAKES_TURNS;
    }
    size_t size = 3 * ITEMS;
    cl_event event;
    depth = bytes / 512;
    ended = 0;
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, &size, 0, NULL, &event));
    clFinish(queue);
    cl_int status = status_of(event);
    OK(clReleaseEvent(event));
    return status;
}

/* The process ends of it, whoever executes the kernel. */
static void overflow(void) {
    static uint8_t memory[64 << 10];
    const struct rlimit none = {0, 0};
    const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    setrlimit(RLIMIT_CORE, &none);
    CHECK(!sigaltstack(&stack, NULL));
    CHECK_IS(launch_deep(STACK / 4), CL_COMPLETE);
    CHECK_IS(ended, 3);
    launch_deep(2 * STACK + (64 << 10));
}

int main(int argc, char **argv) {
    is_older = argc > 2 && !strcmp(argv[2], "mapped");
    if (argc > 1) {
        if (!strcmp(argv[1], "overflow"))
            overflow();
        else
            stacks_and_guards(is_older ? 8192 : SIZE_MAX);
        return 0;
    }
    has_no_memory = true; /* for the stacks of whoever executes it */
    CHECK_IS(launch_deep(STACK / 4), CL_OUT_OF_RESOURCES);
    CHECK_IS(ended, 0);
    has_no_memory = false;
    CHECK_IS(launch_deep(STACK / 4), CL_COMPLETE);
    CHECK_IS(ended, 3);
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
