/* Who moves memory objects between this machine and others: the cluster (cluster/copies.c), where there is
 * one. Folders below it ask by way of this table. */
#ifndef CLD_MOVER_H
#define CLD_MOVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct cld_event;
struct cld_mem;
struct cld_executable;

struct cld_mover {
    /* Before a ready command of a context that has devices elsewhere is executed here. True: what it is to
     * find here is on its way, and it becomes ready again. False: it may go on, or has failed. */
    bool (*fetch)(struct cld_event *command);
    /* Whether a command of such a context need not wait for another here, for it comes behind it elsewhere.
     * Asked when it is enqueued. passes_errors: it is to fail if that does. */
    bool (*follows)(struct cld_event *command, struct cld_event *before, bool passes_errors);
    /* A command that has had fetch() called, and was executed here, has ended. */
    void (*ended)(struct cld_event *command);
    /* The last hold has gone. */
    void (*mem_freed)(struct cld_mem *mem);
    void (*executable_freed)(struct cld_executable *executable);
    /* The last hold of an image that is known there; mem_freed() comes after it, if at all. */
    void (*image_freed)(struct cld_mem *mem);
};

/* Set once, before there is a device elsewhere; NULL where there is none. */
extern _Atomic(const struct cld_mover *) cld_mover_table;

static inline const struct cld_mover *cld_mover(void) {
    return atomic_load_explicit(&cld_mover_table, memory_order_acquire);
}

#endif
