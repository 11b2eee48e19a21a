/* Code for arguments that keep their values: when it is asked for, which launches run it, whether it pays. */
#include "kernel/argument_specialisation.h"

#include <stdlib.h>
#include <string.h>

#include "abi/image_abi.h"
#include "base/log.h"
#include "base/settings.h"
#include "kernel/kernel.h"
#include "kernel/tiers.h"

/* Nanoseconds that a kernel must have run for, and launches, before its values are looked at; twice as long
 * the next time. An argument counts as constant that changed so often and once in so many launches. */
enum { FIRST_WAIT = 100000000, FEWEST_LAUNCHES = 8, FEW_CHANGES = 2, CHANGE_EVERY = 64 };

/* Combinations of formats and samplers that a kernel gets code for, and how much of it for one. */
enum { MOST_FORMATS = 64, CODES_OF_FORMAT = 4 };

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

static bool has_values(const struct cld_tier *code, const uint64_t *words) {
    for (uint32_t i = 0; code->values >> i; i++)
        if ((code->values >> i & 1) && words[i] != code->words[i])
            return false;
    return true;
}

static bool has_shape(const struct cld_tier *code, enum cld_tier_kind kind, const uint64_t *size) {
    return code->kind == kind && !memcmp(code->size, size, sizeof code->size);
}

/* Whether it turned out that it does not pay to know these values. It may pay to know those of all arguments.
 */
static bool is_useless(const struct cld_kernel_info *info, const struct cld_tier *code) {
    const struct cld_specialisation *tried = (const struct cld_specialisation *)code;
    return code->values != (1u << info->specialisable_count) - 1 &&
           atomic_load_explicit(&tried->ab_trial.state, memory_order_relaxed) == CLD_REJECTED;
}

/* Whether a launch runs the code, whose object is there. */
static bool choose(struct cld_specialisation *code, const struct cld_launch *launch,
                   struct cld_ab_run **trial) {
    uint64_t items = launch->global_size[0] * launch->global_size[1] * launch->global_size[2];
    return cld_ab_trial_choose(&code->ab_trial, items, trial);
}

/* Code that is yet to be made. state: whether it is tried or taken as it is. */
static struct cld_tier *new_code(enum cld_tier_kind kind, const uint64_t *size, uint32_t values,
                                 const uint64_t *words, int32_t state) {
    struct cld_specialisation *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    struct cld_tier *code = &made->code;
    code->kind = kind;
    memcpy(code->size, size, sizeof code->size);
    code->values = values;
    memcpy(code->words, words, sizeof code->words);
    atomic_init(&made->ab_trial.state, state);
    return code;
}

/* Adds code (NULL is none), unless another thread has added the like, or there are `most`; NULL then, and it
 * is dropped. */
static struct cld_tier *add_code(struct cld_specialisation_history *history, struct cld_tier *added,
                                 unsigned most) {
    if (!added)
        return NULL;
    struct cld_tier *first = atomic_load_explicit(&history->codes, memory_order_acquire);
    do {
        unsigned count = 0;
        bool known = false;
        for (const struct cld_tier *at = first; at && !known; at = at->next, count++)
            known = at->values == added->values && has_shape(at, added->kind, added->size) &&
                    has_values(at, added->words);
        if (known || count >= most) {
            cld_tier_drop(added);
            return NULL;
        }
        added->next = first;
    } while (!atomic_compare_exchange_weak(&history->codes, &first, added));
    return added;
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

/* What the code that was chosen stands for; false where there is nothing for values. size: of struct
 * cld_tier, if it were one. */
static bool find_shape(const struct cld_kernel_info *info, const struct cld_tier *chosen,
                       enum cld_tier_kind *kind, uint64_t *size) {
    if (chosen && (chosen->kind == CLD_TIER_NARROW || chosen->kind == CLD_TIER_OVERLAP))
        return false;
    if (chosen && chosen->kind != CLD_TIER_REST) {
        *kind = chosen->kind;
        memcpy(size, chosen->size, sizeof chosen->size);
        return true;
    }
    bool has_tiles = !(info->flags & CLD_KERNEL_TILED); /* else they are another code's */
    *kind = CLD_TIER_TILED;
    size[0] = info->width;
    size[1] = has_tiles ? info->tile_width : info->width;
    size[2] = has_tiles ? info->tile_height : 1;
    return true;
}

static struct cld_tier *find_code(struct cld_specialisation_history *history, enum cld_tier_kind kind,
                                  const uint64_t *size, const uint64_t *words) {
    struct cld_tier *code = atomic_load_explicit(&history->codes, memory_order_acquire);
    while (code && (!has_values(code, words) || !has_shape(code, kind, size)))
        code = code->next;
    return code;
}

static bool has_room(struct cld_specialisation_history *history, unsigned most) {
    const struct cld_tier *code = atomic_load_explicit(&history->codes, memory_order_acquire);
    for (; code && most; code = code->next)
        most--;
    return most;
}

static const uint64_t any_size[3];

/* The best code for a launch's formats, which may not be there yet: asked for once the kernel has run for a
 * while. NULL where there is to be none. */
static struct cld_tier *wish(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                             const uint64_t *words) {
    struct cld_specialisation_history *history = info->history;
    struct cld_tier *code = find_code(history, CLD_TIER_ANY, any_size, words);
    if (cld_tier_is_there(code))
        return code;
    bool now = history->now || cld_setting_is(CL_DRIVER_GROUP_CODE_SETTING, "now");
    if (!now && cld_setting_is(CL_DRIVER_GROUP_CODE_SETTING, "off"))
        return NULL;
    if (!code) {
        uint32_t values = history->now ? (1u << info->specialisable_count) - 1 : history->of_images;
        add_code(history, new_code(CLD_TIER_ANY, any_size, values, words, CLD_ADOPTED),
                 CODES_OF_FORMAT * MOST_FORMATS);
        code = find_code(history, CLD_TIER_ANY, any_size, words);
    }
    if (!code || cld_tier_is_there(code))
        return code;
    if (now && !atomic_exchange(&code->is_asked_for, true))
        cld_tier_ask(kernel, info, code, true);
    else if (atomic_load_explicit(&info->busy_time, memory_order_relaxed) >= CLD_WORTH_IT)
        cld_tier_ask_once(kernel, info, code);
    return code;
}

/* Code for a launch's formats that it waits for: of a large launch some that may take longer to compile, of
 * which there are two, for groups of whole vectors and for all. Threads that need it at once make it twice:
 * see tiers.c. NULL if it cannot be made. */
static struct cld_tier *need(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                             const struct cld_launch *launch, const uint64_t *words) {
    struct cld_specialisation_history *history = info->history;
    const uint64_t vector[3] = {info->tile_width, info->tile_width, 1}, large[3] = {1, 1, 1};
    bool has_rest = cld_tier_has_rest(vector, launch);
    bool is_large = launch->global_size[0] * launch->global_size[1] * launch->global_size[2] >= LARGE;
    const uint64_t *sizes[] = {has_rest ? large : vector, large};
    for (int i = 0; i < 2; i++) { /* of larger launches */
        struct cld_tier *better = find_code(history, CLD_TIER_SOON, sizes[i], words);
        if (cld_tier_is_there(better))
            return better;
    }
    const uint64_t *size = is_large ? sizes[0] : any_size;
    struct cld_tier *code = find_code(history, CLD_TIER_SOON, size, words);
    if (!code && has_room(history, CODES_OF_FORMAT * MOST_FORMATS) &&
        (code = new_code(CLD_TIER_SOON, size, history->of_images, words, CLD_ADOPTED))) {
        cld_tier_ask(kernel, info, code, true);
        add_code(history, code, CODES_OF_FORMAT * MOST_FORMATS);
        code = find_code(history, CLD_TIER_SOON, size, words);
    }
    return cld_tier_is_there(code) ? code : NULL;
}

/* Kernels with images: code for any format is so slow that a launch waits for code for its own, and goes over
 * to better code if that comes while it runs. */
static void choose_for_images(struct cld_event *command, const struct cld_kernel *kernel) {
    struct cld_kernel_info *info = command->kernel.info;
    uint64_t words[CLD_MOST_SPECIALISABLE] = {0};
    read_words(info, command->kernel.args, words);
    struct cld_tier *code = wish(kernel, info, words);
    if (cld_tier_is_there(code)) {
        command->kernel.code = code;
        return;
    }
    struct cld_tier *soon = need(kernel, info, &command->kernel.launch, words);
    if (!soon)
        return;
    if (code)
        command->kernel.wish = cld_tier_wish_new(kernel, info, soon, code, PATIENCE * soon->making_time);
    command->kernel.code = command->kernel.wish ? code : soon;
}

bool cld_specialisation_is_of_images(const struct cld_kernel_info *info) {
    return info && info->history && info->history->of_images;
}

void cld_specialisation_choose(struct cld_event *command, const struct cld_kernel *kernel) {
    struct cld_kernel_info *info = command->kernel.info;
    struct cld_specialisation_history *history = info->history;
    const struct cld_launch *launch = &command->kernel.launch;
    for (int i = 0; i < 3; i++) /* which is not looked at for code that may not rely on it */
        if (launch->global_offset[i] + launch->global_size[i] > 1u << 30)
            return;
    if (history->of_images) {
        if (!command->kernel.code || command->kernel.code->kind != CLD_TIER_OVERLAP)
            choose_for_images(command, kernel);
        return;
    }
    enum cld_tier_kind kind;
    uint64_t words[CLD_MOST_SPECIALISABLE] = {0}, size[3];
    if (!find_shape(info, command->kernel.code, &kind, size))
        return;
    read_words(info, command->kernel.args, words);
    struct cld_tier *code = atomic_load_explicit(&history->codes, memory_order_acquire);
    while (code && (!has_values(code, words) || !has_shape(code, kind, size) || is_useless(info, code)))
        code = code->next;
    if (!code) {
        uint32_t values = (1u << info->specialisable_count) - 1;
        if (!history->now) {
            note(history, info->specialisable_count, words);
            values = constant_values(info);
        }
        if (!values)
            return;
        code = new_code(kind, size, values, words, history->now ? CLD_ADOPTED : CLD_TRIAL);
        if (!(code = add_code(history, code, CLD_MOST_SPECIALISATIONS)))
            return;
        cld_tier_ask(kernel, info, code, history->now);
    }
    if (atomic_load_explicit(&code->entry, memory_order_acquire) &&
        choose((struct cld_specialisation *)code, launch, &command->kernel.trial))
        command->kernel.code = code;
}
