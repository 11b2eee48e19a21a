/* schedule/calls.c: when threads that sleep are called. */
#include "schedule/calls.h"

#include "../harness.h"

enum { US = 1000, WAKE = 20 * US };

static uint64_t now = 1000 * 1000 * US;

/* Commands of so many ns of work that follow one another, until one counts on all that it wants: how many. */
static int until_called(double left, unsigned awake, unsigned wanted, uint64_t pause) {
    struct cld_calls calls = {0};
    for (int count = 1; count < 1000; count++) {
        now += pause;
        unsigned worth = cld_calls_worth(&calls, left, awake, wanted, now, WAKE);
        CHECK(worth == awake || worth == wanted);
        if (worth == wanted) {
            CHECK_IS(cld_calls_worth(&calls, left, wanted, wanted, now, WAKE), wanted);
            return count;
        }
    }
    return 0;
}

int main(void) {
    CHECK_IS(until_called(20 * US, 3, 3, US), 1); /* nobody is missed */
    CHECK_IS(until_called(20 * US, 5, 3, US), 1);
    CHECK_IS(until_called(20 * US, 0, 1, US), 1); /* it comes as it ends */
    CHECK_IS(until_called(19 * US, 0, 1, US), 3);
    CHECK_IS(until_called(20 * US, 2, 3, US), 12); /* 5/3 us each */
    CHECK_IS(until_called(200 * US, 7, 15, 40 * US), 1);
    CHECK_IS(until_called(120 * US, 7, 15, 40 * US), 3);
    /* Who was called for one sleeps before the next. */
    CHECK_IS(until_called(19 * US, 0, 1, 200 * US), 0);
    CHECK_IS(until_called(120 * US, 7, 15, 200 * US), 0);
    CHECK_IS(until_called(60 * US, 0, 1, 200 * US), 1);

    /* What was missed before a pause does not count, nor does it count twice. */
    struct cld_calls calls = {0};
    CHECK_IS(cld_calls_worth(&calls, 19 * US, 0, 3, now, WAKE), 0);
    now += 200 * US;
    CHECK_IS(cld_calls_worth(&calls, 19 * US, 0, 3, now, WAKE), 0);
    CHECK_IS(cld_calls_worth(&calls, 19 * US, 0, 3, now, WAKE), 3);
    CHECK_IS(cld_calls_worth(&calls, 19 * US, 0, 3, now, WAKE), 0);

    /* Until it is known how long they take, all are called. */
    CHECK_IS(cld_calls_worth(&(struct cld_calls){0}, 20 * US, 0, 3, now, 0), 3);
    return 0;
}
