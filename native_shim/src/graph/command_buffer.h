/* Command-buffers: commands that are recorded once and executed often, as the nodes of a graph.
 *
 * A recorded command is what its enqueue function makes of it, up to where it would be enqueued. It never
 * changes; an update makes another one, and another list of commands, for executions that are enqueued from
 * then on. What executions write is their own (graph/graph_run.h). */
#ifndef CLD_COMMAND_BUFFER_H
#define CLD_COMMAND_BUFFER_H

#include "kernel/kernel.h"
#include "runtime/command.h"

/* A kernel's launch, as the application asked for it: an update changes some of that. */
struct cld_recorded_launch {
    struct cld_kernel kernel; /* no object: a copy with arguments of its own */
    struct cld_kernel *of;    /* the application's, held, and with it what the copy shares */
    cl_uint work_dim;
    bool has_size, has_local;
    size_t offset[3], size[3], local[3];
    cl_mutable_dispatch_fields_khr fields; /* that may be updated */
    bool is_complete;                      /* all arguments are set */
};

struct cld_recorded {
    _Atomic int32_t holds;
    uint32_t queue;          /* an index into those of the command-buffer */
    struct cld_event *model; /* an object that was not published: a command that was not enqueued */
    struct cld_recorded_launch *launch; /* NULL: no kernel */
    size_t property_count;              /* words with the final 0; 0: recorded with NULL */
    cl_command_properties_khr *properties;
};

/* The commands of a command-buffer from an update on, up to the next. */
struct cld_graph {
    _Atomic int32_t holds;
    uint64_t number; /* of the updates before it */
    struct cld_recorded *commands[];
};

/* A command, while others are recorded. */
struct cld_graph_vertex {
    struct cld_recorded *recorded; /* held */
    struct cld_mutable_command *handle;
    uint32_t seen; /* the last command that was found to wait for it, counted from 1 */
    bool has_successor;
};

struct cld_graph_edge {
    uint32_t from, to;
};

struct cld_command_buffer {
    struct cld_object obj;
    struct cld_context *context; /* held */
    uint32_t queue_count;
    struct cld_queue **queues; /* held */
    cl_command_buffer_flags_khr flags;
    cl_mutable_dispatch_asserts_khr asserts;
    size_t property_count; /* words with the final 0; 0: created with NULL */
    cl_command_buffer_properties_khr *properties;
    _Atomic uint32_t state;    /* cl_command_buffer_state_khr */
    _Atomic uint64_t estimate; /* of an execution, in ns, or CLD_TIME_UNKNOWN */
    uint32_t count;            /* of commands. With the object's lock held, as all that follows, until it
                                * is finalized: then it is written no more but for graph and runs */
    uint32_t vertex_room, edge_room, edge_count;
    struct cld_graph_vertex *vertices;
    struct cld_graph_edge *edges; /* by `to` */
    uint32_t incomplete;          /* commands without all their arguments */
    uint32_t barrier;             /* the last one, counted from 1 */
    uint32_t covered;             /* commands before the last barrier without a list */
    uint32_t *last;               /* of each queue: its last command, counted from 1 */

    struct cld_graph *graph;                /* held; once it is finalized */
    uint32_t *blockers;                     /* of each command: how many it waits for */
    uint32_t *first_successor, *successors; /* those of i: from first_successor[i] to that of i + 1 */
    bool is_chain;                          /* each command waits for the one before */
    struct cld_graph_run *runs;             /* those that are not in use */
};

/* What clCommandNDRangeKernelKHR returns: the last argument of updates. It lives as long as the
 * command-buffer. */
struct cld_mutable_command {
    struct cld_object obj;
    struct cld_command_buffer *buffer;
    uint32_t number;
};

_Static_assert(sizeof(struct cld_command_buffer) <= CLD_SLOT_SIZE, "a command-buffer fits its slot");

static inline struct cld_command_buffer *cld_command_buffer_check(cl_command_buffer_khr handle) {
    return cld_object_check(handle, CLD_COMMAND_BUFFER);
}

void cld_recorded_drop(struct cld_recorded *recorded);
void cld_recorded_launch_free(struct cld_recorded_launch *launch);

/* A copy of a kernel's arguments as they are now; of holds the kernel. NULL: no memory. */
struct cld_recorded_launch *cld_recorded_launch_new(struct cld_kernel *of,
                                                    const struct cld_kernel *arguments);

/* With room for so many commands, and none in it yet. NULL: no memory. */
struct cld_graph *cld_graph_new(uint32_t count);
void cld_graph_drop(struct cld_graph *graph, uint32_t count);

/* The current one, held. */
struct cld_graph *cld_graph_hold(struct cld_command_buffer *buffer);

/* The command of that number as it is now, held; of what is being recorded, too. */
struct cld_recorded *cld_recorded_hold(struct cld_command_buffer *buffer, uint32_t number);

/* Adds a command behind those that it waits for: those listed (sync points, checked), and those that the
 * order of its queue and barriers ask for. The command, and its handle unless that is NULL, are taken over if
 * it succeeds. With the lock held. CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES. */
cl_int cld_command_buffer_add(struct cld_command_buffer *buffer, struct cld_recorded *recorded,
                              const cl_sync_point_khr *list, cl_uint list_count,
                              struct cld_mutable_command *handle);

/* Ends the recording: makes the graph. With the lock held. False: no memory. */
bool cld_command_buffer_finalize(struct cld_command_buffer *buffer);

#endif
