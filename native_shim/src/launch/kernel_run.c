/* The execution of launches: groups in order, in panels, in steps, with and without fetching ahead. */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/mean.h"
#include "base/stacks.h"
#include "base/thread.h"
#include "launch/fault.h"
#include "launch/kernel_command.h"
#include "launch/launch_code.h"
#include "launch/privatised_histogram.h"
#include "runtime/worker.h"

/* A running mean, in 1/1024 ns per work-item. Threads may lose each other's updates. */
void cld_launch_learn(struct cld_event *command, uint64_t time, uint64_t units) {
    struct cld_kernel_info *info = command->kernel.info;
    struct cld_ab_run *trial = cld_trial_of(command);
    if (trial) {
        atomic_fetch_add_explicit(&trial->time, time, memory_order_relaxed);
        atomic_fetch_add_explicit(&trial->units, units, memory_order_relaxed);
    }
    const uint64_t *size = command->kernel.launch.local_size;
    double old = (double)atomic_load_explicit(&info->item_time, memory_order_relaxed);
    double now = (double)time * 1024 / ((double)units * (double)(size[0] * size[1] * size[2]));
    atomic_store_explicit(&info->item_time, (uint64_t)ceil(cld_mean(old, now)), memory_order_relaxed);
}

static inline __attribute__((always_inline)) void
run_code(struct cld_event *command, const struct cld_launch *launch, const struct cld_variant *code,
         struct cld_self *self, uint64_t first, uint64_t last) {
    if (cld_runs_entry(code))
        command->kernel.info->entry(launch, command->kernel.args, &self->kernel, first, last);
    if (code)
        code->entry(launch, command->kernel.args, &self->kernel, first, last);
}

/* Where a context wants local memory to be zeros, each group begins with that. Where it may be terminated,
 * groups are begun by so many, for what has no loops does not look. */
enum { GROUPS_AT_ONCE = 16 };

static __attribute__((noinline)) void run_in_steps(struct cld_event *command, const struct cld_launch *launch,
                                                   const struct cld_variant *code, struct cld_self *self,
                                                   uint64_t first, uint64_t last) {
    uint64_t flags = command->kernel.info->flags;
    uint32_t zeroes = flags & CLD_KERNEL_ZEROES_LOCAL ? command->kernel.local_size : 0;
    bool may_end = flags & CLD_KERNEL_TERMINABLE;
    uint64_t step = zeroes ? 1 : may_end ? GROUPS_AT_ONCE : last - first;
    const _Atomic uint32_t *terminated = &command->queue->context->terminated;
    for (uint64_t end; first < last; first = end) {
        if (may_end && atomic_load_explicit(terminated, memory_order_relaxed))
            return;
        end = last - first < step ? last : first + step;
        if (zeroes)
            memset(self->kernel.local_memory, 0, zeroes);
        run_code(command, launch, code, self, first, end);
    }
}

static void run_groups(struct cld_event *command, const struct cld_launch *launch,
                       const struct cld_variant *code, struct cld_self *self, uint64_t first, uint64_t last) {
    const uint64_t in_steps = CLD_KERNEL_ZEROES_LOCAL | CLD_KERNEL_TERMINABLE;
    if (__builtin_expect(!(command->kernel.info->flags & in_steps), 1))
        run_code(command, launch, code, self, first, last);
    else
        run_in_steps(command, launch, code, self, first, last);
}

/* Groups with local memory that run for long read much that others do, too: those above and below the same
 * columns, those beside them the same rows. In panels of this many work-items, caches hold both
 * (python -m tests.bench.throughput --filter matmul_tiled). */
enum { PANEL_ITEMS = 128, LONG_GROUP = 1000 };

void cld_launch_choose_panel(struct cld_event *command, uint64_t item_time) {
    const struct cld_launch *launch = &command->kernel.launch;
    const uint64_t *local = launch->local_size;
    uint64_t panel = PANEL_ITEMS / local[0];
    bool is_long = (double)item_time * (double)(local[0] * local[1] * local[2]) >= 1024.0 * LONG_GROUP;
    bool suits = command->kernel.local_size && local[1] > 1 && launch->num_groups[1] > 1 && panel > 1 &&
                 launch->num_groups[0] > panel && command->kernel.info->repeated_dimensions < 2;
    command->panel = is_long && suits ? (uint8_t)panel : 0;
}

/* Work-groups in another order: a panel of so many columns after the other, each row by row. */
static void run_panels(struct cld_event *command, const struct cld_launch *launch,
                       const struct cld_variant *code, struct cld_self *self, uint64_t first, uint64_t last) {
    const uint64_t *count = launch->num_groups, panel = command->panel;
    uint64_t plane = count[0] * count[1], taken;
    for (; first < last; first += taken) {
        uint64_t start = first % plane / (panel * count[1]) * panel;
        uint64_t width = count[0] - start < panel ? count[0] - start : panel;
        uint64_t inside = first % plane - start * count[1], column = inside % width;
        uint64_t group = first / plane * plane + inside / width * count[0] + start + column;
        taken = last - first < width - column ? last - first : width - column;
        run_groups(command, launch, code, self, group, group + taken);
    }
}

static void run_range(struct cld_event *command, const struct cld_launch *launch,
                      const struct cld_variant *code, struct cld_self *self, uint64_t first, uint64_t last) {
    if (__builtin_expect(command->panel, 0))
        run_panels(command, launch, code, self, first, last);
    else
        run_groups(command, launch, code, self, first, last);
}

/* Pieces that fetch ahead and pieces that do not, in turn, each timed. */
static __attribute__((noinline)) void run_pieces(struct cld_event *command, const struct cld_variant *code,
                                                 struct cld_self *self, uint64_t first, uint64_t last) {
    struct cld_prefetch_trial *ahead = &command->kernel.info->ahead;
    struct cld_launch launches[2] = {command->kernel.launch, command->kernel.launch};
    uint64_t piece = command->kernel.ahead_piece, taken;
    launches[0].ahead_kib = 0;
    for (; first < last; first += taken) {
        bool is_ahead = first / piece & 1;
        uint64_t start = cld_now();
        taken = piece - first % piece < last - first ? piece - first % piece : last - first;
        run_range(command, &launches[is_ahead], code, self, first, first + taken);
        if (taken == piece)
            cld_prefetch_sample(ahead, is_ahead, cld_now() - start);
    }
}

void cld_launch_give_children(struct cld_self *self) {
    self->kept_children = 0;
    if (self->children.first)
        cld_pool_push(&self->children);
}

/* Groups up to last were executed, of a kernel that may enqueue others, be ended from outside, or need more
 * stacks than there is memory for. */
static __attribute__((noinline)) cl_int after_odd(const struct cld_event *command, struct cld_self *self,
                                                  uint64_t last) {
    /* What this thread has made ready it executes itself if that was the end. */
    if (command->enqueues && (command->share || last < command->total))
        cld_launch_give_children(self);
    const uint64_t flags = command->kernel.info->flags;
    if (flags & CLD_KERNEL_TAKES_TURNS && cld_stacks_lacked()) {
        cld_log(1, "no memory for the stacks of a kernel's sub-groups");
        return CL_OUT_OF_RESOURCES;
    }
    return flags & CLD_KERNEL_TERMINABLE && atomic_load(&command->queue->context->terminated)
               ? CL_CONTEXT_TERMINATED_KHR
               : CL_SUCCESS;
}

static inline __attribute__((always_inline)) bool
has_room(struct cld_event *command, const struct cld_variant *code, struct cld_self *self) {
    uint64_t scratch_size;
    bool found = cld_find_scratch_size(command, code, &scratch_size) &&
                 cld_self_arenas(self, command->kernel.local_size, scratch_size);
    self->kernel.local_memory_size = command->kernel.local_size;
    return found;
}

bool cld_launch_has_room(struct cld_event *command, struct cld_self *self) {
    return has_room(command, cld_code_of(command), self);
}

cl_int cld_launch_run(struct cld_event *command, struct cld_self *self, uint64_t first, uint64_t last) {
    if (cld_wish_of(command))
        cld_variant_wish_look(cld_wish_of(command));
    const struct cld_variant *code = cld_code_of(command);
    if (!has_room(command, code, self))
        return CL_OUT_OF_RESOURCES;
    if (__builtin_expect(command->kernel.info->uses_printf && !command->kernel.launch.printf_buffer, 0))
        return CL_OUT_OF_HOST_MEMORY;
    cld_histogram_enter(command, self);
    const uint64_t odd =
        command->kernel.info->flags & (CLD_KERNEL_ENQUEUES | CLD_KERNEL_TERMINABLE | CLD_KERNEL_TAKES_TURNS);
    if (__builtin_expect(odd & CLD_KERNEL_ENQUEUES, 0))
        self->parent = command;
    struct cld_running *running = cld_fault_enter(self, command);
    uint64_t saved = cld_float_enter();
    if (command->kernel.ahead_piece)
        run_pieces(command, code, self, first, last);
    else
        run_range(command, &command->kernel.launch, code, self, first, last);
    cld_float_leave(saved);
    cld_fault_leave(running);
    return __builtin_expect(odd != 0, 0) ? after_odd(command, self, last) : CL_SUCCESS;
}
