/* Who is told of commands and calls as they happen: the trace (trace/), and others beside it.
 *
 * Another observer hooks in so: a folder above those whose structures it reads has a constructor that finds
 * its setting on and calls cld_observe with a table of functions, any of which may be NULL. It must do so at
 * load, as CLD_OBSERVER_CONSTRUCTOR: queues that are made later mark their commands (CLD_OBSERVED, in
 * cld_event.special), and only marked commands are looked at. Commands of a process that has no observer pay
 * nothing: the test is one of a byte that is read in any case.
 *
 * Functions are called on the thread where it happens, often with locks held. They must not block, call the
 * API, or enter Python, and must be as quick as they can. The times of a marked command are in
 * command->times when its function is called, whether or not the application has asked for profiling. */
#ifndef CLD_OBSERVER_H
#define CLD_OBSERVER_H

#include <stddef.h>
#include <stdint.h>

struct cld_call;
struct cld_event;
struct cld_self;

/* Of one thread, in one command. */
struct cld_part {
    uint64_t units;  /* that it executed: work-groups of a kernel */
    uint64_t chunks; /* in so many pieces */
    uint64_t stolen; /* of these, pieces that were another thread's first */
};

struct cld_observer {
    /* It was made, and is about to be linked: kernel, sizes and memory objects are in place. The list is what
     * it waits for beside its queue's order. Not of a graph's nodes. */
    void (*queued)(struct cld_event *command, uint32_t wait_count, struct cld_event *const *wait_list);
    void (*submitted)(struct cld_event *command); /* not of nodes */
    void (*started)(struct cld_event *command);   /* where it is executed elsewhere: before it has ended */
    /* Before it drops what it holds. Told of failed commands, too, which may not have started. */
    void (*ended)(struct cld_event *command, int32_t status);

    /* A thread begins to execute units of a command; it will do no more of them. */
    void (*joined)(struct cld_event *command, const struct cld_self *self);
    void (*left)(struct cld_event *command, const struct cld_self *self, const struct cld_part *part);

    /* A worker of a cluster has executed it, or a part of it. number, name: of the worker, whose name stays;
     * start, end: as those of commands, in ns. */
    void (*executed_elsewhere)(struct cld_event *command, uint32_t number, const char *name, uint64_t start,
                               uint64_t end);

    /* API calls, which nest where a callback makes some. */
    void (*call_begins)(const struct cld_call *call);
    void (*call_ends)(const struct cld_call *call, int32_t status);

    /* So many bytes of buffers, SVM and USM more, or fewer. */
    void (*allocated)(int64_t bytes);
};

/* In cld_event.special and cld_queue.properties. */
#define CLD_OBSERVED 0x80

/* In the same: what commands are about may be on other machines. */
#define CLD_SPREAD 0x40

#define CLD_OBSERVER_CONSTRUCTOR __attribute__((constructor(200)))

enum { CLD_MOST_OBSERVERS = 4 };

extern const struct cld_observer *cld_observers[CLD_MOST_OBSERVERS]; /* up to the first NULL */

void cld_observe(const struct cld_observer *observer);

/* Calls one of the functions of all observers. Only where something is known to be observed. */
#define CLD_TELL(function, ...)                                                                              \
    do {                                                                                                     \
        for (int i_ = 0; i_ < CLD_MOST_OBSERVERS && cld_observers[i_]; i_++)                                 \
            if (cld_observers[i_]->function)                                                                 \
                cld_observers[i_]->function(__VA_ARGS__);                                                    \
    } while (0)

#endif
