/* Launches of some of the work-groups of a larger one. Units of the command are the groups of the part, in
 * the order that they have in the launch; runs of these are neighbours there. */
#define _GNU_SOURCE
#include "launch/part_launch.h"

#include <stdlib.h>
#include <string.h>

#include "launch/launch_code.h"
#include "launch/ndrange.h"

static struct cld_operation plain_part;

/* Lies behind the arguments, in the same memory. */
struct part {
    uint64_t first; /* number of the first group */
    uint64_t run;   /* groups of the part that lie side by side */
    uint64_t apart; /* from one run to the next */
    uint64_t row;   /* groups along dimension 0 */
    uint64_t panel; /* of them, which those of the next row follow; 0: all */
};

static struct part *part_of(const struct cld_event *command) {
    size_t size = (command->kernel.info->block_size + 15) & ~(size_t)15;
    return (struct part *)(void *)(command->kernel.args + size);
}

/* Which group comes at this place, and how many after it lie side by side. */
static uint64_t group_at(const struct part *part, uint64_t place, uint64_t *count) {
    uint64_t inside = place % part->run, start = part->first + place / part->run * part->apart;
    if (!part->panel) {
        *count = part->run - inside;
        return start + inside;
    }
    uint64_t rows = part->run / part->row, column = inside / (part->panel * rows) * part->panel;
    uint64_t width = part->row - column < part->panel ? part->row - column : part->panel;
    inside -= column * rows;
    *count = width - inside % width;
    return start + inside / width * part->row + column + inside % width;
}

static cl_int run_part(struct cld_event *command, struct cld_self *self, uint64_t first, uint64_t last) {
    const struct part *part = part_of(command);
    cl_int status = CL_SUCCESS;
    for (uint64_t taken; first < last && !status; first += taken) {
        uint64_t group = group_at(part, first, &taken);
        taken = last - first < taken ? last - first : taken;
        status = cld_launch_run(command, self, group, group + taken);
    }
    return status;
}

void cld_part_launches(const struct cld_operation *plain) {
    plain_part = *plain;
    plain_part.run = run_part;
}

void cld_part_launch_regroup(const struct cld_queue *queue, const struct cld_kernel_info *info,
                             struct cld_launch *launch, struct cld_group_range *range) {
    uint32_t i = range->dimension;
    uint64_t before = launch->local_size[i], size = launch->global_size[i];
    uint64_t first = range->first * before;
    uint64_t last = range->last < launch->num_groups[i] ? range->last * before : size;
    cld_ndrange_regroup(queue, info, launch);
    uint64_t *local = &launch->local_size[i];
    while (*local > 1 && (first % *local || (last % *local && last < size)))
        *local = *local % 2 ? 1 : *local / 2;
    launch->num_groups[i] = size / *local + (size % *local != 0);
    range->first = first / *local;
    range->last = last / *local + (last % *local != 0);
}

bool cld_part_launch_take(struct cld_event *command, const struct cld_group_range *range) {
    const struct cld_kernel_info *info = command->kernel.info;
    const uint64_t *groups = command->kernel.launch.num_groups;
    /* One group stands for all along such a dimension. */
    if (range->dimension + info->repeated_dimensions >= 3)
        return true;
    size_t size = (info->block_size + 15) & ~(size_t)15;
    void *memory;
    if (posix_memalign(&memory, 128, size + sizeof(struct part)))
        return false;
    memcpy(memory, command->kernel.args, info->block_size);
    if (command->kernel.args != command->inline_args)
        free(command->kernel.args);
    command->kernel.args = memory;
    uint64_t below = 1;
    for (uint32_t i = 0; i < range->dimension; i++)
        below *= groups[i];
    struct part *part = part_of(command);
    *part = (struct part){.first = range->first * below,
                          .run = (range->last - range->first) * below,
                          .apart = groups[range->dimension] * below,
                          .row = groups[0],
                          .panel = range->dimension ? command->panel : 0};
    command->total = command->total / groups[range->dimension] * (range->last - range->first);
    command->panel = 0;
    command->operation = &plain_part;
    return true;
}
