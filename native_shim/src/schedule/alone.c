/* One thread or several: which is sooner. */
#include "schedule/alone.h"

#include <stdlib.h>

#include "base/log.h"

/* Commands that are shared before one thread tries, and that are timed each way; those after which others are
 * compared instead; how often one thread is looked at again where it was sooner; and where it was not, after
 * how many commands all begins anew, each time twice as many. */
enum { WARM_UP = 4, ROUNDS = 4, MOST_OTHERS = 16, LOOK_AGAIN = 16, TRY_AGAIN = 32, MOST_RESTARTS = 20 };

/* In percent: what one thread must save; how much longer than several it may be about to take, and the part
 * of their time after which one looks. */
enum { GAIN = 10, TOO_LONG = 130, EARLIEST = 20 };

/* Commands that one thread gave up, and results in a row that speak against what was found, which are no
 * chance: the system may have interrupted one of them. */
enum { HOPELESS = 3, ENOUGH = 2 };

static void restart(struct cld_alone *alone, const void *code, uint64_t total) {
    alone->code = code;
    alone->total = total;
    alone->turn = alone->others = alone->given_up = alone->surprises = 0;
    for (int i = 0; i < 2; i++) {
        alone->best[i] = 0;
        alone->measured[i] = 0;
    }
    alone->restarts += alone->restarts < MOST_RESTARTS;
    alone->state = CLD_ALONE_TRIAL;
}

/* Whether the command is compared with others, and if so, whether one thread executes it. */
static bool choose(struct cld_alone *alone, const void *code, uint64_t total, bool *is_alone) {
    if (alone->code != code || (alone->total != total && ++alone->others >= MOST_OTHERS))
        restart(alone, code, total);
    if (alone->total != total)
        return false;
    uint32_t turn = alone->turn++;
    alone->others = 0;
    if (alone->state == CLD_ALONE_REJECTED) {
        if (turn >= (uint32_t)TRY_AGAIN << alone->restarts)
            restart(alone, code, total);
        return false;
    }
    bool is_adopted = alone->state == CLD_ALONE_ADOPTED;
    *is_alone = alone->best[0] && (is_adopted ? turn % LOOK_AGAIN != 0 : turn >= WARM_UP && turn % 2);
    return true;
}

struct cld_alone_run *cld_alone_begin(struct cld_alone *alone, const char *name, const void *code,
                                      uint64_t total) {
    bool is_alone = false;
    if (atomic_flag_test_and_set_explicit(&alone->busy, memory_order_acquire))
        return NULL;
    bool compared = choose(alone, code, total, &is_alone);
    uint64_t usual = alone->best[0];
    atomic_flag_clear_explicit(&alone->busy, memory_order_release);
    struct cld_alone_run *run = compared ? malloc(sizeof *run) : NULL;
    if (run)
        *run = (struct cld_alone_run){alone, name, code, total, 0, usual, is_alone, false};
    return run;
}

bool cld_alone_goes_on(struct cld_alone_run *run, uint64_t now, uint64_t done) {
    double time = (double)(now - run->start), whole = time * (double)run->total / (double)done;
    run->given_up =
        time * 100 >= (double)run->usual * EARLIEST && whole * 100 > (double)run->usual * TOO_LONG;
    return !run->given_up;
}

static void judge(struct cld_alone *alone, const char **found) {
    bool is_hopeless = alone->given_up >= HOPELESS;
    if (!is_hopeless && (alone->measured[0] < WARM_UP + ROUNDS || alone->measured[1] < ROUNDS))
        return;
    bool adopted = !is_hopeless && (double)alone->best[1] * 100 <= (double)alone->best[0] * (100 - GAIN);
    alone->state = adopted ? CLD_ALONE_ADOPTED : CLD_ALONE_REJECTED;
    alone->turn = 1;
    *found = adopted ? "one thread" : "several threads";
}

/* What was found may be true no longer: other data collide less, other programs have left the CPUs. */
static void look_again(struct cld_alone *alone, const struct cld_alone_run *run, uint64_t time) {
    if (run->is_alone && !run->given_up)
        return;
    bool is_sooner = (double)time * 100 < (double)alone->best[1] * (100 - GAIN / 2);
    alone->surprises = run->is_alone || is_sooner ? alone->surprises + 1 : 0;
    if (alone->surprises >= ENOUGH)
        restart(alone, run->code, run->total);
}

static void learn(struct cld_alone *alone, const struct cld_alone_run *run, uint64_t time,
                  const char **found) {
    if (alone->code != run->code || alone->total != run->total)
        return;
    if (alone->state == CLD_ALONE_ADOPTED) {
        look_again(alone, run, time);
        return;
    }
    if (alone->state != CLD_ALONE_TRIAL)
        return;
    uint64_t *best = &alone->best[run->is_alone];
    if (!run->given_up)
        *best = *best && *best < time ? *best : time;
    alone->measured[run->is_alone]++;
    alone->given_up += run->given_up;
    judge(alone, found);
}

void cld_alone_end(struct cld_alone_run *run, uint64_t now, bool failed) {
    struct cld_alone *alone = run->of;
    const char *found = NULL;
    if (!failed && !atomic_flag_test_and_set_explicit(&alone->busy, memory_order_acquire)) {
        learn(alone, run, now > run->start ? now - run->start : 1, &found);
        bool is_known = alone->best[0] && alone->best[1];
        double share = is_known ? (double)alone->best[1] / (double)alone->best[0] : 0;
        atomic_flag_clear_explicit(&alone->busy, memory_order_release);
        if (found && is_known)
            cld_log(2, "kernel %s: one thread takes %.2f of the time of several, so it is executed by %s",
                    run->name, share, found);
        else if (found)
            cld_log(2, "kernel %s: one thread always gives up, so it is executed by %s", run->name, found);
    }
    free(run);
}
