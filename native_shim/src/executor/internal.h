/* What the files of this folder share. */
#ifndef CLD_INTERNAL_H
#define CLD_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/codec.h"
#include "cluster/messages.h"
#include "executor/executor.h"
#include "object/objects.h"

/* Things by the numbers that the host gave them. */
struct cld_numbered {
    struct cld_numbered *next;
    uint64_t number;
};

struct cld_numbers {
    struct cld_numbered **buckets;
    uint64_t bucket_count, count;
};

/* A part of a buffer that a kernel has had as an argument. used: which message was the last one that had it.
 */
struct cld_buffer_part {
    struct cld_buffer_part *next;
    uint64_t used;
    size_t offset, size;
    cl_mem handle;
};

/* Contents that come from another worker: they may be here before the host has said what they are. */
struct cld_arrival {
    struct cld_numbered numbered;
    struct cld_executor *executor;
    bool is_announced;
    cl_event gate;           /* NULL, but while the host has announced it and it has not come */
    struct cld_batch *batch; /* which they are in, once they have come */
    const void *data;
    size_t offset, size;
};

/* Bytes of a buffer that come, or should have come, from another worker, and were not written since. */
struct cld_awaited {
    struct cld_awaited *next;
    size_t from, to;
    cl_event event; /* held: when they are in their place */
};

struct cld_remote_buffer {
    struct cld_numbered numbered;
    cl_mem handle;
    size_t size;
    struct cld_buffer_part *parts;
    uint32_t part_count;
    struct cld_awaited *awaited;
};

/* What a command is to wait for: launches that it fails with, and then contents that it needs. All held. */
struct cld_waits {
    cl_event *events;
    uint32_t count, room, launches;
};

/* A part of a buffer, or all of it. */
struct cld_bytes {
    uint64_t buffer;
    size_t offset, size;
};

/* On a buffer, which it holds. */
struct cld_remote_image {
    struct cld_numbered numbered;
    struct cld_bytes contents;
    cl_mem handle;
    cl_int status; /* why there is none */
};

/* Whether coordinates are normalized, the addressing mode, the filters in a level and between them. */
enum { CLD_SAMPLER_VALUES = 4 };

struct cld_remote_sampler {
    struct cld_remote_sampler *next;
    cl_sampler_properties values[CLD_SAMPLER_VALUES];
    cl_sampler handle;
};

struct cld_remote_kernel {
    struct cld_remote_kernel *next;
    cl_kernel handle;
    size_t name_size;
    char name[];
};

/* Built by the first launch of one of its kernels. */
struct cld_remote_program {
    struct cld_numbered numbered;
    struct cld_msg source; /* options, and the program */
    bool is_built;
    cl_int status; /* of that */
    cl_program handle;
    struct cld_remote_kernel *kernels;
};

/* A launch that has not ended, or has failed: then without an event. */
struct cld_remote_launch {
    struct cld_numbered numbered;
    cl_event event;
};

/* Answers that go to the host as one batch, with one payload at most: the process that takes them there has
 * few places for payloads, and a frame that waited for several could wait forever. */
struct cld_told {
    struct cld_told *next;
    struct cld_msg messages;
    struct cld_range payload;
    size_t in_flight; /* bytes of contents, which are counted in the executor's */
};

/* What was put. It is released when nothing uses it any more. */
struct cld_batch {
    struct cld_batch *next;
    uint64_t token;
    _Atomic uint32_t users;
    struct cld_range batch;
    bool is_peer;                       /* of another worker */
    uint64_t payload_count, payload_at; /* which one comes next */
    struct cld_range payloads[];
};

struct cld_executor {
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    int descriptor;
    pthread_t thread;
    _Atomic bool has_failed;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t has_batches, is_idle, has_room;
    struct cld_batch *first, **last;
    bool is_closing;
    uint64_t running; /* commands that have not ended */
    size_t in_flight; /* bytes of contents that are read for others and have not been taken */
    struct cld_numbers launches;
    struct cld_told *told, *newest_told; /* the oldest one first */
    uint64_t *released;
    uint64_t released_count, released_room;
    struct cld_departure *departures;
    uint64_t departure_count, departure_room;

    /* of its thread alone */
    uint64_t message_count;
    size_t held;         /* bytes of buffers */
    uint32_t gate_count; /* contents that were announced and have not come */
    struct cld_numbers buffers, images, programs, arrivals;
    struct cld_remote_sampler *samplers;
};

struct cld_pending;

/* Tells the host that a command has ended. status: CL_SUCCESS or an error. */
typedef void cld_pending_end(struct cld_pending *pending, cl_event event, cl_int status);

/* A command that was enqueued. */
struct cld_pending {
    struct cld_executor *executor;
    cld_pending_end *ended;  /* or NULL */
    struct cld_batch *batch; /* whose memory it uses, or NULL */
    uint64_t number;         /* of the launch, the request or the transfer */
    void *data;              /* what is read: malloced */
    size_t size;
    uint64_t peer;
    struct cld_waits waits;
    struct cld_arrival *arrival;
};

/* False: no memory. A number is in a table once. */
bool cld_numbers_add(struct cld_numbers *numbers, struct cld_numbered *thing, uint64_t number);
void *cld_numbers_find(const struct cld_numbers *numbers, uint64_t number);
void *cld_numbers_take(struct cld_numbers *numbers, uint64_t number);
/* Any one, which is taken; NULL: there is none. */
void *cld_numbers_any(struct cld_numbers *numbers);
void cld_numbers_free(struct cld_numbers *numbers);

/* The command's end is noted from now on. */
struct cld_pending *cld_pending_new(struct cld_executor *executor, cld_pending_end *end, uint64_t number);
void cld_pending_watch(struct cld_pending *pending, cl_event event);
void cld_pending_free(struct cld_pending *pending);

/* Holds the event. False: no memory. */
bool cld_waits_add(struct cld_waits *waits, cl_event event);
void cld_waits_free(struct cld_waits *waits);
cl_int cld_status_of(cl_event event);

/* What comes next in a message: bytes, or the size of the next payload. */
const void *cld_batch_data(struct cld_batch *batch, struct cld_msg *msg, size_t *size);

/* Adds what is to have come before so many bytes can be used. CL_DEVICE_NOT_AVAILABLE: it never will. */
cl_int cld_await(struct cld_remote_buffer *buffer, size_t offset, size_t size, struct cld_waits *waits);
/* The same; of a buffer that was forgotten, which an image may be made on, nothing is to come. */
cl_int cld_await_bytes(struct cld_executor *executor, const struct cld_bytes *bytes, struct cld_waits *waits);
/* They are written, or the buffer is freed. */
void cld_await_no_more(struct cld_remote_buffer *buffer, size_t offset, size_t size);
bool cld_execute_receive(struct cld_executor *executor, struct cld_msg *msg);
bool cld_execute_arrive(struct cld_executor *executor, struct cld_batch *batch, struct cld_msg *msg);
/* What has not come never will. */
void cld_arrival_miss(struct cld_executor *executor, uint64_t number);
void cld_arrivals_end(struct cld_executor *executor);
void cld_arrival_leave(struct cld_arrival *arrival);

/* One message of a batch; false if it is none. */
bool cld_execute(struct cld_executor *executor, struct cld_batch *batch, struct cld_msg *msg);
/* Makes a buffer; false if the message is none. */
bool cld_execute_buffer(struct cld_executor *executor, struct cld_msg *msg);
void cld_buffer_free(struct cld_executor *executor, struct cld_remote_buffer *buffer);

/* A buffer, or so many bytes of it, which comes next in the message. */
cl_int cld_part_of(struct cld_executor *executor, struct cld_msg *msg, struct cld_bytes *bytes,
                   cl_mem *handle);

/* Makes an image; false if the message is none. What cannot be made fails the launches that want it. */
bool cld_execute_image(struct cld_executor *executor, struct cld_msg *msg);
void cld_remote_image_free(struct cld_remote_image *image);
void cld_remote_samplers_free(struct cld_remote_sampler *sampler);

/* Arguments, which come next in the message. kernel: NULL to read past it only. */
cl_int cld_set_image(struct cld_executor *executor, struct cld_msg *msg, struct cld_waits *waits,
                     cl_kernel kernel, cl_uint i);
cl_int cld_set_sampler(struct cld_executor *executor, struct cld_msg *msg, cl_kernel kernel, cl_uint i);

/* A kernel of a program, which is built if it is not. */
cl_int cld_remote_kernel_of(struct cld_executor *executor, uint64_t number, const char *name,
                            size_t name_size, cl_kernel *kernel);
void cld_remote_program_free(struct cld_remote_program *program);

/* The batch is not used any more by one of its users. */
void cld_batch_leave(struct cld_executor *executor, struct cld_batch *batch);

/* Counts bytes of contents that are to be read, before there is memory for them. Who takes what was read may
 * be slow: where there is much of it this waits until some was taken, unless something else has to come
 * before what is to be read can be. False: it is too much for this machine, or nobody takes anything any
 * more. */
bool cld_flight_begin(struct cld_executor *executor, size_t size);
void cld_flight_end(struct cld_executor *executor, size_t size);

/* Answers, in the order in which the host is told them. Text is copied, data is malloced and taken; of
 * contents bytes are counted until somebody has taken them. */
void cld_answer_done(struct cld_executor *executor, uint64_t command, cl_int status, uint64_t start,
                     uint64_t end);
void cld_answer_data(struct cld_executor *executor, uint64_t request, cl_int status, void *data, size_t size);
void cld_answer_lost(struct cld_executor *executor, uint64_t transfer);
void cld_answer_departure(struct cld_executor *executor, uint64_t peer, uint64_t transfer, void *data,
                          size_t size);
void cld_answer_text(struct cld_executor *executor, int kind, uint64_t number, cl_int status,
                     const char *text, size_t size);

/* The oldest batch of answers, and all that was released. */
void cld_answers_take(struct cld_executor *executor, struct cld_answers *answers);
void cld_answers_free(struct cld_executor *executor);

#endif
