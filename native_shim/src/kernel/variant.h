/* Variants: code of a kernel beside its entry. One key says which, one table has it; there is one way to ask
 * for it, one to wait for it, and one in which it fails. */
#ifndef CLD_VARIANT_H
#define CLD_VARIANT_H

#include "kernel/ab_trial.h"
#include "kernel/kernel.h"

struct cld_event;

/* How much work goes into code (cl_driver/compiler/variants.py). */
enum cld_tier {
    CLD_TIER_FIRST, /* quick to make, and good: launches may wait for it */
    CLD_TIER_HOT,   /* for kernels that have run for a while */
};

/* Which launches code is for, and how it takes their work-items. */
enum cld_launch_shape {
    CLD_SHAPE_ITEMS,  /* any, one work-item at a time */
    CLD_SHAPE_REST,   /* what `entry` leaves of rows and columns that are not whole tiles */
    CLD_SHAPE_TILES,  /* groups that consist of tiles */
    CLD_SHAPE_GROUP,  /* groups of one size, in lockstep (cl_driver/passes/groups/lockstep.py) */
    CLD_SHAPE_LINEAR, /* groups of one size whose rows leave lanes idle: these follow the linear local id */
    CLD_SHAPE_ANY,    /* any groups, several work-items at a time */
    CLD_SHAPE_SHORT,  /* the same, for groups of which no row fills a vector: half as much to compile */
    CLD_SHAPE_PLAIN,  /* any, of kernels whose code has dimensions exchanged: as these were */
};

/* Codes of a kernel that differ, differ in this. */
struct cld_variant_key {
    uint8_t tier;       /* enum cld_tier */
    uint8_t shape;      /* enum cld_launch_shape */
    bool assumes_apart; /* that buffers are apart: cld_kernel_info.apart */
    uint32_t values;    /* bits: arguments of specialisable_args that it is for some values of */
    uint32_t size[3];   /* GROUP, LINEAR: the local size; REST, TILES: work-items per vector, those of a row,
                         * and rows; else zeros */
    uint64_t words[CLD_MOST_SPECIALISABLE]; /* these values, zero extended; of others it does not matter */
};

enum cld_variant_state {
    CLD_VARIANT_NAMED,  /* nobody has asked for it */
    CLD_VARIANT_ASKED,  /* it is being made in the background */
    CLD_VARIANT_FAILED, /* only a launch that cannot do without asks again */
    CLD_VARIANT_THERE,  /* for as long as the kernel's info is */
};

struct cld_variant {
    struct cld_variant *next;
    struct cld_variant_key key;
    _Atomic int32_t state; /* enum cld_variant_state */
    /* Of code for values of integers: with the code for all values; of the shape ITEMS, with all other. */
    struct cld_ab_trial ab_trial;
    /* Written before it is THERE: */
    cld_kernel_fn entry;
    uint64_t local_static, scratch_fixed, scratch_per_item;
    uint64_t making_time; /* ns that it took */
    struct cld_code *code;
};

/* Nanoseconds that a kernel must have run for before it gets code that launches can do without. To compile it
 * takes longer, but a kernel that takes so long is seldom launched but once. */
enum { CLD_WORTH_IT = 5000000 };

/* Combinations of values of integers that a kernel gets code for. */
enum { CLD_MOST_SPECIALISATIONS = 4 };

/* variant_table.c: the variants of a kernel. Lookups take no lock. */

/* Whether code suits a launch: the keys are the same but for arguments that the code knows no values of.
 * Field by field: what was written in pieces just before is slow to be read as a whole. */
static inline bool cld_variant_key_suits(const struct cld_variant_key *code,
                                         const struct cld_variant_key *launch) {
    if (code->shape != launch->shape || code->tier != launch->tier ||
        code->assumes_apart != launch->assumes_apart || code->values & ~launch->values ||
        code->size[0] != launch->size[0] || code->size[1] != launch->size[1] ||
        code->size[2] != launch->size[2])
        return false;
    for (uint32_t i = 0; code->values >> i; i++)
        if ((code->values >> i & 1) && code->words[i] != launch->words[i])
            return false;
    return true;
}

static inline bool cld_variant_key_is(const struct cld_variant_key *key,
                                      const struct cld_variant_key *other) {
    return key->values == other->values && cld_variant_key_suits(key, other);
}

/* Whether some of the values are formats of images, or samplers. */
bool cld_variant_has_formats(const struct cld_kernel_info *info, uint32_t values);

/* The one with that key; NULL: there is none. Of a list, and of a kernel. */
static inline struct cld_variant *cld_variant_in(struct cld_variant *list,
                                                 const struct cld_variant_key *key) {
    while (list && !cld_variant_key_is(&list->key, key))
        list = list->next;
    return list;
}

static inline struct cld_variant *cld_variant_find(const struct cld_kernel_info *info,
                                                   const struct cld_variant_key *key) {
    return cld_variant_in(atomic_load_explicit(&info->variants, memory_order_acquire), key);
}

/* The same, NAMED if there was none. NULL: no memory, or enough of its like. */
struct cld_variant *cld_variant_add(struct cld_kernel_info *info, const struct cld_variant_key *key);

/* Frees them all. */
void cld_variants_drop(struct cld_kernel_info *info);

static inline int32_t cld_variant_state(const struct cld_variant *variant) {
    return atomic_load_explicit(&variant->state, memory_order_acquire);
}

/* Whether there is code that can be run. NULL is none. */
static inline bool cld_variant_is_there(const struct cld_variant *variant) {
    return variant && cld_variant_state(variant) == CLD_VARIANT_THERE;
}

/* variant_request.c: how they are made. */

/* Asks for a NAMED one: it is made in the background, or `now`, before this returns. */
void cld_variant_ask(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                     struct cld_variant *variant, bool now);

/* ns that making them took, while launches waited for it and in the background. */
extern _Atomic uint64_t cld_variants_waited, cld_variants_in_background;

/* Code that a launch can do without: asked for once the kernel has run for a while, or `now`. It may not be
 * there yet. NULL: there is none, nor is it time to ask for it. */
struct cld_variant *cld_variant_want(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                                     const struct cld_variant_key *key, bool now);

/* Code that a launch cannot do without: it is there afterwards, or there is an error. */
cl_int cld_variant_need(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                        const struct cld_variant_key *key, const struct cld_variant **found);

/* Code that a launch runs until there is better code, which is asked for if it goes on for more than
 * `patience` ns. The code is the info's. NULL: no memory. */
struct cld_variant_wish *cld_variant_wish_new(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                                              const struct cld_variant *meanwhile, struct cld_variant *better,
                                              uint64_t patience);
const struct cld_variant *cld_variant_meanwhile(const struct cld_variant_wish *wish);

/* Between pieces of the launch, by any of its threads. */
void cld_variant_wish_look(struct cld_variant_wish *wish);
void cld_variant_wish_drop(struct cld_variant_wish *wish);

/* A program is being built; it has been. */
void cld_builds_begin(void);
void cld_builds_end(void);

/* variant_choice.c: whether a launch, as it was enqueued, exchanges dimensions 0 and 1: where the kernel's
 * code does, unless dimension 1 leaves most lanes idle. */
bool cld_variant_exchanges(const struct cld_kernel_info *info, const struct cld_launch *launch);

/* What a launch runs instead of the kernel's entry, or after it for CLD_SHAPE_REST; nothing
 * if that is the entry alone. Code that is not there yet stands for the entry until it is: the launch goes
 * over to it then, between two groups. Asks for code that the launch would gain from, and waits for what it
 * needs. */
cl_int cld_variant_choose(struct cld_event *command, const struct cld_kernel *kernel);

#endif
