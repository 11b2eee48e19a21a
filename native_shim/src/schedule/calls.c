/* Which calls are worth what they cost. */
#include "schedule/calls.h"

/* ns after which who was called for one command sleeps again before the next. */
enum { MEMORY = 100000 };

/* Threads are called that come in time; and others, for the commands that follow, once these have missed them
 * for as long as it takes to come: who waits until he has paid the price once loses no more than that. */
unsigned cld_calls_worth(struct cld_calls *calls, double left, unsigned awake, unsigned wanted, uint64_t now,
                         double wake_time) {
    if (now - calls->last > MEMORY)
        calls->missed = 0;
    calls->last = now;
    if (awake >= wanted)
        return wanted;
    double time = left / (1 + awake);
    calls->missed += time - left / (1 + wanted);
    if (time < wake_time && calls->missed < wake_time)
        return awake;
    calls->missed = 0;
    return wanted;
}
