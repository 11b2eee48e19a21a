/* Counters of the hardware, of each thread that executes commands (perf_event_open), where the system lets
 * us: cycles, instructions, misses of the last cache and mispredicted branches, of user code. */
#ifndef CLD_COUNTERS_H
#define CLD_COUNTERS_H

#include "profile/accounts.h"

struct cld_hardware {
    bool is_valid;
    uint64_t values[CLD_HARDWARE_COUNTERS];
};

extern const char *const cld_hardware_names[CLD_HARDWARE_COUNTERS];

/* Reads the settings. */
void cld_hardware_begin(void);

/* The calling thread's counters, which are opened at its first call; not valid where nobody wants them, or
 * they cannot be had. */
void cld_hardware_read(struct cld_hardware *hardware);

/* Why there are none, as a sentence without a full stop; NULL: there are, or nobody wants them. */
const char *cld_hardware_lack(char *text, size_t size);

/* In the child of a fork: what is open counts for the parent. */
void cld_hardware_forget(void);

#endif
