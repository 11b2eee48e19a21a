/* Bytes that a launch reads and writes, and its operations on floating-point numbers, where the compiler
 * could tell them by its sizes and arguments (cl_driver/passes/traffic). */
#ifndef CLD_TRAFFIC_H
#define CLD_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

struct cld_event;

struct cld_traffic {
    bool knows_bytes, knows_operations;
    /* Of global memory, each byte once, however often it is accessed. */
    uint64_t read, written;
    uint64_t operations;
};

/* Of a launch that has not dropped its arguments yet. */
struct cld_traffic cld_traffic_of(const struct cld_event *launch);

#endif
