/* Launches on the device that is all workers: how they are divided. Groups are cut along one dimension, where
 * what a part writes no other reads or writes. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/internal.h"
#include "kernel/executable.h"
#include "kernel/kernel.h"
#include "memory/image.h"
#include "memory/mem.h"
#include "object/call.h"

/* Parts begin at multiples of a power of two, where they have so many of these: what a worker makes of the
 * groups has more freedom then. What is combined is this long at most. */
enum { MOST_ALIGN = 64, ALIGNED_PIECES = 8, MOST_SUM = 16 << 20 };

static uint32_t live_workers(struct cld_worker **workers) {
    uint32_t count = 0;
    struct cld_worker *worker;
    for (uint32_t i = 0; (worker = cld_worker_at(i)); i++)
        if (cld_is_in_whole(worker))
            workers[count++] = worker;
    return count;
}

void cld_parts_free(struct cld_parts *parts) {
    for (uint32_t i = 0; i < parts->count; i++)
        free(parts->parts[i].command);
    free(parts->sums);
    free(parts->uses);
    free(parts);
}

/* A command that executes a part: it holds nothing, the launch does. */
static struct cld_event *part_command(struct cld_event *command, struct cld_launch_part *part) {
    void *memory;
    if (posix_memalign(&memory, _Alignof(struct cld_event), sizeof(struct cld_event)))
        return NULL;
    struct cld_event *made = memory;
    memset(memory, 0, sizeof *made);
    made->context = command->context;
    made->queue = command->queue;
    made->type = command->type;
    made->is_node = true;
    made->node.whole = &part->of->whole;
    made->special = CLD_SPREAD | (cld_is_timed(command) ? CLD_PROFILED : 0);
    made->operation = &cld_cluster_operation;
    made->total = made->grain = 1;
    made->more_mems = command->more_mems ? command->more_mems : command->mems;
    made->mem_count = command->mem_count;
    made->kernel.launch = command->kernel.launch;
    made->kernel.info = command->kernel.info;
    made->kernel.message = &part->message;
    return made;
}

static struct cld_parts *new_parts(struct cld_event *command, uint32_t count) {
    struct cld_parts *parts = calloc(1, sizeof *parts + count * sizeof *parts->parts);
    if (!parts)
        return NULL;
    struct cld_launch_message *message = command->kernel.message;
    parts->command = command;
    parts->count = parts->unsent = parts->left = count;
    parts->uses = calloc((size_t)(count + 1) * (command->mem_count + 1), sizeof *parts->uses);
    parts->all = parts->uses ? parts->uses + (size_t)count * command->mem_count : NULL;
    bool is_made = parts->uses;
    for (uint32_t i = 0; i < count && is_made; i++) {
        struct cld_launch_part *part = &parts->parts[i];
        part->of = parts;
        part->uses = parts->uses + (size_t)i * command->mem_count;
        part->message = (struct cld_launch_message){.arguments = message->arguments,
                                                    .only_read = message->only_read,
                                                    .has_local_size = true,
                                                    .part = part};
        part->groups.last = command->kernel.launch.num_groups[0];
        part->command = part_command(command, part);
        is_made = part->command;
    }
    if (is_made)
        return parts;
    cld_parts_free(parts);
    return NULL;
}

static bool meet(struct cld_bytes_range a, struct cld_bytes_range b) {
    return a.begin < b.end && b.begin < a.end;
}

static struct cld_bytes_range hull(struct cld_bytes_range a, struct cld_bytes_range b) {
    if (a.begin == a.end)
        return b;
    if (b.begin == b.end)
        return a;
    return (struct cld_bytes_range){a.begin < b.begin ? a.begin : b.begin, a.end > b.end ? a.end : b.end};
}

static struct cld_bytes_range moved(struct cld_bytes_range range, size_t by) {
    if (range.begin == range.end)
        return (struct cld_bytes_range){0};
    return (struct cld_bytes_range){range.begin + by, range.end + by};
}

/* The memory objects of a launch that arguments are, and where in it. */
struct arguments {
    const struct cld_kernel *kernel;
    uint32_t count;
    struct cld_extent_memory *memories;
    struct cld_argument_extent *extents; /* of one part */
};

static uint32_t index_of(const struct cld_event *command, const struct cld_mem *mem) {
    for (uint32_t i = 0; i < command->mem_count; i++)
        if (cld_mem_at(command, i) == mem)
            return i;
    return UINT32_MAX;
}

/* False: no memory, or the same numbers are combined in several ways. */
static bool add_sum(struct cld_parts *parts, struct cld_mem *root, const struct cld_argument_extent *extent,
                    size_t offset) {
    struct cld_bytes_range range = moved(extent->combined, offset);
    size_t size = (size_t)extent->combination / 16;
    if (extent->is_mixed || (size != sizeof(uint32_t) && size != sizeof(uint64_t)))
        return false;
    range.end -= (range.end - range.begin) % size;
    for (uint32_t i = 0; i < parts->sum_count; i++) {
        struct cld_sum *sum = &parts->sums[i];
        if (sum->copies != root->copies)
            continue;
        if (sum->combination != extent->combination)
            return false;
        sum->range = hull(sum->range, range);
        return true;
    }
    struct cld_sum *sums = realloc(parts->sums, (parts->sum_count + 1) * sizeof *sums);
    if (!sums)
        return false;
    parts->sums = sums;
    sums[parts->sum_count++] = (struct cld_sum){parts, root->copies, range, extent->combination};
    return true;
}

/* What a part uses of each memory object. False: it is not known. */
static bool find_uses(struct cld_event *command, const struct arguments *arguments,
                      struct cld_launch_part *part) {
    if (!cld_extents_of(command, &part->groups, arguments->memories, arguments->extents))
        return false;
    memset(part->uses, 0, command->mem_count * sizeof *part->uses);
    for (uint32_t i = 0; i < arguments->count; i++) {
        const struct cld_argument_extent *extent = &arguments->extents[i];
        if (!arguments->memories[i].size)
            continue;
        struct cld_mem *mem = arguments->kernel->mems[i], *root = cld_root_of(mem);
        uint32_t place = index_of(command, mem);
        size_t offset = (size_t)(mem->data - root->data);
        bool is_combined = extent->combined.begin < extent->combined.end;
        if (place == UINT32_MAX || (is_combined && !add_sum(part->of, root, extent, offset)))
            return false;
        struct cld_part_use *use = &part->uses[place];
        use->is_known = true;
        use->read = hull(use->read, moved(extent->read, offset));
        use->written = hull(use->written, moved(extent->written, offset));
    }
    return true;
}

/* Bytes of a memory object that a part of a launch reads, or writes. */
struct access {
    const struct cld_mem *root;
    struct cld_bytes_range range;
    uint32_t part;
    bool is_write;
};

static int by_place(const void *one, const void *other) {
    const struct access *a = one, *b = other;
    if (a->root != b->root)
        return a->root < b->root ? -1 : 1;
    return a->range.begin < b->range.begin ? -1 : a->range.begin > b->range.begin;
}

/* Of accesses that begin before: the end of the one that ends last, whose part that is, and the end of what
 * ends last of all other parts. */
struct last_end {
    size_t end, others_end;
    uint32_t part;
};

static void note_end(struct last_end *last, const struct access *access) {
    size_t end = access->range.end;
    if (access->part != last->part && end > last->end) {
        last->others_end = last->end;
        last->part = access->part;
        last->end = end;
    } else if (access->part == last->part && end > last->end) {
        last->end = end;
    } else if (access->part != last->part && end > last->others_end) {
        last->others_end = end;
    }
}

static bool ends_behind(const struct last_end *last, const struct access *access) {
    return (last->part != access->part ? last->end : last->others_end) > access->range.begin;
}

/* Whether no part writes what another one reads or writes: of accesses by their places, where each is
 * compared with what began before it. */
static bool do_not_meet(const struct access *accesses, size_t count) {
    struct last_end any = {.part = UINT32_MAX}, writes = any;
    for (size_t i = 0; i < count; i++) {
        const struct access *access = &accesses[i];
        if (i && access->root != accesses[i - 1].root)
            any = writes = (struct last_end){.part = UINT32_MAX};
        if (ends_behind(access->is_write ? &any : &writes, access))
            return false;
        note_end(&any, access);
        if (access->is_write)
            note_end(&writes, access);
    }
    return true;
}

/* No other use of what is combined: in the sum of a part is no more than what that has added. */
static bool sums_are_alone(struct cld_event *command, const struct cld_parts *parts) {
    for (uint32_t s = 0; s < parts->sum_count; s++) {
        const struct cld_sum *sum = &parts->sums[s];
        if (sum->range.end - sum->range.begin > MOST_SUM)
            return false;
        for (uint32_t p = 0; p < parts->count; p++)
            for (uint32_t i = 0; i < command->mem_count; i++) {
                const struct cld_part_use *use = &parts->parts[p].uses[i];
                if (cld_root_of(cld_mem_at(command, i))->copies == sum->copies &&
                    (meet(use->read, sum->range) || meet(use->written, sum->range)))
                    return false;
            }
    }
    return true;
}

/* False: they are not, or there is no memory. */
static bool are_apart(struct cld_event *command, const struct cld_parts *parts) {
    struct access *accesses = malloc(2 * sizeof *accesses * parts->count * (command->mem_count + 1));
    size_t count = 0;
    if (!accesses)
        return false;
    for (uint32_t p = 0; p < parts->count; p++)
        for (uint32_t i = 0; i < command->mem_count; i++) {
            const struct cld_part_use *use = &parts->parts[p].uses[i];
            const struct cld_mem *root = cld_root_of(cld_mem_at(command, i));
            if (use->read.begin < use->read.end)
                accesses[count++] = (struct access){root, use->read, p, false};
            if (use->written.begin < use->written.end)
                accesses[count++] = (struct access){root, use->written, p, true};
        }
    qsort(accesses, count, sizeof *accesses, by_place);
    bool are = do_not_meet(accesses, count);
    free(accesses);
    return are && sums_are_alone(command, parts);
}

/* Gives each worker groups along a dimension, by the number of its cores. */
static void share_out(struct cld_parts *parts, uint32_t dimension, uint64_t groups, uint64_t units) {
    uint64_t align = 1, before = 0, first = 0;
    while (align < MOST_ALIGN && groups / (2 * align * parts->count) >= ALIGNED_PIECES)
        align *= 2;
    for (uint32_t i = 0; i < parts->count; i++) {
        struct cld_launch_part *part = &parts->parts[i];
        before += part->worker->compute_units;
        uint64_t last = (uint64_t)((double)groups * (double)before / (double)units) / align * align;
        last = last <= first ? first + 1 : last;
        if (groups - last < parts->count - 1 - i) /* each of the others has one at least */
            last = groups - (parts->count - 1 - i);
        if (i + 1 == parts->count)
            last = groups;
        part->groups = (struct cld_group_range){dimension, first, last};
        first = last;
    }
}

static bool cut_along(struct cld_event *command, const struct arguments *arguments, struct cld_parts *parts,
                      uint32_t dimension) {
    uint64_t groups = command->kernel.launch.num_groups[dimension], units = 0;
    parts->sum_count = 0;
    for (uint32_t i = 0; i < parts->count; i++)
        units += parts->parts[i].worker->compute_units;
    share_out(parts, dimension, groups, units);
    for (uint32_t i = 0; i < parts->count; i++)
        if (!find_uses(command, arguments, &parts->parts[i]))
            return false;
    return are_apart(command, parts);
}

/* Makes groups that the driver has chosen shorter along a dimension, where there are too few to be cut. */
static void shorten(const struct cld_kernel_info *info, struct cld_launch *launch, uint32_t dimension,
                    uint32_t parts) {
    uint64_t size = launch->global_size[dimension], *local = &launch->local_size[dimension];
    bool is_uniform = info->flags & CLD_KERNEL_UNIFORM_GROUPS;
    while (*local > 1 && (size / *local < ALIGNED_PIECES * (uint64_t)parts || (is_uniform && size % *local)))
        (*local)--;
    launch->num_groups[dimension] = size / *local + (size % *local != 0);
}

static bool try_cut(struct cld_event *command, const struct arguments *arguments, struct cld_parts *parts,
                    uint32_t dimension) {
    const struct cld_kernel_info *info = command->kernel.info;
    struct cld_launch *launch = &command->kernel.launch, before = *launch;
    bool is_chosen =
        !command->kernel.message->has_local_size && !info->reqd_local_size[0] && !info->reqd_sub_groups;
    if (launch->num_groups[dimension] < parts->count && is_chosen)
        shorten(info, launch, dimension, parts->count);
    if (launch->num_groups[dimension] < parts->count || !cut_along(command, arguments, parts, dimension)) {
        *launch = before;
        return false;
    }
    for (uint32_t i = 0; i < parts->count; i++)
        parts->parts[i].command->kernel.launch = *launch;
    return true;
}

/* All memory objects are known to the cluster. */
static bool may_be_cut(struct cld_event *command, const struct cld_kernel *kernel,
                       struct cld_extent_memory *memories) {
    const struct cld_kernel_info *info = kernel->info;
    bool may_be = info->extent_count;
    for (uint32_t i = 0; i < info->arg_count; i++) {
        uint8_t kind = info->args[i].kind;
        const struct cld_mem *mem = kind == CLD_ARG_GLOBAL || kind == CLD_ARG_IMAGE ? kernel->mems[i] : NULL;
        if (!mem)
            continue;
        memories[i].size = mem->size;
        if (mem->image && mem->image->group.pixels == 1)
            memories[i].image = &mem->image->desc;
    }
    pthread_mutex_lock(&cld_cluster_lock);
    for (uint32_t i = 0; i < command->mem_count && may_be; i++)
        may_be = cld_copies_of(cld_mem_at(command, i));
    pthread_mutex_unlock(&cld_cluster_lock);
    return may_be;
}

/* What parts use together; of what they combine that is both what is read and what is written. */
static void unite_uses(struct cld_event *command, struct cld_parts *parts) {
    for (uint32_t i = 0; i < command->mem_count; i++) {
        struct cld_part_use *all = &parts->all[i];
        *all = parts->parts[0].uses[i];
        for (uint32_t p = 1; p < parts->count; p++) {
            all->read = hull(all->read, parts->parts[p].uses[i].read);
            all->written = hull(all->written, parts->parts[p].uses[i].written);
        }
        for (uint32_t s = 0; s < parts->sum_count && all->is_known; s++)
            if (cld_root_of(cld_mem_at(command, i))->copies == parts->sums[s].copies) {
                all->read = hull(all->read, parts->sums[s].range);
                all->written = hull(all->written, parts->sums[s].range);
            }
    }
}

static struct cld_parts *cut(struct cld_event *command, const struct cld_kernel *kernel,
                             struct cld_worker **workers, uint32_t count) {
    const uint64_t *items = command->kernel.launch.global_size;
    uint64_t most = items[0] > items[1] ? items[0] : items[1];
    most = items[2] > most ? items[2] : most;
    uint32_t arg_count = kernel->info->arg_count;
    struct arguments arguments = {kernel, arg_count, calloc(arg_count + 1, sizeof(struct cld_extent_memory)),
                                  calloc(arg_count + 1, sizeof(struct cld_argument_extent))};
    struct cld_parts *parts = NULL;
    bool is_cut = false;
    if (most > 1 && arguments.memories && arguments.extents &&
        may_be_cut(command, kernel, arguments.memories))
        parts = new_parts(command, most < count ? (uint32_t)most : count);
    for (uint32_t i = 0; parts && i < parts->count; i++)
        parts->parts[i].worker = workers[i];
    for (uint32_t i = 3; parts && !is_cut && i--;)
        is_cut = try_cut(command, &arguments, parts, i);
    free(arguments.memories);
    free(arguments.extents);
    if (parts && !is_cut) {
        cld_parts_free(parts);
        return NULL;
    }
    if (parts) {
        parts->is_cut = parts->could_be_cut = true;
        unite_uses(command, parts);
    }
    return parts;
}

cl_int cld_launch_cut(struct cld_event *command, const struct cld_kernel *kernel) {
    struct cld_worker *workers[CLD_MOST_WORKERS];
    uint32_t count = live_workers(workers);
    struct cld_parts *parts = count > 1 ? cut(command, kernel, workers, count) : NULL;
    if (!parts) {
        cld_log(2, "cluster: one worker executes the launch of %s", kernel->info->name);
        parts = new_parts(command, 1);
        CLD_REQUIRE(parts, CL_OUT_OF_HOST_MEMORY, "no memory");
        parts->parts[0].message.has_local_size = command->kernel.message->has_local_size;
        /* Program-scope variables are the same for all launches. */
        parts->parts[0].worker = count && kernel->info->executable->globals_size ? workers[0] : NULL;
    }
    command->kernel.message->parts = parts;
    return CL_SUCCESS;
}
