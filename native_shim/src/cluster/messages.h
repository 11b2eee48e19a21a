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
    CLD_SEND_MESSAGE = 8,
    CLD_RECEIVE_MESSAGE = 9,
    CLD_MISS_MESSAGE = 10,
    CLD_CONNECT_MESSAGE = 11,
    CLD_IMAGE_MESSAGE = 12,
    CLD_FORGET_IMAGE_MESSAGE = 13,
    CLD_FILL_MESSAGE = 14,
};

enum cld_from_worker {
    CLD_DONE_MESSAGE = 1,
    CLD_DATA_MESSAGE = 2,
    CLD_BUILT_MESSAGE = 3,
    CLD_CLOCK_MESSAGE = 4,
    CLD_GONE_MESSAGE = 5,
    CLD_PRINTED_MESSAGE = 6,
    CLD_LOST_MESSAGE = 7,
    CLD_UNREACHABLE_MESSAGE = 8,
    CLD_REACHABLE_MESSAGE = 9,
};

enum cld_between_workers {
    CLD_ARRIVE_MESSAGE = 1,
};

/* Of one write or read; and of those that are a part of the message itself. */
enum { CLD_MOST_MESSAGE_BYTES = 4 << 20, CLD_MOST_INLINE_BYTES = 32 << 10 };

#define CLD_NOBODY UINT32_MAX

/* What a frame of the socket begins with, both ways; then come `count` payloads, and `size` bytes of a batch.
 */
struct cld_frame_head {
    uint32_t worker;
    uint16_t kind;
    uint16_t count;
    uint64_t size;
};

enum cld_frame_kind {
    CLD_BATCH_FRAME,
    CLD_TAKEN_FRAME,  /* to the host: the last batch of the worker is on its way */
    CLD_FREE_FRAME,   /* the payloads have been used: their places are free */
    CLD_WORKER_FRAME, /* to the host: a worker that has come later */
};

/* Contents of memory objects are in memory that the host and the process that connects share: the first half
 * is what goes to workers, the second what comes from them. */
struct cld_payload {
    uint64_t at, size;
};

enum { CLD_PLACES = 6 }; /* each way; each as large as a message may be */

#endif
