/* clRemapCommandBufferKHR: the same commands for other queues. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "command_buffer/create.h"
#include "command_buffer/update.h"
#include "launch/recorded_kernel.h"
#include "object/call.h"
#include "object/lock.h"

/* A command that is not a kernel's, for another queue: what it does is in its union, and it has nothing but
 * memory objects. */
static struct cld_event *command_again(const struct cld_event *model, struct cld_queue *queue) {
    enum { START = offsetof(struct cld_event, kernel), END = offsetof(struct cld_event, inline_args) };
    struct cld_event *again = cld_command_new(queue, model->type, model->operation, false);
    if (!again)
        return NULL;
    again->barrier = model->barrier;
    again->total = model->total;
    again->grain = model->grain;
    again->estimate = model->estimate;
    memcpy((uint8_t *)again + START, (const uint8_t *)model + START, END - START);
    struct cld_mem *const *mems = model->more_mems ? model->more_mems : model->mems;
    for (uint32_t i = 0; i < model->mem_count; i++)
        if (!cld_command_hold_mem(again, mems[i])) {
            cld_command_discard(again);
            return NULL;
        }
    return again;
}

/* "Any error relating to device support that can be returned by a command recording entry-point may also be
 * returned." */
static cl_int recorded_again(const struct cld_recorded *recorded, struct cld_queue *const *queues,
                             uint32_t queue, struct cld_recorded **result) {
    struct cld_recorded_launch *launch = NULL;
    if (recorded->launch) {
        launch = cld_recorded_launch_again(recorded->launch);
        CLD_REQUIRE(launch, CL_OUT_OF_HOST_MEMORY, "no memory");
    }
    struct cld_recorded *again = cld_recorded_again(recorded, launch);
    CLD_REQUIRE(again, CL_OUT_OF_HOST_MEMORY, "no memory");
    again->queue = queue;
    cl_int status = CL_SUCCESS;
    struct cld_event *command = NULL;
    if (launch)
        status = cld_recorded_launch_prepare(launch, queues[queue], !launch->is_complete, &command);
    else if (!(command = command_again(recorded->model, queues[queue])))
        status = CL_OUT_OF_HOST_MEMORY;
    if (status) {
        cld_recorded_drop(again);
        return status;
    }
    again->model = command;
    *result = again;
    return CL_SUCCESS;
}

/* What there is of a command-buffer at one time. */
struct contents {
    uint32_t state, count, edge_count, barrier, covered;
    struct cld_graph_vertex *vertices; /* malloced; recorded is held, handle is none */
    struct cld_graph_edge *edges;      /* malloced */
};

static void drop(struct contents *contents) {
    for (uint32_t i = 0; contents->vertices && i < contents->count; i++)
        cld_recorded_drop(contents->vertices[i].recorded);
    free(contents->vertices);
    free(contents->edges);
}

static bool read_contents(struct cld_command_buffer *buffer, struct contents *contents) {
    cld_lock(buffer);
    uint32_t count = buffer->count;
    *contents = (struct contents){
        .state = atomic_load_explicit(&buffer->state, memory_order_relaxed),
        .count = count,
        .edge_count = buffer->edge_count,
        .barrier = buffer->barrier,
        .covered = buffer->covered,
        .vertices = calloc(count + 1, sizeof(struct cld_graph_vertex)),
        .edges = calloc(buffer->edge_count + 1, sizeof(struct cld_graph_edge)),
    };
    bool done = contents->vertices && contents->edges;
    if (!done)
        contents->count = 0;
    for (uint32_t i = 0; done && i < count; i++) {
        struct cld_graph_vertex *vertex = &contents->vertices[i];
        vertex->recorded = buffer->graph ? buffer->graph->commands[i] : buffer->vertices[i].recorded;
        vertex->has_successor = buffer->vertices[i].has_successor;
        atomic_fetch_add_explicit(&vertex->recorded->holds, 1, memory_order_relaxed);
    }
    if (done && buffer->edge_count)
        memcpy(contents->edges, buffer->edges, buffer->edge_count * sizeof *buffer->edges);
    cld_unlock(buffer);
    if (!done)
        drop(contents);
    return done;
}

/* Commands of one queue stay together: with as many queues in the same order, with fewer in turn. What they
 * wait for does not change. Nobody else knows the command-buffer yet. */
static cl_int fill(struct cld_command_buffer *buffer, struct contents *contents) {
    for (uint32_t i = 0; i < contents->count; i++) {
        struct cld_graph_vertex *vertex = &contents->vertices[i];
        struct cld_recorded *before = vertex->recorded;
        uint32_t queue = before->queue % buffer->queue_count;
        CLD_TRY(recorded_again(before, buffer->queues, queue, &vertex->recorded));
        cld_recorded_drop(before);
        buffer->last[queue] = i + 1;
        buffer->incomplete += vertex->recorded->launch && !vertex->recorded->launch->is_complete;
    }
    buffer->count = buffer->vertex_room = contents->count;
    buffer->edge_count = buffer->edge_room = contents->edge_count;
    buffer->barrier = contents->barrier;
    buffer->covered = contents->covered;
    buffer->vertices = contents->vertices;
    buffer->edges = contents->edges;
    contents->vertices = NULL;
    contents->edges = NULL;
    return contents->state == CLD_COMMAND_BUFFER_STATE_RECORDING ? CL_SUCCESS
                                                                 : cld_command_buffer_end_recording(buffer);
}

static struct cld_mutable_command *check_handle(const struct cld_command_buffer *buffer,
                                                cl_mutable_command_khr handle) {
    struct cld_mutable_command *command = cld_object_check(handle, CLD_MUTABLE_COMMAND);
    return command && command->buffer == buffer ? command : NULL;
}

static cl_int check(const struct cld_command_buffer *buffer, cl_bool automatic, cl_uint num_queues,
                    const cl_command_queue *queues, cl_uint num_handles,
                    const cl_mutable_command_khr *handles, const cl_mutable_command_khr *handles_ret) {
    CLD_REQUIRE(buffer, CLD_INVALID_COMMAND_BUFFER, "not a command-buffer");
    CLD_REQUIRE(automatic || !num_queues || num_queues == buffer->queue_count, CL_INVALID_VALUE,
                "num_queues is %u, the command-buffer has %u", num_queues, buffer->queue_count);
    CLD_REQUIRE(!num_handles == !handles && !num_handles == !handles_ret, CL_INVALID_VALUE,
                "the lists of handles and their length contradict each other");
    for (cl_uint i = 0; i < num_handles; i++)
        CLD_REQUIRE(check_handle(buffer, handles[i]), CL_INVALID_VALUE,
                    "handles[%u] is %s, not a command of command_buffer", i, cld_describe(handles[i]).text);
    return cld_check_queues(num_queues, queues, buffer->context);
}

/* False: no memory. */
static bool make_handles(struct cld_command_buffer *buffer, cl_uint num_handles,
                         const cl_mutable_command_khr *handles) {
    for (cl_uint i = 0; i < num_handles; i++) {
        uint32_t number = ((const struct cld_mutable_command *)(const void *)handles[i])->number;
        struct cld_graph_vertex *vertex = &buffer->vertices[number];
        if (vertex->handle)
            continue;
        if (!(vertex->handle = cld_object_new(CLD_MUTABLE_COMMAND)))
            return false;
        vertex->handle->buffer = buffer;
        vertex->handle->number = number;
    }
    return true;
}

CL_API_ENTRY cl_command_buffer_khr CL_API_CALL clRemapCommandBufferKHR(
    cl_command_buffer_khr command_buffer, cl_bool automatic, cl_uint num_queues,
    const cl_command_queue *queues, cl_uint num_handles, const cl_mutable_command_khr *handles,
    cl_mutable_command_khr *handles_ret, cl_int *errcode_ret) {
    struct cld_command_buffer *buffer = cld_command_buffer_check(command_buffer);
    cl_int status = check(buffer, automatic, num_queues, queues, num_handles, handles, handles_ret);
    CLD_REQUIRE_OR_NULL(!status, status, "the parameters");
    struct contents contents;
    bool has_memory = read_contents(buffer, &contents);
    CLD_REQUIRE_OR_NULL(has_memory, CL_OUT_OF_HOST_MEMORY, "no memory");
    struct cld_command_buffer *copy =
        cld_command_buffer_new(num_queues, queues, buffer->property_count, buffer->properties);
    status = copy ? fill(copy, &contents) : CL_OUT_OF_HOST_MEMORY;
    drop(&contents);
    if (!status && !make_handles(copy, num_handles, handles))
        status = CL_OUT_OF_HOST_MEMORY;
    if (status && copy)
        cld_object_drop(copy);
    CLD_REQUIRE_OR_NULL(!status, status, "a command cannot be executed by its new queue");
    copy->flags = buffer->flags;
    copy->asserts = buffer->asserts;
    for (cl_uint i = 0; i < num_handles; i++) {
        uint32_t number = ((const struct cld_mutable_command *)(const void *)handles[i])->number;
        handles_ret[i] = (cl_mutable_command_khr)copy->vertices[number].handle;
    }
    if (errcode_ret)
        *errcode_ret = CL_SUCCESS;
    return (cl_command_buffer_khr)copy;
}
