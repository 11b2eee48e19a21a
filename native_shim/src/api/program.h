/* What the files about programs share. */
#ifndef CLD_PROGRAM_H
#define CLD_PROGRAM_H

#include "kernel/kernel.h"

/* A program without a peer. devices may repeat themselves. NULL when out of memory. */
struct cld_program *cld_program_new(struct cld_context *context, struct cld_device *const *devices,
                                    uint32_t count);

static inline bool cld_program_has_device(const struct cld_program *program,
                                          const struct cld_device *device) {
    for (uint32_t i = 0; i < program->device_count; i++)
        if (program->devices[i] == device)
            return true;
    return false;
}

#endif
