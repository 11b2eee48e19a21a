/* Whether a kernel that reads at many places is to fetch ahead what it reads: measured within launches. */
#ifndef CLD_AHEAD_H
#define CLD_AHEAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { CLD_AHEAD_SAMPLES = 32, CLD_AHEAD_PIECES = 64 };

enum cld_ahead_state {
    CLD_AHEAD_TRIAL, /* long launches do it for every other piece of them, and all pieces are timed */
    CLD_AHEAD_ON,
    CLD_AHEAD_OFF,
};

struct cld_ahead {
    _Atomic int32_t state;  /* enum cld_ahead_state */
    _Atomic uint64_t items; /* work-items of the launches whose pieces are compared */
    _Atomic uint32_t
        next[2]; /* how many samples there are, without fetching ahead and with it; may be more */
    _Atomic uint32_t samples[2][CLD_AHEAD_SAMPLES]; /* ns of a piece; 0: not there yet */
};

/* How many groups of a launch go one way before as many go the other, so that none profits from what the
 * other has fetched; 0: there are too few of them, or pieces of launches of another size are compared. */
uint32_t cld_ahead_piece(struct cld_ahead *ahead, uint64_t items, uint64_t groups);

/* A piece took so many ns. */
void cld_ahead_sample(struct cld_ahead *ahead, bool is_ahead, uint64_t time);

/* After a launch in pieces: draws the conclusion, if there is one yet. */
void cld_ahead_conclude(struct cld_ahead *ahead, const char *kernel);

#endif
