/* Executions of command-buffers: the nodes of the graph, which are commands, and how far they have come. */
#ifndef CLD_GRAPH_RUN_H
#define CLD_GRAPH_RUN_H

#include "graph/command_buffer.h"

/* What one execution needs beside the graph. It is kept for the next one; executions at the same time have
 * one each. */
struct cld_graph_run {
    struct cld_whole whole; /* first: what nodes know of it */
    struct cld_graph_run *next;
    struct cld_command_buffer *buffer;
    uint64_t number;           /* of the graph that its nodes are copies of */
    struct cld_event *nodes;   /* malloced, in the order of recording */
    struct cld_event *command; /* while it is executed */
    struct cld_queue *queue;   /* that the nodes are of, where there is one; not held, only compared */
    bool is_one_pool;          /* whose threads execute the commands of all queues */
    bool needs_pool;           /* a node may wait for what others do, or enqueue others */
    uint32_t executions;
    uint64_t estimate, longest; /* of all nodes and of one, as far as is known */
    _Atomic uint32_t left;      /* nodes that have not ended */
    _Atomic int32_t error;      /* of the first that failed */
};

/* The command that executes a command-buffer. Its command_buffer member is filled by who enqueues it; what
 * is held is dropped when the command ends. */
extern const struct cld_operation cld_graph_operation;

/* Whether it executes a command-buffer on several queues. */
static inline bool cld_graph_is_of_several(const struct cld_event *event) {
    return event->operation == &cld_graph_operation && event->command_buffer.queue_count > 1;
}

/* One that is not in use, for that graph; NULL: no memory. To be put back. */
struct cld_graph_run *cld_graph_run_take(struct cld_command_buffer *buffer, const struct cld_graph *graph);
void cld_graph_run_put(struct cld_graph_run *run);

void cld_graph_run_free(struct cld_graph_run *run);

#endif
