/* Stacks for code that takes turns on one thread, each above memory that faults. */
#ifndef CLD_STACKS_H
#define CLD_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cld_stacks {
    uint8_t *memory;
    size_t stride, count; /* stack i ends at memory + (i + 1) * stride */
};

/* This thread's, of at least such a size each; they stay for later calls, but for their contents. False when
 * there is no memory, which cld_stacks_lacked() tells, once. */
bool cld_stacks_get(struct cld_stacks *stacks, size_t size, size_t count);
bool cld_stacks_lacked(void);

/* The thread ends. */
void cld_stacks_drop(void);

#endif
