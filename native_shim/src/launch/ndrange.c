/* Global and local sizes of launches (API specification, 5.10). */
#include "launch/ndrange.h"

#include "kernel/kernel.h"
#include "object/call.h"
#include "runtime/enqueue_check.h"

/* Work-items of a group that the driver chooses: enough to pay a group's start and to fill vectors, few
 * enough that a group's data stays in the cache and that there are groups for all threads. */
enum { GROUP = 256, GROUPS_PER_THREAD = 4 };

/* Output of so many bytes is stored past the caches. That pays for smaller outputs, too, but not where the
 * next kernel reads them (tests/bench/results/history.md). */
enum { STREAM_BYTES = 32 << 20 };

/* What is about to be read is fetched ahead where all that is read is so much: of less, caches hold much. */
enum { AHEAD_KIB = 32 << 10 };

/* The largest divisor of size up to most that is a multiple of width; without one, the largest divisor. */
static uint64_t divisor(uint64_t size, uint64_t most, uint64_t width) {
    uint64_t best = 1;
    for (uint64_t d = most < size ? most : size; d > 1; d--) {
        if (size % d)
            continue;
        if (d % width == 0)
            return d;
        if (best == 1)
            best = d;
    }
    return best;
}

/* The largest local size of a dimension; 0 for no limit. */
static uint64_t most_along(const struct cld_device *device, const struct cld_kernel_info *info, int i) {
    uint64_t items = device->max_item_sizes[i], most = info->max_local_size[i];
    return !items || (most && most < items) ? most : items;
}

/* "CL_KERNEL_WORK_GROUP_SIZE", which no device exceeds; 0 for no limit. */
uint64_t cld_ndrange_most_items(const struct cld_device *device, const struct cld_kernel_info *info) {
    uint64_t items = device->max_group_size, most = info->max_group_size;
    return !items || (most && most < items) ? most : items;
}

static void choose_local_size(const struct cld_queue *queue, const struct cld_kernel_info *info,
                              const uint64_t *global, uint64_t *local) {
    const struct cld_device *device = queue->device;
    uint64_t most = cld_ndrange_most_items(device, info);
    most = most ? most : GROUP;
    uint64_t width = info->width ? info->width : 1;
    double share = (double)global[0] * (double)global[1] * (double)global[2] /
                   (GROUPS_PER_THREAD * (double)device->compute_units);
    uint64_t target = share < GROUP ? (uint64_t)share : GROUP;
    if (target < width) /* fewer threads are better than vectors that are not full */
        target = width;
    if (target > most)
        target = most;
    bool uniform = info->flags & CLD_KERNEL_UNIFORM_GROUPS;
    for (int i = 0; i < 3; i++) {
        uint64_t longest = most_along(device, info, i),
                 limit = longest && longest < target ? longest : target;
        uint64_t unit = i ? 1 : width;
        /* Of the target; more than there is, so that rows which are not full vectors stay alone in a group.
         */
        uint64_t taken = local[i] = divisor(global[i], limit, unit);
        /* A size without a good divisor: full vectors, and a smaller group at the edge if that may be. */
        if (!i && local[0] % width && global[0] > width && limit >= width) {
            if (!uniform) {
                taken = limit / width * width;
                local[0] = taken < global[0] ? taken : global[0];
            } else if (local[0] < width && global[0] <= most && (!longest || global[0] <= longest))
                taken = local[0] = global[0];
        }
        target = target / taken ? target / taken : 1;
    }
}

/* Whether a group of so many work-items has as many sub-groups as the kernel requires. */
static bool suits_sub_groups(const struct cld_kernel_info *info, uint64_t items) {
    return items / info->sub_group_size + (items % info->sub_group_size != 0) == info->reqd_sub_groups;
}

/* Makes each work-item a group, as local_size has it; false if they are more than can be counted. */
static bool take_single_items(struct cld_launch *launch) {
    uint64_t groups;
    for (int i = 0; i < 3; i++)
        launch->num_groups[i] = launch->global_size[i];
    return !__builtin_mul_overflow(launch->num_groups[0], launch->num_groups[1], &groups) &&
           !__builtin_mul_overflow(groups, launch->num_groups[2], &groups);
}

cl_int cld_ndrange_check(const struct cld_queue *queue, const struct cld_kernel_info *info, cl_uint work_dim,
                         const size_t *global_offset, const size_t *global_size, const size_t *local_size,
                         bool regroups, struct cld_launch *launch, bool *empty) {
    CLD_REQUIRE(work_dim >= 1 && work_dim <= 3, CL_INVALID_WORK_DIMENSION, "work_dim is %u, none of 1, 2, 3",
                work_dim);
    const struct cld_device *device = queue->device;
    *empty = !global_size;
    launch->work_dim = (uint16_t)work_dim;
    launch->stream_bytes = STREAM_BYTES;
    launch->ahead_kib = AHEAD_KIB;
    bool uniform = info->flags & CLD_KERNEL_UNIFORM_GROUPS, required = info->reqd_local_size[0];
    uint64_t items = 1, groups = 1, most = cld_ndrange_most_items(device, info);
    for (cl_uint i = 0; i < 3; i++) {
        uint64_t global = global_size && i < work_dim ? global_size[i] : 1;
        uint64_t offset = global_offset && i < work_dim ? global_offset[i] : 0;
        uint64_t local = local_size && i < work_dim ? local_size[i] : 1;
        *empty |= !global;
        /* "CL_INVALID_GLOBAL_OFFSET if the value specified in global_work_size + the corresponding values in
         * global_work_offset for any dimensions is greater than the maximum value representable by size_t".
         */
        CLD_REQUIRE(offset <= SIZE_MAX - global, CL_INVALID_GLOBAL_OFFSET,
                    "global_work_offset[%u] is %zu and global_work_size[%u] is %zu: the sum is no size_t", i,
                    (size_t)offset, i, (size_t)global);
        launch->global_size[i] = global;
        launch->global_offset[i] = offset;
        launch->local_size[i] = local;
        if (!local_size)
            continue;
        CLD_REQUIRE(local, CL_INVALID_WORK_GROUP_SIZE, "local_work_size[%u] is 0, at least 1", i);
        /* "CL_INVALID_WORK_ITEM_SIZE if the number of work-items specified in any of local_work_size is
         * greater than the corresponding values specified by CL_DEVICE_MAX_WORK_ITEM_SIZES". */
        CLD_REQUIRE(!device->max_item_sizes[i] || local <= device->max_item_sizes[i],
                    CL_INVALID_WORK_ITEM_SIZE, "local_work_size[%u] is %zu, at most %zu", i, (size_t)local,
                    (size_t)device->max_item_sizes[i]);
        /* "CL_INVALID_WORK_GROUP_SIZE if local_work_size is specified and does not match the required
         * work-group size for kernel in the program source." */
        CLD_REQUIRE(!required || local == info->reqd_local_size[i], CL_INVALID_WORK_GROUP_SIZE,
                    "local_work_size[%u] is %zu, the kernel requires %u", i, (size_t)local,
                    (unsigned)info->reqd_local_size[i]);
        /* SPV_INTEL_kernel_attributes: "the maximum possible work-group size in the x, y, and z
         * dimensions" */
        CLD_REQUIRE(!info->max_local_size[i] || local <= info->max_local_size[i], CL_INVALID_WORK_GROUP_SIZE,
                    "local_work_size[%u] is %zu, at most %zu in this kernel", i, (size_t)local,
                    (size_t)info->max_local_size[i]);
        CLD_REQUIRE(!__builtin_mul_overflow(items, local, &items), CL_INVALID_WORK_GROUP_SIZE,
                    "local_work_size[%u] is %zu: the product of the local sizes is no size_t", i,
                    (size_t)local);
    }
    /* "[...] is greater than the value specified by CL_KERNEL_WORK_GROUP_SIZE." */
    CLD_REQUIRE(!most || items <= most, CL_INVALID_WORK_GROUP_SIZE,
                "local_work_size has %zu work-items in a group, at most %zu (CL_KERNEL_WORK_GROUP_SIZE)",
                (size_t)items, (size_t)most);
    CLD_REQUIRE(!local_size || !info->reqd_sub_groups || suits_sub_groups(info, items),
                CL_INVALID_WORK_GROUP_SIZE,
                "local_work_size has %zu work-items in a group, and the kernel requires %u sub-groups of %u",
                (size_t)items, (unsigned)info->reqd_sub_groups, (unsigned)info->sub_group_size);
    if (*empty)
        return CL_SUCCESS;
    bool may_choose = !local_size && !info->reqd_sub_groups && !required;
    if (may_choose && regroups && info->flags & CLD_KERNEL_FREE_GROUPS && take_single_items(launch))
        return CL_SUCCESS;
    if (!local_size && info->reqd_sub_groups && !required) {
        launch->local_size[0] = info->reqd_sub_groups * info->sub_group_size;
        CLD_REQUIRE(!most || launch->local_size[0] <= most, CL_INVALID_WORK_GROUP_SIZE,
                    "the kernel requires groups of %zu work-items, at most %zu",
                    (size_t)launch->local_size[0], (size_t)most);
    } else if (!local_size && required) {
        for (int i = 0; i < 3; i++) {
            launch->local_size[i] = info->reqd_local_size[i];
            CLD_REQUIRE(
                !__builtin_mul_overflow(items, launch->local_size[i], &items) && (!most || items <= most),
                CL_INVALID_WORK_GROUP_SIZE,
                "the kernel requires groups of %zu work-items, at most %zu (CL_KERNEL_WORK_GROUP_SIZE)",
                (size_t)items, (size_t)most);
        }
    } else if (!local_size)
        choose_local_size(queue, info, launch->global_size, launch->local_size);
    for (int i = 0; i < 3; i++) {
        /* "CL_INVALID_WORK_GROUP_SIZE if the work-group size must be uniform and [...] the global_work_size
         * is not evenly divisible by the local_work_size." */
        uint64_t global = launch->global_size[i], local = launch->local_size[i];
        CLD_REQUIRE(!uniform || global % local == 0, CL_INVALID_WORK_GROUP_SIZE,
                    "global_work_size[%d] is %zu, no multiple of the local size %zu, and the program has "
                    "uniform groups (-cl-uniform-work-group-size, or OpenCL C before 2.0)",
                    i, (size_t)global, (size_t)local);
        launch->num_groups[i] = global / local + (global % local != 0);
        CLD_REQUIRE(!__builtin_mul_overflow(groups, launch->num_groups[i], &groups), CL_OUT_OF_RESOURCES,
                    "there are more work-groups than can be counted: global_work_size, local_work_size");
    }
    return CL_SUCCESS;
}

cl_int cld_ndrange_of_block(const struct cld_queue *queue, const struct cld_kernel_info *info,
                            const struct cld_ndrange *range, bool regroups, struct cld_launch *launch,
                            bool *empty) {
    bool has_local = false;
    for (uint32_t i = 0; i < range->dimensions && i < 3; i++)
        has_local |= range->local[i] != 0;
    return cld_ndrange_check(queue, info, range->dimensions, range->offset, range->size,
                             has_local ? range->local : NULL, regroups, launch, empty);
}

static void exchange(uint64_t sizes[static 2]) {
    uint64_t first = sizes[0];
    sizes[0] = sizes[1];
    sizes[1] = first;
}

void cld_ndrange_exchange(struct cld_launch *launch) {
    exchange(launch->global_offset);
    exchange(launch->global_size);
    exchange(launch->local_size);
    exchange(launch->num_groups);
}

/* Work-items of a group where the program cannot tell: enough to pay a group's start, by their number, or in
 * ns where it is known how long they take; no more, for some may take much longer than others, and a group is
 * not divided between threads; no fewer than reuse what their neighbours have read, of images above all. */
enum { FREE_GROUP = 2048, FREE_GROUP_TIME = 500, LEAST_FREE_GROUP = 512, FREE_GROUPS_PER_THREAD = 16 };

void cld_ndrange_regroup(const struct cld_queue *queue, const struct cld_kernel_info *info,
                         struct cld_launch *launch) {
    uint64_t *local = launch->local_size;
    const uint64_t *global = launch->global_size;
    /* Where one work-item of a group does it for all, more groups would only do it more often. */
    uint64_t done[3];
    for (int i = 0; i < 3; i++)
        done[i] = info->flags & CLD_KERNEL_ONCE_ALONG << i ? 1 : global[i];
    double share = (double)done[0] * (double)done[1] * (double)done[2] /
                   (FREE_GROUPS_PER_THREAD * (double)queue->device->compute_units);
    uint64_t item_time = atomic_load_explicit(&info->item_time, memory_order_relaxed), most = FREE_GROUP;
    if (item_time > FREE_GROUP_TIME * 1024 / FREE_GROUP)
        most = FREE_GROUP_TIME * 1024 / item_time;
    if (most < LEAST_FREE_GROUP)
        most = LEAST_FREE_GROUP;
    uint64_t target = share < (double)most ? (uint64_t)share : most;
    local[0] = info->tile_width;
    local[1] = done[1] < info->tile_height ? done[1] : info->tile_height;
    local[2] = 1;
    while (local[0] < done[0] && 2 * local[0] * local[1] <= target)
        local[0] *= 2;
    while (local[1] < done[1] && 2 * local[0] * local[1] <= target)
        local[1] *= 2;
    while (local[2] < done[2] && 2 * local[0] * local[1] * local[2] <= target)
        local[2] *= 2;
    for (int i = 0; i < 3; i++) {
        if (local[i] > global[i] || done[i] < global[i])
            local[i] = global[i];
        launch->num_groups[i] = global[i] / local[i] + (global[i] % local[i] != 0);
    }
}

CL_API_ENTRY cl_int CL_API_CALL clGetKernelSuggestedLocalWorkSize(cl_command_queue command_queue,
                                                                  cl_kernel handle, cl_uint work_dim,
                                                                  const size_t *global_work_offset,
                                                                  const size_t *global_work_size,
                                                                  size_t *suggested_local_work_size) {
    struct cld_queue *queue;
    CLD_TRY(cld_check_queue(command_queue, &(struct cld_wait){0}, &queue));
    const struct cld_kernel *kernel = cld_object_check(handle, CLD_KERNEL);
    CLD_REQUIRE(kernel, CL_INVALID_KERNEL, "not a kernel");
    CLD_REQUIRE(kernel->program->context == queue->context, CL_INVALID_CONTEXT,
                "the context of kernel is not the context of command_queue");
    const struct cld_kernel_info *info = cld_kernel_info_for(kernel, queue->device);
    CLD_REQUIRE(info, CL_INVALID_PROGRAM_EXECUTABLE, "the program has no executable for the device");
    for (uint32_t i = 0; i < info->arg_count; i++)
        CLD_REQUIRE(kernel->is_set[i], CL_INVALID_KERNEL_ARGS, "argument %u was never set", i);
    struct cld_launch launch;
    bool empty;
    CLD_TRY(cld_ndrange_check(queue, info, work_dim, global_work_offset, global_work_size, NULL, false,
                              &launch, &empty));
    CLD_REQUIRE(!empty, CL_INVALID_GLOBAL_WORK_SIZE, "global_work_size has a dimension of 0");
    CLD_REQUIRE(suggested_local_work_size, CL_INVALID_VALUE, "suggested_local_work_size is NULL");
    for (cl_uint i = 0; i < work_dim; i++)
        suggested_local_work_size[i] = (size_t)launch.local_size[i];
    return CL_SUCCESS;
}
