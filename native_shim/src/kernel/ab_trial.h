/* Two ways to execute a kernel, in turn, until it is known which one is faster on this machine. */
#ifndef CLD_AB_TRIAL_H
#define CLD_AB_TRIAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum cld_ab_trial_state {
    CLD_TRIAL,    /* every other launch goes the new way, and both are timed */
    CLD_ADOPTED,  /* every launch does */
    CLD_REJECTED, /* none does */
};

struct cld_ab_trial {
    _Atomic int32_t state;        /* enum cld_ab_trial_state */
    _Atomic uint64_t items;       /* work-items of the launches that are compared */
    _Atomic uint32_t turn;        /* counts them */
    _Atomic uint64_t best[2];     /* the least time of one that went the usual way, and the new one: ns */
    _Atomic uint32_t measured[2]; /* how many there were */
};

/* What is compared, for the log, and the share of the time, in percent, that the new way must save. Where one
 * way may take much longer than the other, fewer launches decide if it turns out to. */
struct cld_ab_kind {
    const char *name;
    uint32_t gain;
    bool may_differ_much;
};

/* A launch that is timed. */
struct cld_ab_run {
    struct cld_ab_trial *ab_trial; /* of the launch's kernel */
    const struct cld_ab_kind *kind;
    bool is_new;
    _Atomic uint64_t time, units; /* ns that threads took, and for how many groups */
};

/* Whether a launch of so many work-items goes the new way. trial: set if it is timed. */
bool cld_ab_trial_choose(struct cld_ab_trial *ab_trial, const struct cld_ab_kind *kind, uint64_t items,
                         struct cld_ab_run **trial);

/* Draws the conclusion from a launch of so many groups (0: it failed), if many were timed; frees the trial.
 */
void cld_ab_run_end(const char *kernel, struct cld_ab_run *trial, uint64_t units);

#endif
