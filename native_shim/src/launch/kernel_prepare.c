/* Making commands of kernel launches: arguments, code, memory, estimates. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "graph/command_buffer.h"
#include "kernel/executable.h"
#include "kernel/variant.h"
#include "launch/kernel_command.h"
#include "launch/ndrange.h"
#include "launch/privatised_histogram.h"
#include "loader/printf.h"
#include "memory/image.h"
#include "memory/mem.h"

/* Every how many launches of a short kernel the time is taken. */
enum { MEASURE_EVERY = 16, SHORT_TIME = 2000 };

/* Groups that there is something to do for. The first one in a dimension that a kernel never asks for stands
 * for the others, which other cores would write the same memory for. */
static uint64_t groups_of(const struct cld_kernel_info *info, const struct cld_launch *launch) {
    uint64_t groups = 1;
    for (uint32_t i = 0; i + info->repeated_dimensions < 3; i++)
        groups *= launch->num_groups[i];
    return groups;
}

double cld_items_of(const struct cld_kernel_info *info, const struct cld_launch *launch) {
    double items = 1;
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t local = launch->local_size[i], global = launch->global_size[i];
        items *= (double)(i + info->repeated_dimensions < 3 || global < local ? global : local);
    }
    return items;
}

uint64_t cld_time_of(const struct cld_kernel_info *info, const struct cld_launch *launch) {
    uint64_t item_time = atomic_load_explicit(&info->item_time, memory_order_relaxed);
    double time = cld_items_of(info, launch) * (double)item_time / 1024;
    return !item_time ? CLD_TIME_UNKNOWN : time < 1e18 ? (uint64_t)time : (uint64_t)1e18;
}

/* The argument block as the kernel sees it, but for local arguments; memory objects are held. Sizes and
 * handles were checked when they were set, but nothing keeps a memory object that is the argument of a kernel
 * alive until here. */
static cl_int snapshot(struct cld_event *command, const struct cld_kernel *kernel) {
    const struct cld_kernel_info *info = command->kernel.info;
    uint8_t *args = command->inline_args;
    if (info->block_size > CLD_INLINE_ARGS) {
        void *memory = NULL;
        if (posix_memalign(&memory, 128, info->block_size))
            return CL_OUT_OF_HOST_MEMORY;
        args = memory;
    }
    command->kernel.args = args;
    memcpy(args, kernel->block, info->block_size);
    uint32_t base_align = command->queue->device->base_align;
    for (uint32_t i = 0; i < info->arg_count; i++) {
        const struct cld_arg_info *arg = &info->args[i];
        CLD_REQUIRE(kernel->is_set[i], CL_INVALID_KERNEL_ARGS, "an argument was never set");
        if (arg->kind == CLD_ARG_GLOBAL && kernel->mems[i]) {
            struct cld_mem *mem = cld_object_check(kernel->mems[i], CLD_MEM);
            CLD_REQUIRE(mem, CL_INVALID_KERNEL_ARGS, "an argument was released after it was set");
            CLD_REQUIRE(!mem->parent || !base_align || mem->offset % base_align == 0,
                        CL_MISALIGNED_SUB_BUFFER_OFFSET,
                        "a sub-buffer's offset is not aligned for the device");
            if (!cld_command_hold_mem(command, mem))
                return CL_OUT_OF_HOST_MEMORY;
            memcpy(args + arg->offset, &mem->data, sizeof mem->data);
        } else if (arg->kind == CLD_ARG_IMAGE) {
            struct cld_mem *mem = cld_object_check(kernel->mems[i], CLD_MEM);
            CLD_REQUIRE(mem && mem->image && mem->type == arg->image_type, CL_INVALID_KERNEL_ARGS,
                        "an argument was released after it was set");
            if (!cld_command_hold_mem(command, mem))
                return CL_OUT_OF_HOST_MEMORY;
            const struct cld_image_desc *desc = &mem->image->desc;
            memcpy(args + arg->offset, &desc, sizeof desc);
        }
    }
    return CL_SUCCESS;
}

/* Local arguments are so many bytes apart: cl_driver/codegen/lockstep/lane_constants.py takes vectors of that
 * size. */
enum { LOCAL_ROOM = 128 };

/* Makes local arguments offsets behind the local variables of all code that the launch runs. */
static inline __attribute__((always_inline)) cl_int place_local(struct cld_event *command,
                                                                const struct cld_kernel *kernel) {
    const struct cld_kernel_info *info = command->kernel.info;
    const struct cld_variant *code = cld_launch_code(command);
    /* Hot code, that a launch goes over to, needs no more than the kernel's info says. */
    bool may_change =
        cld_runs_entry(code) || code != command->kernel.variant || code->key.tier == CLD_TIER_HOT;
    uint64_t used = may_change ? info->local_static : 0;
    if (code && used < code->local_static)
        used = code->local_static;
    uint64_t local = used; /* with room between arguments */
    for (uint32_t i = 0; i < info->arg_count; i++) {
        const struct cld_arg_info *arg = &info->args[i];
        if (arg->kind != CLD_ARG_LOCAL)
            continue;
        uint64_t size, align = arg->align ? arg->align : 1;
        memcpy(&size, kernel->block + arg->offset, sizeof size);
        used = (used + align - 1) & ~(align - 1);
        align = align < LOCAL_ROOM ? LOCAL_ROOM : align;
        local = (local + align - 1) & ~(align - 1);
        memcpy(command->kernel.args + arg->offset, &local, sizeof local);
        CLD_REQUIRE(!__builtin_add_overflow(local, size, &local), CL_OUT_OF_RESOURCES,
                    "more local memory than there is");
        used += size;
    }
    uint64_t most = command->queue->device->local_memory_size;
    CLD_REQUIRE((!most || used <= most) && local <= UINT32_MAX, CL_OUT_OF_RESOURCES,
                "more local memory than the device has");
    command->kernel.local_size = (uint32_t)local;
    return CL_SUCCESS;
}

/* Groups with local memory that run for long read much that others do, too: those above and below the same
 * columns, those beside them the same rows. In panels of this many work-items, caches hold both
 * (python -m tests.bench.throughput --filter matmul_tiled). */
enum { PANEL_ITEMS = 128, LONG_GROUP = 1000 };

static void choose_panel(struct cld_event *command, uint64_t item_time) {
    const struct cld_launch *launch = &command->kernel.launch;
    const uint64_t *local = launch->local_size;
    uint64_t panel = PANEL_ITEMS / local[0];
    bool is_long = (double)item_time * (double)(local[0] * local[1] * local[2]) >= 1024.0 * LONG_GROUP;
    bool suits = command->kernel.local_size && local[1] > 1 && launch->num_groups[1] > 1 && panel > 1 &&
                 launch->num_groups[0] > panel && command->kernel.info->repeated_dimensions < 2;
    command->panel = is_long && suits ? (uint8_t)panel : 0;
}

/* What decides how the command is executed: the number of work-groups, and how long it took last time.
 * launches: that it stands for, where not each is looked at. */
static inline __attribute__((always_inline)) void estimate(struct cld_event *command,
                                                           struct cld_kernel_info *info, uint32_t launches) {
    uint64_t item_time = atomic_load_explicit(&info->item_time, memory_order_relaxed);
    choose_panel(command, item_time);
    command->estimate = cld_time_of(info, &command->kernel.launch);
    const uint64_t later =
        CLD_KERNEL_TILED | CLD_KERNEL_HAS_MORE | CLD_KERNEL_HAS_LINEAR | CLD_KERNEL_TRIES_ITEMS;
    if ((info->most_group_items || info->flags & later || info->history) && item_time)
        atomic_fetch_add_explicit(&info->busy_time, launches * command->estimate, memory_order_relaxed);
    command->timed = command->estimate >= SHORT_TIME || cld_launch_trial(command) || launches > 1 ||
                     atomic_fetch_add_explicit(&info->launches, 1, memory_order_relaxed) % MEASURE_EVERY == 0;
}

static void begin(struct cld_event *command, struct cld_kernel_info *info) {
    atomic_fetch_add_explicit(&info->holds, 1, memory_order_relaxed);
    command->kernel.info = info;
    command->kernel.args = command->inline_args;
    command->kernel.launch.printf_buffer = NULL;
    command->kernel.variant = NULL;
    command->kernel.trial = NULL;
    command->kernel.ahead_piece = 0;
    command->kernel.is_plain = false;
    command->panel = 0;
}

/* What is run, of a launch whose arguments and sizes are known. */
static cl_int choose_code(struct cld_event *command, const struct cld_kernel *kernel) {
    struct cld_kernel_info *info = command->kernel.info;
    struct cld_launch *launch = &command->kernel.launch;
    if (cld_variant_exchanges(info, launch))
        cld_ndrange_exchange(launch);
    else
        command->kernel.is_plain = (info->flags & CLD_KERNEL_EXCHANGED) != 0;
    if (info->flags & CLD_KERNEL_FREE_GROUPS)
        cld_ndrange_regroup(command->queue, info, launch);
    cl_int status = cld_variant_choose(command, kernel);
    uint64_t scratch_size;
    if (!status && !cld_find_scratch_size(command, cld_launch_code(command), &scratch_size))
        status = CL_OUT_OF_RESOURCES;
    cld_histogram_choose(command, kernel);
    launch->globals = info->executable ? info->executable->globals : NULL;
    if (!status && info->uses_printf && !(launch->printf_buffer = cld_printf_new()))
        status = CL_OUT_OF_HOST_MEMORY;
    return status;
}

static bool all_set(const struct cld_kernel *kernel) {
    for (uint32_t i = 0; i < kernel->info->arg_count; i++)
        if (!kernel->is_set[i])
            return false;
    return true;
}

static cl_int fill(struct cld_event *command, const struct cld_kernel *kernel,
                   const struct cld_launch_sizes *sizes, bool is_complete) {
    struct cld_kernel_info *info = command->kernel.info;
    struct cld_launch *launch = &command->kernel.launch;
    bool empty = false;
    if (is_complete)
        CLD_TRY(snapshot(command, kernel));
    CLD_TRY(cld_ndrange_check(command->queue, info, sizes->work_dim, sizes->offset, sizes->size, sizes->local,
                              launch, &empty));
    if (is_complete && !empty)
        CLD_TRY(choose_code(command, kernel));
    if (is_complete)
        CLD_TRY(place_local(command, kernel));
    /* "If global_work_size is NULL, or the value in any passed dimension is 0 then the kernel command will
     * trivially succeed after its event dependencies are satisfied." */
    command->total = empty || !is_complete ? 0 : groups_of(info, launch);
    if (!command->total)
        command->estimate = 0;
    else
        estimate(command, info, 1);
    return CL_SUCCESS;
}

cl_int cld_launch_prepare(struct cld_queue *queue, struct cld_kernel *kernel,
                          const struct cld_launch_kind *kind, const struct cld_launch_sizes *sizes,
                          bool with_event, bool *is_complete, struct cld_event **command) {
    struct cld_kernel_info *info = cld_kernel_info_for(kernel, queue->device);
    CLD_REQUIRE(info, CL_INVALID_PROGRAM_EXECUTABLE, "the program has no executable for the device");
    *command = cld_command_new(queue, kind->type, kind->operation, with_event);
    CLD_REQUIRE(*command, CL_OUT_OF_HOST_MEMORY, "no memory");
    begin(*command, info);
    bool is_all = !is_complete || (*is_complete = all_set(kernel));
    cl_int status = fill(*command, kernel, sizes, is_all);
    if (status)
        cld_command_discard(*command);
    return status;
}

/* Of nodes that wait for code for their images' formats each time, of others each time if they are long. */
static bool looks(const struct cld_event *node) {
    bool waits = node->kernel.variant && !cld_variant_is_there(node->kernel.variant);
    return node->node.whole->looks || node->estimate >= SHORT_TIME ||
           (waits && cld_specialisation_is_of_images(node->kernel.info));
}

void cld_launch_renew(struct cld_event *node) {
    const struct cld_kernel *kernel = &node->node.recorded->launch->kernel;
    node->timed = false;
    if (!node->total || !looks(node))
        return;
    const struct cld_variant *before = node->kernel.variant;
    uint64_t scratch_size;
    bool is_new = !cld_variant_choose(node, kernel) &&
                  cld_find_scratch_size(node, cld_launch_code(node), &scratch_size) &&
                  (node->kernel.variant == before || !place_local(node, kernel));
    if (!is_new) {
        node->kernel.variant = before;
        place_local(node, kernel);
    }
    estimate(node, node->kernel.info, node->estimate >= SHORT_TIME ? 1 : MEASURE_EVERY);
}
