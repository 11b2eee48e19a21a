/* What the files about programs and kernels share. */
#ifndef CLD_API_PROGRAM_H
#define CLD_API_PROGRAM_H

#include "objects.h"

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

/* Loads the code of a built program, once: program->variants are there afterwards, and stay until the next
 * build. CL_INVALID_PROGRAM_EXECUTABLE if it is not built. */
cl_int cld_program_load(struct cld_program *program);

/* Forgets what was loaded; kernels that exist keep their own hold on it. */
void cld_program_unload(struct cld_program *program);

/* Waits until no program is being built, nor has been for a moment: what the program does not wait for must
 * not take the cores from builds. Gives up after ten seconds. */
void cld_builds_wait(void);

#endif
