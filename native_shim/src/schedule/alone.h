/* Commands that one thread executes sooner than several: those whose threads write to the same few cache
 * lines wait for one another, and threads that share a core, or come late, add little. Only a run tells, so
 * commands of one kind that come again and again are executed both ways, in turn, until it is known. */
#ifndef CLD_ALONE_H
#define CLD_ALONE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum cld_alone_state {
    CLD_ALONE_TRIAL,    /* every other command is executed by one thread */
    CLD_ALONE_ADOPTED,  /* each is, but for one now and then, which tells whether that is still right */
    CLD_ALONE_REJECTED, /* none is, for a while */
};

/* Of commands of one kind, such as the launches of a kernel; all zeros at first. */
struct cld_alone {
    atomic_flag busy; /* who finds it set goes without: it guards all that follows */
    enum cld_alone_state state;
    const void *code; /* what they run, and how many units of it; others are not compared */
    uint64_t total;
    uint32_t turn, others; /* counts them, and those in a row that are not compared */
    uint64_t best[2];      /* ns of the shortest that was shared, and that one thread executed */
    uint32_t measured[2];
    uint32_t given_up;  /* of those by one thread */
    uint32_t surprises; /* in a row that speak against what was found */
    uint32_t restarts;
};

/* A command that is timed. */
struct cld_alone_run {
    struct cld_alone *of;
    const char *name; /* for the log */
    const void *code;
    uint64_t total, start;
    uint64_t usual; /* ns that it takes shared */
    bool is_alone, given_up;
};

/* How to execute the command; NULL: shared, and nobody wants to know how long it takes. */
struct cld_alone_run *cld_alone_begin(struct cld_alone *alone, const char *name, const void *code,
                                      uint64_t total);

/* Whether one thread is to go on by itself, after so many units. If not, the command is shared from there on.
 */
bool cld_alone_goes_on(struct cld_alone_run *run, uint64_t now, uint64_t done);

/* Draws the conclusion, if the command did not fail; frees the run. */
void cld_alone_end(struct cld_alone_run *run, uint64_t now, bool failed);

#endif
