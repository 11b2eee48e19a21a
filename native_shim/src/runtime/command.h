/* Commands. Every command is an event, whether the application asked for its event or not; every event that
 * is not a user event is a command.
 *
 * Life of a command: made by cld_command_new, filled by its enqueue function, handed to cld_command_enqueue.
 * There it gets edges to what it waits for, and stays in its queue's pending list until somebody submits it.
 * `blockers` counts the dependencies that are not complete, plus one until it is submitted. Whoever takes it
 * to zero has made the command ready, and either executes it itself or gives it to the device's pool
 * (worker.h). Whoever ends the last part of it completes it: what it holds is dropped, its status is set,
 * waiters wake, callbacks are handed over, its dependents' blockers are decremented. */
#ifndef CLD_COMMAND_H
#define CLD_COMMAND_H

#include "abi/kernel_abi.h"
#include "base/thread.h"
#include "object/objects.h"
#include "object/observer.h"

struct cld_event_callback;
struct cld_family; /* family.h */
struct cld_event;
struct cld_work;          /* work_stealing.h */
struct cld_semaphore_use; /* semaphore.h */

/* What commands hold of folders above. */
struct cld_mem;            /* memory/mem.h */
struct cld_executable;     /* kernel/kernel.h */
struct cld_kernel_info;    /* kernel/kernel.h */
struct cld_variant;        /* kernel/variant.h */
struct cld_variant_wish;   /* the same */
struct cld_ab_run;         /* kernel/ab_trial.h */
struct cld_launch_message; /* cluster/launch.c */
struct cld_command_buffer; /* graph/command_buffer.h */
struct cld_graph;          /* the same */
struct cld_graph_run;      /* graph/graph_run.h */
struct cld_recorded;       /* graph/command_buffer.h */

/* A dependency, in the dependency's list; the storage is the dependent's. */
struct cld_edge {
    struct cld_edge *next;
    uintptr_t dependent; /* the command; bit 0: errors are passed on (it was in the wait list) */
};

/* The last three parameters of every enqueue; or who records the command instead. Functions take its address:
 * a copy of what was stored a moment before in other pieces waits until all of these are in the cache. */
struct cld_wait {
    cl_uint count;
    const cl_event *list;
    cl_event *event;
    struct cld_recording *recording; /* NULL: it is enqueued */
};

/* Of a clCommand* function that has checked its command-buffer (graph/recording.h). */
struct cld_recording {
    struct cld_queue *queue;
    /* Takes the command over, also when it fails. */
    cl_int (*take)(struct cld_recording *recording, struct cld_event *command);
};

/* What a node of a graph is a part of: an execution of a command-buffer (graph/graph_run.h). */
struct cld_whole {
    /* Called once the node has been executed, or is not to be; then it may be executed again. */
    void (*ended)(struct cld_event *node, cl_int status, struct cld_ready *ready);
    bool looks; /* nodes are to look for better code, and to take the time, also if they are short */
};

/* Work-groups along one dimension, [first, last), and all along the others. */
struct cld_group_range {
    uint32_t dimension;
    uint64_t first, last;
};

/* Memory from one byte to behind another. */
struct cld_extent {
    const uint8_t *begin, *end;
    bool is_whole; /* each byte of it */
};

struct cld_operation {
    /* Called once before anything runs, when all that the command waits for is done. May be NULL. */
    void (*begin)(struct cld_event *command);
    /* Executes the units [first, last) of the command's total; several threads do so at once. A result that
     * is not CL_SUCCESS ends the command with that error. */
    cl_int (*run)(struct cld_event *command, struct cld_self *self, uint64_t first, uint64_t last);
    /* Called by each thread that ran some, when it will run no more. May be NULL. */
    void (*leave)(struct cld_event *command, struct cld_self *self);
    /* Called once when nothing runs any more or anything ever will, before the status is set: drops what the
     * command holds. May be NULL. */
    void (*end)(struct cld_event *command, cl_int status);
    /* How many bytes it copies or fills, for observers. May be NULL. */
    uint64_t (*bytes)(const struct cld_event *command);
    /* What it reads, or what it writes. May be NULL: of its memory objects, all. */
    struct cld_extent (*extent)(const struct cld_event *command, bool is_written);
    /* Told how long some of the units took, now and then, to estimate the next such command. May be NULL. */
    void (*learn)(struct cld_event *command, uint64_t time, uint64_t units);
    /* What there is to find out about one thread or several (schedule/alone.h), or NULL. May be NULL. */
    struct cld_alone_run *(*alone)(struct cld_event *command);
    /* True: other commands are executed in its place, of which the last one completes it; those that can
     * start are in ready or with their pools. False: run() is called. May be NULL. */
    bool (*spread)(struct cld_event *command, struct cld_self *self, struct cld_ready *ready);

    /* Of commands that may be nodes of a graph. Makes what a node shares with the command that was recorded,
     * of which it is a copy, its own: then end() is called of both. False: no memory. May be NULL. */
    bool (*own)(struct cld_event *node);
    /* Called after each execution of a node, for the next to find it as the first did. May be NULL. */
    void (*rest)(struct cld_event *node, cl_int status);
};

enum cld_time {
    CLD_TIME_QUEUED,
    CLD_TIME_SUBMIT,
    CLD_TIME_START,
    CLD_TIME_END,
    CLD_TIME_COUNT,
};

/* In cld_event.special, beside CLD_OBSERVED and CLD_SPREAD (object/observer.h): the application may ask for
 * times. */
enum { CLD_PROFILED = CL_QUEUE_PROFILING_ENABLE };

/* What other machines have to do with a command (cluster/). */
enum cld_elsewhere {
    CLD_NOT_ELSEWHERE,
    CLD_TO_BE_SENT, /* submitted until it is complete: when it runs is not known here */
    CLD_SENT,
    CLD_SENT_WITH_TIMES, /* which are there: those of its execution */
    CLD_USED_HERE,       /* it is executed here, and what it uses is not moved meanwhile (object/mover.h), */
    CLD_ALL_USED_HERE,   /* nor is the rest of its memory objects */
};

enum { CLD_INLINE_EDGES = 3, CLD_INLINE_MEMS = 8, CLD_INLINE_ARGS = 256 };

/* Threads have no copies, but tables of sums. */
#define CLD_COUNTED_COMBINES UINT32_MAX

/* Estimates of durations, in ns. */
#define CLD_TIME_UNKNOWN UINT64_MAX

struct cld_copy_region { /* linear: height and depth 1 */
    uint8_t *destination;
    const uint8_t *source;
    size_t width, height, depth;                                         /* bytes, rows, slices */
    size_t destination_row, destination_slice, source_row, source_slice; /* pitches in bytes */
};

struct cld_event {
    struct cld_object obj;
    struct cld_context *context; /* held by user events; the queue holds it for commands */
    struct cld_queue *queue;     /* held; NULL for user events */
    _Atomic int32_t status;      /* execution status: CL_QUEUED down to CL_COMPLETE, or an error */
    _Atomic uint32_t sleepers;   /* threads that may sleep on status */
    cl_command_type type;
    _Atomic int32_t blockers;
    _Atomic int32_t error; /* the status that the command is bound to end with; 0 while all is well */
    bool barrier : 1;      /* later commands of an out-of-order queue wait for it */
    bool covers : 1;       /* of an out-of-order queue: waits for all that was enqueued before */
    bool is_node : 1;      /* of a graph; no event then, and no handle */
    bool waits : 1;        /* it may wait, while it is executed, for what other commands do */
    bool enqueues : 1;     /* it is a kernel that may enqueue others */
    bool is_child : 1;     /* it was enqueued by a kernel */
    bool has_event : 1;    /* of a child: somebody has its handle, or had */
    uint8_t special;       /* CLD_PROFILED, CLD_OBSERVED, CLD_SPREAD: one test tells most that they are not */
    bool timed;            /* the operation is to learn from it even if it is short */
    uint8_t elsewhere;     /* enum cld_elsewhere */
    _Atomic(struct cld_edge *) dependents;          /* CLD_EDGES_CLOSED when complete */
    _Atomic(struct cld_event_callback *) callbacks; /* written with cld_lock(event) held */
    union {
        struct cld_event *next;      /* in a queue's pending list, in a list of ready commands */
        struct cld_alone_run *alone; /* while it is executed: malloced, or NULL */
    };
    union {
        struct {
            struct cld_event *newer, *older; /* among the unfinished of an out-of-order queue */
        };
        struct {                          /* of a child */
            struct cld_family *family;    /* the one that it belongs to */
            _Atomic(uint64_t *) captured; /* where its times go once it is complete, or NULL */
        };
    };
    union {
        struct cld_edge edges[CLD_INLINE_EDGES]; /* until it is ready */
        struct {
            struct cld_whole *whole;
            struct cld_recorded *recorded; /* held */
            uint32_t number;               /* in the order of recording */
            uint32_t unused;
            /* Of one that enqueues, from when it is ready on (runtime/family.c). */
            _Atomic(struct cld_family *) family;  /* that its children belong to; NULL before the first */
            _Atomic(struct cld_event *) children; /* that are to wait for it, the newest first */
            uint64_t complete_time;               /* CL_PROFILING_COMMAND_COMPLETE */
        } node;
    };
    struct cld_edge *more_edges; /* malloced, instead of edges */
    uint64_t times[CLD_TIME_COUNT];

    const struct cld_operation *operation; /* NULL for markers and barriers: nothing to do */
    uint64_t total;                        /* units; 1 for what one thread does at once */
    uint64_t grain;                        /* units that a thread takes at least */
    uint64_t estimate;                     /* of the whole, by one thread, or CLD_TIME_UNKNOWN */
    struct cld_work *share;                /* while several threads execute it */
    _Atomic uint16_t participants;         /* nobody joins without the pool's lock */
    uint16_t leaving;                      /* of them: they will run no more; with the lock held, */
    uint16_t calls;                        /* as these threads that are still wanted, */
    _Atomic bool open;                     /* whether more may join, and the two pointers below */
    uint8_t
        panel; /* work-groups of a row that those of the next row follow (launch/kernel_launch.c); 0: all */
    struct cld_event *open_next, *open_previous;

    struct cld_mem *mems[CLD_INLINE_MEMS]; /* held until the command ends */
    struct cld_mem **more_mems;            /* malloced, instead of mems */
    uint32_t mem_count;
    uint32_t
        counted_bytes; /* of what threads have copies of (launch/privatised_histogram.h): 0, or COMBINES */

    union {
        struct {
            struct cld_launch launch;
            struct cld_kernel_info *info; /* held */
            uint8_t *args;                /* `inline_args` or malloced */
            uint32_t local_size;          /* bytes of local memory, with room between arguments */
            uint32_t is_plain : 1;        /* it does not exchange dimensions: kernel/variant.h */
            /* Work-groups that go the same way (kernel/prefetch_trial.h); 0: all do. */
            uint32_t ahead_piece : 31;
            const struct cld_variant *variant; /* the info's, or NULL */
            union {
                struct cld_ab_run *trial;           /* malloced, or NULL; of kernels without images */
                struct cld_variant_wish *wish;      /* likewise, of those with images: for `variant` */
                struct cld_launch_message *message; /* likewise, of those on another machine */
            };
        } kernel;
        struct {
            struct cld_copy_region copy;
            struct cld_executable *executable; /* held, where a side is a program-scope variable of it */
        };
        struct {
            uint8_t *destination;
            size_t size;
            size_t pattern_size;
            uint8_t pattern[128];
        } fill;
        struct {
            struct cld_copy_region to; /* its source is not used */
            uint8_t pattern[16];
            uint32_t period; /* bytes of it that a row repeats */
        } fill_rows;
        struct {
            void(CL_CALLBACK *function)(void *);
            void *args; /* malloced copy, or what the application gave when there is nothing to copy */
            bool owned;
        } native;
        struct {
            void(CL_CALLBACK *function)(cl_command_queue, cl_uint, void *[], void *);
            void *user_data;
            void **pointers; /* malloced */
            cl_uint count;
        } svm_free;
        struct {
            struct cld_command_buffer *buffer; /* held */
            struct cld_graph *graph;           /* held */
            struct cld_graph_run *run;         /* while it is executed */
            struct cld_queue **queues;         /* malloced, held; NULL: the command's alone */
            uint32_t queue_count;
        } command_buffer;
        struct {
            struct cld_semaphore_use *uses; /* malloced */
            uint32_t count;
            uint32_t missing; /* signals, of those that a wait needs */
            bool arrived;     /* a wait that is executed */
        } semaphores;
    };

    _Alignas(128) uint8_t inline_args[CLD_INLINE_ARGS];
};

_Static_assert(sizeof(struct cld_event) <= CLD_SLOT_SIZE, "an event fits its slot");

#define CLD_EDGES_CLOSED ((struct cld_edge *)(uintptr_t)1)

static inline int32_t cld_event_status(struct cld_event *event) {
    return atomic_load_explicit(&event->status, memory_order_acquire);
}

/* Whether it executes a kernel. */
static inline bool cld_command_is_launch(const struct cld_event *command) {
    return command->type == CL_COMMAND_NDRANGE_KERNEL || command->type == CL_COMMAND_TASK;
}

/* Bytes that it copies or fills. */
static inline uint64_t cld_command_bytes(const struct cld_event *command) {
    const struct cld_operation *operation = command->operation;
    return operation && operation->bytes ? operation->bytes(command) : 0;
}

static inline struct cld_queue *cld_queue_check(cl_command_queue queue) {
    return cld_object_check(queue, CLD_QUEUE);
}

/* A command of that queue, or NULL when out of memory. All that does not depend on the kind of command is
 * set; estimate is CLD_TIME_UNKNOWN, total and grain are 1. with_event: the application gets the handle. */
struct cld_event *cld_command_new(struct cld_queue *queue, cl_command_type type,
                                  const struct cld_operation *operation, bool with_event);

/* The command ends holding mem, which makes it live until the command is complete. False: out of memory. */
bool cld_command_hold_mem(struct cld_event *command, struct cld_mem *mem);

enum cld_enqueue_flags {
    CLD_BLOCKING = 1,  /* return when it is complete, with its error if it failed */
    CLD_AFTER_ALL = 2, /* waits for every command enqueued before (only of meaning out of order) */
};

/* Whether somebody is told of what becomes of the command. */
static inline bool cld_is_observed(const struct cld_event *command) {
    return __builtin_expect(command->special & CLD_OBSERVED, 0);
}

/* Whether its times are noted. */
static inline bool cld_is_timed(const struct cld_event *command) {
    return command->special & (CLD_PROFILED | CLD_OBSERVED);
}

/* The one funnel. Takes the command over, also when it fails; wait->event gets the handle unless it is NULL,
 * also when a blocking command fails in execution. */
cl_int cld_command_enqueue(struct cld_event *command, const struct cld_wait *wait, unsigned flags);

/* The same for a command that a kernel enqueues, which belongs to no queue's order: it waits for these events
 * alone, and to be submitted. Takes the command over. False: no memory. */
bool cld_command_link(struct cld_event *command, uint32_t wait_count, struct cld_event *const *wait_list);

/* Submits such a command. Put into ready if it waits for nothing more. */
void cld_command_submit(struct cld_event *command, struct cld_ready *ready);

/* Its time, and that it starts; the same of its end, of one that is observed. */
void cld_command_note_start(struct cld_event *command);
void cld_command_note_end(struct cld_event *command, int32_t status);

/* Frees a command that was never enqueued. */
void cld_command_discard(struct cld_event *command);

/* Submits all pending commands of the queue. Those that become ready are added to ready, or given to the pool
 * when it is NULL. */
void cld_queue_flush(struct cld_queue *queue, struct cld_ready *ready);

/* Executes a ready command, alone or with the help of the pool. The commands that its completion makes ready
 * are added to ready if they are of that pool, else given to theirs. */
void cld_command_execute(struct cld_event *command, struct cld_self *self, struct cld_ready *ready);

/* Threads that an open command wants and that are not called yet. */
struct cld_later {
    unsigned soon; /* 1: one that may come by itself */
    unsigned free; /* those that it did not count on, if there are CPUs for them */
};

/* Executes chunks of an open command that the thread has joined, beginning with those of its slot, and calls
 * for others later. done: units that it has executed before. */
void cld_command_participate(struct cld_event *command, struct cld_self *self, uint64_t done,
                             struct cld_later later, struct cld_ready *ready);

/* Calls user code, which is part of a command that one thread executes and which may end its thread: an error
 * then. It does so on a thread of the driver's, for the host has use for its own. */
cl_int cld_command_call_user(struct cld_event *command, struct cld_self *self,
                             void (*function)(struct cld_event *command));

/* A user event, or NULL; and its status, which is set but once: false if it was before. */
struct cld_event *cld_user_event_new(struct cld_context *context);
bool cld_user_event_set(struct cld_event *event, int32_t status, struct cld_ready *ready);
/* The command is to end with this error, unless it is bound to end with another one: without being executed
 * if it has not begun. */
void cld_command_fail(struct cld_event *command, int32_t error);

/* Commands that wait for the event, which is not complete, wait no more; they fail. */
void cld_event_forget_dependents(struct cld_event *event, int32_t status);

/* Ends a command or user event. */
void cld_event_complete(struct cld_event *event, int32_t status, struct cld_ready *ready);

/* Blocks until the event is complete, helping to execute; returns its final status. */
int32_t cld_event_wait(struct cld_event *event);

/* Blocks until every command that was enqueued before is complete. */
cl_int cld_queue_finish(struct cld_queue *queue);

/* Submits all pending commands of all queues of a context. CL_OUT_OF_HOST_MEMORY. */
cl_int cld_context_flush(struct cld_context *context);

/* The same as cld_queue_finish for all queues of a context. CL_OUT_OF_HOST_MEMORY. */
cl_int cld_context_finish(struct cld_context *context);

/* True if a command enqueued now, with nothing in its wait list, could start at once, and no other would have
 * to be ordered against it while the lock is held. With the queue's lock held. The newest command may be gone
 * and its slot another event's: then it was complete, and to take the queue for busy does no harm. */
static inline bool cld_queue_idle(struct cld_queue *queue) {
    if (queue->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
        return !queue->barrier;
    struct cld_event *last = atomic_load_explicit(&queue->last, memory_order_acquire);
    return !last || cld_event_status(last) <= 0;
}

/* For commands that take no longer than it takes to enqueue them: true if the caller may execute it now, with
 * the queue's lock held, and then calls cld_immediate_end. */
bool cld_immediate_begin(struct cld_queue *queue, cl_command_type type, const struct cld_wait *wait,
                         struct cld_event **command);
void cld_immediate_end(struct cld_queue *queue, struct cld_event *command, cl_event *event);

#endif
