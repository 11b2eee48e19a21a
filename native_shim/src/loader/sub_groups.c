/* Sub-groups of a work-group that may wait for one another. Each has a stack of its own; one after the other
 * they run on the thread until they wait or let others go on.
 *
 * Nothing else of a group runs at the same time, so all that they share is plain memory. At the upper end of
 * a sub-group's stack is struct cld_sub_group. The private memory of its lanes is elsewhere
 * (cl_driver/codegen/layout/scratch.py). */
#include "loader/sub_groups.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/stacks.h"
#include "base/thread.h"

enum { GOES_ON = 0, AT_JOIN, AT_NAMED_BARRIER /* and more: the barrier */ };

struct group;

struct cld_sub_group {
    struct group *group;
    void *stack; /* its stack pointer while it does not run */
    uint64_t index;
    uint32_t waits; /* GOES_ON, or where */
    bool is_done;
};

struct group {
    cld_sub_group_fn run;
    const struct cld_launch *launch;
    const uint8_t *args;
    struct cld_thread *thread;
    uint64_t number;
    struct cld_stacks stacks;
    uint64_t count, left; /* sub-groups, and those that have not ended */
    void *stack;          /* the stack pointer of cld_sub_groups_run while a sub-group runs */
    uint64_t joined;
    int32_t next, decided; /* the greatest so far; that of the last join */
    bool is_idle;          /* nothing has happened since all had their turn but that they asked again */
    uint32_t met[CLD_NAMED_BARRIERS];
};

/* Saves the registers that a function keeps, and the stack pointer, in *save; goes on where another stack
 * pointer was saved. One that has not run yet has saved the registers of a call of `function(argument)`. */
void cld_stack_switch(void **save, void *to);
void cld_stack_begin(void);

#if defined(__x86_64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden cld_stack_switch\n"
        ".globl cld_stack_switch\n"
        ".type cld_stack_switch, @function\n"
        "cld_stack_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size cld_stack_switch, . - cld_stack_switch\n"
        ".hidden cld_stack_begin\n"
        ".globl cld_stack_begin\n"
        ".type cld_stack_begin, @function\n"
        "cld_stack_begin:\n"
        "    movq %r12, %rdi\n"
        "    callq *%r13\n"
        "    ud2\n"
        ".size cld_stack_begin, . - cld_stack_begin\n");

enum {
    SAVED_WORDS = 7,
    ARGUMENT = 3,
    FUNCTION = 2,
    RETURN = 6
}; /* r15 r14 r13 r12 rbx rbp, where to go on */
#elif defined(__aarch64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden cld_stack_switch\n"
        ".globl cld_stack_switch\n"
        ".type cld_stack_switch, %function\n"
        "cld_stack_switch:\n"
        "    sub sp, sp, #160\n"
        "    stp x29, x30, [sp]\n"
        "    stp x19, x20, [sp, #16]\n"
        "    stp x21, x22, [sp, #32]\n"
        "    stp x23, x24, [sp, #48]\n"
        "    stp x25, x26, [sp, #64]\n"
        "    stp x27, x28, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x29, x30, [sp]\n"
        "    ldp x19, x20, [sp, #16]\n"
        "    ldp x21, x22, [sp, #32]\n"
        "    ldp x23, x24, [sp, #48]\n"
        "    ldp x25, x26, [sp, #64]\n"
        "    ldp x27, x28, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size cld_stack_switch, . - cld_stack_switch\n"
        ".hidden cld_stack_begin\n"
        ".globl cld_stack_begin\n"
        ".type cld_stack_begin, %function\n"
        "cld_stack_begin:\n"
        "    mov x0, x19\n"
        "    blr x20\n"
        "    brk #1\n"
        ".size cld_stack_begin, . - cld_stack_begin\n");

enum { SAVED_WORDS = 20, ARGUMENT = 2, FUNCTION = 3, RETURN = 1 }; /* x29 x30 x19 x20 ... */
#else
#error "which registers does a function of this architecture keep?"
#endif

/* Stacks that began at the same place of their pages would share a few lines of the caches. */
enum { PLACES = 16, PLACE_SIZE = 256 };

static struct cld_sub_group *sub_group_of(const struct group *group, uint64_t index) {
    const struct cld_stacks *stacks = &group->stacks;
    uint8_t *end = stacks->memory + (index + 1) * stacks->stride - index % PLACES * PLACE_SIZE;
    return (struct cld_sub_group *)(void *)end - 1;
}

static void leave(struct cld_sub_group *self) {
    cld_stack_switch(&self->stack, self->group->stack);
}

/* It never returns: ThreadSanitizer would wait for that. */
__attribute__((no_sanitize("thread"))) static void begin(struct cld_sub_group *self) {
    struct group *group = self->group;
    group->run(group->launch, group->args, group->thread, group->number, group->number + 1, self,
               self->index);
    self->is_done = true;
    group->left--;
    group->is_idle = false;
    leave(self);
}

static void prepare(struct group *group, uint64_t index) {
    struct cld_sub_group *self = sub_group_of(group, index);
    *self = (struct cld_sub_group){.group = group, .index = index};
    /* As behind a call: the stack pointer is a multiple of 16 where cld_stack_begin begins. */
    void **top = (void **)((uintptr_t)self & ~(uintptr_t)15) - 2 * ((SAVED_WORDS + 1) / 2);
    if (SAVED_WORDS % 2)
        top++;
    memset(top, 0, SAVED_WORDS * sizeof *top);
    void (*function)(struct cld_sub_group *) = begin, (*start)(void) = cld_stack_begin;
    top[ARGUMENT] = self;
    memcpy(&top[FUNCTION], &function, sizeof function);
    memcpy(&top[RETURN], &start, sizeof start);
    self->stack = top;
}

/* The group cannot go on, for fewer sub-groups have come to a barrier than it is for: undefined, but no
 * reason to wait for ever. */
static void give_up(struct group *group) {
    group->decided = group->next;
    group->joined = 0;
    memset(group->met, 0, sizeof group->met);
    for (uint64_t k = 0; k < group->count; k++)
        sub_group_of(group, k)->waits = GOES_ON;
}

static void run_group(struct group *group) {
    group->left = group->count;
    group->joined = 0;
    group->next = INT32_MIN;
    memset(group->met, 0, sizeof group->met);
    if (group->count == 1) { /* there is nobody to wait for, and the thread's own stack will do */
        struct cld_sub_group self = {.group = group};
        group->run(group->launch, group->args, group->thread, group->number, group->number + 1, &self, 0);
        return;
    }
    for (uint64_t k = 0; k < group->count; k++)
        prepare(group, k);
    while (group->left) {
        bool any = false;
        group->is_idle = true;
        for (uint64_t k = 0; k < group->count; k++) {
            struct cld_sub_group *self = sub_group_of(group, k);
            if (self->is_done || self->waits != GOES_ON)
                continue;
            any = true;
            cld_stack_switch(&group->stack, self->stack);
        }
        if (!any)
            give_up(group);
        else if (group->is_idle) /* what they wait for may be up to another thread */
            cld_yield();
    }
}

void cld_sub_groups_run(cld_sub_group_fn run, const struct cld_sub_groups_layout *layout,
                        const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                        uint64_t first, uint64_t last) {
    const uint64_t *local = launch->local_size;
    struct group group = {.run = run, .launch = launch, .args = args, .thread = thread};
    /* Smaller groups at the upper edges have fewer: the last ones then do no more than join. */
    group.count = (local[0] * local[1] * local[2] + layout->size - 1) / layout->size;
    if (group.count > 1 && !cld_stacks_get(&group.stacks, layout->stack_size, group.count))
        return; /* which the launch asks for afterwards */
    for (group.number = first; group.number < last; group.number++)
        run_group(&group);
}

void cld_sub_group_yield(struct cld_sub_group *self) {
    if (self->group->count == 1)
        cld_yield();
    else
        leave(self);
}

/* Waits until all others wait there, too, or have come. */
static void wait_at(struct cld_sub_group *self, uint32_t place, bool is_last) {
    struct group *group = self->group;
    group->is_idle = false;
    if (!is_last) {
        self->waits = place;
        leave(self);
        return;
    }
    for (uint64_t k = 0; k < group->count; k++) {
        struct cld_sub_group *other = sub_group_of(group, k);
        if (other->waits == place)
            other->waits = GOES_ON;
    }
}

int32_t cld_sub_group_join(struct cld_sub_group *self, int32_t next) {
    struct group *group = self->group;
    if (group->count == 1)
        return next;
    group->next = next > group->next ? next : group->next;
    bool is_last = ++group->joined == group->count;
    if (is_last) {
        group->decided = group->next;
        group->next = INT32_MIN;
        group->joined = 0;
    }
    wait_at(self, AT_JOIN, is_last);
    return group->decided;
}

void cld_sub_group_meet(struct cld_sub_group *self, uint32_t barrier) {
    struct group *group = self->group;
    uint32_t number = barrier % CLD_NAMED_BARRIERS, count = barrier >> CLD_NAMED_BARRIER_SHIFT;
    if (group->count == 1)
        return;
    bool is_last = ++group->met[number] >= count;
    if (is_last)
        group->met[number] = 0;
    wait_at(self, AT_NAMED_BARRIER + number, is_last);
}
