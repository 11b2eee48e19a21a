/* Executes a host's commands on this machine's device, for a worker of a cluster
 * (cl_driver/cluster/README.md).
 *
 * The worker's Python hands over whole batches and takes whole batches of answers; what is in them it does
 * not see, and no command waits for its lock. One thread decodes and enqueues, and never waits for a command;
 * what has become of commands is noted by whichever thread completes them. */
#ifndef CLD_EXECUTOR_H
#define CLD_EXECUTOR_H

#include <stdint.h>

struct cld_executor;

/* A range of memory. */
struct cld_range {
    void *at;
    uint64_t size;
};

/* Contents for another worker of the same host: its number, and what they are there. Transfer 0: none, the
 * connection is to be there. */
struct cld_departure {
    uint64_t peer, transfer;
    struct cld_range contents;
};

/* What there is to tell the host: a batch, and the payload that one of its messages may speak of. And what
 * goes to other workers. All is malloced, and the caller's from then on. */
struct cld_answers {
    struct cld_range batch;
    struct cld_range payload;
    uint64_t *released; /* tokens of put() whose memory is not used any more */
    uint64_t released_count;
    struct cld_departure *departures;
    uint64_t departure_count;
};

/* What Python calls; cl_driver/cluster/executor.py has the same layout. */
struct cld_executor_table {
    /* NULL, and *status is why. */
    struct cld_executor *(*open)(int32_t *status);
    /* An eventfd that is readable when there are answers. */
    int32_t (*descriptor)(struct cld_executor *executor);
    /* Takes a batch for execution, and the payloads of its messages. Never waits. All of it stays in its
     * place until the token is released. is_peer: it is not the host's, but another worker's. 0: no memory.
     */
    int32_t (*put)(struct cld_executor *executor, uint64_t token, const struct cld_range *batch,
                   const struct cld_range *payloads, uint64_t count, int32_t is_peer);
    /* The oldest answers; the descriptor stays readable while there are more. */
    void (*take)(struct cld_executor *executor, struct cld_answers *answers);
    /* Frees what take() gave out. */
    void (*free)(void *memory);
    /* Whether a batch made no sense: nothing is executed any more. */
    int32_t (*failed)(struct cld_executor *executor);
    /* Waits for all that was put, and frees everything. */
    void (*close)(struct cld_executor *executor);
};

const struct cld_executor_table *cld_executor_functions(void);

#endif
