/* The memory of handles: slots of one size in one reserved address range, and what becomes of dead ones. */
#ifndef CLD_SLOTS_H
#define CLD_SLOTS_H

#include "object/object.h"

/* How many dead slots change hands at once. */
enum { CLD_SLOT_BATCH = 64 };

/* A dead slot that somebody has: the next of a chain. Those of nobody have nothing behind their header. */
struct dead {
    struct cld_object obj;
    struct dead *next;
};

/* A chain of at most CLD_SLOT_BATCH dead slots, or NULL when there is no memory. */
struct dead *cld_slots_take(void);

/* Gives a chain back. */
void cld_slots_put(struct dead *chain);

#endif
