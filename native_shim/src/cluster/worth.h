/* Whether a launch on all workers ends sooner in parts or on one worker, by what others took. Numbers alone:
 * callers hold the cluster's lock (choice.c). */
#ifndef CLD_WORTH_H
#define CLD_WORTH_H

#include <stdbool.h>
#include <stdint.h>

enum { CLD_WORK_CLASSES = 64 };

/* Launches of a kernel with about as many work-items. Times are in ns. */
struct cld_work {
    double time;     /* running mean: of all of it on one compute unit; 0: not known */
    double part;     /* running mean: the share of it that the part which took longest took; 0: not known */
    double contents; /* which were moved for the last one that was cut behind another that was */
    double owed;     /* what the other way would have saved since the last change */
    bool was_cut;
};

struct cld_event;

/* Of a kernel: by the logarithm of the number of work-items. */
struct cld_works {
    struct cld_work of[CLD_WORK_CLASSES];
    uint32_t trials;           /* launches that were cut although not all was known that they could tell */
    bool is_tried;             /* one of them has not ended: */
    struct cld_event *waiting; /* launches that wait for what it tells */
};

/* Messages to a worker and back, running means in ns; 0: not known. */
struct cld_link {
    double trip;      /* of a message whose answer waits for nothing else, besides what is executed for it */
    double byte_time; /* of contents, one byte: */
    double time, bytes; /* of contents, of which the older ones count less */
};

/* One of two ways to execute a launch, in ns. */
struct cld_way {
    double execution; /* of the part that takes longest */
    double messages;  /* there and back */
    double contents;  /* moved to where they are used */
};

static inline double cld_way_time(const struct cld_way *way) {
    return way->execution + way->messages + way->contents;
}

/* A message's answer came so long after it was sent, with so many bytes one way or the other. */
void cld_link_learn(struct cld_link *link, double elapsed, double bytes);

/* A launch of so many work-items took so long on one compute unit, and the longest of its parts such a share
 * of that; 0: it was not cut. */
void cld_work_learn(struct cld_works *works, uint64_t items, double time, double part);

struct cld_work *cld_work_of(struct cld_works *works, uint64_t items);

/* What such a launch takes: what was measured, or else what the number of work-items makes of the nearest
 * that was. False: nothing is known. */
bool cld_work_expect(const struct cld_works *works, uint64_t items, double *time, double *part);

/* Whether the next such launch is to be cut. Contents that lie where the last launches left them speak for
 * what these did, but for no longer than it takes to lose more by that than moving them costs. */
bool cld_is_worth_cutting(struct cld_work *work, const struct cld_way *cut, const struct cld_way *alone);

#endif
