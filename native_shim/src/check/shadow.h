/* What the files of the check mode share. */
#ifndef CLD_SHADOW_H
#define CLD_SHADOW_H

#include <pthread.h>
#include <stdatomic.h>

#include "check/check.h"

/* What is remembered of memory. A cell is a word that says who has written to four bytes last, or read them;
 * cells of single bytes are apart, and come into being when somebody accesses less than four bytes. */
enum { GRANULE = 4 };

struct shadow {
    uint8_t *start; /* the memory */
    size_t size;
    uint8_t *written;        /* a byte each: 1 if somebody has written to it; NULL: all is written */
    _Atomic uint64_t *cells; /* for each granule: its last write, its last read */
    uint16_t *sites;         /* likewise: where that was */
    _Atomic(_Atomic uint64_t *) byte_cells; /* for each byte, likewise; NULL: nobody has needed them */
    _Atomic(uint16_t *) byte_sites;
    _Atomic uint32_t age; /* of the launches that the cells tell of */
};

/* Makes the cells, unless they are there. False: no memory. */
bool shadow_make(struct shadow *shadow);
bool shadow_make_bytes(struct shadow *shadow);
void shadow_free(struct shadow *shadow);

/* Before a launch of this age looks at cells: those of older launches, whose tags come again, are forgotten.
 */
void shadow_forget_older(struct shadow *shadow, uint32_t age);

/* An allocation. */
struct block {
    struct shadow shadow;
    const char *made_by;
    uint32_t number; /* of all, from 1 */
    bool is_freed;
    _Atomic uint32_t holds;
};

/* The allocation that an address lies in, or in the gap behind it, held; NULL: none. */
struct block *block_find(const void *address);
void block_drop(struct block *block);

/* Addresses of no known origin below this are a null pointer with an index: programs begin above it. */
enum { NULL_ZONE = 1 << 22 };

/* Where an access may be. */
struct range {
    uint8_t *start;
    size_t size;
    struct shadow *shadow; /* NULL: nothing is known of it */
    struct block *block;   /* held; NULL for local memory, and where there is none */
    bool is_local;
    bool no_reads, no_writes; /* by the flags of the memory object: told of, and let through */
    bool is_constant;         /* memory that the kernel has as constant */
    bool has_constants;       /* some of it may be that of another argument that is constant */
    bool is_known;            /* an address outside is wrong; otherwise it may be anything of the host's */
};

/* A word of a cell, from the lowest bit. Items are compared with their launch. */
enum {
    ITEM_BITS = 32, /* the group, and the work-item in it */
    EPOCH_BITS = 16,
    TAG_BITS = 11,
};
#define CELL_IS_ATOMIC (UINT64_C(1) << 0)
#define CELL_IS_WHOLE (UINT64_C(1) << 1) /* all four bytes; else the first one alone */
#define CELL_MANY_ITEMS (UINT64_C(1) << 2)
#define CELL_MANY_GROUPS (UINT64_C(1) << 3)
#define CELL_PLAIN_BEFORE (UINT64_C(1) << 4) /* the group has accessed it before, by no atomic */
#define CELL_EPOCH_AT 5
#define CELL_ITEM_AT (CELL_EPOCH_AT + EPOCH_BITS)
#define CELL_TAG_AT (CELL_ITEM_AT + ITEM_BITS)
#define CELL_TAG (~UINT64_C(0) << CELL_TAG_AT)
#define CELL_ITEM ((UINT64_C(1) << CELL_TAG_AT) - (UINT64_C(1) << CELL_ITEM_AT))
#define CELL_EPOCH ((UINT64_C(1) << CELL_ITEM_AT) - (UINT64_C(1) << CELL_EPOCH_AT))

enum finding {
    OUT_OF_BOUNDS,
    USE_AFTER_FREE,
    NULL_POINTER,
    UNWRITTEN,
    RACE,
    DIVERGENCE,
    NO_ACCESS,
    INDEX,
    UNAWAITED,
    MISALIGNED,
    NO_RESULT,
    NO_ATOMICS,
    OUTSIDE_IMAGE,
    NO_PLACE, /* in an image: coordinates that are infinite or no numbers */
    NO_LEVEL,
    WRONG_SAMPLER,
    WRONG_PIXEL,
    CONSTANT,
    NO_EVENT,
    FINDINGS,
};

struct place {
    uint64_t global_id[3], group[3], local_id[3];
};

struct report {
    enum finding finding;
    const struct cld_kcheck_site *site, *other; /* other: of a race */
    uint64_t count;
    struct place place, other_place;
    int64_t offset; /* in what is named */
    size_t size;    /* of it */
    uint64_t bytes; /* of the access */
    const char *made_by;
    uint32_t number;
    bool is_local, has_object, is_write_before, is_other_unknown;
    uint64_t missing; /* work-items, of a barrier */
    uint64_t operands[2];
    double coordinates[3]; /* in an image; unused ones are 0 */
    int32_t sizes[3];      /* of it, unused ones are 1; sizes[0]: its levels, of NO_LEVEL */
    uint64_t sampler;      /* or level */
    const char *why;       /* a literal, of WRONG_SAMPLER and WRONG_PIXEL */
};

enum { MOST_REPORTS = 64 };

struct cld_kcheck_launch {
    const void *command;
    struct cld_kcheck_launch *next; /* of a bucket */
    char *kernel;
    uint32_t argument_count;
    struct range *ranges; /* of arguments; of local ones, start is the offset */
    struct cld_launch sizes;
    uint64_t tag;              /* in place, in cells */
    uint32_t age;              /* of launches: half of all tags have the same */
    uint32_t local_bits;       /* of ITEM_BITS, those of the work-item in its group */
    bool has_constants;        /* arguments, of global memory */
    _Atomic bool has_released; /* any group */
    _Atomic bool *released;    /* by the group's number modulo RELEASED: whether it has */
    pthread_mutex_t lock;
    const struct cld_kcheck_sites *sites; /* NULL: no code with checks has run */
    _Atomic bool has_run;
    struct report reports[MOST_REPORTS];
    uint32_t report_count;
    uint64_t lost; /* reports for which there was no room */
};

enum { RELEASED = 1 << 16, MOST_PENDING = 32 };

struct cld_kcheck_thread {
    uint64_t item; /* linear local id; generated code sets it */
    struct cld_kcheck_launch *launch;
    const struct cld_kcheck_sites *sites;
    struct range *ranges; /* of arguments */
    struct shadow local;
    uint8_t *globals;
    /* Where private memory is: on the stack below stack_end, and where it lives across barriers. */
    const uint8_t *stack_end, *scratch;
    size_t scratch_size;
    uint64_t group[3], group_size[3], group_items;
    uint64_t group_index;
    uint64_t base[2]; /* of words: launch, group and epoch, for global and for local memory */
    uint64_t epoch[2];
    struct copy {
        uint8_t *target, *source;
        uint64_t count, stride;
        const struct cld_kcheck_site *site; /* of the write; that of the read follows it */
        uint64_t words[2];                  /* in cells, of the write and of the read */
        uint64_t event;
    } copy;                            /* that the first work-item came to; no count: none */
    struct copy pending[MOST_PENDING]; /* copies that nobody has waited for */
    uint32_t pending_count;
    uint64_t events;     /* of the group, numbered from 1 */
    uint64_t last_event; /* of the copy that the region is behind */
    uint64_t waits;      /* of work-items, since the last barrier */
    const struct cld_kcheck_site *wait;
    uint64_t
        waited[MOST_PENDING]; /* for which events each of them waits, its first, second, ... time: a digest */
    uint64_t waiting_item, waited_count, item_waits;
    bool has_group, is_copied;
    bool has_unnamed; /* a copy of whose event nobody has asked for: those with a 0 are good */
    const struct cld_kcheck_site *barrier; /* that the first work-item came to */
    uint64_t arrived, region_items;
    bool has_diverged;
    bool has_acquired;      /* the group, ever */
    uint64_t released_here; /* releases of the group since the last barrier */
    uint64_t acquired_item; /* 1 + the work-item that has acquired since the last barrier */
    bool has_fenced;
    uint64_t fenced_item;
    struct block *recent; /* held: what the last address of no known origin was in */
    uint8_t *nowhere;     /* reads 0; what is written there is forgotten */
};

/* Those of the group in a word of a cell. */
static inline uint64_t group_bits(const struct cld_kcheck_thread *thread) {
    return CELL_ITEM & ~(((UINT64_C(1) << thread->launch->local_bits) - 1) << CELL_ITEM_AT);
}

/* cld_kcheck_access() for what plain.c does not do alone. */
uint8_t *access_in_full(struct cld_kcheck_thread *thread, uint8_t *address,
                        const struct cld_kcheck_site *site, uint64_t value);

/* Whether memory overlaps with what an argument has as constant. */
bool range_has_constants(const struct cld_kcheck_launch *launch, const uint8_t *start, size_t size);

/* Whether a copy stays in bounds, which is told of if not; notes what a group copies, when all work-items
 * have come to it; and that somebody has waited for a copy. */
bool copy_is_inside(struct cld_kcheck_thread *thread, const struct copy *copy);
void copy_note(struct cld_kcheck_thread *thread, struct copy *copy);
void copy_end(struct cld_kcheck_thread *thread, const struct copy *copy);

/* A report of an access; range: where it was to be, NULL: nobody knows. */
void found(struct cld_kcheck_thread *thread, enum finding finding, const struct cld_kcheck_site *site,
           const struct range *range, const uint8_t *address, uint64_t bytes);

/* Adds to the launch's reports, or counts one that is there. */
void report_add(struct cld_kcheck_thread *thread, const struct report *report);
void report_print_all(struct cld_kcheck_launch *launch);
void report_unchecked(const struct cld_kcheck_launch *launch);

/* The ids of a work-item by the group's number and its linear local id. */
struct place place_of(const struct cld_kcheck_launch *launch, uint64_t group, uint64_t item);

#endif
