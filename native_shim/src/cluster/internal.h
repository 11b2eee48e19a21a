/* What the files of this folder share. All of it is guarded by one lock, which is held for no longer than it
 * takes to change a list; nothing else is taken or called while it is held but cld_object_hold(). */
#ifndef CLD_INTERNAL_H
#define CLD_INTERNAL_H

#include <pthread.h>

#include "base/codec.h"
#include "base/worker_set.h"
#include "cluster/cluster.h"
#include "cluster/extents.h"
#include "cluster/messages.h"
#include "cluster/worth.h"
#include "memory/mem.h"

struct cld_answer {
    cl_device_info query;
    size_t size;
    const void *bytes; /* in the message that the list came with */
};

struct cld_worker {
    uint32_t number;
    bool is_whole;    /* it is all others; no messages go to it */
    bool is_in_whole; /* it is one of these */
    uint64_t compute_units;
    _Atomic bool is_gone;
    int64_t clock;      /* to be added to its times, in ns */
    int64_t busy_until; /* when the last launch ended whose times are known; of the thread that receives */
    struct cld_device *device;
    uint32_t answer_count;
    struct cld_answer *answers;
    struct cld_request *oldest, **newest; /* what it has not answered yet, in the order of sending */
    uint64_t answered; /* since when `oldest` is that: what it was before was answered, or was none */
    struct cld_item *first, **last; /* to be sent */
    uint32_t under_way;             /* frames that the other process has not handed on yet */
    bool is_listed;                 /* among those that there may be something to send to: */
    struct cld_worker *next_listed;
    struct cld_worker_set asked, reachable; /* workers that it is to connect with, and can send to */
    struct cld_link link;
    uint64_t due;    /* ns: what it has of launches on all workers is expected to take */
    uint64_t chosen; /* which of the launches that one worker executes was its last */
    uint32_t place;  /* its part's, of the launch that is looked at (choice.c), */
    size_t held;     /* bytes of what that uses, */
    bool is_avoided; /* and whether others had better execute it */
};

/* Something to be sent, to one worker. */
struct cld_item {
    struct cld_item *next;
    struct cld_msg message;
    struct cld_mem *held; /* whose contents it sends, or NULL */
    size_t offset, size;
};

/* An answer that is to come. */
struct cld_request {
    struct cld_request *next;
    uint64_t number;
    struct cld_event *command; /* a launch; NULL for contents */
    struct cld_fetch *fetch;   /* what is read for, at that offset; NULL for what another worker sends: */
    struct cld_copies *copies; /* what it is a part of; NULL: it was freed */
    size_t offset, size;
    struct cld_worker *from; /* of a transfer */
    uint64_t version;        /* that it is of */
    struct cld_sum *sum;     /* what is read is to be combined with; or NULL */
    uint64_t sent;           /* when, to a worker that had nothing else to do; else 0 */
    struct cld_item *miss;   /* to be sent if a transfer never comes; NULL: it was, or is none */
};

/* A segment that is on its way here, in parts. */
struct cld_fetch {
    struct cld_fetch *next;    /* of those that have ended */
    struct cld_copies *copies; /* whose memory object it holds: nobody need wait for it any more */
    uint32_t worker;           /* that it comes from */
    size_t begin, end;
    uint64_t version; /* of what was written last when it was asked for */
    uint32_t missing; /* parts */
    cl_int error;     /* that one of these was; rather one by which it is lost */
    bool is_partial;  /* there was no memory to ask for all of it */
};

struct cld_part_use;

/* What a command does with a memory object, and with which bytes of its root's. */
enum cld_use { CLD_USES_NOTHING, CLD_READS, CLD_WRITES, CLD_WRITES_ALL };

struct cld_used {
    struct cld_copies *copies;
    size_t begin, end;
    struct cld_bytes_range written; /* of them */
    enum cld_use use;
};

/* The memory object of a command, or NULL where it is a queue, which is held like one. */
struct cld_mem *cld_mem_at(const struct cld_event *command, uint32_t i);

/* What a command does with its memory object of that number, which may be nothing. uses_all: whether all of
 * each is taken for used, which is settled then. False: no memory. With the lock held. */
bool cld_find_used(const struct cld_event *command, uint32_t i, bool uses_all, struct cld_used *used);

/* The same of a launch on all workers, of which a part uses no more than that. */
bool cld_find_used_by(const struct cld_event *command, uint32_t i, const struct cld_part_use *use,
                      struct cld_used *used);

/* Whether a memory object is in so many pieces that it had better be in one place. With the lock held. */
bool cld_is_cut_up(const struct cld_event *command);

/* A part of a memory object that is everywhere in the same state. */
struct cld_segment {
    struct cld_segment *next;    /* begins where this one ends */
    size_t begin, end;           /* bytes */
    bool is_here;                /* this machine has what was written last */
    uint32_t users;              /* commands that use it here now */
    uint32_t coming;             /* fetches that it is a part of */
    uint64_t version;            /* of what was written last */
    struct cld_worker_set valid; /* workers that have it, too */
};

/* Something that workers know by a number: a memory object, a program, an image. Malloced, and from when it
 * is to be forgotten on in a list until all workers have been told. */
struct cld_known {
    struct cld_known *next;
    uint64_t number;
    int forget; /* the message */
    struct cld_worker_set workers;
};

/* Where the contents of a memory object are, of one that has no parent. There once a device elsewhere may
 * want it. */
struct cld_copies {
    struct cld_mem *mem;
    struct cld_known *known;      /* workers that have memory for it */
    uint64_t version;             /* of what was written last */
    struct cld_segment *segments; /* segments.c */
    struct cld_segment *near;     /* of them, one before what was looked for last: others come behind it */
    uint32_t segment_count;
    uint32_t transfers;        /* requests for what comes from another worker */
    struct cld_event *waiting; /* commands that look again once something is here, or is not used any more */
};

extern pthread_mutex_t cld_cluster_lock;

/* Launches whose failure is a launch's own, of those that it follows on the worker. What has more waits here.
 */
enum { CLD_MOST_NEEDED = 8 };

/* A launch's message, ready but for what is known when it is sent. */
struct cld_launch_message {
    uint64_t number; /* once it is sent, until then 0; under the lock, as what follows */
    uint32_t needed_count;
    uint64_t needed[CLD_MOST_NEEDED]; /* numbers of launches */
    struct cld_msg arguments;         /* a list; of a part that of the launch */
    uint64_t only_read;               /* bits: memory objects of the command that it does not write */
    bool has_local_size, uses_all;
    struct cld_launch_part *part; /* that it is of a launch on all workers, or NULL */
    struct cld_parts *parts;      /* of a launch on all workers, or NULL */
};

/* Bytes of a memory object's root that a part of a launch uses. */
struct cld_part_use {
    bool is_known; /* else all that the argument has */
    struct cld_bytes_range read, written;
};

/* Bytes that a worker lacks of what it would use, by where they are. */
struct cld_lacking {
    size_t here, elsewhere;
};

/* What one worker executes of a launch on all of them. */
struct cld_launch_part {
    struct cld_event *command; /* for it alone; malloced */
    struct cld_launch_message message;
    struct cld_parts *of;
    struct cld_worker *worker;
    struct cld_group_range groups;
    struct cld_part_use *uses;   /* of each memory object of the launch */
    size_t lacks;                /* bytes of these that the worker did not have */
    struct cld_bytes_range used; /* while it is looked at whether the launch is to be cut: */
    struct cld_lacking lacking;
    uint64_t due;            /* that is counted in the worker's */
    uint64_t taken, arrived; /* ns that it executed the part, if it did; and when that was known here */
};

/* Numbers of a memory object that the parts of a launch add up, or combine in another way. The workers begin
 * with neutral ones; this machine combines what they come to with what it has. */
struct cld_sum {
    struct cld_parts *of;
    struct cld_copies *copies;
    struct cld_bytes_range range; /* of the root */
    int64_t combination;          /* as in struct cld_argument_extent */
};

/* A launch on all workers. */
struct cld_parts {
    struct cld_whole whole; /* of whose nodes each part's command is one */
    struct cld_event *command;
    bool is_cut, is_sent, has_ended;
    bool could_be_cut;
    bool is_trial;  /* others of its kernel wait for what it tells */
    bool is_chosen; /* whether it is to be cut, and who executes it if not */
    bool is_timed;  /* it was sent at `sent`, to workers that had nothing else to do */
    uint64_t sent;
    uint64_t began; /* of a trial: when it was chosen as one */
    struct cld_parts *next_trial;
    uint32_t count, unsent;
    uint32_t left; /* parts, and requests for sums, that have not ended */
    uint32_t sum_count;
    bool holds_sums;
    struct cld_sum *sums;
    struct cld_part_use *uses;
    struct cld_part_use *all; /* what all parts use together, of one that is cut */
    struct cld_parts *next;   /* of those that were sent, in this order */
    struct cld_launch_part parts[];
};

/* The worker that executes a launch. */
static inline struct cld_worker *cld_worker_of(const struct cld_event *command) {
    const struct cld_launch_message *message = command->kernel.message;
    return message && message->part ? message->part->worker : command->queue->device->worker;
}

/* Without the lock: divides a launch of the device that is all workers into parts (cut.c). Its message has
 * them then. CL_OUT_OF_HOST_MEMORY. */
cl_int cld_launch_cut(struct cld_event *command, const struct cld_kernel *kernel);
void cld_parts_free(struct cld_parts *parts);

/* Without the lock: sends the parts that can be sent. False: the launch has failed before (whole.c). */
bool cld_parts_start(struct cld_event *command, struct cld_ready *ready);

/* Why a launch that could be cut is not. */
struct cld_choice {
    bool is_joined; /* it is not */
    bool is_owed;   /* for the sake of the next ones */
    struct cld_way in_parts, by_one;
};
void cld_choice_log(const struct cld_event *command, const struct cld_choice *choice);

/* What follows is called with the lock held. */

/* Makes one part of a launch that is not worth cutting, and says who executes it; once (choice.c). False: the
 * command waits for another launch of its kernel. */
bool cld_parts_choose(struct cld_parts *parts, struct cld_choice *choice);
/* It is about to be sent. And has ended without an error. */
void cld_parts_time(struct cld_parts *parts);
void cld_parts_learn(const struct cld_parts *parts);
/* A part has ended; the launch has, whether it was chosen or not. */
void cld_part_leave(struct cld_launch_part *part);
void cld_parts_end(struct cld_parts *parts, struct cld_event **again);

/* Of its kernel others wait for it from now on, until it has ended or has taken long (whole.c). */
void cld_trial_begin(struct cld_parts *parts);
void cld_trial_end(struct cld_parts *parts, struct cld_event **again);

/* From time to time: those that wait for what takes long do no more. */
void cld_trials_look(struct cld_event **again);

/* Whether it is busy with something that takes long, or may never end. */
bool cld_is_held_up(const struct cld_worker *worker, uint64_t now);

/* Adds commands that wait to those that look again. */
void cld_wake(struct cld_event **waiting, struct cld_event **again);

/* A part was sent. */
void cld_part_sent(struct cld_launch_part *part, struct cld_ready *ready);

/* In three steps: whether all that a launch uses is at its worker, or can be sent there; that is sent; the
 * launch is. False: it has failed. */
enum cld_readiness { CLD_IS_READY, CLD_WAITS, CLD_HAS_FAILED };
enum cld_readiness cld_launch_gather(struct cld_event *command, struct cld_worker *worker);
bool cld_launch_send_needs(struct cld_event *command, struct cld_worker *worker);
bool cld_launch_send(struct cld_event *command, struct cld_worker *worker, struct cld_ready *ready);
void cld_launch_release(struct cld_event *command, struct cld_ready *ready);

/* True if all sums can be begun: what they are to be added to is here, and used by nobody. False: the command
 * waits, or has failed (sums.c). */
bool cld_sums_gather(struct cld_event *command, struct cld_parts *parts);
/* Of one worker: has it begin with neutral numbers; asks it for what it has come to. False: no memory. */
bool cld_sums_begin(struct cld_parts *parts, struct cld_worker *worker);
bool cld_sums_ask(struct cld_parts *parts, struct cld_worker *worker);
/* What this machine has is what was written last, and may be used. */
void cld_sums_end(struct cld_parts *parts, struct cld_event **again);
/* Without the lock, by the thread that receives: bytes that a request for a sum was answered with. */
void cld_sum_add(const struct cld_request *request, const uint8_t *bytes);
/* A request for a sum has ended, well or not. */
void cld_sum_arrive(const struct cld_request *request, cl_int status);

/* What is known of a memory object, which is made if there is nothing; NULL: no memory. */
struct cld_copies *cld_copies_of(struct cld_mem *mem);

/* True if all memory objects of a launch can be used by the worker at once. False: the command waits, or has
 * failed (command->error). uses_all: whether all of them is taken for used, and not sub-buffers' parts. */
bool cld_copies_gather(struct cld_event *command, struct cld_worker *worker, bool *uses_all);

/* Has the worker have them, as the next thing that it does. False: no memory, or it has gone. */
bool cld_copies_send(struct cld_event *command, struct cld_worker *worker, bool uses_all);

/* What the command writes will be at the worker alone. */
void cld_copies_written(struct cld_event *command, struct cld_worker *worker, bool uses_all);

/* A range that is to be here, and to be used here, until cld_copies_leave(). False: the command waits for it,
 * or has failed. */
bool cld_copies_enter(struct cld_event *command, struct cld_copies *copies, struct cld_bytes_range range);
void cld_copies_hold(struct cld_copies *copies, struct cld_bytes_range range);
void cld_copies_leave(struct cld_copies *copies, struct cld_bytes_range range, struct cld_event **again);

/* Asks a worker for bytes of it. What becomes of them the caller says in the request. NULL: no memory. */
struct cld_request *cld_copies_read(struct cld_worker *worker, const struct cld_copies *copies, size_t offset,
                                    size_t size);

/* Has the worker have memory for it. False: no memory. */
bool cld_copies_tell(struct cld_worker *worker, struct cld_copies *copies);

/* An item that is a list of so many values, of which the message and the number are the first; NULL: no
 * memory. */
struct cld_item *cld_copies_item(int message, const struct cld_copies *copies, uint32_t count);

/* For a launch's list of arguments. CL_INVALID_IMAGE_SIZE, CL_OUT_OF_HOST_MEMORY. word: abi/image_abi.h.
 * Without the lock. */
cl_int cld_image_argument(struct cld_msg *list, struct cld_mem *mem, uint32_t i);
void cld_sampler_argument(struct cld_msg *list, uint64_t word);

/* Has the worker make the images of a launch, on contents that it was sent. False: no memory. */
bool cld_images_send(struct cld_event *command, struct cld_worker *worker);

/* What has ended with a message, or with a worker: to be dealt with without the lock, by cld_end_all(). */
struct cld_ended {
    struct cld_event *failed; /* commands that have failed by that, */
    struct cld_event *again;  /* and those that may look again */
    struct cld_request *sums;
    struct cld_fetch *fetches;
};
void cld_end_all(struct cld_ended *ended);

/* A part has come and is in its place, or is not going to: status. */
void cld_copies_arrive(struct cld_request *request, cl_int status, struct cld_ended *ended);
void cld_fetches_free(struct cld_fetch *fetches); /* without the lock */

/* An item with an empty message; NULL: no memory. It is sent, and freed, by cld_send. False: no memory. */
struct cld_item *cld_item_new(void);
bool cld_send(struct cld_worker *worker, struct cld_item *item);

/* A list of kind and number, to be sent or freed; NULL: no memory. */
struct cld_item *cld_item_of(int message, uint64_t number);
void cld_item_free(struct cld_item *item);

/* NULL: no memory. forget: the message that says that nobody uses it any more; this is sent to those that
 * have not gone, as soon as there is memory for it. */
struct cld_known *cld_known_new(int forget);
void cld_forget(struct cld_known *known);

/* A frame of the worker was handed on. */
void cld_frame_taken(struct cld_worker *worker);

/* Places of what came are free again; places of what was sent are. */
void cld_places_used(const struct cld_payload *payloads, uint32_t count);
void cld_places_free(const struct cld_payload *payloads, uint32_t count);

/* A request that is answered after all that were made before. NULL: no memory. */
struct cld_request *cld_request(struct cld_worker *worker, uint64_t number, struct cld_event *command,
                                size_t offset, size_t size);
void cld_request_free(struct cld_request *request);

/* One segment, which is here alone; everywhere where it has no contents yet. False: no memory. */
bool cld_segments_begin(struct cld_copies *copies, size_t size, bool has_contents);
void cld_segments_free(struct cld_copies *copies);

/* The first of those that make up [begin, end), which are cut where it begins and ends. NULL: no memory. */
struct cld_segment *cld_segments_in(struct cld_copies *copies, size_t begin, size_t end);

/* Has memory for so many cuts of the other function, which does the same and cannot fail then. False: no
 * memory. */
bool cld_segments_reserve(uint32_t count);
struct cld_segment *cld_segments_of(struct cld_copies *copies, size_t begin, size_t end);

/* Makes one of neighbours that have come to be alike, in a range and beside it. */
void cld_segments_join(struct cld_copies *copies, struct cld_bytes_range range);

/* Whether there are so many, for so many workers, that it is better to have all in one place. */
bool cld_segments_are_many(const struct cld_copies *copies, uint32_t workers);

/* A worker that has the segment and can send it to the other, or NULL. Those that might are asked to connect:
 * what is wanted before they have goes by way of this machine. */
struct cld_worker *cld_transfer_source(const struct cld_segment *segment, const struct cld_worker *to);

/* Has one send so many bytes to the other, which knows the memory object. False: no memory. */
bool cld_transfer(struct cld_copies *copies, struct cld_worker *from, struct cld_worker *to, size_t offset,
                  size_t size);

/* They are there, or will not be (status). */
void cld_transfer_end(struct cld_worker *to, const struct cld_request *request, int64_t status);

/* The memory object is freed. */
void cld_transfers_forget(const struct cld_copies *copies);

/* What the worker was to send never comes: the transfer of that number, or 0: all. peer: to that worker only,
 * or NULL. */
void cld_transfers_miss(const struct cld_worker *from, const struct cld_worker *peer, uint64_t number);

/* Nothing was sent to it that it has not answered, and nothing is to be. */
static inline bool cld_is_idle(const struct cld_worker *worker) {
    return !worker->oldest && !worker->first && !worker->under_way;
}

/* Numbers of programs, memory objects, requests: none is ever used again. */
uint64_t cld_cluster_number(void);

/* A worker of a set that has not gone, or NULL. */
struct cld_worker *cld_worker_in(const struct cld_worker_set *set);
struct cld_worker *cld_worker_at(uint32_t number); /* NULL: there are not so many */
uint32_t cld_worker_count(void);

/* Launches on the device that is all workers may have a part there. */
static inline bool cld_is_in_whole(const struct cld_worker *worker) {
    return worker->is_in_whole && !worker->is_gone;
}

/* A worker that has come later, of the frame that tells of it. Its device is there from then on. False: that
 * makes no sense. For the thread that receives. */
bool cld_worker_come(struct cld_msg *msg);

/* Without the lock: for the mover's table. */
bool cld_launch_follows(struct cld_event *command, struct cld_event *before, bool passes_errors);

/* Whether a launch reads the i-th of its memory objects, at most. */
bool cld_launch_only_reads(const struct cld_event *command, uint32_t i);

/* The worker is sent the program of a launch, unless it has it. False: no memory. */
bool cld_program_send(struct cld_event *command, struct cld_worker *worker);

/* The worker has gone: what it was to answer never comes. */
void cld_worker_end(struct cld_worker *worker, struct cld_ended *ended);

/* Without the lock: commands that may have become ready are executed; launches that failed are completed. */
void cld_cluster_push(struct cld_event *again);
void cld_cluster_fail(struct cld_event *failed);

/* For the mover's table: an image, an executable is freed. And there is such a table from now on. */
void cld_image_freed(struct cld_mem *mem);
void cld_program_freed(struct cld_executable *executable);
void cld_copies_begin(void);

/* Without the lock: makes the memory that is shared with the process at the other end of a socket, and sends
 * it there. False: there is none. */
bool cld_share_memory(int descriptor);
const uint8_t *cld_shared_bytes(const struct cld_payload *payload); /* NULL: it is none */

/* Without the lock: starts the threads that send and receive at a socket, of workers whose list is complete.
 */
bool cld_cluster_start_threads(int descriptor);
void *cld_send_all(void *descriptor);

/* The process that the cluster's threads are in: after a fork a child has none. */
bool cld_cluster_is_here(void);

static inline struct cld_mem *cld_root_of(struct cld_mem *mem) {
    while (mem->parent)
        mem = mem->parent;
    return mem;
}

/* Reads so many bytes. The descriptor has a time limit, in which there is always a sign of life (start.c). */
bool cld_cluster_receive(int descriptor, void *data, size_t size);

#endif
