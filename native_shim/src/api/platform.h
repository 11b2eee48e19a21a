/* The platform and its one root device: made by the first question for them, never freed. */
#ifndef CLD_PLATFORM_H
#define CLD_PLATFORM_H

#include "object/objects.h"

/* Of the root device's Python peer, in every process: it is there before Python is. */
enum { CLD_ROOT_DEVICE_KEY = 1 };

struct cld_platform {
    struct cld_object obj;
};

/* NULL when out of memory. Neither starts a thread or Python. */
struct cld_platform *cld_platform(void);
struct cld_device *cld_root_device(void);

/* The platform behind a handle, or NULL. NULL stands for the platform, as loaders pass it on. */
struct cld_platform *cld_platform_check(cl_platform_id platform);

/* What the driver reports as CL_DEVICE_TYPE of the root device. */
cl_device_type cld_device_type(void);

#endif
