/* What a launch runs: an ordered choice over keys. */
#include <string.h>

#include "base/settings.h"
#include "kernel/argument_specialisation.h"
#include "kernel/tiles.h"
#include "kernel/variant.h"
#include "memory/allocations.h"
#include "memory/mem.h"
#include "runtime/command.h"

/* Rows of fewer work-items than this are as fast one by one. No vector has more lanes than the other. */
enum { SHORTEST_ROW = 4, MOST_LANES = 64 };

/* Lanes of a vector for each work-item of a row, from which on one may be as fast without lanes. */
enum { MOSTLY_IDLE = 2 };

/* Whether global ids are not what code for several work-items at a time assumes of them. */
static bool has_odd_ids(const struct cld_kernel_info *info, const struct cld_launch *launch) {
    if (info->flags & CLD_KERNEL_ALIGNED_GROUPS && launch->global_offset[0] % MOST_LANES)
        return true;
    return cld_has_large_ids(launch);
}

/* Whether the entry that takes several work-items at a time may take these, and is worth it. */
static bool suits_wide(const struct cld_kernel_info *info, const struct cld_launch *launch) {
    if (has_odd_ids(info, launch))
        return false;
    if (!(info->flags & CLD_KERNEL_SUB_GROUPS))
        return launch->local_size[0] >= SHORTEST_ROW || (info->flags & CLD_KERNEL_FREE_GROUPS);
    bool one_row = launch->local_size[1] == 1 && launch->local_size[2] == 1;
    return one_row || (launch->local_size[0] % info->width == 0 && launch->global_size[0] % info->width == 0);
}

/* Whether all groups are of one size, for which there may be code. */
static bool has_one_size(const struct cld_kernel_info *info, const struct cld_launch *launch) {
    for (int i = 0; i < 3; i++)
        if (launch->global_size[i] % launch->local_size[i])
            return false;
    return !has_odd_ids(info, launch);
}

/* Whether the work-items of each group fill vectors, of a quarter of the lanes at least, and all groups are
 * of one size. */
static bool is_whole(const struct cld_kernel_info *info, const struct cld_launch *launch) {
    const uint64_t *size = launch->local_size;
    uint64_t lanes = info->width / 4 > SHORTEST_ROW ? info->width / 4 : SHORTEST_ROW;
    if (lanes > info->width)
        lanes = info->width;
    return size[0] % lanes == 0 && size[0] * size[1] * size[2] <= info->most_group_items &&
           has_one_size(info, launch);
}

/* Whether rows of groups, all of one size, leave lanes idle that the next rows could fill. Where a kernel
 * requires a size, the build has looked. */
static bool has_short_rows(const struct cld_kernel_info *info, const struct cld_launch *launch) {
    const uint64_t *size = launch->local_size;
    bool may_be_idle = size[0] % info->width || info->width == 1 || info->reqd_local_size[0];
    return info->flags & CLD_KERNEL_HAS_LINEAR && may_be_idle && size[1] * size[2] > 1 &&
           has_one_size(info, launch);
}

/* Whether rows of groups are so short that half of the lanes are idle, and nothing fills them with the next
 * ones. */
static bool leaves_most_idle(const struct cld_kernel_info *info, const struct cld_launch *launch,
                             const struct cld_variant *chosen) {
    bool is_linear = chosen && chosen->key.shape == CLD_SHAPE_LINEAR;
    return info->flags & CLD_KERNEL_HAS_LINEAR && !is_linear &&
           launch->local_size[0] * MOSTLY_IDLE <= info->width;
}

/* Memory that a kernel may reach through an argument. */
struct extent {
    const uint8_t *start;
    size_t size;
};

/* False if it is not known: what is no buffer and lies in no allocation of the context's. */
static bool find_extent(const struct cld_kernel *kernel, const struct cld_kernel_info *info, uint32_t number,
                        struct extent *extent) {
    const struct cld_mem *mem = kernel->mems[number];
    *extent = (struct extent){mem ? mem->data : NULL, mem ? mem->size : 0};
    if (mem)
        return true;
    const void *pointer;
    memcpy(&pointer, kernel->block + info->args[number].offset, sizeof pointer);
    struct cld_allocation found;
    if (!pointer)
        return true;
    if (!cld_allocation_find(kernel->program->context, pointer, &found))
        return false;
    *extent = (struct extent){found.start, found.size};
    return true;
}

static bool meet(struct extent a, struct extent b) {
    return a.size && b.size && a.start < b.start + b.size && b.start < a.start + a.size;
}

/* Whether a launch does not do what its kernel's code assumes: see cld_kernel_info.apart. */
static bool has_overlap(const struct cld_kernel *kernel, const struct cld_kernel_info *info) {
    for (uint64_t rest = info->apart; rest; rest &= rest - 1) {
        uint32_t number = (uint32_t)__builtin_ctzll(rest);
        struct extent own, other;
        if (number >= info->arg_count || !find_extent(kernel, info, number, &own))
            return true;
        for (uint32_t i = 0; i < info->arg_count; i++)
            if (i != number && info->args[i].kind == CLD_ARG_GLOBAL &&
                (!find_extent(kernel, info, i, &other) || meet(own, other)))
                return true;
    }
    return false;
}

/* What is true of a launch. */
enum fact {
    NARROW = 1,       /* the entry does not suit it */
    SHORT_ROWS = 2,   /* as has_short_rows() has it */
    OVERLAP = 4,      /* it does not do what the kernel's code assumes of memory */
    TILES = 8,        /* its groups consist of tiles, for which there may be code */
    TILES_FIRST = 16, /* which is so much faster that the launch waits for it */
    WHOLE = 32,       /* its groups may be executed in lockstep */
    MORE = 64,        /* it would gain from code into which more work went */
    REST = 128,       /* the entry may leave some of it */
    FREE = 256,       /* no work-item can tell how groups are divided */
    BELOW = 512,      /* no row of its groups fills a vector */
};

/* A launch, and what was chosen for it so far. */
struct situation {
    const struct cld_kernel *kernel;
    struct cld_kernel_info *info;
    const struct cld_launch *launch;
    uint32_t tile[3], entry_tile[3];   /* of the kernel's hot code, and of its entry */
    const struct cld_variant *variant; /* code that is wanted, or needed, and there */
    bool awaits_better;                /* code that is wanted is being made */
    cl_int status;
};

static uint32_t find_facts(const struct situation *at) {
    const struct cld_kernel_info *info = at->info;
    const struct cld_launch *launch = at->launch;
    uint64_t flags = info->flags;
    uint32_t facts = flags & CLD_KERNEL_FREE_GROUPS ? FREE : 0;
    if (flags & CLD_KERNEL_NARROW && !suits_wide(info, launch))
        facts |= NARROW;
    if (has_short_rows(info, launch))
        facts |= SHORT_ROWS;
    if (info->apart && has_overlap(at->kernel, info))
        facts |= OVERLAP;
    if (flags & CLD_KERNEL_TILED && cld_has_tiles(at->tile, launch->local_size))
        facts |= TILES;
    if (flags & CLD_KERNEL_TILES_FIRST && cld_has_tiles(at->tile, launch->local_size) &&
        !cld_setting_is(CL_DRIVER_GROUP_CODE_SETTING, "off"))
        facts |= TILES_FIRST;
    if (info->most_group_items && is_whole(info, launch))
        facts |= WHOLE;
    if (flags & CLD_KERNEL_HAS_MORE && !has_odd_ids(info, launch))
        facts |= MORE;
    if (flags & CLD_KERNEL_REST)
        facts |= REST;
    if (launch->local_size[0] < info->width)
        facts |= BELOW;
    return facts;
}

enum size { NO_SIZE, LOCAL_SIZE, HOT_TILE, ENTRY_TILE };
enum how { WANTED, NEEDED, TRIED };

/* Best first: for launches of which the facts `of` are true, and the others of `looked_at` are not. NEEDED:
 * the launch waits for it, and runs nothing else; TRIED: likewise, but for what follows if it cannot be made.
 * WANTED: the launch runs what follows until it is there. The entry follows the last row. */
static const struct choice {
    uint16_t of, looked_at; /* enum fact */
    uint8_t tier, shape;
    bool assumes_apart;
    uint8_t size, how; /* enum size, enum how */
} choices[] = {
#define FACTS(of, but) (of), (of) | (but)
    /* What the entry must not run. */
    {FACTS(NARROW, SHORT_ROWS), CLD_TIER_FIRST, CLD_SHAPE_ITEMS, false, NO_SIZE, NEEDED},
    {FACTS(NARROW | OVERLAP, 0), CLD_TIER_FIRST, CLD_SHAPE_ITEMS, false, NO_SIZE, NEEDED},
    {FACTS(OVERLAP, 0), CLD_TIER_FIRST, CLD_SHAPE_ANY, false, NO_SIZE, NEEDED},
    /* What is faster. Of groups that no work-item can tell, MORE takes tiles, too. */
    {FACTS(TILES_FIRST, 0), CLD_TIER_HOT, CLD_SHAPE_TILES, true, HOT_TILE, TRIED},
    {FACTS(MORE | FREE, NARROW), CLD_TIER_HOT, CLD_SHAPE_ANY, true, NO_SIZE, WANTED},
    {FACTS(SHORT_ROWS, 0), CLD_TIER_HOT, CLD_SHAPE_LINEAR, true, LOCAL_SIZE, WANTED},
    {FACTS(WHOLE, NARROW), CLD_TIER_HOT, CLD_SHAPE_GROUP, true, LOCAL_SIZE, WANTED},
    {FACTS(TILES, NARROW), CLD_TIER_HOT, CLD_SHAPE_TILES, true, HOT_TILE, WANTED},
    {FACTS(MORE, FREE | NARROW), CLD_TIER_HOT, CLD_SHAPE_ANY, true, NO_SIZE, WANTED},
    /* What the entry cannot run, or not alone. */
    {FACTS(NARROW, 0), CLD_TIER_FIRST, CLD_SHAPE_ITEMS, false, NO_SIZE, NEEDED},
    {FACTS(REST | FREE, 0), CLD_TIER_FIRST, CLD_SHAPE_REST, true, ENTRY_TILE, NEEDED},
    {FACTS(REST | BELOW, FREE), CLD_TIER_FIRST, CLD_SHAPE_SHORT, true, NO_SIZE, NEEDED},
    {FACTS(REST, FREE), CLD_TIER_FIRST, CLD_SHAPE_ANY, true, NO_SIZE, NEEDED},
#undef FACTS
};

/* Whether a launch is to run code that may not be there yet, rather than what follows it. */
static bool is_wanted(const struct cld_variant *variant) {
    int32_t state = variant ? cld_variant_state(variant) : CLD_VARIANT_NAMED;
    return state == CLD_VARIANT_ASKED || state == CLD_VARIANT_THERE;
}

static bool has_failed(const struct cld_variant *variant) {
    return variant && cld_variant_state(variant) == CLD_VARIANT_FAILED;
}

/* Not as a value: compilers clear and copy so much with instructions that take long to start. */
static void put_key(struct cld_variant_key *key, const struct choice *choice, const struct situation *at) {
    const uint32_t *tile = choice->size == HOT_TILE ? at->tile : at->entry_tile;
    memset(key->words, 0, sizeof key->words);
    key->tier = choice->tier;
    key->shape = choice->shape;
    key->assumes_apart = choice->assumes_apart;
    key->values = 0;
    for (int i = 0; i < 3; i++) /* groups of more work-items there are none */
        key->size[i] = choice->size == NO_SIZE      ? 0
                       : choice->size == LOCAL_SIZE ? (uint32_t)at->launch->local_size[i]
                                                    : tile[i];
}

/* Whether that is what the launch runs, or at->status is an error; else what follows is looked at. */
static __attribute__((noinline)) bool take(const struct choice *choice, struct situation *at) {
    if (choice->how == WANTED && at->variant)
        return false;
    if (choice->of & REST && !cld_has_rest(at->entry_tile, at->launch)) /* which takes long to look */
        return false;
    struct cld_variant_key key;
    put_key(&key, choice, at);
    const struct cld_variant *variant;
    if (choice->how == WANTED) {
        variant = cld_variant_want(at->kernel, at->info, &key, false);
        if (!is_wanted(variant))
            return false;
        at->variant = variant;
        at->awaits_better = !cld_variant_is_there(variant);
        return !at->awaits_better;
    }
    if (choice->how == TRIED && has_failed(cld_variant_find(at->info, &key)))
        return false;
    at->status = cld_variant_need(at->kernel, at->info, &key, &variant);
    if (at->status && choice->how == TRIED) {
        at->status = CL_SUCCESS;
        return false;
    }
    at->variant = variant;
    return true;
}

bool cld_variant_exchanges(const struct cld_kernel_info *info, const struct cld_launch *launch) {
    bool fills =
        launch->global_size[1] >= info->width / 2 || launch->global_size[1] >= launch->global_size[0];
    return info->flags & CLD_KERNEL_EXCHANGED && (fills || has_odd_ids(info, launch));
}

/* Code for all values of arguments. awaits_better: whether it is what launches run meanwhile. */
static cl_int choose(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                     const struct cld_launch *launch, const struct cld_variant **chosen,
                     bool *awaits_better) {
    bool has_tiles = !(info->flags & CLD_KERNEL_TILED); /* else they are the hot code's alone */
    struct situation at = {
        kernel,
        info,
        launch,
        {info->width, info->tile_width, info->tile_height},
        {info->width, has_tiles ? info->tile_width : info->width, has_tiles ? info->tile_height : 1},
        NULL,
        false,
        CL_SUCCESS};
    uint32_t facts = find_facts(&at);
    for (unsigned i = 0; i < sizeof choices / sizeof *choices; i++)
        if ((facts & choices[i].looked_at) == choices[i].of && take(&choices[i], &at))
            break;
    *chosen = at.variant;
    *awaits_better = at.awaits_better;
    return at.status;
}

/* Work-items one at a time, in place of what was chosen, which must be there: lanes wait for one another,
 * do what only some of them need, go through more rows than caches may hold, and are idle where rows are
 * short. How much that is depends on the data and on the launch, so it is tried. */
static void try_items(struct cld_event *command, const struct cld_kernel *kernel) {
    static const struct cld_ab_kind kind = {"one work-item at a time", 10, true};
    static const struct cld_variant_key key = {
        .tier = CLD_TIER_HOT, .shape = CLD_SHAPE_ITEMS, .assumes_apart = true};
    const struct cld_variant *chosen = command->kernel.variant;
    const uint64_t *size = command->kernel.launch.global_size;
    if (chosen && (!cld_variant_is_there(chosen) || !chosen->key.assumes_apart))
        return;
    struct cld_variant *items = cld_variant_want(kernel, command->kernel.info, &key, false);
    if (cld_variant_is_there(items) &&
        cld_ab_trial_choose(&items->ab_trial, &kind, size[0] * size[1] * size[2], &command->kernel.trial))
        command->kernel.variant = items;
}

cl_int cld_variant_choose(struct cld_event *command, const struct cld_kernel *kernel) {
    struct cld_kernel_info *info = command->kernel.info;
    const struct cld_variant *chosen;
    if (command->kernel.is_plain) {
        static const struct cld_variant_key plain = {.tier = CLD_TIER_FIRST, .shape = CLD_SHAPE_PLAIN};
        cl_int status = cld_variant_need(kernel, info, &plain, &chosen);
        command->kernel.variant = chosen;
        return status;
    }
    bool awaits_better;
    cl_int status = choose(kernel, info, &command->kernel.launch, &chosen, &awaits_better);
    command->kernel.variant = chosen;
    bool may_be_slow =
        info->flags & CLD_KERNEL_TRIES_ITEMS || leaves_most_idle(info, &command->kernel.launch, chosen);
    if (!status && may_be_slow && !awaits_better)
        try_items(command, kernel);
    if (!status && info->history && !command->kernel.trial)
        cld_specialisation_choose(command, kernel);
    if (status || info->entry || command->kernel.variant)
        return status;
    /* Of a kernel without an entry all launches. */
    const struct cld_variant_key any = {
        .tier = CLD_TIER_FIRST, .shape = CLD_SHAPE_ANY, .assumes_apart = true};
    status = cld_variant_need(kernel, info, &any, &chosen);
    command->kernel.variant = chosen;
    return status;
}
