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

/* A part of a buffer that a kernel has had as an argument. */
struct cld_part {
    struct cld_part *next;
    size_t offset, size;
    cl_mem handle;
};

struct cld_remote_buffer {
    struct cld_numbered numbered;
    cl_mem handle;
    size_t size;
    struct cld_part *parts;
};

/* On a buffer, which it holds. */
struct cld_remote_image {
    struct cld_numbered numbered;
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
};

/* What was put. It is released when nothing uses it any more. */
struct cld_batch {
    struct cld_batch *next;
    uint64_t token;
    _Atomic uint32_t users;
    struct cld_range batch;
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
    pthread_cond_t has_batches, is_idle;
    struct cld_batch *first, **last;
    bool is_closing;
    uint64_t running; /* commands that have not ended */
    struct cld_numbers launches;
    struct cld_told *told, *newest_told; /* the oldest one first */
    uint64_t *released;
    uint64_t released_count, released_room;

    /* of its thread alone */
    struct cld_numbers buffers, images, programs;
    struct cld_remote_sampler *samplers;
};

/* False: no memory. A number is in a table once. */
bool cld_numbers_add(struct cld_numbers *numbers, struct cld_numbered *thing, uint64_t number);
void *cld_numbers_find(const struct cld_numbers *numbers, uint64_t number);
void *cld_numbers_take(struct cld_numbers *numbers, uint64_t number);
/* Any one, which is taken; NULL: there is none. */
void *cld_numbers_any(struct cld_numbers *numbers);
void cld_numbers_free(struct cld_numbers *numbers);

/* One message of a batch; false if it is none. */
bool cld_execute(struct cld_executor *executor, struct cld_batch *batch, struct cld_msg *msg);
/* Makes a buffer; false if the message is none. */
bool cld_execute_buffer(struct cld_executor *executor, struct cld_msg *msg);
void cld_buffer_free(struct cld_remote_buffer *buffer);

/* A buffer, or so many bytes of it, which comes next in the message. */
cl_int cld_part_of(struct cld_executor *executor, struct cld_msg *msg, cl_mem *handle);

/* Makes an image; false if the message is none. What cannot be made fails the launches that want it. */
bool cld_execute_image(struct cld_executor *executor, struct cld_msg *msg);
void cld_remote_image_free(struct cld_remote_image *image);
void cld_remote_samplers_free(struct cld_remote_sampler *sampler);

/* Arguments, which come next in the message. kernel: NULL to read past it only. */
cl_int cld_set_image(struct cld_executor *executor, struct cld_msg *msg, cl_kernel kernel, cl_uint i);
cl_int cld_set_sampler(struct cld_executor *executor, struct cld_msg *msg, cl_kernel kernel, cl_uint i);

/* A kernel of a program, which is built if it is not. */
cl_int cld_remote_kernel_of(struct cld_executor *executor, uint64_t number, const char *name,
                            size_t name_size, cl_kernel *kernel);
void cld_remote_program_free(struct cld_remote_program *program);

/* The batch is not used any more by one of its users. */
void cld_batch_leave(struct cld_executor *executor, struct cld_batch *batch);

/* Answers, in the order in which the host is told them. Text is copied, data is malloced and taken. */
void cld_answer_done(struct cld_executor *executor, uint64_t command, cl_int status, uint64_t start,
                     uint64_t end);
void cld_answer_data(struct cld_executor *executor, uint64_t request, cl_int status, void *data, size_t size);
void cld_answer_text(struct cld_executor *executor, int kind, uint64_t number, cl_int status,
                     const char *text, size_t size);

/* The oldest batch of answers, and all that was released. */
void cld_answers_take(struct cld_executor *executor, struct cld_answers *answers);
void cld_answers_free(struct cld_executor *executor);

#endif
