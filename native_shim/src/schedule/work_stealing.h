/* How the units of one command are divided between threads.
 *
 * Each participant has a slot with a range of its own and takes chunks from its front: small ones at first,
 * each twice as long as the one before, since units may take any time, and the first chunk might hold all
 * that others could do meanwhile; then parts of what is left. Who has none left
 * takes the second half of the longest range that there is: of those of threads that share its cache first,
 * then of its memory node, then of others (schedule/numa.h). A thread gets the slot
 * that it had in the last command: where commands are alike it works on the same part of the data again,
 * which its core's cache may hold, and which on machines of several memory nodes is near, if it was the first
 * to touch it. */
#ifndef CLD_WORK_STEALING_H
#define CLD_WORK_STEALING_H

#include <stdbool.h>
#include <stdint.h>

#include "schedule/numa.h"

struct cld_work;

/* For the units [first, total), between up to slots threads. Chunks are of at least grain where a thread
 * begins on a range, later of at least usual (the last one may be smaller). places: of the device's threads,
 * by their homes, in order; NULL where all are in one place. NULL: out of memory. */
struct cld_work *cld_work_new(uint64_t first, uint64_t total, uint64_t grain, uint64_t usual, unsigned slots,
                              const struct cld_place *places, unsigned threads);

/* A slot that nobody has: the preferred one if it is free, else one as near to it as there is. There must be
 * one. Callers exclude each other. */
unsigned cld_work_join(struct cld_work *share, unsigned preferred);

/* The thread that has the slot takes no more of it, and whoever gets it goes on. Callers exclude each other.
 */
void cld_work_quit(struct cld_work *share, unsigned slot);

/* A chunk [*first, *last) that nobody else gets; false if none is left for this thread. */
bool cld_work_take(struct cld_work *share, unsigned slot, uint64_t *first, uint64_t *last);

/* Whether a chunk that begins there was in the slot's own range from the start; if not, it was stolen. */
bool cld_work_is_own(const struct cld_work *share, unsigned slot, uint64_t first);

/* Nobody gets chunks any more. */
void cld_work_stop(struct cld_work *share);

/* Whether another thread may join: there is a free slot, and no participant has found nothing left. */
bool cld_work_is_open(const struct cld_work *share, unsigned participants);

/* How many slots there are. */
unsigned cld_work_slots(const struct cld_work *share);

/* How many more threads may join one that is open. */
unsigned cld_work_places(const struct cld_work *share, unsigned participants);

#endif
