/* Code for groups of one size, which holds them whole (cl_driver/passes/lockstep.py). Made for the local
 * sizes that programs launch with, at the first launch that is worth it, in the background. */
#ifndef CLD_GROUP_CODE_H
#define CLD_GROUP_CODE_H

#include "objects.h"

/* One local size of a kernel. entry: NULL until there is code, or for ever if there is none. What it needs of
 * scratch memory is beside it. Freed with the kernel's info. */
struct cld_group_code {
    struct cld_group_code *next;
    uint64_t size[3];
    _Atomic(cld_kernel_fn) entry;
    uint64_t scratch_fixed, scratch_per_item;
    struct cld_code *code;
};

/* The code that suits a launch, or NULL. Asks for it where there should be some. */
const struct cld_group_code *cld_group_code_for(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                                                const struct cld_launch *launch);

/* Frees a list of them. */
void cld_group_code_drop(struct cld_group_code *list);

#endif
