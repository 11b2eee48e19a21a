/* Whether to fetch ahead. CPUs differ: their own prefetchers may do better alone, and prefetches take the
 * places of what is on its way. Memory that others use as well is twice as fast in one second as in the next,
 * so pieces of one launch are compared, not launches. */
#include "kernel/prefetch_trial.h"

#include <stdlib.h>

#include "base/log.h"

/* The share of the time, in percent, that fetching ahead must cost to be left out; and that one way must save
 * for few samples to be enough. */
enum { GAIN = 3, CLEAR_GAIN = 10, FEW_SAMPLES = 12, LEAST_PIECE = 8, LEAST_PIECES = 4 };

uint32_t cld_prefetch_piece(struct cld_prefetch_trial *ahead, uint64_t items, uint64_t groups) {
    uint64_t first = 0, piece = groups / CLD_PREFETCH_PIECES;
    if (piece < LEAST_PIECE)
        piece = LEAST_PIECE;
    if (groups / piece < LEAST_PIECES || piece > INT32_MAX)
        return 0;
    if (!atomic_compare_exchange_strong(&ahead->items, &first, items) && first != items)
        return 0;
    return (uint32_t)piece;
}

void cld_prefetch_sample(struct cld_prefetch_trial *ahead, bool is_ahead, uint64_t time) {
    uint32_t at = atomic_fetch_add_explicit(&ahead->next[is_ahead], 1, memory_order_relaxed);
    if (at < CLD_PREFETCH_SAMPLES)
        atomic_store_explicit(&ahead->samples[is_ahead][at], time < UINT32_MAX ? (uint32_t)time : UINT32_MAX,
                              memory_order_relaxed);
}

static int by_value(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* The median, which is not of those that the system has interrupted; and how many there are. */
static double median(const struct cld_prefetch_trial *ahead, bool is_ahead, unsigned *count) {
    uint32_t sorted[CLD_PREFETCH_SAMPLES];
    *count = 0;
    for (unsigned i = 0; i < CLD_PREFETCH_SAMPLES; i++) {
        uint32_t time = atomic_load_explicit(&ahead->samples[is_ahead][i], memory_order_relaxed);
        if (time)
            sorted[(*count)++] = time;
    }
    qsort(sorted, *count, sizeof *sorted, by_value);
    return *count ? sorted[*count / 2] : 0;
}

void cld_prefetch_conclude(struct cld_prefetch_trial *ahead, const char *kernel) {
    unsigned counts[2];
    double without = median(ahead, false, &counts[0]), with = median(ahead, true, &counts[1]);
    unsigned least = counts[0] < counts[1] ? counts[0] : counts[1];
    bool is_clear = without * 100 <= with * (100 - CLEAR_GAIN) || with * 100 <= without * (100 - CLEAR_GAIN);
    int32_t trial = CLD_PREFETCH_TRIAL;
    if (least < (is_clear ? FEW_SAMPLES : CLD_PREFETCH_SAMPLES))
        return;
    int32_t state = without * 100 <= with * (100 - GAIN) ? CLD_PREFETCH_OFF : CLD_PREFETCH_ON;
    if (atomic_compare_exchange_strong(&ahead->state, &trial, state))
        cld_log(2, "kernel %s: without fetching ahead it takes %.2f of the time, so it is %s", kernel,
                without / with, state == CLD_PREFETCH_OFF ? "not done" : "done");
}
