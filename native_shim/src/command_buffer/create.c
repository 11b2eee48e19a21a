/* The life of command-buffers: created, finalized, freed. */
#include <stdlib.h>
#include <string.h>

#include "command_buffer/create.h"
#include "graph/graph_run.h"
#include "object/call.h"
#include "object/lock.h"

static void free_vertices(struct cld_command_buffer *buffer) {
    for (uint32_t i = 0; i < buffer->count; i++) {
        if (!buffer->graph)
            cld_recorded_drop(buffer->vertices[i].recorded);
        if (buffer->vertices[i].handle)
            cld_object_drop(buffer->vertices[i].handle);
    }
    free(buffer->vertices);
}

/* Nothing is executed any more: each execution holds the command-buffer. */
static void destroy(void *object) {
    struct cld_command_buffer *buffer = object;
    for (struct cld_graph_run *run = buffer->runs, *next; run; run = next) {
        next = run->next;
        cld_graph_run_free(run);
    }
    free_vertices(buffer);
    if (buffer->graph)
        cld_graph_drop(buffer->graph, buffer->count);
    for (uint32_t i = 0; i < buffer->queue_count; i++)
        cld_object_drop(buffer->queues[i]);
    free(buffer->queues);
    free(buffer->last);
    free(buffer->edges);
    free(buffer->blockers);
    free(buffer->first_successor);
    free(buffer->successors);
    free(buffer->properties);
    cld_object_drop(buffer->context);
}

__attribute__((constructor)) static void register_command_buffer(void) {
    cld_object_on_destroy(CLD_COMMAND_BUFFER, destroy);
}

struct cld_command_buffer *cld_command_buffer_new(cl_uint queue_count, const cl_command_queue *queues,
                                                  size_t property_count,
                                                  const cl_command_buffer_properties_khr *properties) {
    struct cld_command_buffer *buffer = cld_object_new(CLD_COMMAND_BUFFER);
    if (!buffer)
        return NULL;
    size_t size = property_count * sizeof *properties;
    buffer->context = ((struct cld_queue *)queues[0])->context;
    cld_object_hold(buffer->context);
    buffer->queues = calloc(queue_count, sizeof(struct cld_queue *));
    buffer->last = calloc(queue_count, sizeof *buffer->last);
    buffer->properties = malloc(size ? size : 1);
    if (!buffer->queues || !buffer->last || !buffer->properties) {
        cld_object_drop(buffer);
        return NULL;
    }
    if (size)
        memcpy(buffer->properties, properties, size);
    buffer->property_count = property_count;
    buffer->queue_count = queue_count;
    for (cl_uint i = 0; i < queue_count; i++) {
        buffer->queues[i] = (struct cld_queue *)queues[i];
        cld_object_hold(buffer->queues[i]);
    }
    atomic_store_explicit(&buffer->estimate, CLD_TIME_UNKNOWN, memory_order_relaxed);
    return buffer;
}

/* "CL_INVALID_COMMAND_QUEUE if any command-queue in queues is not a valid command-queue." "CL_INVALID_CONTEXT
 * if all the command-queues in queues do not have the same OpenCL context." All devices are parts of one,
 * whose threads need nobody else to wait for one another: CL_INCOMPATIBLE_COMMAND_QUEUE_KHR is never due. */
cl_int cld_check_queues(cl_uint num_queues, const cl_command_queue *queues,
                        const struct cld_context *context) {
    CLD_REQUIRE(num_queues && queues, CL_INVALID_VALUE, "num_queues is 0 or queues NULL");
    for (cl_uint i = 0; i < num_queues; i++) {
        const struct cld_queue *queue = cld_queue_check(queues[i]);
        CLD_REQUIRE(queue, CL_INVALID_COMMAND_QUEUE, "queues[%u] is %s, not a command-queue", i,
                    cld_describe(queues[i]).text);
        CLD_REQUIRE(!queue->context->is_spread, CL_INVALID_COMMAND_QUEUE,
                    "queues[%u] is of a context with devices of other machines, which has no command-buffers",
                    i);
        context = context ? context : queue->context;
        CLD_REQUIRE(queue->context == context, CL_INVALID_CONTEXT,
                    "queues[%u] is of another context than the others or the command-buffer", i);
        CLD_REQUIRE_LIVE(context);
    }
    return CL_SUCCESS;
}

/* What is told of a command-buffer that is to be made. Every flag is supported: CL_INVALID_PROPERTY is never
 * due. */
struct wanted {
    bool has_flags, has_asserts;
    cl_command_buffer_flags_khr flags;
    cl_mutable_dispatch_asserts_khr asserts;
    size_t count; /* of words */
};

/* "CL_INVALID_VALUE if values specified in properties are not valid, or if the same property name is
 * specified more than once." */
static cl_int check_properties(const cl_command_buffer_properties_khr *properties, struct wanted *wanted) {
    const cl_bitfield flags = CLD_COMMAND_BUFFER_SIMULTANEOUS_USE | CLD_COMMAND_BUFFER_MUTABLE |
                              CLD_COMMAND_BUFFER_DEVICE_SIDE_SYNC;
    const cl_bitfield asserts = CLD_MUTABLE_DISPATCH_ASSERT_NO_ADDITIONAL_WORK_GROUPS;
    *wanted = (struct wanted){.count = 0};
    for (size_t i = 0; properties && properties[i]; i += 2) {
        bool is_flags = properties[i] == CLD_COMMAND_BUFFER_FLAGS;
        CLD_REQUIRE(is_flags || properties[i] == CLD_COMMAND_BUFFER_MUTABLE_DISPATCH_ASSERTS,
                    CL_INVALID_VALUE, "properties has %#lx, which is none of command-buffers",
                    (unsigned long)properties[i]);
        bool *has = is_flags ? &wanted->has_flags : &wanted->has_asserts;
        CLD_REQUIRE(!*has, CL_INVALID_VALUE, "a property is named twice");
        CLD_REQUIRE(!(properties[i + 1] & ~(is_flags ? flags : asserts)), CL_INVALID_VALUE,
                    "properties has an unknown bit in the value of %#lx: %#lx", (unsigned long)properties[i],
                    (unsigned long)properties[i + 1]);
        *has = true;
        *(is_flags ? &wanted->flags : &wanted->asserts) = properties[i + 1];
        wanted->count = i + 2;
    }
    wanted->count += properties != NULL;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_command_buffer_khr CL_API_CALL
clCreateCommandBufferKHR(cl_uint num_queues, const cl_command_queue *queues,
                         const cl_command_buffer_properties_khr *properties, cl_int *errcode_ret) {
    struct wanted wanted;
    cl_int status = cld_check_queues(num_queues, queues, NULL);
    if (!status)
        status = check_properties(properties, &wanted);
    CLD_REQUIRE_OR_NULL(!status, status, "the queues or the properties");
    struct cld_command_buffer *buffer = cld_command_buffer_new(num_queues, queues, wanted.count, properties);
    CLD_REQUIRE_OR_NULL(buffer, CL_OUT_OF_HOST_MEMORY, "no memory");
    buffer->flags = wanted.flags;
    buffer->asserts = wanted.asserts;
    if (errcode_ret)
        *errcode_ret = CL_SUCCESS;
    return (cl_command_buffer_khr)buffer;
}

cl_int cld_command_buffer_end_recording(struct cld_command_buffer *buffer) {
    cld_lock(buffer);
    bool is_recording = !atomic_load_explicit(&buffer->state, memory_order_relaxed);
    bool done = is_recording && cld_command_buffer_finalize(buffer);
    if (done)
        atomic_store_explicit(&buffer->state,
                              buffer->incomplete ? CLD_COMMAND_BUFFER_STATE_FINALIZED
                                                 : CLD_COMMAND_BUFFER_STATE_EXECUTABLE,
                              memory_order_release);
    cld_unlock(buffer);
    CLD_REQUIRE(is_recording, CL_INVALID_OPERATION, "the command-buffer is finalized");
    CLD_REQUIRE(done, CL_OUT_OF_HOST_MEMORY, "no memory");
    /* What the first execution needs. If there is no memory now, there may be then. */
    struct cld_graph *graph = cld_graph_hold(buffer);
    struct cld_graph_run *run = cld_graph_run_take(buffer, graph);
    if (run)
        cld_graph_run_put(run);
    cld_graph_drop(graph, buffer->count);
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clFinalizeCommandBufferKHR(cl_command_buffer_khr command_buffer) {
    struct cld_command_buffer *buffer = cld_command_buffer_check(command_buffer);
    CLD_REQUIRE(buffer, CLD_INVALID_COMMAND_BUFFER, "not a command-buffer");
    return cld_command_buffer_end_recording(buffer);
}
