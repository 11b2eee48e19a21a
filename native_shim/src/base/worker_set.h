/* Sets of workers of a cluster (cluster/), by number. */
#ifndef CLD_WORKER_SET_H
#define CLD_WORKER_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Each memory object, program and image has some sets. */
enum { CLD_MOST_WORKERS = 1024, CLD_WORKER_WORDS = CLD_MOST_WORKERS / 64 };

struct cld_worker_set {
    uint64_t words[CLD_WORKER_WORDS];
};

static inline bool cld_set_has(const struct cld_worker_set *set, uint32_t number) {
    return set->words[number / 64] >> number % 64 & 1;
}

static inline void cld_set_add(struct cld_worker_set *set, uint32_t number) {
    set->words[number / 64] |= (uint64_t)1 << number % 64;
}

static inline void cld_set_remove(struct cld_worker_set *set, uint32_t number) {
    set->words[number / 64] &= ~((uint64_t)1 << number % 64);
}

static inline bool cld_sets_are_equal(const struct cld_worker_set *a, const struct cld_worker_set *b) {
    return !memcmp(a, b, sizeof *a);
}

static inline bool cld_sets_meet(const struct cld_worker_set *a, const struct cld_worker_set *b) {
    uint64_t common = 0;
    for (uint32_t i = 0; i < CLD_WORKER_WORDS; i++)
        common |= a->words[i] & b->words[i];
    return common;
}

static inline void cld_set_fill(struct cld_worker_set *set) {
    memset(set, 0xff, sizeof *set);
}

/* The least number of the set that is not below `from`; CLD_MOST_WORKERS: none. */
static inline uint32_t cld_set_next(const struct cld_worker_set *set, uint32_t from) {
    for (uint32_t i = from / 64; i < CLD_WORKER_WORDS; i++) {
        uint64_t word = set->words[i];
        if (i == from / 64)
            word &= UINT64_MAX << from % 64;
        if (word)
            return 64 * i + (uint32_t)__builtin_ctzll(word);
    }
    return CLD_MOST_WORKERS;
}

#endif
