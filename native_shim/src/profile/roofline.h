/* What this machine can do at most: operations on floating-point numbers a second, and bytes of memory. */
#ifndef CLD_ROOFLINE_H
#define CLD_ROOFLINE_H

#include <stdbool.h>
#include <stdint.h>

struct cld_roofline {
    uint32_t threads;
    double operations; /* of float, an fma counting as two, a second, by all threads */
    double bytes;      /* read and written, a second, likewise */
};

/* Of so many threads: what the cache folder has, or what is measured now, which takes less than a second.
 * False if it is not there and may not be measured. */
bool cld_roofline_get(uint32_t threads, bool may_measure, struct cld_roofline *roofline);

#endif
