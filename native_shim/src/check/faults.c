/* What kernels tell of that generated code has found itself, or that is not in shared memory. */
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

uint8_t *cld_kcheck_fault(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site) {
    struct report report = {.finding = site->kind == CLD_CHECK_ATOMIC ? NO_ATOMICS : CONSTANT,
                            .site = site,
                            .bytes = site->size,
                            .place = place_of(thread->launch, thread->group_index, thread->item)};
    report_add(thread, &report);
    return thread->nowhere;
}
