/* What threads note down: records in a buffer of each thread's own, which it alone fills and whoever has the
 * writer's lock empties. */
#ifndef CLD_RING_H
#define CLD_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum cld_record_kind {
    CLD_RECORD_SKIP, /* up to the buffer's end */
    CLD_RECORD_CALL,
    CLD_RECORD_RETURN,
    CLD_RECORD_QUEUED,
    CLD_RECORD_SUBMITTED,
    CLD_RECORD_STARTED,
    CLD_RECORD_ENDED,
    CLD_RECORD_JOINED,
    CLD_RECORD_LEFT,
    CLD_RECORD_ELSEWHERE,
    CLD_RECORD_BYTES,
};

/* The first two words of a record; `words` counts them. What follows is the kind's. */
struct cld_record {
    uint16_t kind, words;
    int32_t value; /* a status, a type of command */
    uint64_t time; /* of CLOCK_MONOTONIC, in ns */
    uint64_t body[];
};

enum { CLD_RING_WORDS = 1 << 14, CLD_RECORD_WORDS = 512 /* the most of a record */ };

struct cld_ring {
    struct cld_ring *next; /* with the writer's lock held */
    pid_t thread;
    uint8_t role;                       /* enum cld_role */
    bool is_known;                      /* the file has the thread's name; of the writer */
    _Atomic bool is_done;               /* its thread has ended */
    _Alignas(64) _Atomic uint64_t head; /* words that were written */
    uint64_t seen;                      /* of tail, by the thread */
    _Alignas(64) _Atomic uint64_t tail; /* words that were read */
    uint64_t words[CLD_RING_WORDS];
};

/* To be called by a constructor. */
void cld_ring_register(void);

/* Room for a record of so many words, or NULL, which is counted: to be filled, and published with
 * cld_ring_publish. */
struct cld_record *cld_ring_reserve(enum cld_record_kind kind, unsigned words);
void cld_ring_publish(struct cld_record *record);

#endif
