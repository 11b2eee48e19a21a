/* Code that a kernel gets for some launches only, made when there is such a launch: what the build made does
 * for most. Programs do not wait for what they never use. */
#ifndef CLD_TIERS_H
#define CLD_TIERS_H

#include "kernel/kernel.h"

/* In the order of pipeline.VARIANTS. */
enum cld_tier_kind {
    CLD_TIER_NARROW,  /* for launches that `entry` does not suit */
    CLD_TIER_REST,    /* what `entry` leaves of rows and columns that are not whole tiles */
    CLD_TIER_TILED,   /* for groups that consist of tiles */
    CLD_TIER_GROUP,   /* for groups of one size, in lockstep (cl_driver/passes/groups/lockstep.py) */
    CLD_TIER_MORE,    /* into which more work went */
    CLD_TIER_ANY,     /* for groups that do not consist of whole tiles, where work-items can tell them */
    CLD_TIER_SOON,    /* for formats of images, quick to compile: a launch waits for it */
    CLD_TIER_OVERLAP, /* for launches whose buffers overlap where the others assume that they do not */
    CLD_TIER_LINEAR,  /* for groups of one size whose rows leave lanes idle: these follow the linear local id
                       */
};

/* Nanoseconds that a kernel must have run for before it gets code that launches can do without. To compile it
 * takes longer, but a kernel that takes so long is seldom launched but once. */
enum { CLD_WORTH_IT = 5000000 };

/* One kind of code for a kernel, for one local size where it depends on that. entry: NULL until it is there,
 * or for ever if has_failed. What it needs of memory is beside it. Freed with the kernel's info. */
struct cld_tier {
    struct cld_tier *next;
    enum cld_tier_kind kind;
    uint64_t size[3];
    uint32_t values; /* bits: arguments of specialisable_args that it is for some values of */
    uint64_t words[CLD_MOST_SPECIALISABLE]; /* these values, zero extended */
    _Atomic(cld_kernel_fn) entry;
    atomic_bool is_asked_for; /* of what cld_tier_ask_once() asks for */
    atomic_bool has_failed;
    uint64_t making_time; /* ns that a thread waited for it */
    uint64_t local_static, scratch_fixed, scratch_per_item;
    struct cld_code *code;
};

/* Chooses what a launch runs instead of the kernel's entry, or after it if it is of the kind CLD_TIER_REST;
 * NULL if it is the entry alone. Code that is not there yet stands for the entry until it is: the launch goes
 * over to it then, between two groups. Asks for code that the launch would gain from, and makes what it
 * needs.
 */
cl_int cld_tier_choose(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                       const struct cld_launch *launch, const struct cld_tier **chosen);

/* For kernels without an entry: code for all launches, made by the first one. */
cl_int cld_tier_need_any(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                         const struct cld_tier **found);

/* Whether groups, or those at the edges, do not consist of tiles: work-items per vector, those of a row, and
 * rows. */
bool cld_tier_has_rest(const uint64_t *tile, const struct cld_launch *launch);

/* Whether there is code and it can be run. */
bool cld_tier_is_there(const struct cld_tier *code);

/* Has code made that its kernel's info frees: in the background, or before it returns. */
void cld_tier_ask(const struct cld_kernel *kernel, struct cld_kernel_info *info, struct cld_tier *code,
                  bool now);

/* The same in the background, unless it was asked for before. */
void cld_tier_ask_once(const struct cld_kernel *kernel, struct cld_kernel_info *info, struct cld_tier *code);

/* Code that a launch runs until there is better code, which is asked for if it goes on for more than
 * `patience` ns. The code is the info's. NULL: no memory. */
struct cld_tier_wish *cld_tier_wish_new(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                                        const struct cld_tier *meanwhile, struct cld_tier *better,
                                        uint64_t patience);
const struct cld_tier *cld_tier_meanwhile(const struct cld_tier_wish *wish);

/* Between pieces of the launch, by any of its threads. */
void cld_tier_wish_look(struct cld_tier_wish *wish);
void cld_tier_wish_drop(struct cld_tier_wish *wish);

/* A program is being built; it has been. */
void cld_builds_begin(void);
void cld_builds_end(void);

/* Frees a list of them. */
void cld_tier_drop(struct cld_tier *list);

#endif
