/* Code for arguments that keep their values: when it is asked for, which launches run it, whether it pays. */
#include "kernel/argument_specialisation.h"

#include <stdlib.h>
#include <string.h>

#include "abi/image_abi.h"
#include "base/settings.h"
#include "kernel/kernel.h"
#include "kernel/tiles.h"
#include "kernel/variant.h"
#include "runtime/command.h"

/* Nanoseconds that a kernel must have run for, and launches, before its values are looked at; twice as long
 * the next time. An argument counts as constant that changed so often and once in so many launches. */
enum { FIRST_WAIT = 100000000, FEWEST_LAUNCHES = 8, FEW_CHANGES = 2, CHANGE_EVERY = 64 };

/* Work-items of a launch from which on loops are worth to be compiled for several of them at a time. */
enum { LARGE = 1 << 16 };

/* A launch asks for the best code when it has run for as long as that takes to make, in relation to the first
 * code. Sooner, most launches would end before it comes, and share the cores with its compiler. */
enum { PATIENCE = 4 };

/* Of an image the format: channel order, data type, and bytes of a pixel. */
static uint64_t format_word(const uint8_t *place) {
    const struct cld_image_desc *image;
    memcpy(&image, place, sizeof image);
    return image ? image->channel_order | image->channel_data_type << 16 | (uint64_t)image->element_size << 32
                 : 0;
}

static bool is_of_images(const struct cld_arg_info *arg) {
    return arg->kind == CLD_ARG_IMAGE || arg->kind == CLD_ARG_SAMPLER;
}

/* Bits: the values that are formats and samplers. */
static uint32_t image_values(const struct cld_kernel_info *info) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < info->specialisable_count; i++)
        if (is_of_images(&info->args[info->specialisable_args[i]]))
            found |= 1u << i;
    return found;
}

void cld_specialisation_history_new(struct cld_kernel_info *info) {
    if (!info->specialisable_count || cld_setting_is(CL_DRIVER_VALUE_CODE_SETTING, "off"))
        return;
    struct cld_specialisation_history *history = calloc(1, sizeof *history);
    if (!history)
        return;
    history->now = cld_setting_is(CL_DRIVER_VALUE_CODE_SETTING, "now");
    atomic_init(&history->wait, FIRST_WAIT);
    history->of_images = image_values(info);
    info->history = history;
}

static void read_words(const struct cld_kernel_info *info, const uint8_t *args, uint64_t *words) {
    for (uint32_t i = 0; i < info->specialisable_count; i++) {
        const struct cld_arg_info *arg = &info->args[info->specialisable_args[i]];
        words[i] = 0;
        if (arg->kind == CLD_ARG_IMAGE)
            words[i] = format_word(args + arg->offset);
        else
            memcpy(&words[i], args + arg->offset, arg->size);
    }
}

/* Whether it turned out that it does not pay to know these values. It may pay to know those of all arguments.
 */
static bool is_useless(const struct cld_kernel_info *info, const struct cld_variant *code) {
    return code->key.values != (1u << info->specialisable_count) - 1 &&
           atomic_load_explicit(&code->ab_trial.state, memory_order_relaxed) == CLD_REJECTED;
}

/* Whether a launch runs the code, which is there. */
static bool choose(struct cld_variant *code, const struct cld_launch *launch, struct cld_ab_run **trial) {
    uint64_t items = launch->global_size[0] * launch->global_size[1] * launch->global_size[2];
    static const struct cld_ab_kind kind = {"values of arguments", 3, false};
    return cld_ab_trial_choose(&code->ab_trial, &kind, items, trial);
}

static void note(struct cld_specialisation_history *history, uint32_t count, const uint64_t *words) {
    for (uint32_t i = 0; i < count; i++) {
        uint64_t last = atomic_load_explicit(&history->recent[i][0], memory_order_relaxed);
        if (words[i] == last ||
            words[i] == atomic_load_explicit(&history->recent[i][1], memory_order_relaxed))
            continue;
        atomic_store_explicit(&history->recent[i][1], last, memory_order_relaxed);
        atomic_store_explicit(&history->recent[i][0], words[i], memory_order_relaxed);
        atomic_fetch_add_explicit(&history->changes[i], 1, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&history->launches, 1, memory_order_relaxed);
}

/* Bits: the arguments that are worth code for their values; 0 where it is too early to tell. */
static uint32_t constant_values(const struct cld_kernel_info *info) {
    struct cld_specialisation_history *history = info->history;
    uint64_t busy = atomic_load_explicit(&info->busy_time, memory_order_relaxed);
    uint64_t since = atomic_load_explicit(&history->since, memory_order_relaxed);
    uint64_t wait = atomic_load_explicit(&history->wait, memory_order_relaxed);
    uint32_t launches = atomic_load_explicit(&history->launches, memory_order_relaxed);
    if (busy - since < wait || launches < FEWEST_LAUNCHES ||
        !atomic_compare_exchange_strong(&history->since, &since, busy))
        return 0;
    uint32_t values = 0;
    for (uint32_t i = 0; i < info->specialisable_count; i++) {
        uint32_t changes = atomic_exchange_explicit(&history->changes[i], 0, memory_order_relaxed);
        if (changes <= FEW_CHANGES + launches / CHANGE_EVERY)
            values |= 1u << i;
    }
    atomic_store_explicit(&history->launches, 0, memory_order_relaxed);
    atomic_store_explicit(&history->wait, wait < UINT64_MAX / 2 ? 2 * wait : wait, memory_order_relaxed);
    return values;
}

/* The key of code for a launch's values in place of what was chosen; false where there is to be none. */
static bool find_key(const struct cld_kernel_info *info, const struct cld_variant *chosen,
                     struct cld_variant_key *key) {
    if (chosen && !chosen->key.assumes_apart)
        return false;
    key->assumes_apart = true;
    key->values = (1u << info->specialisable_count) - 1;
    if (chosen && chosen->key.shape != CLD_SHAPE_REST) {
        key->tier = chosen->key.tier;
        key->shape = chosen->key.shape;
        memcpy(key->size, chosen->key.size, sizeof key->size);
        return true;
    }
    bool has_tiles = !(info->flags & CLD_KERNEL_TILED); /* else they are another code's */
    key->tier = CLD_TIER_HOT;
    key->shape = CLD_SHAPE_TILES;
    key->size[0] = info->width;
    key->size[1] = has_tiles ? info->tile_width : info->width;
    key->size[2] = has_tiles ? info->tile_height : 1;
    return true;
}

/* Code for a launch's formats that it waits for: of a large launch some that may take longer to compile, of
 * which there are two, for groups of whole vectors and for all. NULL if it cannot be made. */
static const struct cld_variant *need(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                                      const struct cld_launch *launch, const struct cld_variant_key *best) {
    const uint32_t vector[3] = {info->tile_width, info->tile_width, 1};
    enum { VECTORS, ALL, ITEMS, KEYS };
    static const uint8_t shapes[KEYS] = {CLD_SHAPE_TILES, CLD_SHAPE_ANY, CLD_SHAPE_ITEMS};
    struct cld_variant_key keys[KEYS];
    for (int i = 0; i < KEYS; i++) {
        keys[i] = *best;
        keys[i].tier = CLD_TIER_FIRST;
        keys[i].shape = shapes[i];
        keys[i].assumes_apart = i != ITEMS;
        keys[i].values = info->history->of_images;
    }
    memcpy(keys[VECTORS].size, vector, sizeof vector);
    int large = cld_has_rest(vector, launch) ? ALL : VECTORS;
    for (int i = large; i < ITEMS; i++) { /* of larger launches */
        const struct cld_variant *better = cld_variant_find(info, &keys[i]);
        if (cld_variant_is_there(better))
            return better;
    }
    bool is_large = launch->global_size[0] * launch->global_size[1] * launch->global_size[2] >= LARGE;
    const struct cld_variant_key *key = &keys[is_large ? large : ITEMS];
    const struct cld_variant *code = cld_variant_find(info, key);
    if (!code || cld_variant_state(code) != CLD_VARIANT_FAILED)
        cld_variant_need(kernel, info, key, &code);
    return cld_variant_is_there(code) ? code : NULL;
}

/* Kernels with images: code for any format is so slow that a launch waits for code for its own, and goes over
 * to better code if that comes while it runs. */
static void choose_for_images(struct cld_event *command, const struct cld_kernel *kernel) {
    struct cld_kernel_info *info = command->kernel.info;
    const struct cld_specialisation_history *history = info->history;
    struct cld_variant_key key = {.tier = CLD_TIER_HOT, .shape = CLD_SHAPE_ANY, .assumes_apart = true};
    key.values = history->now ? (1u << info->specialisable_count) - 1 : history->of_images;
    read_words(info, command->kernel.args, key.words);
    struct cld_variant *best = cld_variant_want(kernel, info, &key, history->now);
    if (cld_variant_is_there(best)) {
        command->kernel.variant = best;
        return;
    }
    const struct cld_variant *soon = need(kernel, info, &command->kernel.launch, &key);
    if (!soon)
        return;
    if (!best && !cld_setting_is(CL_DRIVER_GROUP_CODE_SETTING, "off"))
        best = cld_variant_add(info, &key);
    if (best)
        command->kernel.wish = cld_variant_wish_new(kernel, info, soon, best, PATIENCE * soon->making_time);
    command->kernel.variant = command->kernel.wish ? best : soon;
}

bool cld_specialisation_is_of_images(const struct cld_kernel_info *info) {
    return info && info->history && info->history->of_images;
}

void cld_specialisation_choose(struct cld_event *command, const struct cld_kernel *kernel) {
    struct cld_kernel_info *info = command->kernel.info;
    struct cld_specialisation_history *history = info->history;
    const struct cld_variant *chosen = command->kernel.variant;
    const struct cld_launch *launch = &command->kernel.launch;
    if (cld_has_large_ids(launch)) /* which is not looked at for code that may not rely on it */
        return;
    if (history->of_images) {
        if (!chosen || chosen->key.assumes_apart || !info->apart)
            choose_for_images(command, kernel);
        return;
    }
    struct cld_variant_key key;
    if ((chosen && !cld_variant_is_there(chosen)) || !find_key(info, chosen, &key))
        return;
    read_words(info, command->kernel.args, key.words);
    struct cld_variant *code = atomic_load_explicit(&info->variants, memory_order_acquire);
    while (code && (!code->key.values || !cld_variant_key_suits(&code->key, &key) || is_useless(info, code)))
        code = code->next;
    if (!code) {
        if (!history->now) {
            note(history, info->specialisable_count, key.words);
            key.values = constant_values(info);
        }
        if (!key.values || !(code = cld_variant_add(info, &key)))
            return;
        if (history->now)
            atomic_store(&code->ab_trial.state, CLD_ADOPTED);
        cld_variant_ask(kernel, info, code, history->now);
    }
    if (cld_variant_is_there(code) && choose(code, launch, &command->kernel.trial))
        command->kernel.variant = code;
}
