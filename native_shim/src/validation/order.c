/* What happens before what: by the order of queues, by events, and by what the host has waited for. */
#include <stdlib.h>
#include <string.h>

#include "graph/command_buffer.h"
#include "runtime/command.h"
#include "validation/validation.h"

/* Commands one behind the other. A queue has one, or several where its commands may overtake one another. Its
 * positions go on when it becomes another queue's. */
static struct {
    uint64_t queue; /* 0: nobody's */
    uint32_t position;
} chains[CHAINS];

struct queue_order {
    struct queue_order *next;
    uint64_t number; /* of the known object */
    bool overtakes;
    struct clock last; /* what the next command waits for: of the newest command, or barrier */
    struct clock all;
    bool is_gated, all_gated;           /* the same */
    uint32_t gate_chain, gate_position; /* of the newest command that is */
};
static struct queue_order *queues;

/* Events with callbacks: these may tell the host. */
struct told_event {
    struct told_event *next;
    struct cld_event *event; /* held */
    struct command *command;
    int32_t status;
};
static struct told_event *told_events;

static void join(struct clock *clock, const struct clock *other) {
    for (int i = 0; i < CHAINS; i++)
        if (other->at[i] > clock->at[i])
            clock->at[i] = other->at[i];
}

static struct queue_order *order_of(uintptr_t handle) {
    const struct known *known = object_find(handle);
    const struct cld_queue *queue = cld_object_check((const void *)handle, CLD_QUEUE);
    if (!known || !queue)
        return NULL;
    struct queue_order *order = queues;
    while (order && order->number != known->number)
        order = order->next;
    if (order)
        return order;
    if (!(order = calloc(1, sizeof *order)))
        return NULL;
    order->number = known->number;
    order->overtakes = queue->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    order->next = queues;
    queues = order;
    return order;
}

/* A chain whose newest command comes before one of that queue, or CHAINS. */
static uint32_t find_chain(uint64_t queue, const struct clock *clock) {
    uint32_t unused = CHAINS;
    for (uint32_t i = 0; i < CHAINS; i++) {
        if (chains[i].queue == queue && clock->at[i] >= chains[i].position)
            return i;
        if (unused == CHAINS && command_host_knows.at[i] >= chains[i].position)
            unused = i;
    }
    return unused;
}

static void host_learns(const struct clock *clock) {
    host_memory_check(clock);
    join(&command_host_knows, clock);
    host_memory_settle();
}

void order_host_knows(const struct command *command) {
    host_learns(&command->clock);
}

/* What a command waits for by its list. */
static void add_waits(struct command *command, uintptr_t count, const cl_event *list) {
    for (uintptr_t i = 0; list && i < count; i++) {
        const struct known *known = object_find((uintptr_t)list[i]);
        struct cld_event *event = cld_object_check(list[i], CLD_EVENT);
        if (known && known->command) {
            join(&command->clock, &known->command->clock);
            command->is_gated |= known->command->is_gated && !command_is_over(known->command);
        } else if (!event || event->type != CL_COMMAND_USER || cld_event_status(event) > CL_COMPLETE) {
            command->is_gated = true; /* the host may do something first */
        }
    }
}

struct command *command_enqueued(const struct cld_call *call, const struct place *place, bool is_blocking) {
    uintptr_t handle = call_word(call, "command_queue");
    if (call_is(call, "clEnqueueCommandBufferKHR")) {
        const cl_command_queue *given = (const cl_command_queue *)call_word(call, "queues");
        const struct cld_command_buffer *buffer =
            cld_object_check((const void *)call_word(call, "command_buffer"), CLD_COMMAND_BUFFER);
        handle = call_word(call, "num_queues") && given ? (uintptr_t)given[0]
                 : buffer                               ? (uintptr_t)buffer->queues[0]
                                                        : 0;
    }
    struct queue_order *queue = order_of(handle);
    struct command *command = queue ? calloc(1, sizeof *command) : NULL;
    if (!command)
        return NULL;
    command->holds = 1;
    command->place = *place;
    command->clock = command_host_knows;
    uintptr_t count = 0;
    bool has_list = call_value(call, "num_events_in_wait_list", &count);
    if (has_list)
        add_waits(command, count, (const cl_event *)call_word(call, "event_wait_list"));
    else if (call_value(call, "num_events", &count))
        add_waits(command, count, (const cl_event *)call_word(call, "event_list"));
    bool is_barrier = call_begins(call, "clEnqueueBarrier") || call_is(call, "clEnqueueWaitForEvents");
    join(&command->clock, &queue->last);
    if (queue->gate_position && command_host_knows.at[queue->gate_chain] >= queue->gate_position)
        queue->is_gated = queue->all_gated = false;
    command->is_gated |= queue->is_gated;
    if (queue->overtakes && !count && (is_barrier || call_begins(call, "clEnqueueMarker"))) {
        join(&command->clock, &queue->all);
        command->is_gated |= queue->all_gated;
    }
    /* What waits for a semaphore waits for what the host, or another process, does. A node of several queues
     * is in one of them here. */
    command->is_gated |= call_is(call, "clEnqueueWaitSemaphoresKHR");
    command->chain = find_chain(queue->number, &command->clock);
    if (command->chain < CHAINS) {
        chains[command->chain].queue = queue->number;
        command->position = ++chains[command->chain].position;
        command->clock.at[command->chain] = command->position;
    }
    if (command->is_gated) {
        queue->gate_chain = command->chain;
        queue->gate_position = command->position;
    }
    join(&queue->all, &command->clock);
    queue->all_gated |= command->is_gated;
    if (!queue->overtakes || is_barrier) {
        join(&queue->last, &command->clock);
        queue->is_gated = command->is_gated;
    }
    if (is_blocking)
        host_learns(&command->clock);
    return command;
}

void order_event_made(uintptr_t handle, struct command *command) {
    struct known *known = object_find(handle);
    if (!known)
        return;
    command->holds++;
    known->command = command;
}

void order_poll(void) {
    for (struct told_event **link = &told_events; *link;) {
        struct told_event *told = *link;
        if (cld_event_status(told->event) > told->status) {
            link = &told->next;
            continue;
        }
        host_learns(&told->command->clock);
        *link = told->next;
        cld_object_drop(told->event);
        command_drop(told->command);
        free(told);
    }
}

/* The host has a callback: when it is called, the host knows, and may do what it likes with its memory. */
static void add_callback(uintptr_t handle, int32_t status) {
    const struct known *known = object_find(handle);
    struct cld_event *event = cld_object_check((const void *)handle, CLD_EVENT);
    struct told_event *told = known && known->command && event ? malloc(sizeof *told) : NULL;
    if (!told)
        return;
    host_memory_forget(&known->command->clock);
    cld_object_hold(event);
    known->command->holds++;
    *told = (struct told_event){told_events, event, known->command, status};
    told_events = told;
}

static void host_waited_for(uintptr_t handle) {
    const struct known *known = object_find(handle);
    if (known && known->command)
        host_learns(&known->command->clock);
}

static void host_finished(struct queue_order *queue) {
    host_learns(&queue->all);
    queue->is_gated = queue->all_gated = false;
}

/* The event may end, and the callback be called, before the call returns. A callback that the call is going
 * to refuse tells the host nothing. */
void order_before_call(const struct cld_call *call) {
    cl_int type = (cl_int)call_word(call, "command_exec_callback_type");
    bool is_type = type == CL_COMPLETE || type == CL_RUNNING || type == CL_SUBMITTED;
    if (call_is(call, "clSetEventCallback") && is_type && call_word(call, "pfn_notify"))
        add_callback(call_word(call, "event"), type);
}

void order_after_call(const struct cld_call *call, cl_int status) {
    if (call_is(call, "clFinish")) {
        struct queue_order *queue = status ? NULL : order_of(call_word(call, "command_queue"));
        if (queue)
            host_finished(queue);
    } else if (call_is(call, "clWaitForEvents")) {
        const cl_event *list = (const cl_event *)call_word(call, "event_list");
        bool has_waited = !status || status == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
        for (uintptr_t i = 0; has_waited && i < call_word(call, "num_events"); i++)
            host_waited_for((uintptr_t)list[i]);
    } else if (call_is(call, "clGetEventInfo")) {
        const cl_int *answer = (const cl_int *)call_word(call, "param_value");
        if (!status && answer && call_word(call, "param_name") == CL_EVENT_COMMAND_EXECUTION_STATUS &&
            *answer <= CL_COMPLETE)
            host_waited_for(call_word(call, "event"));
    } else if (call_is(call, "clGetEventProfilingInfo")) {
        if (!status)
            host_waited_for(call_word(call, "event"));
    } else if (call_is(call, "clMemBlockingFreeINTEL")) {
        for (struct queue_order *queue = queues; !status && queue; queue = queue->next)
            host_finished(queue);
    }
}
