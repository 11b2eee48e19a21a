/* What a program was built to for one of its devices. */
#ifndef CLD_DEVICE_EXECUTABLE_H
#define CLD_DEVICE_EXECUTABLE_H

#include "kernel/kernel.h"

/* Whether the program is for a device, or for one that it is a part of. */
bool cld_program_is_for(const struct cld_program *program, const struct cld_device *device);

/* What a program was built to for a device, held; its code is loaded if it is not yet.
 * CL_INVALID_PROGRAM_EXECUTABLE where there is none. */
cl_int cld_program_hold_executable(struct cld_program *program, const struct cld_device *device,
                                   struct cld_executable **executable);

#endif
