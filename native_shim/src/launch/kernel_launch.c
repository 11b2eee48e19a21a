/* Kernel launches (API specification, 5.10). */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/thread.h"
#include "graph/command_buffer.h"
#include "kernel/executable.h"
#include "launch/fault.h"
#include "launch/kernel_command.h"
#include "launch/privatised_histogram.h"
#include "loader/printf.h"
#include "runtime/enqueue_check.h"

/* A running mean, in 1/1024 ns per work-item. A thread that the system interrupts takes thousands of times as
 * long: one measurement raises the mean by three quarters at most. Threads may lose each other's updates. */
static void learn(struct cld_event *command, uint64_t time, uint64_t units) {
    struct cld_kernel_info *info = command->kernel.info;
    struct cld_ab_run *trial = cld_launch_trial(command);
    if (trial) {
        atomic_fetch_add_explicit(&trial->time, time, memory_order_relaxed);
        atomic_fetch_add_explicit(&trial->units, units, memory_order_relaxed);
    }
    const uint64_t *size = command->kernel.launch.local_size;
    double old = (double)atomic_load_explicit(&info->item_time, memory_order_relaxed);
    double now = (double)time * 1024 / ((double)units * (double)(size[0] * size[1] * size[2]));
    double mean = !old        ? now
                  : now < old ? (old + now) / 2
                              : old + ((now < 4 * old ? now : 4 * old) - old) / 4;
    atomic_store_explicit(&info->item_time, (uint64_t)ceil(mean), memory_order_relaxed);
}

static void run_groups(struct cld_event *command, const struct cld_launch *launch,
                       const struct cld_variant *code, struct cld_self *self, uint64_t first, uint64_t last) {
    if (cld_runs_entry(code))
        command->kernel.info->entry(launch, command->kernel.args, &self->kernel, first, last);
    if (code)
        code->entry(launch, command->kernel.args, &self->kernel, first, last);
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
    (command->panel ? run_panels : run_groups)(command, launch, code, self, first, last);
}

/* Pieces that fetch ahead and pieces that do not, in turn, each timed. */
static void run_pieces(struct cld_event *command, const struct cld_variant *code, struct cld_self *self,
                       uint64_t first, uint64_t last) {
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

static cl_int run_kernel(struct cld_event *command, struct cld_self *self, uint64_t first, uint64_t last) {
    if (cld_launch_wish(command))
        cld_variant_wish_look(cld_launch_wish(command));
    const struct cld_variant *code = cld_launch_code(command);
    uint64_t scratch_size;
    if (!cld_find_scratch_size(command, code, &scratch_size) ||
        !cld_self_arenas(self, command->kernel.local_size, scratch_size))
        return CL_OUT_OF_RESOURCES;
    if (__builtin_expect(command->kernel.info->uses_printf && !command->kernel.launch.printf_buffer, 0))
        return CL_OUT_OF_HOST_MEMORY;
    self->kernel.local_memory_size = command->kernel.local_size;
    cld_histogram_enter(command, self);
    struct cld_running *running = cld_fault_enter(self, command);
    uint64_t saved = cld_float_enter();
    if (command->kernel.ahead_piece)
        run_pieces(command, code, self, first, last);
    else
        run_range(command, &command->kernel.launch, code, self, first, last);
    cld_float_leave(saved);
    cld_fault_leave(running);
    return CL_SUCCESS;
}

/* So many ns by one thread are enough to tell whether to fetch ahead. */
enum { AHEAD_TIME = 1000000 };

/* Only now, not when the command is enqueued: launches that wait behind others know what these have found. */
static void begin_kernel(struct cld_event *command) {
    struct cld_kernel_info *info = command->kernel.info;
    struct cld_launch *launch = &command->kernel.launch;
    if (command->is_node) {
        cld_launch_renew(command);
        if (info->uses_printf)
            launch->printf_buffer = cld_printf_new();
    }
    if (!(info->flags & CLD_KERNEL_READS_AHEAD))
        return;
    int32_t state = atomic_load_explicit(&info->ahead.state, memory_order_relaxed);
    uint64_t time = cld_time_of(info, launch);
    if (state == CLD_PREFETCH_OFF)
        launch->ahead_kib = 0;
    else if (state == CLD_PREFETCH_TRIAL && !cld_launch_trial(command) && time != CLD_TIME_UNKNOWN &&
             time >= AHEAD_TIME)
        command->kernel.ahead_piece =
            cld_prefetch_piece(&info->ahead, (uint64_t)cld_items_of(info, launch), command->total);
}

/* Launches that are compared for another reason stay as they are. */
static struct cld_alone_run *alone_kernel(struct cld_event *command) {
    struct cld_kernel_info *info = command->kernel.info;
    if (cld_launch_trial(command) || command->kernel.ahead_piece)
        return NULL;
    return cld_alone_begin(&info->alone, info->name, cld_launch_code(command), command->total);
}

/* What a launch leaves behind, of a command that may be launched again. */
static void rest_kernel(struct cld_event *command, cl_int status) {
    if (command->kernel.ahead_piece)
        cld_prefetch_conclude(&command->kernel.info->ahead, command->kernel.info->name);
    if (cld_launch_trial(command))
        cld_ab_run_end(command->kernel.info->name, command->kernel.trial,
                       status == CL_COMPLETE ? command->total : 0);
    cld_variant_wish_drop(cld_launch_wish(command));
    cld_printf_end(command->kernel.launch.printf_buffer);
    command->kernel.ahead_piece = 0;
    command->kernel.trial = NULL;
    command->kernel.launch.printf_buffer = NULL;
}

static void end_kernel(struct cld_event *command, cl_int status) {
    rest_kernel(command, status);
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

static const struct cld_operation operation = {.begin = begin_kernel,
                                               .run = run_kernel,
                                               .leave = cld_histogram_leave,
                                               .end = end_kernel,
                                               .learn = learn,
                                               .alone = alone_kernel,
                                               .own = own_kernel,
                                               .rest = rest_kernel};

const struct cld_launch_kind cld_launch_ndrange = {CL_COMMAND_NDRANGE_KERNEL, &operation};
const struct cld_launch_kind cld_launch_task = {CL_COMMAND_TASK, &operation};

static inline cl_int launch_kernel(cl_command_queue command_queue, cl_kernel handle,
                                   const struct cld_launch_kind *kind, const struct cld_launch_sizes *sizes,
                                   struct cld_wait wait) {
    struct cld_queue *queue;
    CLD_TRY(cld_check_queue(command_queue, wait, &queue));
    struct cld_kernel *kernel = cld_object_check(handle, CLD_KERNEL);
    CLD_REQUIRE(kernel, CL_INVALID_KERNEL, "not a kernel");
    CLD_REQUIRE(kernel->program->context == queue->context, CL_INVALID_CONTEXT,
                "the queue and the kernel are of different contexts");
    CLD_TRY(cld_check_wait(queue, wait));
    struct cld_event *command;
    CLD_TRY(cld_launch_prepare(queue, kernel, kind, sizes, wait.event, NULL, &command));
    return cld_command_enqueue(command, wait, 0);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueNDRangeKernel(cl_command_queue command_queue, cl_kernel kernel,
                                                       cl_uint work_dim, const size_t *global_work_offset,
                                                       const size_t *global_work_size,
                                                       const size_t *local_work_size,
                                                       cl_uint num_events_in_wait_list,
                                                       const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    const struct cld_launch_sizes sizes = {work_dim, global_work_offset, global_work_size, local_work_size};
    return launch_kernel(command_queue, kernel, &cld_launch_ndrange, &sizes, wait);
}

/* "equivalent to calling clEnqueueNDRangeKernel with work_dim set to 1, global_work_offset set to NULL,
 * global_work_size[0] set to 1, and local_work_size[0] set to 1." */
CL_API_ENTRY cl_int CL_API_CALL clEnqueueTask(cl_command_queue command_queue, cl_kernel kernel,
                                              cl_uint num_events_in_wait_list,
                                              const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    static const size_t one = 1;
    static const struct cld_launch_sizes sizes = {1, NULL, &one, &one};
    return launch_kernel(command_queue, kernel, &cld_launch_task, &sizes, wait);
}
