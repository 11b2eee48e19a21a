/* Launches of some of the work-groups of a larger one, which others execute elsewhere: ids and sizes are
 * those of all. */
#ifndef CLD_PART_LAUNCH_H
#define CLD_PART_LAUNCH_H

#include "launch/kernel_command.h"

/* Restricts a launch, which is ready otherwise and whose groups are those that range counts, to these. False:
 * no memory. */
bool cld_part_launch_take(struct cld_event *command, const struct cld_group_range *range);

/* Divides the work-items into other groups, none of which is in two parts; for CLD_KERNEL_FREE_GROUPS. */
void cld_part_launch_regroup(const struct cld_queue *queue, const struct cld_kernel_info *info,
                             struct cld_launch *launch, struct cld_group_range *range);

/* Told the operation of launches, once. */
void cld_part_launches(const struct cld_operation *plain);

#endif
