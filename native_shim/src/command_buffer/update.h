/* Commands that take the place of recorded ones: what update.c has for other files. */
#ifndef CLD_UPDATE_H
#define CLD_UPDATE_H

#include "graph/command_buffer.h"

/* A copy of what was recorded with that launch, which is taken over in every case, and no command yet.
 * NULL: no memory. */
struct cld_recorded *cld_recorded_again(const struct cld_recorded *recorded,
                                        struct cld_recorded_launch *launch);

/* A copy to be changed. NULL: no memory. */
struct cld_recorded_launch *cld_recorded_launch_again(const struct cld_recorded_launch *launch);

#endif
