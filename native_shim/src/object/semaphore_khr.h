/* cl_khr_semaphore 1.0.1 and cl_khr_external_semaphore 1.0.1: what headers of 2023 lack. */
#ifndef CLD_SEMAPHORE_KHR_H
#define CLD_SEMAPHORE_KHR_H

#include <CL/cl_ext.h>

enum {
    CLD_SEMAPHORE_DEVICE_HANDLE_LIST = 0x2053,
    CLD_SEMAPHORE_EXPORTABLE = 0x2054,
};

#endif
