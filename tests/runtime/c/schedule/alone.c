/* schedule/alone.c: one thread or several. Commands that take so long either way, on a clock of the test's
 * own. */
#include "schedule/alone.h"

#include "../harness.h"

enum { UNITS = 1000, PIECE = 32 };

static struct cld_alone alone;
static int code, other_code;
static uint64_t now = 1;

struct counts {
    unsigned compared, alone, given_up;
    uint64_t time;
};

/* One command: ns that it takes shared, and by one thread. */
static void execute(const void *what, uint64_t total, uint64_t shared, uint64_t by_one,
                    struct counts *counts) {
    uint64_t start = now, done = 0;
    struct cld_alone_run *run = cld_alone_begin(&alone, "test", what, total);
    if (run) {
        run->start = start;
        counts->compared++;
        counts->alone += run->is_alone;
        while (run->is_alone && done < total && (!done || cld_alone_goes_on(run, now, done))) {
            uint64_t piece = total - done < PIECE ? total - done : PIECE;
            now += by_one * piece / total;
            done += piece;
        }
        CHECK_IS(run->given_up, run->is_alone && done < total);
        counts->given_up += run->given_up;
    }
    now += shared * (total - done) / total;
    if (run)
        cld_alone_end(run, now, false);
    counts->time += now - start;
}

static struct counts many(unsigned count, uint64_t shared, uint64_t by_one) {
    struct counts counts = {0};
    for (unsigned i = 0; i < count; i++)
        execute(&code, UNITS, shared, by_one, &counts);
    return counts;
}

static void forget(void) {
    alone = (struct cld_alone){0};
    atomic_flag_clear(&alone.busy);
}

static void one_is_sooner(void) {
    forget();
    many(20, 100000, 50000);
    CHECK_IS(alone.state, CLD_ALONE_ADOPTED);
    struct counts counts = many(160, 100000, 50000);
    CHECK_IS(counts.compared, 160);
    CHECK_IS(counts.alone, 150); /* the others tell whether it is still right */
    CHECK_IS(counts.given_up, 0);
}

static void several_are_sooner(void) {
    forget();
    struct counts counts = many(4, 100000, 1600000);
    CHECK_IS(counts.alone, 0); /* few commands do not pay for a trial */
    counts = many(60, 100000, 1600000);
    CHECK_IS(alone.state, CLD_ALONE_REJECTED);
    CHECK(counts.given_up && counts.given_up == counts.alone);
    CHECK(counts.time < 65 * 100000); /* nor is a trial dear where there is nothing to gain */
    counts = many(10000, 100000, 1600000);
    CHECK(counts.alone && counts.alone < 40); /* it is tried again, ever more rarely */
}

static void small_differences(void) {
    forget();
    many(40, 100000, 95000);
    CHECK_IS(alone.state, CLD_ALONE_REJECTED);
}

static void interrupted(void) {
    forget();
    many(5, 100000, 50000);
    many(1, 100000, 5000000);
    many(20, 100000, 50000);
    CHECK_IS(alone.state, CLD_ALONE_ADOPTED);
    many(1, 100000, 5000000);
    many(40, 100000, 50000);
    CHECK_IS(alone.state, CLD_ALONE_ADOPTED);
}

/* Other data: threads wait no longer for one another, with one thread as fast as before, or slower. */
static void no_longer(uint64_t by_one) {
    forget();
    many(20, 100000, 50000);
    CHECK_IS(alone.state, CLD_ALONE_ADOPTED);
    many(80, 10000, by_one);
    CHECK_IS(alone.state, CLD_ALONE_REJECTED);
}

static void others_are_not_compared(void) {
    forget();
    struct counts counts = many(20, 100000, 50000), large = {0};
    for (unsigned i = 0; i < 15; i++)
        execute(&code, 10 * UNITS, 1000, 100, &large);
    CHECK_IS(large.compared, 0);
    CHECK_IS(alone.state, CLD_ALONE_ADOPTED);
    counts = many(1, 100000, 50000);
    CHECK_IS(counts.compared, 1);
    for (unsigned i = 0; i < 40; i++) /* until there is nothing else */
        execute(&code, 10 * UNITS, 100000, 10000, &large);
    CHECK_IS(alone.total, 10 * UNITS);
    CHECK_IS(alone.state, CLD_ALONE_ADOPTED);
    execute(&other_code, UNITS, 1000, 100, &large);
    CHECK_IS(alone.state, CLD_ALONE_TRIAL);
}

static void failed(void) {
    forget();
    for (unsigned i = 0; i < 100; i++)
        cld_alone_end(cld_alone_begin(&alone, "test", &code, UNITS), now, true);
    CHECK_IS(alone.measured[0], 0);
    CHECK_IS(alone.state, CLD_ALONE_TRIAL);
}

int main(void) {
    one_is_sooner();
    several_are_sooner();
    small_differences();
    interrupted();
    no_longer(50000);
    no_longer(500000);
    others_are_not_compared();
    failed();
    return 0;
}
