/* Pipes: what the memory of one begins with. cl_driver/builtins/cl/pipe.cl has the whole, and says how it is
 * used; cl_driver/passes/program/pipe_storage.py makes those of programs. */
#ifndef CLD_PIPE_H
#define CLD_PIPE_H

#include <stddef.h>
#include <stdint.h>

enum {
    CLD_PIPE_PACKET_MOST =
        1 << 16,           /* CL_DEVICE_PIPE_MAX_PACKET_SIZE; cl_driver/device/limits.py has it, too */
    CLD_PIPE_STATES = 256, /* bytes from the beginning to the states of entries, 4 bytes for each */
    CLD_PIPE_ALIGN = 128,  /* of the packets, and of the whole */
};

struct cld_pipe_ring {
    uint32_t packet_size, max_packets;
    uint64_t data; /* bytes from the beginning to the packets */
};

/* Bytes from the beginning of a ring to its packets: what must be zero in a new one, but for the fields. */
static inline size_t cld_pipe_data(uint32_t max_packets) {
    size_t end = CLD_PIPE_STATES + (size_t)max_packets * sizeof(uint32_t);
    return (end + CLD_PIPE_ALIGN - 1) & ~(size_t)(CLD_PIPE_ALIGN - 1);
}

#endif
