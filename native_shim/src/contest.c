/* Two ways to execute a kernel, and which one is faster. */
#include "contest.h"

#include <stdlib.h>

#include "log.h"

/* The share of the time, in percent, that the new way must save; launches of each kind that are compared. */
enum { GAIN = 3, ROUNDS = 16 };

static bool is_faster(uint64_t time, uint64_t usual) {
    return (double)time * 100 <= (double)usual * (100 - GAIN);
}

bool cld_contest_choose(struct cld_contest *contest, uint64_t items, struct cld_trial **trial) {
    int32_t state = atomic_load_explicit(&contest->state, memory_order_relaxed);
    uint64_t first = 0;
    if (state != CLD_TRIAL)
        return state == CLD_ADOPTED;
    if (!atomic_compare_exchange_strong(&contest->items, &first, items) && first != items)
        return false;
    struct cld_trial *made = calloc(1, sizeof *made);
    if (!made)
        return false;
    made->contest = contest;
    made->is_new = atomic_fetch_add_explicit(&contest->turn, 1, memory_order_relaxed) & 1;
    *trial = made;
    return made->is_new;
}

static void judge(const char *kernel, const struct cld_trial *trial, uint64_t time) {
    struct cld_contest *contest = trial->contest;
    bool is_new = trial->is_new;
    uint32_t number = atomic_fetch_add(&contest->measured[is_new], 1);
    if (is_new && !number) /* the first one brings code and constants into the caches */
        return;
    uint64_t best = atomic_load(&contest->best[is_new]);
    while ((!best || time < best) && !atomic_compare_exchange_weak(&contest->best[is_new], &best, time))
        ;
    if (atomic_load(&contest->measured[0]) < ROUNDS || atomic_load(&contest->measured[1]) < ROUNDS + 1)
        return;
    uint64_t usual = atomic_load(&contest->best[0]), mine = atomic_load(&contest->best[1]);
    bool adopted = is_faster(mine, usual);
    int32_t state = CLD_TRIAL;
    if (usual && mine &&
        atomic_compare_exchange_strong(&contest->state, &state, adopted ? CLD_ADOPTED : CLD_REJECTED))
        cld_log(2, "kernel %s: code for values of arguments takes %.2f of the time, and is %s", kernel,
                (double)mine / (double)usual, adopted ? "used" : "not used");
}

void cld_trial_end(const char *kernel, struct cld_trial *trial, uint64_t units) {
    uint64_t time = atomic_load(&trial->time), timed = atomic_load(&trial->units);
    if (units && timed && timed >= units / 4)
        judge(kernel, trial, (uint64_t)((double)time * (double)units / (double)timed));
    free(trial);
}
