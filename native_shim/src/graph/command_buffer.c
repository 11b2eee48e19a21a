/* What is recorded: commands and what they wait for. */
#include "graph/command_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "object/lock.h"

static void free_arguments(struct cld_kernel *kernel) {
    free(kernel->block);
    free(kernel->mems);
    free(kernel->is_set);
}

void cld_recorded_launch_free(struct cld_recorded_launch *launch) {
    if (!launch)
        return;
    free_arguments(&launch->kernel);
    cld_object_drop(launch->of);
    free(launch);
}

static void *copy_of(const void *bytes, size_t size) {
    void *copy = malloc(size ? size : 1);
    if (copy && size)
        memcpy(copy, bytes, size);
    return copy;
}

struct cld_recorded_launch *cld_recorded_launch_new(struct cld_kernel *of,
                                                    const struct cld_kernel *arguments) {
    struct cld_recorded_launch *launch = calloc(1, sizeof *launch);
    if (!launch)
        return NULL;
    const struct cld_kernel_info *info = of->info;
    struct cld_kernel *kernel = &launch->kernel;
    kernel->program = of->program;
    kernel->info = of->info;
    kernel->infos = of->infos;
    kernel->svm_fine_system = arguments->svm_fine_system;
    kernel->block = copy_of(arguments->block, info->block_size);
    kernel->mems = copy_of(arguments->mems, info->arg_count * sizeof *kernel->mems);
    kernel->is_set = copy_of(arguments->is_set, info->arg_count * sizeof *kernel->is_set);
    if (!kernel->block || !kernel->mems || !kernel->is_set) {
        free_arguments(kernel);
        free(launch);
        return NULL;
    }
    launch->of = of;
    cld_object_hold(of);
    return launch;
}

void cld_recorded_drop(struct cld_recorded *recorded) {
    if (atomic_fetch_sub_explicit(&recorded->holds, 1, memory_order_acq_rel) != 1)
        return;
    if (recorded->model)
        cld_command_discard(recorded->model);
    cld_recorded_launch_free(recorded->launch);
    free(recorded->properties);
    free(recorded);
}

struct cld_graph *cld_graph_new(uint32_t count) {
    struct cld_graph *graph = malloc(sizeof *graph + count * sizeof graph->commands[0]);
    if (graph) {
        atomic_init(&graph->holds, 1);
        graph->number = 0;
    }
    return graph;
}

void cld_graph_drop(struct cld_graph *graph, uint32_t count) {
    if (atomic_fetch_sub_explicit(&graph->holds, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < count; i++)
        cld_recorded_drop(graph->commands[i]);
    free(graph);
}

struct cld_graph *cld_graph_hold(struct cld_command_buffer *buffer) {
    cld_lock(buffer);
    struct cld_graph *graph = buffer->graph;
    atomic_fetch_add_explicit(&graph->holds, 1, memory_order_relaxed);
    cld_unlock(buffer);
    return graph;
}

struct cld_recorded *cld_recorded_hold(struct cld_command_buffer *buffer, uint32_t number) {
    cld_lock(buffer);
    struct cld_recorded *recorded =
        buffer->graph ? buffer->graph->commands[number] : buffer->vertices[number].recorded;
    atomic_fetch_add_explicit(&recorded->holds, 1, memory_order_relaxed);
    cld_unlock(buffer);
    return recorded;
}

/* Room for one more of an array that doubles. */
static bool grow(void **array, uint32_t count, uint32_t *room, size_t size) {
    if (count < *room)
        return true;
    uint32_t wanted = *room ? 2 * *room : 16;
    void *more = wanted > *room ? realloc(*array, wanted * size) : NULL;
    if (!more)
        return false;
    *array = more;
    *room = wanted;
    return true;
}

/* The command that is being added waits for that one, if it does not yet. */
static bool wait_for(struct cld_command_buffer *buffer, uint32_t number) {
    struct cld_graph_vertex *vertex = &buffer->vertices[number];
    uint32_t to = buffer->count;
    if (vertex->seen == to + 1)
        return true;
    void *edges = buffer->edges;
    if (!grow(&edges, buffer->edge_count, &buffer->edge_room, sizeof *buffer->edges))
        return false;
    buffer->edges = edges;
    buffer->edges[buffer->edge_count++] = (struct cld_graph_edge){number, to};
    vertex->seen = to + 1;
    return true;
}

/* "If the queue is an in-order queue, then an additional dependency is created on the last command appended
 * to the command-buffer using the same queue parameter." A barrier without a list waits for all commands
 * before it: those that none of these waits for are enough. It does so whatever their queues are, and all
 * commands after a barrier wait for it. */
static bool link_vertex(struct cld_command_buffer *buffer, const struct cld_recorded *recorded,
                        const cl_sync_point_khr *list, cl_uint list_count) {
    const struct cld_queue *queue = buffer->queues[recorded->queue];
    bool in_order = !(queue->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    uint32_t last = buffer->last[recorded->queue], latest = 0;
    for (cl_uint i = 0; i < list_count; i++) {
        if (!wait_for(buffer, list[i] - 1))
            return false;
        latest = list[i] > latest ? list[i] : latest;
    }
    if (in_order && last) {
        if (!wait_for(buffer, last - 1))
            return false;
        latest = last > latest ? last : latest;
    }
    if (recorded->model->barrier && !list_count) {
        for (uint32_t i = buffer->covered; i < buffer->count; i++)
            if (!buffer->vertices[i].has_successor && !wait_for(buffer, i))
                return false;
    } else if (buffer->barrier > latest && !wait_for(buffer, buffer->barrier - 1)) {
        return false;
    }
    return true;
}

cl_int cld_command_buffer_add(struct cld_command_buffer *buffer, struct cld_recorded *recorded,
                              const cl_sync_point_khr *list, cl_uint list_count,
                              struct cld_mutable_command *handle) {
    uint32_t number = buffer->count, edges = buffer->edge_count;
    void *vertices = buffer->vertices;
    bool fits = number < UINT32_MAX - 1;
    if (!fits || !grow(&vertices, number, &buffer->vertex_room, sizeof *buffer->vertices))
        return fits ? CL_OUT_OF_HOST_MEMORY : CL_OUT_OF_RESOURCES;
    buffer->vertices = vertices;
    if (!link_vertex(buffer, recorded, list, list_count)) {
        for (uint32_t i = edges; i < buffer->edge_count; i++)
            buffer->vertices[buffer->edges[i].from].seen = 0;
        buffer->edge_count = edges;
        return CL_OUT_OF_HOST_MEMORY;
    }
    for (uint32_t i = edges; i < buffer->edge_count; i++)
        buffer->vertices[buffer->edges[i].from].has_successor = true;
    buffer->vertices[number] = (struct cld_graph_vertex){.recorded = recorded, .handle = handle};
    if (handle) {
        handle->buffer = buffer;
        handle->number = number;
    }
    buffer->count = number + 1;
    buffer->last[recorded->queue] = number + 1;
    buffer->incomplete += recorded->launch && !recorded->launch->is_complete;
    if (recorded->model->barrier) {
        buffer->barrier = number + 1;
        if (!list_count)
            buffer->covered = number;
    }
    return CL_SUCCESS;
}

/* The edges, which are in the order of their ends, by their starts. */
static void sort_edges(struct cld_command_buffer *buffer) {
    uint32_t count = buffer->count, *first = buffer->first_successor;
    for (uint32_t i = 0; i < buffer->edge_count; i++) {
        buffer->blockers[buffer->edges[i].to]++;
        first[buffer->edges[i].from + 1]++;
    }
    for (uint32_t i = 0; i < count; i++)
        first[i + 1] += first[i];
    for (uint32_t i = buffer->edge_count; i-- > 0;) { /* from behind, each start's end moves to its start */
        uint32_t from = buffer->edges[i].from;
        buffer->successors[--first[from + 1]] = buffer->edges[i].to;
    }
    memmove(first, first + 1, count * sizeof *first);
    first[count] = buffer->edge_count;
}

bool cld_command_buffer_finalize(struct cld_command_buffer *buffer) {
    uint32_t count = buffer->count;
    struct cld_graph *graph = cld_graph_new(count);
    uint32_t *blockers = calloc(count + 1, sizeof *blockers);
    uint32_t *first = calloc((size_t)count + 2, sizeof *first);
    uint32_t *successors = malloc((buffer->edge_count + 1) * sizeof *successors);
    if (!graph || !blockers || !first || !successors) {
        free(graph);
        free(blockers);
        free(first);
        free(successors);
        return false;
    }
    buffer->blockers = blockers;
    buffer->first_successor = first;
    buffer->successors = successors;
    sort_edges(buffer);
    uint32_t in_row = 1;
    for (uint32_t i = 0; i < buffer->edge_count; i++)
        in_row += buffer->edges[i].from + 1 == buffer->edges[i].to;
    buffer->is_chain = in_row >= count;
    for (uint32_t i = 0; i < count; i++)
        graph->commands[i] = buffer->vertices[i].recorded;
    buffer->graph = graph;
    return true;
}
