/* cluster/worth.c: which launches are worth cutting, by what others took. */
#include "cluster/worth.h"

#include "../harness.h"

enum { US = 1000, MS = 1000 * US, INLINE = 100, MUCH = 1 << 20 };

static void links(void) {
    struct cld_link link = {0};
    cld_link_learn(&link, 5 * MS, MUCH); /* nothing is known of messages alone */
    CHECK_IS((long)link.byte_time, 0);
    cld_link_learn(&link, MS, INLINE);
    CHECK_IS((long)link.trip, MS);
    cld_link_learn(&link, MS / 2, 0);
    CHECK_IS((long)link.trip, 3 * MS / 4);
    cld_link_learn(&link, 3 * MS / 4 + 2.0 * MUCH, MUCH);
    CHECK_IS((long)link.byte_time, 2);
    cld_link_learn(&link, 3 * MS / 4 + 2.0 * MUCH * 16, 2 * MUCH); /* no more than four times as long */
    CHECK_IS((long)link.byte_time, (0.75 * 2 + 2 * 8) / 2.75);
    cld_link_learn(&link, 100.0 * MS, 0); /* something was interrupted */
    CHECK_IS((long)link.trip, 3 * MS / 4 * 7 / 4);
}

static struct cld_works works;

static void check_expected(uint64_t items, long wanted) {
    double time = 0, part = 0;
    CHECK(cld_work_expect(&works, items, &time, &part));
    CHECK_IS((long)time, wanted);
    CHECK_IS((long)(part * 100), 50);
}

static void sizes(void) {
    double time, part;
    memset(&works, 0, sizeof works);
    CHECK(!cld_work_expect(&works, 1000, &time, &part));
    cld_work_learn(&works, 1000, 80, 0.5);
    check_expected(1000, 80);
    check_expected(520, 80);
    check_expected(4100, 80 * 8); /* 2^12 beside 2^9 */
    check_expected(64, 80 / 8);
    check_expected(0, 0);
    check_expected(UINT64_MAX, 80l << 54);
    cld_work_learn(&works, 1 << 20, 7 * MS, 0.5);
    check_expected(1 << 19, 7 * MS / 2);
    cld_work_learn(&works, 1000, 40, 0); /* by one worker: what parts are of it stays */
    check_expected(1000, 60);
}

/* The same work, and what it is compared with: no time is short or long by itself. */
static void messages(void) {
    const double works_of[] = {20 * US, 2 * MS, 200 * MS}, trips[] = {5 * US, 500 * US, 50 * MS};
    for (int w = 0; w < 3; w++)
        for (int t = 0; t < 3; t++) {
            struct cld_work work = {0};
            const struct cld_way one = {works_of[w], trips[t], 0}, parts = {works_of[w] / 4, 2 * trips[t], 0};
            CHECK_IS(cld_is_worth_cutting(&work, &parts, &one), w >= t);
        }
}

static void contents(void) {
    /* All of it lies on one worker, and would have to be moved to the others: after a while it is. */
    struct cld_work work = {0};
    struct cld_way one = {2 * MS, MS, 0}, parts = {MS, MS, 10 * MS};
    for (int i = 0; i < 10; i++)
        CHECK(!cld_is_worth_cutting(&work, &parts, &one));
    CHECK(cld_is_worth_cutting(&work, &parts, &one));
    /* Then it is there. */
    one.contents = 10 * MS;
    parts.contents = 0;
    for (int i = 0; i < 100; i++)
        CHECK(cld_is_worth_cutting(&work, &parts, &one));
    /* Parts want something of one another each time, which costs more than they save. */
    work = (struct cld_work){.was_cut = true};
    parts.contents = 3 * MS; /* 5 in all, and 3 on one worker */
    for (int i = 0; i < 5; i++)
        CHECK(cld_is_worth_cutting(&work, &parts, &one));
    CHECK(!cld_is_worth_cutting(&work, &parts, &one));
    /* It stays there: the next ones would want something of one another again. */
    one.contents = 0;
    parts.contents = 10 * MS;
    for (int i = 0; i < 1000; i++)
        CHECK(!cld_is_worth_cutting(&work, &parts, &one));
}

int main(void) {
    links();
    sizes();
    messages();
    contents();
    return 0;
}
