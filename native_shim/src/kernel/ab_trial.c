/* A/B trials: two ways to execute a kernel, and which one is faster. */
#include "kernel/ab_trial.h"

#include <stdlib.h>

#include "base/log.h"

/* Launches of each kind that are compared, and few that are enough to see a large difference, in percent. */
enum { ROUNDS = 16, FEW_ROUNDS = 3, LARGE = 25 };

/* What one launch takes that leaves no doubt: in shares of the usual time, and ns that are more than the
 * system is likely to have taken a CPU away for. */
enum { HOPELESS = 8, HOPELESS_TIME = 50000000 };

static bool is_faster(uint64_t time, uint64_t usual, uint32_t gain) {
    return (double)time * 100 <= (double)usual * (100 - gain);
}

bool cld_ab_trial_choose(struct cld_ab_trial *ab_trial, const struct cld_ab_kind *kind, uint64_t items,
                         struct cld_ab_run **trial) {
    int32_t state = atomic_load_explicit(&ab_trial->state, memory_order_relaxed);
    uint64_t first = 0;
    if (state != CLD_TRIAL)
        return state == CLD_ADOPTED;
    if (!atomic_compare_exchange_strong(&ab_trial->items, &first, items) && first != items)
        return false;
    struct cld_ab_run *made = calloc(1, sizeof *made);
    if (!made)
        return false;
    made->ab_trial = ab_trial;
    made->kind = kind;
    made->is_new = atomic_fetch_add_explicit(&ab_trial->turn, 1, memory_order_relaxed) & 1;
    *trial = made;
    return made->is_new;
}

static void judge(const char *kernel, const struct cld_ab_run *trial, uint64_t time) {
    struct cld_ab_trial *ab_trial = trial->ab_trial;
    bool is_new = trial->is_new;
    uint32_t number = atomic_fetch_add(&ab_trial->measured[is_new], 1);
    uint64_t known = atomic_load(&ab_trial->best[0]);
    bool is_hopeless = is_new && known && time >= HOPELESS_TIME && time / HOPELESS >= known;
    if (is_new && !number && !is_hopeless) /* the first one brings code and constants into the caches */
        return;
    uint64_t best = atomic_load(&ab_trial->best[is_new]);
    while ((!best || time < best) && !atomic_compare_exchange_weak(&ab_trial->best[is_new], &best, time))
        ;
    uint32_t usual_count = atomic_load(&ab_trial->measured[0]), count = atomic_load(&ab_trial->measured[1]);
    uint64_t usual = atomic_load(&ab_trial->best[0]), mine = atomic_load(&ab_trial->best[1]);
    bool is_clear = trial->kind->may_differ_much && usual_count >= FEW_ROUNDS && count > FEW_ROUNDS &&
                    (is_faster(mine, usual, LARGE) || is_faster(usual, mine, LARGE));
    if (!is_hopeless && !is_clear && (usual_count < ROUNDS || count < ROUNDS + 1))
        return;
    bool adopted = is_faster(mine, usual, trial->kind->gain);
    int32_t state = CLD_TRIAL;
    if (usual && mine &&
        atomic_compare_exchange_strong(&ab_trial->state, &state, adopted ? CLD_ADOPTED : CLD_REJECTED))
        cld_log(2, "kernel %s: code for %s takes %.2f of the time, and is %s", kernel, trial->kind->name,
                (double)mine / (double)usual, adopted ? "used" : "not used");
}

void cld_ab_run_end(const char *kernel, struct cld_ab_run *trial, uint64_t units) {
    uint64_t time = atomic_load(&trial->time), timed = atomic_load(&trial->units);
    if (units && timed && timed >= units / 4)
        judge(kernel, trial, (uint64_t)((double)time * (double)units / (double)timed));
    free(trial);
}
