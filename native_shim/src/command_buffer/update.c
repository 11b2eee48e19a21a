/* clUpdateMutableCommandsKHR: other commands, for executions that are enqueued from then on. */
#include "command_buffer/update.h"

#include <stdlib.h>
#include <string.h>

#include "launch/recorded_kernel.h"
#include "object/call.h"
#include "object/lock.h"

struct cld_recorded *cld_recorded_again(const struct cld_recorded *recorded,
                                        struct cld_recorded_launch *launch) {
    struct cld_recorded *again = calloc(1, sizeof *again);
    size_t size = recorded->property_count * sizeof *recorded->properties;
    cl_command_properties_khr *properties = malloc(size ? size : 1);
    if (!again || !properties) {
        free(again);
        free(properties);
        cld_recorded_launch_free(launch);
        return NULL;
    }
    if (size)
        memcpy(properties, recorded->properties, size);
    atomic_init(&again->holds, 1);
    again->queue = recorded->queue;
    again->launch = launch;
    again->property_count = recorded->property_count;
    again->properties = properties;
    return again;
}

struct cld_recorded_launch *cld_recorded_launch_again(const struct cld_recorded_launch *launch) {
    struct cld_recorded_launch *again = cld_recorded_launch_new(launch->of, &launch->kernel);
    if (!again)
        return NULL;
    again->work_dim = launch->work_dim;
    again->has_size = launch->has_size;
    again->has_local = launch->has_local;
    memcpy(again->offset, launch->offset, sizeof again->offset);
    memcpy(again->size, launch->size, sizeof again->size);
    memcpy(again->local, launch->local, sizeof again->local);
    again->fields = launch->fields;
    again->is_complete = launch->is_complete;
    return again;
}

/* A command that is to take the place of another. */
struct change {
    uint32_t number;
    struct cld_recorded *recorded;
};

/* The commands that an update makes. */
struct changes {
    struct cld_command_buffer *buffer;
    cl_uint count;
    struct change *list;
};

static void drop(struct changes *changes) {
    for (cl_uint i = 0; i < changes->count; i++)
        cld_recorded_drop(changes->list[i].recorded);
    free(changes->list);
}

/* The launch that a config is about: a copy of the command's, made by an earlier config or now. */
static cl_int find_launch(struct changes *changes, const struct cld_mutable_command *command,
                          struct cld_recorded_launch **launch) {
    for (cl_uint i = 0; i < changes->count; i++)
        if (changes->list[i].number == command->number) {
            *launch = changes->list[i].recorded->launch;
            return CL_SUCCESS;
        }
    struct cld_recorded *before = cld_recorded_hold(changes->buffer, command->number);
    *launch = cld_recorded_launch_again(before->launch);
    struct cld_recorded *after = *launch ? cld_recorded_again(before, *launch) : NULL;
    cld_recorded_drop(before);
    CLD_REQUIRE(after, CL_OUT_OF_HOST_MEMORY, "no memory");
    changes->list[changes->count++] = (struct change){command->number, after};
    return CL_SUCCESS;
}

static cl_int apply(struct changes *changes, cl_command_buffer_update_type_khr type, const void *config_) {
    CLD_REQUIRE(type == CLD_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG, CL_INVALID_VALUE,
                "config_types has %u, not CL_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG_KHR (0)", type);
    CLD_REQUIRE(config_, CL_INVALID_VALUE, "a config is NULL");
    const struct cld_mutable_dispatch_config *config = config_;
    const struct cld_mutable_command *command = cld_object_check(config->command, CLD_MUTABLE_COMMAND);
    CLD_REQUIRE(command && command->buffer == changes->buffer, CLD_INVALID_MUTABLE_COMMAND,
                "a config has %s, not a command of command_buffer", cld_describe(config->command).text);
    struct cld_recorded_launch *launch;
    CLD_TRY(find_launch(changes, command, &launch));
    return cld_recorded_launch_update(launch, config);
}

/* The list of commands is changed in place where no execution goes by it, or to be copied first. With the
 * lock held. NULL: no memory. */
static struct cld_graph *writable(struct cld_command_buffer *buffer) {
    struct cld_graph *graph = buffer->graph;
    if (atomic_load_explicit(&graph->holds, memory_order_acquire) == 1)
        return graph;
    struct cld_graph *copy = cld_graph_new(buffer->count);
    if (!copy)
        return NULL;
    copy->number = graph->number;
    for (uint32_t i = 0; i < buffer->count; i++) {
        copy->commands[i] = graph->commands[i];
        atomic_fetch_add_explicit(&copy->commands[i]->holds, 1, memory_order_relaxed);
    }
    return copy;
}

/* Nothing fails any more once there is memory: all changes are made, or none. */
static cl_int commit(struct changes *changes) {
    struct cld_command_buffer *buffer = changes->buffer;
    cld_lock(buffer);
    struct cld_graph *before = buffer->graph, *graph = writable(buffer);
    for (cl_uint i = 0; graph && i < changes->count; i++) {
        struct change *change = &changes->list[i];
        struct cld_recorded *old = graph->commands[change->number];
        buffer->incomplete += !change->recorded->launch->is_complete;
        buffer->incomplete -= !old->launch->is_complete;
        graph->commands[change->number] = change->recorded;
        change->recorded = old; /* to be dropped without the lock */
    }
    if (graph) {
        graph->number++;
        buffer->graph = graph;
        if (!buffer->incomplete)
            atomic_store_explicit(&buffer->state, CLD_COMMAND_BUFFER_STATE_EXECUTABLE, memory_order_release);
    }
    cld_unlock(buffer);
    CLD_REQUIRE(graph, CL_OUT_OF_HOST_MEMORY, "no memory");
    if (graph != before)
        cld_graph_drop(before, buffer->count);
    return CL_SUCCESS;
}

static cl_int update(struct changes *changes, const cl_command_buffer_update_type_khr *config_types,
                     cl_uint num_configs, const void **configs) {
    for (cl_uint i = 0; i < num_configs; i++)
        CLD_TRY(apply(changes, config_types[i], configs[i]));
    for (cl_uint i = 0; i < changes->count; i++) {
        struct cld_recorded *recorded = changes->list[i].recorded;
        bool may_defer = !recorded->launch->is_complete;
        struct cld_event *command;
        CLD_TRY(cld_recorded_launch_prepare(recorded->launch, changes->buffer->queues[recorded->queue],
                                            may_defer, &command));
        recorded->model = command;
    }
    return commit(changes);
}

CL_API_ENTRY cl_int CL_API_CALL
clUpdateMutableCommandsKHR(cl_command_buffer_khr command_buffer, cl_uint num_configs,
                           const cl_command_buffer_update_type_khr *config_types, const void **configs) {
    struct cld_command_buffer *buffer = cld_command_buffer_check(command_buffer);
    CLD_REQUIRE(buffer, CLD_INVALID_COMMAND_BUFFER, "not a command-buffer");
    uint32_t state = atomic_load_explicit(&buffer->state, memory_order_acquire);
    CLD_REQUIRE(state != CLD_COMMAND_BUFFER_STATE_RECORDING, CL_INVALID_OPERATION,
                "the command-buffer is not finalized");
    CLD_REQUIRE(buffer->flags & CLD_COMMAND_BUFFER_MUTABLE, CL_INVALID_OPERATION,
                "the command-buffer was not created with CL_COMMAND_BUFFER_MUTABLE_KHR");
    CLD_REQUIRE(!num_configs == !config_types && !num_configs == !configs, CL_INVALID_VALUE,
                "num_configs contradicts config_types or configs");
    if (!num_configs)
        return CL_SUCCESS;
    struct changes changes = {.buffer = buffer, .list = calloc(num_configs, sizeof *changes.list)};
    CLD_REQUIRE(changes.list, CL_OUT_OF_HOST_MEMORY, "no memory");
    cl_int status = update(&changes, config_types, num_configs, configs);
    drop(&changes);
    return status;
}
