/* Numbers that messages begin with; cl_driver/cluster/messages.py has the same, and says what follows. */
#ifndef CLD_MESSAGES_H
#define CLD_MESSAGES_H

#include <stdint.h>

enum cld_to_worker {
    CLD_PROGRAM_MESSAGE = 1,
    CLD_FORGET_PROGRAM_MESSAGE = 2,
    CLD_BUFFER_MESSAGE = 3,
    CLD_FORGET_BUFFER_MESSAGE = 4,
    CLD_WRITE_MESSAGE = 5,
    CLD_READ_MESSAGE = 6,
    CLD_LAUNCH_MESSAGE = 7,
};

enum cld_from_worker {
    CLD_DONE_MESSAGE = 1,
    CLD_DATA_MESSAGE = 2,
    CLD_BUILT_MESSAGE = 3,
    CLD_CLOCK_MESSAGE = 4,
    CLD_GONE_MESSAGE = 5,
};

enum { CLD_MOST_MESSAGE_BYTES = 8 << 20 };

#define CLD_NOBODY UINT32_MAX

/* What a frame of the socket begins with, both ways. */
struct cld_frame_head {
    uint32_t worker;
    uint32_t unused;
    uint64_t size;
};

#endif
