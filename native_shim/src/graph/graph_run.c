/* Executions of command-buffers. */
#define _GNU_SOURCE
#include "graph/graph_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "object/lock.h"
#include "runtime/worker.h"

/* ns that an execution must take, or one of its nodes, to be worth a second thread; every how many executions
 * short nodes look for better code. */
enum { WORTH_SHARING = 20000, LOOK_EVERY = 16 };

static void end_node(struct cld_event *node) {
    struct cld_recorded *recorded = node->node.recorded;
    if (!recorded)
        return;
    if (node->operation && node->operation->own)
        node->operation->end(node, CL_COMPLETE);
    node->node.recorded = NULL;
    cld_recorded_drop(recorded);
}

/* A copy of the recorded command that holds nothing but what it makes its own. False: no memory. */
static bool make_node(struct cld_graph_run *run, uint32_t number, struct cld_recorded *recorded) {
    struct cld_event *node = &run->nodes[number];
    memcpy((void *)node, (const void *)recorded->model, sizeof *node);
    node->is_node = true;
    node->node.whole = &run->whole;
    node->node.recorded = recorded;
    node->node.number = number;
    node->more_edges = NULL;
    node->more_mems = NULL;
    node->mem_count = 0;
    if (node->operation && node->operation->own && !node->operation->own(node)) {
        node->node.recorded = NULL;
        return false;
    }
    atomic_fetch_add_explicit(&recorded->holds, 1, memory_order_relaxed);
    return true;
}

/* Makes nodes anew whose commands were updated. False: no memory. */
static bool follow(struct cld_graph_run *run, const struct cld_graph *graph) {
    if (run->number == graph->number)
        return true;
    run->number = UINT64_MAX;
    for (uint32_t i = 0; i < run->buffer->count; i++) {
        if (run->nodes[i].node.recorded == graph->commands[i])
            continue;
        end_node(&run->nodes[i]);
        if (!make_node(run, i, graph->commands[i]))
            return false;
    }
    run->queue = NULL;
    run->executions = 0;
    run->number = graph->number;
    return true;
}

static void ended(struct cld_event *node, cl_int status, struct cld_ready *ready);

static struct cld_graph_run *new_run(struct cld_command_buffer *buffer) {
    struct cld_graph_run *run = calloc(1, sizeof *run);
    void *nodes = NULL;
    size_t size = (buffer->count ? buffer->count : 1) * sizeof(struct cld_event);
    if (!run || posix_memalign(&nodes, _Alignof(struct cld_event), size)) {
        free(run);
        return NULL;
    }
    memset(nodes, 0, size);
    run->nodes = nodes;
    run->buffer = buffer;
    run->number = UINT64_MAX;
    run->whole.ended = ended;
    run->estimate = CLD_TIME_UNKNOWN;
    return run;
}

void cld_graph_run_free(struct cld_graph_run *run) {
    for (uint32_t i = 0; i < run->buffer->count; i++)
        end_node(&run->nodes[i]);
    free(run->nodes);
    free(run);
}

struct cld_graph_run *cld_graph_run_take(struct cld_command_buffer *buffer, const struct cld_graph *graph) {
    cld_lock(buffer);
    struct cld_graph_run *run = buffer->runs;
    if (run)
        buffer->runs = run->next;
    cld_unlock(buffer);
    if (!run && !(run = new_run(buffer)))
        return NULL;
    if (follow(run, graph))
        return run;
    cld_graph_run_free(run);
    return NULL;
}

void cld_graph_run_put(struct cld_graph_run *run) {
    struct cld_command_buffer *buffer = run->buffer;
    cld_lock(buffer);
    run->next = buffer->runs;
    buffer->runs = run;
    cld_unlock(buffer);
}

static struct cld_queue *queue_of(const struct cld_event *command, uint32_t index) {
    return command->command_buffer.queues ? command->command_buffer.queues[index] : command->queue;
}

/* The nodes are commands of the queues that this execution is for. */
static void set_queues(struct cld_graph_run *run) {
    const struct cld_event *command = run->command;
    bool is_one = !command->command_buffer.queues;
    if (is_one && run->queue == command->queue)
        return;
    run->queue = is_one ? command->queue : NULL;
    run->is_one_pool = true;
    for (uint32_t i = 0; i < run->buffer->count; i++) {
        struct cld_event *node = &run->nodes[i];
        node->queue = queue_of(command, node->node.recorded->queue);
        run->is_one_pool = run->is_one_pool && cld_pool_has_both(node->queue, command->queue);
    }
}

static uint64_t sum(uint64_t a, uint64_t b) {
    uint64_t both;
    return __builtin_add_overflow(a, b, &both) ? CLD_TIME_UNKNOWN : both;
}

static void estimate(struct cld_graph_run *run) {
    run->estimate = run->longest = 0;
    run->needs_pool = false;
    for (uint32_t i = 0; i < run->buffer->count; i++) {
        uint64_t time = run->nodes[i].operation ? run->nodes[i].estimate : 0;
        run->estimate = sum(run->estimate, time);
        run->longest = time > run->longest ? time : run->longest;
        run->needs_pool = run->needs_pool || run->nodes[i].waits || run->nodes[i].enqueues;
    }
    atomic_store_explicit(&run->buffer->estimate, run->estimate, memory_order_relaxed);
}

/* Whether this thread has done it before another would have come to help, or no other could. */
static bool is_for_one_thread(const struct cld_graph_run *run) {
    if (!run->is_one_pool || run->needs_pool)
        return false;
    if (cld_pool_threads(run->command->queue) == 1 || run->estimate < WORTH_SHARING)
        return true;
    return run->buffer->is_chain && run->longest < WORTH_SHARING;
}

/* Ready nodes: one is this thread's next command, the others are any thread's. */
static void hand_out(const struct cld_graph_run *run, struct cld_ready *nodes, struct cld_ready *ready) {
    struct cld_event *first = nodes->first;
    if (first && cld_pool_has_both(first->queue, run->command->queue))
        cld_ready_add(ready, cld_ready_take(nodes));
    if (nodes->first)
        cld_pool_push(nodes);
}

/* Takes what the execution needs, and starts it where several threads are to take part. */
static bool spread(struct cld_event *command, struct cld_self *self, struct cld_ready *ready) {
    (void)self;
    struct cld_command_buffer *buffer = command->command_buffer.buffer;
    struct cld_graph_run *run = cld_graph_run_take(buffer, command->command_buffer.graph);
    command->command_buffer.run = run;
    if (!run || !buffer->count)
        return false;
    run->command = command;
    run->whole.looks = run->executions++ % LOOK_EVERY == 0;
    set_queues(run);
    if (run->whole.looks || run->estimate == CLD_TIME_UNKNOWN)
        estimate(run);
    if (is_for_one_thread(run))
        return false;
    struct cld_ready nodes = {0};
    atomic_store_explicit(&run->left, buffer->count, memory_order_relaxed);
    atomic_store_explicit(&run->error, CL_SUCCESS, memory_order_relaxed);
    for (uint32_t i = 0; i < buffer->count; i++) {
        struct cld_event *node = &run->nodes[i];
        atomic_store_explicit(&node->error, CL_SUCCESS, memory_order_relaxed);
        atomic_store_explicit(&node->blockers, (int32_t)buffer->blockers[i], memory_order_relaxed);
    }
    for (uint32_t i = 0; i < buffer->count; i++)
        if (!buffer->blockers[i])
            cld_ready_add(&nodes, &run->nodes[i]);
    hand_out(run, &nodes, ready);
    return true;
}

static void rest(struct cld_event *node, cl_int status) {
    if (node->operation && node->operation->rest)
        node->operation->rest(node, status);
}

/* Once one has failed, those that come after it are not executed. */
static void ended(struct cld_event *node, cl_int status, struct cld_ready *ready) {
    struct cld_graph_run *run = (struct cld_graph_run *)(void *)node->node.whole;
    const struct cld_command_buffer *buffer = run->buffer;
    rest(node, status);
    int32_t error = CL_SUCCESS;
    if (status < 0 && atomic_compare_exchange_strong(&run->error, &error, status))
        error = status;
    if (status >= 0)
        error = atomic_load_explicit(&run->error, memory_order_relaxed);
    if (!error) /* the context was terminated */
        error = atomic_load_explicit(&run->command->error, memory_order_relaxed);
    struct cld_ready nodes = {0};
    uint32_t number = node->node.number;
    for (uint32_t i = buffer->first_successor[number]; i < buffer->first_successor[number + 1]; i++) {
        struct cld_event *next = &run->nodes[buffer->successors[i]];
        if (error)
            atomic_store_explicit(&next->error, error, memory_order_relaxed);
        if (atomic_fetch_sub_explicit(&next->blockers, 1, memory_order_acq_rel) == 1)
            cld_ready_add(&nodes, next);
    }
    hand_out(run, &nodes, ready);
    if (atomic_fetch_sub_explicit(&run->left, 1, memory_order_acq_rel) != 1)
        return;
    struct cld_event *command = run->command;
    error = atomic_load_explicit(&run->error, memory_order_relaxed);
    if (error)
        cld_command_fail(command, error);
    cld_graph_run_put(run);
    cld_event_complete(command, atomic_load(&command->error), ready);
}

static cl_int execute(struct cld_event *node, struct cld_self *self) {
    const struct cld_operation *operation = node->operation;
    if (!operation) /* a barrier */
        return CL_SUCCESS;
    if (cld_is_observed(node))
        cld_command_note_start(node);
    if (operation->begin)
        operation->begin(node);
    cl_int error = CL_SUCCESS;
    if (node->total) {
        uint64_t start = node->timed ? cld_now() : 0;
        error = operation->run(node, self, 0, node->total);
        if (node->timed && !error && operation->learn)
            operation->learn(node, cld_now() - start, node->total);
    }
    if (operation->leave)
        operation->leave(node, self);
    if (cld_is_observed(node))
        cld_command_note_end(node, error);
    rest(node, error);
    return error;
}

/* All by this thread: the order of recording is one that the graph allows. */
static cl_int run_in_order(struct cld_event *command, struct cld_self *self, uint64_t first, uint64_t last) {
    (void)first, (void)last;
    struct cld_graph_run *run = command->command_buffer.run;
    if (!run)
        return CL_OUT_OF_RESOURCES;
    cl_int error = CL_SUCCESS;
    for (uint32_t i = 0; i < run->buffer->count && !error; i++)
        if (!(error = execute(&run->nodes[i], self)))
            error = atomic_load_explicit(&command->error, memory_order_relaxed);
    cld_graph_run_put(run);
    return error;
}

static void end(struct cld_event *command, cl_int status) {
    (void)status;
    struct cld_command_buffer *buffer = command->command_buffer.buffer;
    for (uint32_t i = 0; command->command_buffer.queues && i < command->command_buffer.queue_count; i++)
        cld_object_drop(command->command_buffer.queues[i]);
    free(command->command_buffer.queues);
    cld_graph_drop(command->command_buffer.graph, buffer->count);
    cld_object_drop(buffer);
}

const struct cld_operation cld_graph_operation = {.spread = spread, .run = run_in_order, .end = end};
