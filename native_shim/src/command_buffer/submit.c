/* clEnqueueCommandBufferKHR: one command, whatever is recorded; several queues wait for it. */
#include <stdlib.h>
#include <string.h>

#include "graph/graph_run.h"
#include "object/call.h"
#include "runtime/enqueue_check.h"

/* "CL_INVALID_DEVICE if any element of queues does not have the same device as the command-queue set on
 * command_buffer creation at the same list index." Likewise its context. */
static cl_int check_queues(const struct cld_command_buffer *buffer, cl_uint num_queues,
                           const cl_command_queue *queues) {
    CLD_REQUIRE_LIVE(buffer->context);
    CLD_REQUIRE(!num_queues == !queues, CL_INVALID_VALUE, "queues and num_queues contradict each other");
    CLD_REQUIRE(!num_queues || num_queues == buffer->queue_count, CL_INVALID_VALUE,
                "num_queues is %u, the command-buffer has %u", num_queues, buffer->queue_count);
    for (cl_uint i = 0; i < num_queues; i++) {
        const struct cld_queue *queue = cld_queue_check(queues[i]);
        CLD_REQUIRE(queue, CL_INVALID_COMMAND_QUEUE, "queues[%u] is %s, not a command-queue", i,
                    cld_describe(queues[i]).text);
        CLD_REQUIRE(queue->context == buffer->context, CL_INVALID_CONTEXT,
                    "queues[%u] is of another context than command_buffer", i);
        CLD_REQUIRE(queue->device == buffer->queues[i]->device, CL_INVALID_DEVICE,
                    "queues[%u] is of another device than the one that it takes the place of", i);
    }
    return CL_SUCCESS;
}

/* "CL_INCOMPATIBLE_COMMAND_QUEUE_KHR if the properties of any command-queue in queues contains a property not
 * specified by CL_DEVICE_COMMAND_BUFFER_SUPPORTED_QUEUE_PROPERTIES_KHR": those of queues on the device are
 * not. None are required. */
static cl_int check_compatible(const struct cld_command_buffer *buffer, struct cld_queue *const *queues) {
    for (uint32_t i = 0; i < buffer->queue_count; i++)
        CLD_REQUIRE(!(queues[i]->properties & CL_QUEUE_ON_DEVICE), CLD_INCOMPATIBLE_COMMAND_QUEUE,
                    "a queue on the device executes no command-buffers");
    return CL_SUCCESS;
}

static struct cld_event *new_command(struct cld_command_buffer *buffer, struct cld_queue *queue,
                                     bool with_event) {
    struct cld_event *command =
        cld_command_new(queue, CLD_COMMAND_COMMAND_BUFFER, &cld_graph_operation, with_event);
    if (!command)
        return NULL;
    command->estimate = atomic_load_explicit(&buffer->estimate, memory_order_relaxed);
    command->command_buffer.buffer = buffer;
    command->command_buffer.graph = cld_graph_hold(buffer);
    command->command_buffer.run = NULL;
    command->command_buffer.queues = NULL;
    command->command_buffer.queue_count = 1;
    cld_object_hold(buffer);
    return command;
}

/* The same for several queues, which it holds. "CL_PROFILING_INFO_NOT_AVAILABLE is returned if all the queues
 * passed do not have CL_QUEUE_PROFILING_ENABLE set." */
static struct cld_event *new_command_of_several(struct cld_command_buffer *buffer,
                                                struct cld_queue *const *queues) {
    uint32_t count = buffer->queue_count;
    struct cld_event *command = new_command(buffer, queues[0], true);
    struct cld_queue **copy = malloc(count * sizeof(struct cld_queue *));
    if (!command || !copy) {
        if (command)
            cld_command_discard(command);
        free(copy);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        copy[i] = queues[i];
        cld_object_hold(queues[i]);
        command->special |= (uint8_t)(queues[i]->properties & CLD_PROFILED);
    }
    command->command_buffer.queues = copy;
    command->command_buffer.queue_count = count;
    return command;
}

/* A command of a queue that does nothing. */
static cl_int enqueue_nothing(struct cld_queue *queue, const struct cld_wait *wait) {
    struct cld_event *command = cld_command_new(queue, CLD_COMMAND_COMMAND_BUFFER, NULL, wait->event != NULL);
    CLD_REQUIRE(command, CL_OUT_OF_HOST_MEMORY, "no memory");
    command->estimate = 0;
    return cld_command_enqueue(command, wait, 0);
}

/* The command is of the first queue. In each of the others a command that does nothing takes its place: it
 * waits for one before it, and another waits for it. */
static cl_int enqueue_on_several(struct cld_command_buffer *buffer, struct cld_queue *const *queues,
                                 const struct cld_wait *wait) {
    uint32_t others = buffer->queue_count - 1;
    cl_event *list = malloc(((size_t)wait->count + others) * sizeof *list), event = NULL;
    CLD_REQUIRE(list, CL_OUT_OF_HOST_MEMORY, "no memory");
    if (wait->count)
        memcpy(list, wait->list, wait->count * sizeof *list);
    cl_int status = CL_SUCCESS;
    uint32_t made = 0;
    for (; made < others && !status; made += !status)
        status = enqueue_nothing(queues[made + 1], &(struct cld_wait){.event = &list[wait->count + made]});
    struct cld_event *command = status ? NULL : new_command_of_several(buffer, queues);
    if (!status && !command)
        status = CL_OUT_OF_HOST_MEMORY;
    struct cld_wait all = {.count = wait->count + made, .list = list, .event = &event};
    if (!status)
        status = cld_command_enqueue(command, &all, 0);
    for (uint32_t i = 0; i < others && !status; i++)
        status = enqueue_nothing(queues[i + 1], &(struct cld_wait){.count = 1, .list = &event});
    for (uint32_t i = 0; i < made; i++)
        cld_object_release(list[wait->count + i], CLD_EVENT, CL_INVALID_EVENT);
    free(list);
    if (event && wait->event)
        *wait->event = event;
    else if (event)
        cld_object_release(event, CLD_EVENT, CL_INVALID_EVENT);
    return status;
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueCommandBufferKHR(cl_uint num_queues, cl_command_queue *queues,
                                                          cl_command_buffer_khr command_buffer,
                                                          cl_uint num_events_in_wait_list,
                                                          const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    struct cld_command_buffer *buffer = cld_command_buffer_check(command_buffer);
    CLD_REQUIRE(buffer, CLD_INVALID_COMMAND_BUFFER, "not a command-buffer");
    uint32_t state = atomic_load_explicit(&buffer->state, memory_order_acquire);
    CLD_REQUIRE(state == CLD_COMMAND_BUFFER_STATE_EXECUTABLE, CL_INVALID_OPERATION,
                "the command-buffer is not finalized, or an argument was never set");
    CLD_TRY(check_queues(buffer, num_queues, queues));
    struct cld_queue *const *chosen = queues ? (struct cld_queue *const *)(void *)queues : buffer->queues;
    CLD_TRY(check_compatible(buffer, chosen));
    CLD_TRY(cld_check_wait(chosen[0], &wait));
    if (buffer->queue_count > 1)
        return enqueue_on_several(buffer, chosen, &wait);
    struct cld_event *command = new_command(buffer, chosen[0], event != NULL);
    CLD_REQUIRE(command, CL_OUT_OF_HOST_MEMORY, "no memory");
    return cld_command_enqueue(command, &wait, 0);
}
