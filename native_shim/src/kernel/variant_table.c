/* The variants of a kernel: a list that grows at its head, until the kernel's info is freed. */
#include <stdlib.h>

#include "kernel/variant.h"
#include "loader/load.h"

/* What launches of ever new sizes, formats and values must not make more of. */
enum { MOST_SIZES = 8, MOST_OF_FORMATS = 256 };

static bool is_of_size(const struct cld_variant_key *key) {
    return key->shape == CLD_SHAPE_GROUP || key->shape == CLD_SHAPE_LINEAR;
}

bool cld_variant_has_formats(const struct cld_kernel_info *info, uint32_t values) {
    for (uint32_t i = 0; values >> i; i++) {
        uint8_t kind = info->args[info->specialisable_args[i]].kind;
        if ((values >> i & 1) && (kind == CLD_ARG_IMAGE || kind == CLD_ARG_SAMPLER))
            return true;
    }
    return false;
}

/* Whether there may be one more. */
static bool has_room(const struct cld_kernel_info *info, const struct cld_variant *list,
                     const struct cld_variant_key *key) {
    if (!key->values && !is_of_size(key)) /* of these there are few */
        return true;
    unsigned most = cld_variant_has_formats(info, key->values) ? MOST_OF_FORMATS
                    : key->values                              ? CLD_MOST_SPECIALISATIONS
                                                               : MOST_SIZES;
    for (; list && most; list = list->next)
        most -= key->values ? list->key.values != 0 : !list->key.values && is_of_size(&list->key);
    return most;
}

struct cld_variant *cld_variant_add(struct cld_kernel_info *info, const struct cld_variant_key *key) {
    struct cld_variant *added = NULL, *found = NULL;
    struct cld_variant *first = atomic_load_explicit(&info->variants, memory_order_acquire);
    do {
        if ((found = cld_variant_in(first, key)) || !has_room(info, first, key) ||
            (!added && !(added = calloc(1, sizeof *added)))) {
            free(added);
            return found;
        }
        added->key = *key;
        added->next = first;
    } while (!atomic_compare_exchange_weak(&info->variants, &first, added));
    return added;
}

void cld_variants_drop(struct cld_kernel_info *info) {
    struct cld_variant *next, *variant = atomic_load(&info->variants);
    for (; variant; variant = next) {
        next = variant->next;
        if (variant->code)
            cld_code_unload(variant->code);
        free(variant);
    }
}
