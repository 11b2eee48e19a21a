/* What kernels call whose sub-groups may wait for one another: see abi/kernel_abi.h. */
#ifndef CLD_SUB_GROUPS_H
#define CLD_SUB_GROUPS_H

#include "abi/kernel_abi.h"

void cld_sub_groups_run(cld_sub_group_fn run, const struct cld_sub_groups_layout *layout,
                        const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                        uint64_t first, uint64_t last);
void cld_sub_group_yield(struct cld_sub_group *self);
int32_t cld_sub_group_join(struct cld_sub_group *self, int32_t next);
void cld_sub_group_meet(struct cld_sub_group *self, uint32_t barrier);

#endif
