/* Code for arguments that keep their values: integers by which addresses are computed, loops counted, divided
 * and so on (cl_driver/passes/known_values.py). Asked for once a kernel has run for a while with the same
 * values, tried against the code for all values when it is there, and kept where it is faster. Of images and
 * samplers the formats and bits are such values, too: a launch waits for code for these (passes/images.py).
 */
#ifndef CLD_VALUE_CODE_H
#define CLD_VALUE_CODE_H

#include "command.h"

enum { CLD_MOST_VALUE_CODES = 4 };

enum cld_trial_state {
    CLD_TRIAL,    /* every other launch of its values runs it, and both are timed */
    CLD_ADOPTED,  /* every launch of its values runs it */
    CLD_REJECTED, /* none does */
};

/* Code for some values. */
struct cld_value_code {
    struct cld_launch_code code;  /* the first member: a list of these is a list of those */
    _Atomic int32_t state;        /* enum cld_trial_state */
    _Atomic uint64_t items;       /* work-items of the launches that are compared */
    _Atomic uint32_t turn;        /* counts them */
    _Atomic uint64_t best[2];     /* the least time of one with the code for all values, and with this: ns */
    _Atomic uint32_t measured[2]; /* how many there were */
};

/* A launch that is timed. */
struct cld_trial {
    struct cld_value_code *code; /* of the launch's kernel, whether it runs it or not */
    bool runs_it;
    _Atomic uint64_t time, units; /* ns that threads took, and for how many groups */
};

/* What is known of the values that a kernel was launched with. Threads may lose one another's updates. */
struct cld_launch_history {
    bool now;                                    /* CL_DRIVER_VALUE_CODE */
    uint32_t of_images;                          /* bits: the values that are formats and samplers */
    _Atomic uint64_t recent[CLD_MOST_VALUES][2]; /* the last two that differ */
    _Atomic uint32_t changes[CLD_MOST_VALUES];   /* how often there was another one */
    _Atomic uint32_t launches;                   /* all since the kernel's busy_time was `since` */
    _Atomic uint64_t since, wait;                /* after `wait` more ns code may be asked for */
    _Atomic(struct cld_launch_code *) codes;
};

/* Makes a kernel's history, if it has arguments that matter, and if the settings allow. */
void cld_launch_history_new(struct cld_kernel_info *info);
void cld_launch_history_drop(struct cld_launch_history *history);

/* Chooses code for the values of a launch's arguments in place of what was chosen for all values, if there is
 * any, and whether the launch is timed. Asks for code where there should be some. */
void cld_value_code_choose(struct cld_event *command, const struct cld_kernel *kernel);

/* Draws the conclusion from a launch of so many groups (0: it failed), if many were timed; frees the trial.
 */
void cld_trial_end(const struct cld_kernel_info *info, struct cld_trial *trial, uint64_t units);

#endif
