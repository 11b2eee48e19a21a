/* What a block that a kernel has enqueued takes of its queue, until it has ended. */
#ifndef CLD_BLOCK_ROOM_H
#define CLD_BLOCK_ROOM_H

#include <string.h>

#include "kernel/kernel.h"
#include "runtime/command.h"

static inline size_t cld_round_up(size_t size, size_t alignment) {
    return (size + alignment - 1) & ~(alignment - 1);
}

/* Where a block's arguments are followed by the number of bytes that it has captured. */
static inline size_t cld_block_size_place(const struct cld_kernel_info *info) {
    return cld_round_up(info->block_size, sizeof(uint64_t));
}

static inline uint64_t cld_block_cost(const struct cld_event *command) {
    uint64_t captured;
    memcpy(&captured, command->kernel.args + cld_block_size_place(command->kernel.info), sizeof captured);
    return CLD_SLOT_SIZE + (command->kernel.args != command->inline_args ? captured : 0);
}

/* Room for a block in its queue; false: it is full. */
static inline bool cld_block_take_room(const struct cld_event *command) {
    struct cld_queue *queue = command->queue;
    uint64_t cost = cld_block_cost(command);
    uint64_t used = atomic_fetch_add_explicit(&queue->used, cost, memory_order_relaxed);
    if (used + cost <= queue->size)
        return true;
    atomic_fetch_sub_explicit(&queue->used, cost, memory_order_relaxed);
    return false;
}

static inline void cld_block_give_room(const struct cld_event *command) {
    atomic_fetch_sub_explicit(&command->queue->used, cld_block_cost(command), memory_order_relaxed);
}

#endif
