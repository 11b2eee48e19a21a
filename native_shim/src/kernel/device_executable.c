/* What a program was built to for one of its devices. */
#include "kernel/device_executable.h"

#include "kernel/executable.h"
#include "object/call.h"
#include "object/lock.h"

/* Where a device is among the program's; -1: it is not there. */
static int64_t place_of(const struct cld_program *program, const struct cld_device *device) {
    for (uint32_t i = 0; i < program->device_count; i++)
        if (program->devices[i] == device)
            return i;
    return -1;
}

bool cld_program_is_for(const struct cld_program *program, const struct cld_device *device) {
    for (; device; device = device->parent)
        if (place_of(program, device) >= 0)
            return true;
    return false;
}

/* "If a program binary has not been built for a sub-device, the program binary associated with the parent
 * device will be used." The program is locked. */
static struct cld_executable *find(const struct cld_program *program, const struct cld_device *device) {
    for (; program->builds && device; device = device->parent) {
        int64_t place = place_of(program, device);
        if (place >= 0 && program->build_of[place] >= 0)
            return program->builds[program->build_of[place]].executable;
    }
    return NULL;
}

cl_int cld_program_hold_executable(struct cld_program *program, const struct cld_device *device,
                                   struct cld_executable **executable) {
    cl_int status = cld_program_load(program);
    CLD_REQUIRE(!status, status, "the program has no executable, or none that can be loaded");
    cld_lock(program);
    *executable = find(program, device);
    if (*executable)
        atomic_fetch_add(&(*executable)->holds, 1);
    cld_unlock(program);
    CLD_REQUIRE(*executable, CL_INVALID_PROGRAM_EXECUTABLE, "the program has no executable for the device");
    return CL_SUCCESS;
}
