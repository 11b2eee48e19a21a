/* cluster/whole.c: who is held up by a launch that takes long, and what waits for it goes on only if somebody
 * is left. The clock is the test's (linked with --wrap=cld_now). */
#include "../harness.h"
#include "cluster/internal.h"

enum { WORKERS = 3, PARTS = 2, SECOND = 1000000000 };

static struct cld_worker workers[WORKERS];
static struct cld_request request; /* any */
static uint64_t now;
static struct cld_works works;
static struct cld_kernel_info info = {.works = &works};
static struct cld_event launch, waiting;
static struct cld_parts *parts;

struct cld_worker *__wrap_cld_worker_at(uint32_t number);
uint64_t __wrap_cld_now(void);

struct cld_worker *__wrap_cld_worker_at(uint32_t number) {
    return number < WORKERS ? &workers[number] : NULL;
}

uint64_t __wrap_cld_now(void) {
    return now;
}

/* The worker was sent something that it has not answered for so long. */
static void sent(struct cld_worker *worker, uint64_t ago) {
    worker->oldest = &request;
    worker->answered = now - ago;
}

/* A launch of which the first workers have parts, for which another one waits. */
static void begin(void) {
    memset(workers, 0, sizeof workers);
    for (int i = 0; i < WORKERS; i++)
        workers[i].is_in_whole = true;
    launch.kernel.info = &info;
    waiting.next = NULL;
    works = (struct cld_works){.is_tried = true, .waiting = &waiting};
    memset(parts->parts, 0, PARTS * sizeof *parts->parts);
    parts->command = &launch;
    parts->count = PARTS;
    cld_trial_begin(parts);
    for (int i = 0; i < PARTS; i++) {
        parts->parts[i].worker = &workers[i];
        sent(&workers[i], 0);
    }
}

static void arrive(int part) {
    parts->parts[part].arrived = now;
    workers[part].oldest = NULL;
}

/* Whether the other launch goes on. */
static bool goes_on(void) {
    struct cld_event *again = NULL;
    cld_trials_look(&again);
    CHECK(!again || again == &waiting);
    CHECK_IS(works.is_tried, !again);
    CHECK_IS(parts->is_trial, !again);
    CHECK_IS(works.trials, again ? UINT32_MAX : 0);
    return again != NULL;
}

static void end(void) {
    struct cld_event *again = NULL;
    cld_trial_end(parts, &again);
    CHECK(!parts->is_trial && !works.is_tried);
}

/* Not before it has taken long, and then only if a worker is left. */
static void when_it_takes_long(void) {
    begin();
    workers[2].is_gone = true;
    now += 3 * (uint64_t)SECOND;
    arrive(1);
    CHECK(!goes_on()); /* four seconds, of the first one */
    now += 2 * (uint64_t)SECOND;
    CHECK(cld_is_held_up(&workers[0], now) && !cld_is_held_up(&workers[1], now));
    CHECK(goes_on());
    end();

    begin();
    now += 60 * (uint64_t)SECOND;
    CHECK(goes_on()); /* the third worker has no part */
    end();

    begin();
    workers[2].is_in_whole = false; /* nor may have one */
    now += 60 * (uint64_t)SECOND;
    CHECK(!goes_on());
    arrive(0);
    CHECK(goes_on());
    end();
}

static void while_all_are_held_up(void) {
    begin();
    workers[2].is_gone = true;
    for (int i = 0; i < 10; i++) {
        now += 60 * (uint64_t)SECOND;
        CHECK(!goes_on());
    }
    arrive(0);
    CHECK(goes_on());
    end();
}

/* Who answers something else is held up by the part all the same, from when the launch began. */
static void what_else_is_answered(void) {
    begin();
    workers[2].is_gone = true;
    for (int i = 0; i < 10; i++) {
        now += 60 * (uint64_t)SECOND;
        sent(&workers[0], 1);
        sent(&workers[1], 1);
        CHECK(!goes_on());
        CHECK(cld_is_held_up(&workers[0], now) && cld_is_held_up(&workers[1], now));
    }
    parts->parts[1].arrived = now;
    sent(&workers[1], 1);
    CHECK(goes_on());
    CHECK(!cld_is_held_up(&workers[1], now));
    end();
}

/* What is long is told by launches that have ended. */
static void after_others(void) {
    for (int i = 0; i < 30; i++) {
        begin();
        now += SECOND;
        arrive(0);
        arrive(1);
        end();
    }
    begin();
    now += 6 * (uint64_t)SECOND;
    CHECK(!goes_on());
    now += 6 * (uint64_t)SECOND;
    CHECK(goes_on());
    end();
}

int main(void) {
    now = SECOND;
    parts = calloc(1, sizeof *parts + PARTS * sizeof *parts->parts);
    CHECK(parts);
    when_it_takes_long();
    while_all_are_held_up();
    what_else_is_answered();
    after_others();
    free(parts);
    return 0;
}
