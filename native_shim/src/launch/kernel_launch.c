/* Kernel launches (API specification, 5.10). */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/thread.h"
#include "check/check.h"
#include "cluster/cluster.h"
#include "graph/command_buffer.h"
#include "kernel/executable.h"
#include "launch/block_room.h"
#include "launch/checked_launch.h"
#include "launch/kernel_command.h"
#include "launch/launch_code.h"
#include "launch/ndrange.h"
#include "launch/part_launch.h"
#include "launch/privatised_histogram.h"
#include "loader/printf.h"
#include "memory/image.h"
#include "memory/mem.h"
#include "object/call.h"
#include "runtime/enqueue_check.h"
#include "runtime/worker.h"

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

/* Work-items of these. */
static double items_of(const struct cld_kernel_info *info, const struct cld_launch *launch) {
    double items = 1;
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t local = launch->local_size[i], global = launch->global_size[i];
        items *= (double)(i + info->repeated_dimensions < 3 || global < local ? global : local);
    }
    return items;
}

/* How long one thread would take, or CLD_TIME_UNKNOWN. */
static uint64_t time_of(const struct cld_kernel_info *info, const struct cld_launch *launch) {
    uint64_t item_time = atomic_load_explicit(&info->item_time, memory_order_relaxed);
    double time = items_of(info, launch) * (double)item_time / 1024;
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
        CLD_REQUIRE(kernel->is_set[i], CL_INVALID_KERNEL_ARGS, "argument %u was never set", i);
        if (arg->kind == CLD_ARG_GLOBAL && kernel->mems[i]) {
            struct cld_mem *mem = cld_object_check(kernel->mems[i], CLD_MEM);
            CLD_REQUIRE(mem, CL_INVALID_KERNEL_ARGS, "argument %u was released after it was set", i);
            CLD_REQUIRE(!mem->parent || !base_align || mem->offset % base_align == 0,
                        CL_MISALIGNED_SUB_BUFFER_OFFSET,
                        "argument %u is a sub-buffer at byte %zu, no multiple of %u", i, (size_t)mem->offset,
                        base_align);
            if (!cld_command_hold_mem(command, mem))
                return CL_OUT_OF_HOST_MEMORY;
            memcpy(args + arg->offset, &mem->data, sizeof mem->data);
        } else if (arg->kind == CLD_ARG_IMAGE) {
            struct cld_mem *mem = cld_object_check(kernel->mems[i], CLD_MEM);
            CLD_REQUIRE(mem && mem->image && mem->type == arg->image_type, CL_INVALID_KERNEL_ARGS,
                        "argument %u was released after it was set", i);
            if (!cld_command_hold_mem(command, mem))
                return CL_OUT_OF_HOST_MEMORY;
            const struct cld_image_desc *desc = &mem->image->desc;
            memcpy(args + arg->offset, &desc, sizeof desc);
        } else if (arg->kind == CLD_ARG_QUEUE) {
            void *queue;
            memcpy(&queue, args + arg->offset, sizeof queue);
            CLD_REQUIRE(cld_object_check(queue, CLD_QUEUE), CL_INVALID_KERNEL_ARGS,
                        "argument %u was released after it was set", i);
            if (!cld_command_hold_mem(command, queue)) /* as an object: all are held alike */
                return CL_OUT_OF_HOST_MEMORY;
        } else if (arg->kind == CLD_ARG_PIPE) {
            struct cld_mem *mem = cld_object_check(kernel->mems[i], CLD_MEM);
            CLD_REQUIRE(mem && mem->type == CL_MEM_OBJECT_PIPE, CL_INVALID_KERNEL_ARGS,
                        "argument %u was released after it was set", i);
            if (!cld_command_hold_mem(command, mem))
                return CL_OUT_OF_HOST_MEMORY;
            memcpy(args + arg->offset, &mem->data, sizeof mem->data);
        }
    }
    return CL_SUCCESS;
}

/* Local arguments are so many bytes apart: cl_driver/codegen/lockstep/lane_constants.py takes vectors of that
 * size. */
enum { LOCAL_ROOM = 128 };

/* Local memory of a launch, of which parts have been given places. */
struct local_places {
    uint64_t used;
    uint64_t end; /* with room between arguments */
};

/* Makes a local argument, of so many bytes, an offset behind what there is. */
static cl_int place_argument(struct cld_event *command, const struct cld_arg_info *arg, uint64_t size,
                             struct local_places *places) {
    uint64_t align = arg->align ? arg->align : 1;
    places->used = (places->used + align - 1) & ~(align - 1);
    align = align < LOCAL_ROOM ? LOCAL_ROOM : align;
    places->end = (places->end + align - 1) & ~(align - 1);
    memcpy(command->kernel.args + arg->offset, &places->end, sizeof places->end);
    CLD_REQUIRE(!__builtin_add_overflow(places->end, size, &places->end), CL_OUT_OF_RESOURCES,
                "local arguments have more bytes than can be counted");
    places->used += size;
    if (__builtin_expect(cld_kcheck_is_on, 0))
        cld_kcheck_launch_local(cld_kcheck_launch_of(command), (uint32_t)(arg - command->kernel.info->args),
                                places->end - size, size);
    return CL_SUCCESS;
}

static cl_int check_local(struct cld_event *command, const struct local_places *places) {
    uint64_t most = command->queue->device->local_memory_size;
    CLD_REQUIRE((!most || places->used <= most) && places->end <= UINT32_MAX, CL_OUT_OF_RESOURCES,
                "the launch needs %zu bytes of local memory, at most %zu", (size_t)places->used,
                (size_t)most);
    command->kernel.local_size = (uint32_t)places->end;
    return CL_SUCCESS;
}

/* Makes local arguments offsets behind the local variables of all code that the launch runs. */
static cl_int place_local(struct cld_event *command, const struct cld_kernel *kernel) {
    const struct cld_kernel_info *info = command->kernel.info;
    const struct cld_variant *code = cld_code_of(command);
    /* Hot code, that a launch goes over to, needs no more than the kernel's info says. */
    bool may_change =
        cld_runs_entry(code) || code != command->kernel.variant || code->key.tier == CLD_TIER_HOT;
    uint64_t used = may_change ? info->local_static : 0;
    if (code && used < code->local_static)
        used = code->local_static;
    struct local_places places = {used, used};
    for (uint32_t i = 0; i < info->arg_count; i++) {
        const struct cld_arg_info *arg = &info->args[i];
        if (arg->kind != CLD_ARG_LOCAL)
            continue;
        uint64_t size;
        memcpy(&size, kernel->block + arg->offset, sizeof size);
        CLD_TRY(place_argument(command, arg, size, &places));
    }
    return check_local(command, &places);
}

cl_int cld_launch_place_local(struct cld_event *command, const uint64_t *sizes) {
    const struct cld_kernel_info *info = command->kernel.info;
    struct local_places places = {info->local_static, info->local_static};
    for (uint32_t i = 1; i < info->arg_count; i++)
        CLD_TRY(place_argument(command, &info->args[i], sizes[i - 1], &places));
    return check_local(command, &places);
}

/* What decides how the command is executed: the number of work-groups, and how long it took last time.
 * launches: that it stands for, where not each is looked at. */
static void estimate(struct cld_event *command, struct cld_kernel_info *info, uint32_t launches) {
    uint64_t item_time = atomic_load_explicit(&info->item_time, memory_order_relaxed);
    if (command->kernel.local_size)
        cld_launch_choose_panel(command, item_time);
    else
        command->panel = 0;
    command->estimate = time_of(info, &command->kernel.launch);
    const uint64_t later =
        CLD_KERNEL_TILED | CLD_KERNEL_HAS_MORE | CLD_KERNEL_HAS_LINEAR | CLD_KERNEL_TRIES_ITEMS;
    if ((info->most_group_items || info->flags & later || info->history) && item_time)
        atomic_fetch_add_explicit(&info->busy_time, launches * command->estimate, memory_order_relaxed);
    command->timed = command->estimate >= SHORT_TIME || cld_trial_of(command) || launches > 1 ||
                     atomic_fetch_add_explicit(&info->launches, 1, memory_order_relaxed) % MEASURE_EVERY == 0;
}

/* Of nodes that wait for code for their images' formats each time, of others each time if they are long. */
static bool looks(const struct cld_event *node) {
    bool waits = node->kernel.variant && !cld_variant_is_there(node->kernel.variant);
    return node->node.whole->looks || node->estimate >= SHORT_TIME ||
           (waits && cld_specialisation_is_of_images(node->kernel.info));
}

/* Before a node of a graph is executed: looks for better code than the last time. */
static void renew(struct cld_event *node) {
    const struct cld_kernel *kernel = &node->node.recorded->launch->kernel;
    node->timed = false;
    if (!node->total || !looks(node))
        return;
    const struct cld_variant *before = node->kernel.variant;
    uint64_t scratch_size;
    bool is_new = !cld_variant_choose(node, kernel) &&
                  cld_find_scratch_size(node, cld_code_of(node), &scratch_size) &&
                  (node->kernel.variant == before || !place_local(node, kernel));
    if (!is_new) {
        node->kernel.variant = before;
        place_local(node, kernel);
    }
    estimate(node, node->kernel.info, node->estimate >= SHORT_TIME ? 1 : MEASURE_EVERY);
}

/* So many ns by one thread are enough to tell whether to fetch ahead. */
enum { AHEAD_TIME = 1000000 };

static struct cld_printf *new_output(const struct cld_event *command) {
    return cld_printf_new(command->context->print, command->context->print_data);
}

/* Only now, not when the command is enqueued: launches that wait behind others know what these have found. */
static void begin_kernel(struct cld_event *command) {
    struct cld_kernel_info *info = command->kernel.info;
    struct cld_launch *launch = &command->kernel.launch;
    if (command->is_node) {
        renew(command);
        if (info->uses_printf)
            launch->printf_buffer = new_output(command);
    }
    if (!(info->flags & CLD_KERNEL_READS_AHEAD))
        return;
    int32_t state = atomic_load_explicit(&info->ahead.state, memory_order_relaxed);
    uint64_t time = time_of(info, launch);
    if (state == CLD_PREFETCH_OFF)
        launch->ahead_kib = 0;
    else if (state == CLD_PREFETCH_TRIAL && !cld_trial_of(command) && time != CLD_TIME_UNKNOWN &&
             time >= AHEAD_TIME)
        command->kernel.ahead_piece =
            cld_prefetch_piece(&info->ahead, (uint64_t)items_of(info, launch), command->total);
    /* Threads take whole pieces: of many threads none would have chunks that contain one. */
    if (command->kernel.ahead_piece)
        command->grain = command->kernel.ahead_piece;
}

/* Launches that are compared for another reason stay as they are. */
static struct cld_alone_run *alone_kernel(struct cld_event *command) {
    struct cld_kernel_info *info = command->kernel.info;
    if (cld_trial_of(command) || command->kernel.ahead_piece)
        return NULL;
    return cld_alone_begin(&info->alone, info->name, cld_code_of(command), command->total);
}

/* What a launch leaves behind, of a command that may be launched again. */
static void rest_kernel(struct cld_event *command, cl_int status) {
    if (command->kernel.ahead_piece) {
        cld_prefetch_conclude(&command->kernel.info->ahead, command->kernel.info->name);
        command->grain = 1;
    }
    if (cld_trial_of(command))
        cld_ab_run_end(command->kernel.info->name, command->kernel.trial,
                       status == CL_COMPLETE ? command->total : 0);
    cld_variant_wish_drop(cld_wish_of(command));
    cld_printf_end(command->kernel.launch.printf_buffer);
    command->kernel.ahead_piece = 0;
    command->kernel.trial = NULL;
    command->kernel.launch.printf_buffer = NULL;
}

static void end_kernel(struct cld_event *command, cl_int status) {
    rest_kernel(command, status);
    if (command->is_child)
        cld_block_give_room(command);
    if (command->kernel.args != command->inline_args)
        free(command->kernel.args);
    if (command->kernel.info)
        cld_kernel_info_drop(command->kernel.info);
}

/* A node writes local arguments' places into its arguments, as the code that it runs has them. */
static bool own_kernel(struct cld_event *node) {
    const struct cld_event *model = node->node.recorded->model;
    struct cld_kernel_info *info = model->kernel.info;
    node->kernel.args = node->inline_args;
    if (model->kernel.args != model->inline_args) {
        void *memory = NULL;
        if (posix_memalign(&memory, 128, info->block_size))
            return false;
        memcpy(memory, model->kernel.args, info->block_size);
        node->kernel.args = memory;
    }
    atomic_fetch_add_explicit(&info->holds, 1, memory_order_relaxed);
    return true;
}

static const struct cld_operation kernel_operation = {.begin = begin_kernel,
                                                      .run = cld_launch_run,
                                                      .leave = cld_histogram_leave,
                                                      .end = end_kernel,
                                                      .learn = cld_launch_learn,
                                                      .alone = alone_kernel,
                                                      .own = own_kernel,
                                                      .rest = rest_kernel};

__attribute__((constructor)) static void register_launches(void) {
    cld_checked_launches(&kernel_operation, cld_launch_has_room);
    cld_part_launches(&kernel_operation);
}

static const struct cld_operation *launch_operation(const struct cld_queue *queue) {
    if (__builtin_expect(queue->device->worker != NULL, 0))
        return &cld_cluster_operation;
    return __builtin_expect(cld_kcheck_is_on, 0) ? &cld_checked_operation : &kernel_operation;
}

static void begin(struct cld_event *command, struct cld_kernel_info *info) {
    atomic_fetch_add_explicit(&info->holds, 1, memory_order_relaxed);
    command->kernel.info = info;
    command->waits = (info->flags & CLD_KERNEL_PIPES) != 0;
    command->enqueues = (info->flags & CLD_KERNEL_ENQUEUES) != 0;
    command->kernel.args = command->inline_args;
    command->kernel.launch.printf_buffer = NULL;
    command->kernel.variant = NULL;
    command->kernel.trial = NULL;
    command->kernel.ahead_piece = 0;
    command->kernel.is_plain = false;
    command->panel = 0;
}

/* What is run, of a launch whose arguments and sizes are known. part: what it is of a launch, or NULL. */
static cl_int choose_code(struct cld_event *command, const struct cld_kernel *kernel,
                          struct cld_group_range *part) {
    struct cld_kernel_info *info = command->kernel.info;
    struct cld_launch *launch = &command->kernel.launch;
    if (cld_variant_exchanges(info, launch)) {
        cld_ndrange_exchange(launch);
        if (part && part->dimension < 2)
            part->dimension = 1 - part->dimension;
    } else {
        command->kernel.is_plain = (info->flags & CLD_KERNEL_EXCHANGED) != 0;
    }
    if (info->flags & CLD_KERNEL_FREE_GROUPS && part)
        cld_part_launch_regroup(command->queue, info, launch, part);
    else if (info->flags & CLD_KERNEL_FREE_GROUPS)
        cld_ndrange_regroup(command->queue, info, launch);
    cl_int status = cld_variant_choose(command, kernel);
    uint64_t scratch_size;
    if (!status && !cld_find_scratch_size(command, cld_code_of(command), &scratch_size))
        status = CL_OUT_OF_RESOURCES;
    cld_histogram_choose(command, kernel);
    launch->globals = info->executable ? info->executable->globals : NULL;
    if (!status && info->uses_printf && !(launch->printf_buffer = new_output(command)))
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
    bool is_here = command->operation != &cld_cluster_operation;
    if (__builtin_expect(command->operation == &cld_checked_operation, 0) && is_complete)
        cld_checked_launch_arguments(command, kernel);
    CLD_TRY(cld_ndrange_check(command->queue, info, sizes->work_dim, sizes->offset, sizes->size, sizes->local,
                              is_here, launch, &empty));
    if (is_complete && !is_here)
        CLD_TRY(cld_cluster_launch(command, kernel, sizes->local));
    if (is_complete && !empty && is_here)
        CLD_TRY(choose_code(command, kernel, sizes->part));
    if (is_complete && is_here)
        CLD_TRY(place_local(command, kernel));
    /* "If global_work_size is NULL, or the value in any passed dimension is 0 then the kernel command will
     * trivially succeed after its event dependencies are satisfied." */
    command->total = empty || !is_complete ? 0 : groups_of(info, launch);
    if (!command->total)
        command->estimate = 0;
    else
        estimate(command, info, 1);
    CLD_REQUIRE(!sizes->part || !command->total || cld_part_launch_take(command, sizes->part),
                CL_OUT_OF_HOST_MEMORY, "no memory");
    return CL_SUCCESS;
}

struct cld_event *cld_launch_block_new(struct cld_queue *queue, struct cld_kernel_info *info,
                                       bool with_event) {
    struct cld_event *command =
        cld_command_new(queue, CL_COMMAND_NDRANGE_KERNEL, launch_operation(queue), with_event);
    if (!command)
        return NULL;
    begin(command, info);
    if (cld_kcheck_is_on) /* what its arguments point to nobody knows */
        cld_kcheck_launch_new(command, info->name, info->arg_count);
    command->has_event = with_event;
    command->special |= with_event ? CLD_PROFILED : 0; /* it may be asked for its times */
    return command;
}

/* Its entry is for all launches. */
cl_int cld_launch_block_fill(struct cld_event *command, const struct cld_ndrange *range) {
    struct cld_kernel_info *info = command->kernel.info;
    struct cld_launch *launch = &command->kernel.launch;
    bool empty = false;
    CLD_TRY(cld_ndrange_of_block(command->queue, info, range, true, launch, &empty));
    command->total = 0;
    command->estimate = 0;
    if (empty)
        return CL_SUCCESS;
    if (info->flags & CLD_KERNEL_FREE_GROUPS)
        cld_ndrange_regroup(command->queue, info, launch);
    uint64_t scratch_size;
    CLD_REQUIRE(cld_find_scratch_size(command, NULL, &scratch_size), CL_OUT_OF_RESOURCES,
                "the groups need more memory for their work-items than can be counted: local_work_size");
    launch->globals = info->executable->globals;
    if (info->uses_printf && !(launch->printf_buffer = new_output(command)))
        return CL_OUT_OF_HOST_MEMORY;
    command->total = groups_of(info, launch);
    estimate(command, info, 1);
    return CL_SUCCESS;
}

static cl_int prepare(struct cld_queue *queue, struct cld_kernel *kernel, cl_command_type type,
                      const struct cld_launch_sizes *sizes, bool with_event, bool *is_complete,
                      struct cld_event **result) {
    struct cld_kernel_info *info = cld_kernel_info_for(kernel, queue->device);
    CLD_REQUIRE(info, CL_INVALID_PROGRAM_EXECUTABLE, "the program has no executable for the device");
    struct cld_event *command = cld_command_new(queue, type, launch_operation(queue), with_event);
    CLD_REQUIRE(command, CL_OUT_OF_HOST_MEMORY, "no memory");
    begin(command, info);
    bool is_all = !is_complete || (*is_complete = all_set(kernel));
    cl_int status = fill(command, kernel, sizes, is_all);
    if (status)
        cld_command_discard(command);
    *result = command;
    return status;
}

cl_int cld_launch_prepare(struct cld_queue *queue, struct cld_kernel *kernel,
                          const struct cld_launch_sizes *sizes, bool *is_complete,
                          struct cld_event **command) {
    CLD_TRY(prepare(queue, kernel, CL_COMMAND_NDRANGE_KERNEL, sizes, false, is_complete, command));
    rest_kernel(*command, CL_OUT_OF_RESOURCES);
    return CL_SUCCESS;
}

static cl_int launch_kernel(cl_command_queue command_queue, cl_kernel handle, cl_command_type type,
                            const struct cld_launch_sizes *sizes, const struct cld_wait *wait) {
    struct cld_queue *queue;
    CLD_TRY(cld_check_queue(command_queue, wait, &queue));
    struct cld_kernel *kernel = cld_object_check(handle, CLD_KERNEL);
    CLD_REQUIRE(kernel, CL_INVALID_KERNEL, "not a kernel");
    CLD_REQUIRE(kernel->program->context == queue->context, CL_INVALID_CONTEXT,
                "the context of kernel is not the context of command_queue");
    CLD_TRY(cld_check_wait(queue, wait));
    struct cld_event *command;
    CLD_TRY(prepare(queue, kernel, type, sizes, wait->event, NULL, &command));
    return cld_command_enqueue(command, wait, 0);
}

/* One function, since each call costs a few of the instructions of a small launch. */
__attribute__((flatten)) CL_API_ENTRY cl_int CL_API_CALL clEnqueueNDRangeKernel(
    cl_command_queue command_queue, cl_kernel kernel, cl_uint work_dim, const size_t *global_work_offset,
    const size_t *global_work_size, const size_t *local_work_size, cl_uint num_events_in_wait_list,
    const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    const struct cld_launch_sizes sizes = {work_dim, global_work_offset, global_work_size, local_work_size,
                                           NULL};
    return launch_kernel(command_queue, kernel, CL_COMMAND_NDRANGE_KERNEL, &sizes, &wait);
}

cl_int cld_launch_enqueue(cl_command_queue queue, cl_kernel kernel, const struct cld_launch_sizes *sizes,
                          const struct cld_wait *wait) {
    return launch_kernel(queue, kernel, CL_COMMAND_NDRANGE_KERNEL, sizes, wait);
}

/* "equivalent to calling clEnqueueNDRangeKernel with work_dim set to 1, global_work_offset set to NULL,
 * global_work_size[0] set to 1, and local_work_size[0] set to 1." */
CL_API_ENTRY cl_int CL_API_CALL clEnqueueTask(cl_command_queue command_queue, cl_kernel kernel,
                                              cl_uint num_events_in_wait_list,
                                              const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    static const size_t one = 1;
    static const struct cld_launch_sizes sizes = {1, NULL, &one, &one, NULL};
    return launch_kernel(command_queue, kernel, CL_COMMAND_TASK, &sizes, &wait);
}
