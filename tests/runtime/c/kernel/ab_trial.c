/* kernel/ab_trial.c: two ways to execute a kernel, whose launches take so long either way. */
#include "kernel/ab_trial.h"

#include "../harness.h"

enum { ITEMS = 1000, UNITS = 10 };

static const struct cld_ab_kind kind = {"the test", 5, false}, odd_kind = {"the test", 5, true};

/* Launches until it is known; ns that each takes. Returns how many went the new way. */
static unsigned launches(struct cld_ab_trial *ab_trial, const struct cld_ab_kind *which, uint64_t usual,
                         uint64_t mine) {
    unsigned count = 0;
    for (unsigned i = 0; i < 100 && atomic_load(&ab_trial->state) == CLD_TRIAL; i++) {
        struct cld_ab_run *trial = NULL;
        bool is_new = cld_ab_trial_choose(ab_trial, which, ITEMS, &trial);
        CHECK(trial != NULL);
        CHECK_IS(trial->is_new, is_new);
        count += is_new;
        atomic_store(&trial->time, is_new ? mine : usual);
        atomic_store(&trial->units, UNITS);
        cld_ab_run_end("test", trial, UNITS);
    }
    return count;
}

static void test_what_is_faster_is_adopted(void) {
    struct cld_ab_trial ab_trial = {0};
    CHECK_IS(launches(&ab_trial, &kind, 1000, 900), 17);
    CHECK_IS(atomic_load(&ab_trial.state), CLD_ADOPTED);
    struct cld_ab_trial odd = {0};
    CHECK_IS(launches(&odd, &odd_kind, 1000, 500), 4);
    CHECK_IS(atomic_load(&odd.state), CLD_ADOPTED);
}

static void test_what_is_slower_is_rejected(void) {
    struct cld_ab_trial ab_trial = {0};
    CHECK_IS(launches(&ab_trial, &kind, 1000, 100000), 17); /* the system may have taken the CPU away */
    CHECK_IS(atomic_load(&ab_trial.state), CLD_REJECTED);
    struct cld_ab_trial odd = {0};
    CHECK_IS(launches(&odd, &odd_kind, 1000, 2000), 4);
    CHECK_IS(atomic_load(&odd.state), CLD_REJECTED);
}

/* Each of them would keep the host waiting. */
static void test_what_is_hopeless_is_tried_once(void) {
    struct cld_ab_trial ab_trial = {0};
    CHECK_IS(launches(&ab_trial, &kind, 10000000, 300000000), 1);
    CHECK_IS(atomic_load(&ab_trial.state), CLD_REJECTED);
    struct cld_ab_trial close = {0};
    CHECK_IS(launches(&close, &odd_kind, 100000000, 700000000), 4);
    CHECK_IS(atomic_load(&close.state), CLD_REJECTED);
}

int main(void) {
    test_what_is_faster_is_adopted();
    test_what_is_slower_is_rejected();
    test_what_is_hopeless_is_tried_once();
    return 0;
}
