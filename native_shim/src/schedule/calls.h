/* Whether threads that sleep are called for a command. To be called costs the caller a system call, on
 * virtual machines an interrupt of another one, and who is called comes late: where a command is short it has
 * ended by then, and the one after it finds the thread, if it follows at once. */
#ifndef CLD_CALLS_H
#define CLD_CALLS_H

#include <stdint.h>

/* Of the commands of a pool, one after the other; all zeros at first. */
struct cld_calls {
    uint64_t last; /* when the last command was looked at that others may join, in ns */
    double missed; /* ns by which those since the last call took longer without who sleeps */
};

/* How many threads a command is to count on that `wanted` are good for, of which so many are awake. left: ns
 * that it takes one thread; wake_time: ns until who is called comes. */
unsigned cld_calls_worth(struct cld_calls *calls, double left, unsigned awake, unsigned wanted, uint64_t now,
                         double wake_time);

#endif
