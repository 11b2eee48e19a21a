/* Inside of worker.h: what a pool is (pool.c), for its threads (worker.c). */
#ifndef CLD_POOL_H
#define CLD_POOL_H

#include <pthread.h>

#include "runtime/worker.h"
#include "schedule/calls.h"
#include "schedule/numa.h"

/* To wake a thread costs about a microsecond, and until it runs it takes several, on virtual machines some
 * dozens: nobody wakes more than a few for a command that is open, but each of those that join it goes on
 * with it, until enough have come. */
enum { CLD_LINE = 64, CLD_MOST_WOKEN = 4 };

/* What threads look at while they wait for work is in cache lines of its own: who looks slows down who writes
 * to the same line. */
struct cld_pool {
    pthread_mutex_t lock; /* the next five, and the members of open commands that command.h names */
    struct cld_ready ready;
    unsigned ready_count;
    struct cld_event *open; /* commands that more threads may join */
    struct cld_calls calls;
    bool knows_urgent;         /* there have been commands of urgent queues */
    _Atomic bool wants_urgent; /* some of them want threads; written with the lock held */
    unsigned threads;          /* that the device has */
    struct cld_device *device;
    uint8_t number;           /* of those of the device */
    uint32_t *cpus;           /* of the device, in the order of their places */
    struct cld_place *places; /* theirs; NULL where they are in one place */
    _Atomic int32_t users;    /* the device, and each thread */
    struct cld_pool *next;    /* with pools_lock held */

    _Alignas(CLD_LINE) _Atomic uint32_t epoch; /* counts the calls for help; workers sleep on it */
    /* Threads for which there is work, without those that are on their way to it: stored with the lock held,
     * taken by each that goes. Who cannot take one need not ask for the lock. */
    _Atomic unsigned places_free;
    _Atomic bool stop;

    _Alignas(CLD_LINE) _Atomic unsigned started;
    _Atomic unsigned homes;      /* that were given to threads */
    _Atomic unsigned held;       /* of those started, by commands that may wait for others: more may be */
    _Atomic unsigned idle;       /* of them, looking for work or asleep */
    _Atomic unsigned coming;     /* of them, with a place that they have taken */
    _Atomic unsigned busy_hosts; /* threads of the host that execute what takes a while, or look for it */
    _Atomic uint32_t sleepers;   /* and those that are about to sleep, or were woken and do not run yet */
    _Atomic int32_t woken;       /* of these, the last; who wakes them may be late to count, and others not */
    _Atomic uint64_t woken_at;   /* when some were the last time, in ns */
    _Atomic uint64_t timed_from; /* the same, until one of them runs, who takes the time; 0: none is to */
    _Atomic uint32_t
        wake_time;          /* ns until the first of those that are woken runs, running mean; 0: not known */
    _Atomic uint32_t freed; /* those that the last command had whose execution has ended: */
    _Atomic uint64_t freed_at; /* when; they are about to look for work, if they do not yet */
    _Atomic uint32_t settled;  /* of them: base/own_thread.h */
};

/* The pool of a queue, made at first need. NULL: no memory. */
struct cld_pool *cld_pool_of(const struct cld_queue *queue);

/* To be called where what is ready or open has changed. With the lock held. */
void cld_pool_note_work(struct cld_pool *pool);

/* A command to join, or a ready one. With the lock held. wanted restricts the choice to its queue. */
struct cld_event *cld_pool_find_work(struct cld_pool *pool, const struct cld_event *wanted,
                                     struct cld_self *self, bool *joined);

/* How many more threads there is work for than have joined it or are on their way. With the lock held. */
unsigned cld_pool_wanted(struct cld_pool *pool);

/* Threads that look for work, or soon will. queue: whose waiting threads count, or NULL. */
unsigned cld_pool_awake(struct cld_pool *pool, const struct cld_queue *queue);

/* Calls for that many threads, of which some may be awake: others are woken or made up to the device's
 * number, no more of them at once than most_woken. queue: as above. */
void cld_pool_wake(struct cld_pool *pool, unsigned count, unsigned most_woken, const struct cld_queue *queue);

/* Wakes all that sleep, whatever there is to do. */
void cld_pool_wake_all(struct cld_pool *pool);

/* The last of the device and its threads frees it. */
void cld_pool_unuse(struct cld_pool *pool);

#endif
