/* Kernels that enqueue kernels. */
#define _GNU_SOURCE
#include "launch/device_enqueue.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "kernel/kernel.h"
#include "launch/block_room.h"
#include "launch/kernel_command.h"
#include "launch/ndrange.h"
#include "loader/load.h"
#include "runtime/family.h"

/* Results of enqueue_kernel and enqueue_marker. */
enum {
    SUCCESS = 0,
    OUT_OF_RESOURCES = -5,
    INVALID_ARG_SIZE = -51,
    INVALID_EVENT_WAIT_LIST = -57,
    ENQUEUE_FAILURE = -101,
    INVALID_QUEUE = -102,
    INVALID_NDRANGE = -160,
    DEVICE_QUEUE_FULL = -161,
};

enum { WAIT_KERNEL = 1 }; /* CLK_ENQUEUE_FLAGS_WAIT_KERNEL */

enum { PROFILING_COMMAND_EXEC_TIME = 1 };

/* Children that a thread keeps to itself until its kernel has run. More are worth the attention of others,
 * who may execute them while the kernel goes on, so that it finds memory for the next that is in caches. */
enum { MOST_KEPT = 64 };

static struct cld_kernel_info *find_block(const struct cld_event *parent, uint32_t block) {
    const struct cld_executable *executable = parent->kernel.info->executable;
    block &= ~CLD_BLOCK_TELLS;
    return executable && block < executable->block_count ? executable->blocks[block] : NULL;
}

/* "CLK_INVALID_QUEUE if queue is not a valid device queue." */
static struct cld_queue *find_queue(const struct cld_event *parent, void *handle) {
    struct cld_queue *queue = cld_object_check(handle, CLD_QUEUE);
    bool suits = queue && queue->properties & CL_QUEUE_ON_DEVICE &&
                 queue->context == parent->queue->context && queue->device == parent->queue->device;
    return suits ? queue : NULL;
}

/* "CLK_INVALID_EVENT_WAIT_LIST if event_wait_list is NULL and num_events_in_wait_list > 0, or if
 * event_wait_list is not NULL and num_events_in_wait_list is 0, or if event objects in event_wait_list are
 * not valid events." */
static bool are_events(uint32_t count, struct cld_event *const *list) {
    bool good = !count == !list;
    for (uint32_t i = 0; good && i < count; i++)
        good = cld_object_check(list[i], CLD_EVENT) != NULL;
    return good;
}

/* The block's arguments: the address of what it captured, and places of local memory. */
static int32_t put_arguments(struct cld_event *command, const void *captured, uint32_t size,
                             uint32_t alignment, uint32_t local_count, const uint64_t *local_sizes) {
    const struct cld_kernel_info *info = command->kernel.info;
    if (info->arg_count != local_count + 1)
        return INVALID_ARG_SIZE;
    size_t begin = cld_round_up(cld_block_size_place(info) + sizeof(uint64_t), alignment ? alignment : 1);
    if (begin + size > CLD_INLINE_ARGS) {
        void *memory = NULL;
        if (posix_memalign(&memory, 128, begin + size))
            return OUT_OF_RESOURCES;
        command->kernel.args = memory;
    }
    uint8_t *args = command->kernel.args, *copy = args + begin;
    uint64_t kept = size;
    memcpy(args + cld_block_size_place(info), &kept, sizeof kept);
    memcpy(copy, captured, size);
    memcpy(args + info->args[0].offset, &copy, sizeof copy);
    return cld_launch_place_local(command, local_sizes) ? OUT_OF_RESOURCES : SUCCESS;
}

/* A command that executes the block; it is nobody's yet. */
static int32_t make(struct cld_queue *queue, struct cld_kernel_info *info, const struct cld_ndrange *range,
                    bool with_event, const void *captured, uint32_t size, uint32_t alignment,
                    uint32_t local_count, const uint64_t *local_sizes, struct cld_event **result) {
    struct cld_event *command = cld_launch_block_new(queue, info, with_event);
    if (!command)
        return OUT_OF_RESOURCES;
    int32_t status = put_arguments(command, captured, size, alignment, local_count, local_sizes);
    if (!status) {
        cl_int found = cld_launch_block_fill(command, range);
        if (found)
            status = found == CL_OUT_OF_HOST_MEMORY || found == CL_OUT_OF_RESOURCES ? OUT_OF_RESOURCES
                                                                                    : INVALID_NDRANGE;
    }
    if (status)
        cld_command_discard(command);
    *result = command;
    return status;
}

/* Makes a command a child of the parent, and hands it over. */
static int32_t hand_over(struct cld_self *self, struct cld_event *command, bool waits, uint32_t wait_count,
                         struct cld_event *const *wait_list, struct cld_event **event) {
    struct cld_event *parent = self->parent;
    if (!cld_family_join(parent, command)) {
        if (command->operation)
            cld_block_give_room(command);
        cld_command_discard(command);
        return OUT_OF_RESOURCES;
    }
    struct cld_family *family = command->family;
    if (!cld_command_link(command, wait_count, wait_list)) {
        int32_t unused;
        cld_family_leave(family, CL_COMPLETE, &unused); /* the parent is one of its members */
        return OUT_OF_RESOURCES;
    }
    if (event)
        *event = command;
    if (waits) {
        cld_family_await(parent, command);
        return SUCCESS;
    }
    cld_command_submit(command, &self->children);
    if (++self->kept_children >= MOST_KEPT)
        cld_launch_give_children(self);
    return SUCCESS;
}

static int32_t enqueue_kernel(void *handle, uint32_t flags, const struct cld_ndrange *range,
                              uint32_t wait_count, struct cld_event *const *wait_list,
                              struct cld_event **event, uint32_t block, const void *captured, uint32_t size,
                              uint32_t alignment, uint32_t local_count, const uint64_t *local_sizes) {
    struct cld_self *self = cld_self();
    struct cld_queue *queue = find_queue(self->parent, handle);
    if (!queue)
        return INVALID_QUEUE;
    struct cld_kernel_info *info = find_block(self->parent, block);
    if (!info)
        return ENQUEUE_FAILURE;
    if (!are_events(wait_count, wait_list))
        return INVALID_EVENT_WAIT_LIST;
    struct cld_event *command;
    int32_t status =
        make(queue, info, range, event, captured, size, alignment, local_count, local_sizes, &command);
    if (status)
        return status;
    if (!cld_block_take_room(command)) {
        cld_command_discard(command);
        return DEVICE_QUEUE_FULL;
    }
    return hand_over(self, command, flags & WAIT_KERNEL, wait_count, wait_list, event);
}

static const char *words(int32_t status) {
    switch (status) {
    case INVALID_QUEUE:
        return "queue is not a device queue (CLK_INVALID_QUEUE)";
    case INVALID_EVENT_WAIT_LIST:
        return "event_wait_list and num_events_in_wait_list do not go together (CLK_INVALID_EVENT_WAIT_LIST)";
    case INVALID_NDRANGE:
        return "ndrange is not one that the block can have (CLK_INVALID_NDRANGE)";
    case INVALID_ARG_SIZE:
        return "a size of local memory is 0 (CLK_INVALID_ARG_SIZE)";
    case DEVICE_QUEUE_FULL:
        return "as much is enqueued as CL_QUEUE_SIZE lets (CLK_DEVICE_QUEUE_FULL)";
    case OUT_OF_RESOURCES:
        return "there is no memory (CLK_OUT_OF_RESOURCES)";
    default:
        return "CLK_ENQUEUE_FAILURE";
    }
}

/* "CLK_ENQUEUE_FAILURE otherwise. If the -g compile option is specified [...] the other errors [...] may be
 * returned instead". */
int32_t cld_enqueue_kernel(void *queue, uint32_t flags, const struct cld_ndrange *range, uint32_t wait_count,
                           struct cld_event *const *wait_list, struct cld_event **event, uint32_t block,
                           const void *captured, uint32_t size, uint32_t alignment, uint32_t local_count,
                           const uint64_t *local_sizes) {
    int32_t status = enqueue_kernel(queue, flags, range, wait_count, wait_list, event, block, captured, size,
                                    alignment, local_count, local_sizes);
    if (status)
        cld_log(1, "enqueue_kernel: nothing was enqueued: %s", words(status));
    return status && !(block & CLD_BLOCK_TELLS) ? ENQUEUE_FAILURE : status;
}

static int32_t enqueue_marker(void *handle, uint32_t wait_count, struct cld_event *const *wait_list,
                              struct cld_event **event) {
    struct cld_self *self = cld_self();
    struct cld_queue *queue = find_queue(self->parent, handle);
    if (!queue)
        return INVALID_QUEUE;
    if (!wait_count || !event || !are_events(wait_count, wait_list))
        return INVALID_EVENT_WAIT_LIST;
    struct cld_event *command = cld_command_new(queue, CL_COMMAND_MARKER, NULL, true);
    if (!command)
        return OUT_OF_RESOURCES;
    command->estimate = 0;
    return hand_over(self, command, false, wait_count, wait_list, event);
}

int32_t cld_enqueue_marker(void *queue, uint32_t wait_count, struct cld_event *const *wait_list,
                           struct cld_event **event, uint32_t tells) {
    int32_t status = enqueue_marker(queue, wait_count, wait_list, event);
    return status && !(tells & CLD_BLOCK_TELLS) ? ENQUEUE_FAILURE : status;
}

uint32_t cld_block_size(uint32_t which, uint32_t block, const struct cld_ndrange *range,
                        uint32_t sub_groups) {
    const struct cld_event *parent = cld_self()->parent;
    const struct cld_kernel_info *info = find_block(parent, block);
    if (!info)
        return 0;
    uint64_t most = cld_ndrange_most_items(parent->queue->device, info), size = info->sub_group_size;
    switch (which) {
    case CLD_GROUP_SIZE:
        return (uint32_t)most;
    case CLD_GROUP_MULTIPLE:
        return info->width;
    case CLD_SIZE_FOR_COUNT:
        return sub_groups <= most / size ? (uint32_t)(sub_groups * size) : 0;
    case CLD_MOST_SUB_GROUPS:
        return (uint32_t)(most / size + (most % size != 0));
    }
    struct cld_launch launch;
    bool empty;
    if (cld_ndrange_of_block(parent->queue, info, range, false, &launch, &empty) || empty)
        return 0;
    uint64_t items = launch.local_size[0] * launch.local_size[1] * launch.local_size[2];
    if (which == CLD_SUB_GROUP_COUNT)
        return (uint32_t)(items / size + (items % size != 0));
    return (uint32_t)(items < size ? items : size);
}

void *cld_default_queue(void) {
    const struct cld_queue *queue = cld_self()->parent->queue;
    return cld_context_default_queue(queue->context, queue->device);
}

void *cld_create_user_event(void) {
    return cld_user_event_new(cld_self()->parent->context);
}

void cld_retain_event(void *event) {
    cld_object_retain(event, CLD_EVENT, CL_INVALID_EVENT);
}

void cld_release_event(void *event) {
    cld_object_release(event, CLD_EVENT, CL_INVALID_EVENT);
}

uint32_t cld_is_valid_event(void *event) {
    return cld_object_check(event, CLD_EVENT) != NULL;
}

void cld_set_user_event_status(void *handle, int32_t status) {
    struct cld_event *event = cld_object_check(handle, CLD_EVENT);
    if (event && event->type == CL_COMMAND_USER && status <= CL_COMPLETE)
        cld_user_event_set(event, status, &cld_self()->children);
}

/* "The profiling information will be available in value once the command identified by event has completed."
 */
void cld_capture_event_profiling_info(void *handle, uint32_t name, uint64_t *values) {
    struct cld_event *event = cld_object_check(handle, CLD_EVENT);
    if (event && event->is_child && name == PROFILING_COMMAND_EXEC_TIME)
        cld_family_capture_times(event, values);
}

__attribute__((constructor)) static void provide(void) {
    static const struct {
        const char *name;
        void *function;
    } functions[] = {
#define PROVIDE(function) {#function, (void *)(uintptr_t)function}
        PROVIDE(cld_enqueue_kernel),
        PROVIDE(cld_enqueue_marker),
        PROVIDE(cld_block_size),
        PROVIDE(cld_default_queue),
        PROVIDE(cld_create_user_event),
        PROVIDE(cld_retain_event),
        PROVIDE(cld_release_event),
        PROVIDE(cld_is_valid_event),
        PROVIDE(cld_set_user_event_status),
        PROVIDE(cld_capture_event_profiling_info),
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        cld_code_provide(functions[i].name, functions[i].function);
}
