/* Launches on workers. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/internal.h"
#include "kernel/executable.h"
#include "kernel/kernel.h"
#include "memory/mem.h"
#include "object/call.h"
#include "runtime/ready.h"

static cl_int put_argument(struct cld_msg *list, const struct cld_kernel *kernel, uint32_t i) {
    const struct cld_arg_info *arg = &kernel->info->args[i];
    const uint8_t *value = kernel->block + arg->offset;
    uint64_t word = 0;
    switch (arg->kind) {
    case CLD_ARG_VALUE:
        cld_put_bytes(list, value, arg->size);
        return CL_SUCCESS;
    case CLD_ARG_LOCAL:
        memcpy(&word, value, sizeof word);
        cld_put_int(list, (int64_t)word);
        return CL_SUCCESS;
    case CLD_ARG_GLOBAL: {
        struct cld_mem *mem = kernel->mems[i];
        memcpy(&word, value, sizeof word);
        CLD_REQUIRE(mem || !word, CL_INVALID_KERNEL_ARGS,
                    "argument %u points to memory of this machine, and the device is another one", i);
        if (!mem) {
            cld_put_none(list);
            return CL_SUCCESS;
        }
        pthread_mutex_lock(&cld_cluster_lock);
        const struct cld_copies *copies = cld_copies_of(mem);
        pthread_mutex_unlock(&cld_cluster_lock);
        CLD_REQUIRE(copies, CL_OUT_OF_HOST_MEMORY, "no memory");
        cld_put_list(list, 3);
        cld_put_int(list, (int64_t)copies->known->number);
        cld_put_int(list, mem->parent ? (int64_t)mem->offset : 0);
        cld_put_int(list, (int64_t)mem->size);
        return CL_SUCCESS;
    }
    case CLD_ARG_IMAGE:
        return cld_image_argument(list, kernel->mems[i], i);
    case CLD_ARG_SAMPLER:
        memcpy(&word, value, sizeof word);
        cld_sampler_argument(list, word);
        return CL_SUCCESS;
    default:
        CLD_REQUIRE(false, CL_INVALID_KERNEL_ARGS,
                    "argument %u is a pipe or a queue, which the device has none of", i);
    }
}

/* Two arguments may be the same memory object. */
static bool only_reads(const struct cld_kernel *kernel, const struct cld_mem *mem) {
    bool is_argument = false;
    for (uint32_t i = 0; i < kernel->info->arg_count; i++) {
        const struct cld_arg_info *arg = &kernel->info->args[i];
        bool is_mem = arg->kind == CLD_ARG_GLOBAL || arg->kind == CLD_ARG_IMAGE;
        if (!is_mem || kernel->mems[i] != mem)
            continue;
        is_argument = true;
        if (arg->kind == CLD_ARG_IMAGE ? arg->access != CLD_READ_ONLY : !arg->only_read)
            return false;
    }
    return is_argument;
}

bool cld_launch_only_reads(const struct cld_event *command, uint32_t i) {
    const struct cld_launch_message *message = command->kernel.message;
    return i < 64 && message->only_read >> i & 1;
}

cl_int cld_cluster_launch(struct cld_event *command, const struct cld_kernel *kernel, bool has_local_size) {
    const struct cld_kernel_info *info = command->kernel.info;
    CLD_REQUIRE(cld_cluster_is_here(), CL_OUT_OF_RESOURCES, "a child of a fork has no cluster");
    CLD_REQUIRE(info->executable && info->executable->il, CL_INVALID_PROGRAM_EXECUTABLE,
                "nothing is known of the program that the device could compile");
    struct cld_launch_message *message = calloc(1, sizeof *message);
    CLD_REQUIRE(message, CL_OUT_OF_HOST_MEMORY, "no memory");
    command->kernel.message = message;
    message->has_local_size = has_local_size;
    for (uint32_t i = 0; i < command->mem_count && i < 64; i++) {
        const struct cld_mem *mem = command->more_mems ? command->more_mems[i] : command->mems[i];
        message->only_read |= (uint64_t)only_reads(kernel, mem) << i;
    }
    cld_msg_init(&message->arguments);
    cld_put_list(&message->arguments, info->arg_count);
    for (uint32_t i = 0; i < info->arg_count; i++)
        CLD_TRY(put_argument(&message->arguments, kernel, i));
    if (message->arguments.failed)
        return CL_OUT_OF_HOST_MEMORY;
    return command->queue->device->worker->is_whole ? cld_launch_cut(command, kernel) : CL_SUCCESS;
}

static void put_sizes(struct cld_msg *msg, const uint64_t *sizes, uint32_t count) {
    cld_put_list(msg, count);
    for (uint32_t i = 0; i < count; i++)
        cld_put_int(msg, (int64_t)sizes[i]);
}

/* A launch that a worker executes; launches of nothing end at once. */
static bool is_remote(const struct cld_event *command) {
    return command->operation == &cld_cluster_operation && command->total && !command->is_node;
}

/* With the lock held: whether the launch may be sent although that one has not ended, which was sent. */
static bool may_follow(struct cld_event *command, const struct cld_event *before, bool passes_errors) {
    struct cld_launch_message *message = command->kernel.message;
    if (!is_remote(command) || command->queue->device != before->queue->device)
        return false;
    if (!passes_errors)
        return true;
    if (message->parts || message->needed_count == CLD_MOST_NEEDED)
        return false;
    message->needed[message->needed_count++] = before->kernel.message->number;
    return true;
}

/* Whoever asks holds the other one, or the lock of the queue whose newest command it is. */
bool cld_launch_follows(struct cld_event *command, struct cld_event *before, bool passes_errors) {
    if (before->operation != &cld_cluster_operation || !before->queue || !is_remote(command))
        return false;
    pthread_mutex_lock(&cld_cluster_lock);
    bool is_running = cld_event_status(before) > 0 &&
                      __atomic_load_n(&before->elsewhere, __ATOMIC_RELAXED) >= CLD_SENT &&
                      before->kernel.message;
    bool follows = is_running && may_follow(command, before, passes_errors);
    pthread_mutex_unlock(&cld_cluster_lock);
    return follows;
}

/* Of those that wait for a launch that was just sent, those that may follow it wait no more. */
void cld_launch_release(struct cld_event *command, struct cld_ready *ready) {
    struct cld_edge *edge = atomic_exchange_explicit(&command->dependents, NULL, memory_order_acq_rel);
    while (edge) {
        struct cld_edge *next = edge->next;
        struct cld_event *dependent = (struct cld_event *)(edge->dependent & ~(uintptr_t)1);
        if (may_follow(dependent, command, edge->dependent & 1)) {
            if (atomic_fetch_sub_explicit(&dependent->blockers, 1, memory_order_acq_rel) == 1)
                cld_ready_add(ready, dependent);
        } else {
            struct cld_edge *head = atomic_load_explicit(&command->dependents, memory_order_acquire);
            do
                edge->next = head;
            while (!atomic_compare_exchange_weak_explicit(&command->dependents, &head, edge,
                                                          memory_order_release, memory_order_acquire));
        }
        edge = next;
    }
}

/* Which groups of the launch are executed, if not all. */
static void put_groups(struct cld_msg *msg, const struct cld_launch_part *part) {
    if (!part || !part->of->is_cut) {
        cld_put_none(msg);
        return;
    }
    const struct cld_group_range *groups = &part->groups;
    const uint64_t numbers[3] = {groups->dimension, groups->first, groups->last};
    put_sizes(msg, numbers, 3);
}

static bool send_launch(struct cld_event *command, struct cld_worker *worker) {
    struct cld_launch_message *message = command->kernel.message;
    const struct cld_launch *launch = &command->kernel.launch;
    struct cld_item *item = cld_item_new();
    uint64_t number = cld_cluster_number();
    if (!item)
        return false;
    struct cld_msg *msg = &item->message;
    cld_put_list(msg, 10);
    cld_put_int(msg, CLD_LAUNCH_MESSAGE);
    cld_put_int(msg, (int64_t)number);
    cld_put_int(msg, (int64_t)command->kernel.info->executable->known->number);
    cld_put_string(msg, command->kernel.info->name);
    put_sizes(msg, launch->global_offset, launch->work_dim);
    put_sizes(msg, launch->global_size, launch->work_dim);
    if (message->has_local_size)
        put_sizes(msg, launch->local_size, launch->work_dim);
    else
        cld_put_none(msg);
    put_sizes(msg, message->needed, message->needed_count);
    put_groups(msg, message->part);
    void *arguments = cld_msg_grow(msg, message->arguments.size);
    if (arguments)
        memcpy(arguments, message->arguments.data, message->arguments.size);
    if (msg->failed || !cld_request(worker, number, command, 0, 0)) {
        cld_msg_free(msg);
        free(item);
        return false;
    }
    message->number = number;
    command->elsewhere = CLD_SENT;
    cld_send(worker, item);
    return true;
}

enum cld_readiness cld_launch_gather(struct cld_event *command, struct cld_worker *worker) {
    if (worker->is_gone) {
        cld_command_fail(command, CL_DEVICE_NOT_AVAILABLE);
        return CLD_HAS_FAILED;
    }
    const struct cld_launch_part *part = command->kernel.message->part;
    /* What it writes is cut out of segments when it has been sent, and cannot fail any more. */
    if (!cld_segments_reserve(2 * command->mem_count * (part ? part->of->count : 1)))
        cld_command_fail(command, CL_OUT_OF_HOST_MEMORY);
    else if (cld_copies_gather(command, worker, &command->kernel.message->uses_all))
        return CLD_IS_READY;
    return atomic_load_explicit(&command->error, memory_order_relaxed) ? CLD_HAS_FAILED : CLD_WAITS;
}

static bool send_needs(struct cld_event *command, struct cld_worker *worker) {
    const struct cld_launch_part *part = command->kernel.message->part;
    return cld_program_send(command, worker) &&
           cld_copies_send(command, worker, command->kernel.message->uses_all) &&
           cld_images_send(command, worker) && (!part || cld_sums_begin(part->of, worker));
}

bool cld_launch_send_needs(struct cld_event *command, struct cld_worker *worker) {
    bool is_sent = send_needs(command, worker);
    if (!is_sent)
        cld_command_fail(command, CL_OUT_OF_HOST_MEMORY);
    return is_sent;
}

bool cld_launch_send(struct cld_event *command, struct cld_worker *worker, struct cld_ready *ready) {
    struct cld_launch_part *part = command->kernel.message->part;
    cld_copies_written(command, worker, command->kernel.message->uses_all);
    if (!send_launch(command, worker)) {
        cld_command_fail(command, CL_OUT_OF_HOST_MEMORY);
        return false;
    }
    if (part && !cld_sums_ask(part->of, worker)) /* the part is under way all the same */
        cld_command_fail(part->of->command, CL_OUT_OF_HOST_MEMORY);
    if (part)
        cld_part_sent(part, ready);
    else
        cld_launch_release(command, ready);
    return true;
}

/* True: it is sent, or will be when what it uses has come. */
static bool start(struct cld_event *command, struct cld_self *self, struct cld_ready *ready) {
    (void)self;
    if (!command->total)
        return false;
    if (!cld_cluster_is_here()) {
        cld_command_fail(command, CL_DEVICE_NOT_AVAILABLE);
        return false;
    }
    if (command->kernel.message->parts)
        return cld_parts_start(command, ready);
    struct cld_worker *worker = cld_worker_of(command);
    pthread_mutex_lock(&cld_cluster_lock);
    enum cld_readiness readiness = cld_launch_gather(command, worker);
    bool goes_on = readiness == CLD_WAITS;
    if (readiness == CLD_IS_READY)
        goes_on = cld_launch_send_needs(command, worker) && cld_launch_send(command, worker, ready);
    pthread_mutex_unlock(&cld_cluster_lock);
    return goes_on;
}

/* Of one that could not start, whose error is known. */
static cl_int run_failed(struct cld_event *command, struct cld_self *self, uint64_t first, uint64_t last) {
    (void)self, (void)first, (void)last;
    return atomic_load(&command->error);
}

static void end(struct cld_event *command, cl_int status) {
    struct cld_event *again = NULL;
    (void)status;
    pthread_mutex_lock(&cld_cluster_lock); /* others may look whether they follow it */
    struct cld_launch_message *message = command->kernel.message;
    command->kernel.message = NULL;
    if (message && message->parts)
        cld_parts_end(message->parts, &again);
    pthread_mutex_unlock(&cld_cluster_lock);
    if (message && message->parts)
        cld_parts_free(message->parts);
    if (message)
        cld_msg_free(&message->arguments);
    free(message);
    if (command->kernel.args != command->inline_args)
        free(command->kernel.args);
    if (command->kernel.info)
        cld_kernel_info_drop(command->kernel.info);
    cld_cluster_push(again);
}

const struct cld_operation cld_cluster_operation = {.run = run_failed, .end = end, .spread = start};

void cld_cluster_fail(struct cld_event *failed) {
    while (failed) {
        struct cld_event *command = failed;
        failed = command->next;
        cld_command_fail(command, CL_DEVICE_NOT_AVAILABLE);
        cld_event_complete(command, atomic_load(&command->error), NULL);
    }
}

bool cld_program_send(struct cld_event *command, struct cld_worker *worker) {
    struct cld_executable *executable = command->kernel.info->executable;
    if (!executable->known && !(executable->known = cld_known_new(CLD_FORGET_PROGRAM_MESSAGE)))
        return false;
    if (cld_set_has(&executable->known->workers, worker->number))
        return true;
    struct cld_item *item = cld_item_new();
    if (!item)
        return false;
    cld_put_list(&item->message, 4);
    cld_put_int(&item->message, CLD_PROGRAM_MESSAGE);
    cld_put_int(&item->message, (int64_t)executable->known->number);
    cld_put_bytes(&item->message, executable->options, executable->options_size);
    cld_put_bytes(&item->message, executable->il, executable->il_size);
    if (!cld_send(worker, item))
        return false;
    cld_set_add(&executable->known->workers, worker->number);
    return true;
}

void cld_program_freed(struct cld_executable *executable) {
    if (!executable->known || !cld_cluster_is_here())
        return;
    pthread_mutex_lock(&cld_cluster_lock);
    cld_forget(executable->known);
    pthread_mutex_unlock(&cld_cluster_lock);
}
