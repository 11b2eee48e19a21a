/* Whether a kernel that reads at many places is to fetch ahead what it reads: measured within launches. */
#ifndef CLD_PREFETCH_TRIAL_H
#define CLD_PREFETCH_TRIAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { CLD_PREFETCH_SAMPLES = 32, CLD_PREFETCH_PIECES = 64 };

enum cld_prefetch_state {
    CLD_PREFETCH_TRIAL, /* long launches do it for every other piece of them, and all pieces are timed */
    CLD_PREFETCH_ON,
    CLD_PREFETCH_OFF,
};

struct cld_prefetch_trial {
    _Atomic int32_t state;  /* enum cld_prefetch_state */
    _Atomic uint64_t items; /* work-items of the launches whose pieces are compared */
    _Atomic uint32_t
        next[2]; /* how many samples there are, without fetching ahead and with it; may be more */
    _Atomic uint32_t samples[2][CLD_PREFETCH_SAMPLES]; /* ns of a piece; 0: not there yet */
};

/* How many groups of a launch go one way before as many go the other, so that none profits from what the
 * other has fetched; 0: there are too few of them, or pieces of launches of another size are compared. */
uint32_t cld_prefetch_piece(struct cld_prefetch_trial *ahead, uint64_t items, uint64_t groups);

/* A piece took so many ns. */
void cld_prefetch_sample(struct cld_prefetch_trial *ahead, bool is_ahead, uint64_t time);

/* After a launch in pieces: draws the conclusion, if there is one yet. */
void cld_prefetch_conclude(struct cld_prefetch_trial *ahead, const char *kernel);

#endif
