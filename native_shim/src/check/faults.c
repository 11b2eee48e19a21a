/* What kernels tell of that generated code has found itself, or that is nothing in shared memory. */
#include <string.h>

#include "check/shadow.h"

uint8_t *cld_kcheck_outside(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site,
                            int64_t offset) {
    struct range range = {.start = thread->nowhere, .size = site->bytes, .is_known = true};
    found(thread, OUT_OF_BOUNDS, site, &range, thread->nowhere + offset, site->size);
    memset(thread->nowhere, 0, site->size <= CLD_CHECK_GAP ? site->size : CLD_CHECK_GAP);
    return thread->nowhere;
}

void cld_kcheck_unwritten(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site,
                          int64_t offset, uint64_t size) {
    struct range range = {.start = thread->nowhere, .size = site->bytes, .is_known = true};
    found(thread, UNWRITTEN, site, &range, thread->nowhere + offset, size);
}

void cld_kcheck_index(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site, int64_t index) {
    struct report report = {.finding = INDEX,
                            .site = site,
                            .place = place_of(thread->launch, thread->group_index, thread->item),
                            .offset = index,
                            .size = site->bytes};
    report_add(thread, &report);
}

void cld_kcheck_operation(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site, uint64_t a,
                          uint64_t b) {
    struct report report = {.finding = NO_RESULT,
                            .site = site,
                            .place = place_of(thread->launch, thread->group_index, thread->item),
                            .operands = {a, b}};
    report_add(thread, &report);
}

void cld_kcheck_fault(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site) {
    struct report report = {.finding = NO_ATOMICS,
                            .site = site,
                            .place = place_of(thread->launch, thread->group_index, thread->item)};
    report_add(thread, &report);
}

void cld_kcheck_image(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site,
                      const struct cld_image_desc *image, int32_t x, int32_t y, int32_t z) {
    uint32_t dims = site->bytes & 255, used = dims + (site->bytes >> 8 ? 1 : 0);
    const int32_t at[3] = {x, y, z}, sizes[3] = {image->width, image->height, image->depth};
    struct report report = {.finding = OUTSIDE_IMAGE, .site = site, .sizes = {1, 1, 1}};
    bool is_outside = false;
    for (uint32_t i = 0; i < used && i < 3; i++) {
        report.coordinates[i] = at[i];
        report.sizes[i] = i < dims ? sizes[i] : image->array_size;
        is_outside |= at[i] < 0 || at[i] >= report.sizes[i];
    }
    if (!is_outside)
        return;
    report.place = place_of(thread->launch, thread->group_index, thread->item);
    report_add(thread, &report);
}
