/* Which code a launch runs, and how much scratch memory that takes: for those who make launches and those who
 * execute them. */
#ifndef CLD_LAUNCH_CODE_H
#define CLD_LAUNCH_CODE_H

#include "kernel/argument_specialisation.h"
#include "kernel/kernel.h"
#include "kernel/variant.h"
#include "runtime/command.h"

/* Most launches have neither. */
static inline struct cld_ab_run *cld_trial_of(const struct cld_event *command) {
    struct cld_ab_run *trial = command->kernel.trial;
    return trial && !cld_specialisation_is_of_images(command->kernel.info) ? trial : NULL;
}

static inline struct cld_variant_wish *cld_wish_of(const struct cld_event *command) {
    struct cld_variant_wish *wish = command->kernel.wish;
    return wish && cld_specialisation_is_of_images(command->kernel.info) ? wish : NULL;
}

static inline bool cld_runs_entry(const struct cld_variant *code) {
    return !code || code->key.shape == CLD_SHAPE_REST;
}

/* What a launch runs from now on instead of the entry, or after it. */
static inline const struct cld_variant *cld_code_of(const struct cld_event *command) {
    if (cld_variant_is_there(command->kernel.variant))
        return command->kernel.variant;
    const struct cld_variant_wish *wish = cld_wish_of(command);
    return wish ? cld_variant_meanwhile(wish) : NULL;
}

/* Raises the scratch memory that a launch needs to that of some code; false if there is an overflow. */
static inline bool cld_raise_scratch(uint64_t *size, uint64_t fixed, uint64_t per_item, uint64_t items) {
    uint64_t needed;
    if (__builtin_mul_overflow(per_item, items, &needed) || __builtin_add_overflow(needed, fixed, &needed))
        return false;
    if (*size < needed)
        *size = needed;
    return true;
}

/* Bytes of scratch memory that a launch needs with some code; false if there is an overflow. */
static inline bool cld_find_scratch_size(const struct cld_event *command, const struct cld_variant *code,
                                         uint64_t *size) {
    const struct cld_kernel_info *info = command->kernel.info;
    const uint64_t *local = command->kernel.launch.local_size;
    uint64_t items = local[0] * local[1] * local[2];
    *size = 0;
    return (!cld_runs_entry(code) ||
            cld_raise_scratch(size, info->scratch_fixed, info->scratch_per_item, items)) &&
           (!code || cld_raise_scratch(size, code->scratch_fixed, code->scratch_per_item, items));
}

/* Whether a launch is executed in panels. item_time: as in struct cld_kernel_info. */
void cld_launch_choose_panel(struct cld_event *command, uint64_t item_time);

/* Of the operation of launches (struct cld_operation, runtime/command.h). */
cl_int cld_launch_run(struct cld_event *command, struct cld_self *self, uint64_t first, uint64_t last);
void cld_launch_learn(struct cld_event *command, uint64_t time, uint64_t units);

/* Whether the thread has memory for what the launch runs. */
bool cld_launch_has_room(struct cld_event *command, struct cld_self *self);

#endif
