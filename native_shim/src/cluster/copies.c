/* Memory objects: which machine has what was written last, and how it gets to where a command wants it.
 *
 * A launch on a worker has every buffer of its arguments, or the part that a sub-buffer is, sent there if it
 * is not there yet, and what it may write is nowhere else from then on. A command that is executed here has
 * the bytes that it uses fetched first.
 * Whatever a worker is sent it does in that order, so that what is read after a launch was written by it, and
 * nobody waits but for what comes back. Sub-buffers are one with the buffer that they are of. */
#include <stdlib.h>
#include <string.h>

#include "cluster/internal.h"
#include "memory/mem.h"
#include "object/mover.h"
#include "runtime/worker.h"

/* Whether there is anything in it before a command writes there. */
static bool has_contents(const struct cld_mem *mem) {
    return mem->flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR) || mem->is_external;
}

struct cld_copies *cld_copies_of(struct cld_mem *mem) {
    mem = cld_root_of(mem);
    if (mem->copies)
        return mem->copies;
    struct cld_copies *copies = calloc(1, sizeof *copies);
    if (copies)
        copies->known = cld_known_new(CLD_FORGET_BUFFER_MESSAGE);
    if (!copies || !copies->known || !cld_segments_begin(copies, mem->size, has_contents(mem))) {
        if (copies)
            free(copies->known);
        free(copies);
        return NULL;
    }
    copies->mem = mem;
    return mem->copies = copies;
}

static void wait_for(struct cld_copies *copies, struct cld_event *command) {
    command->next = copies->waiting;
    copies->waiting = command;
}

struct cld_request *cld_copies_read(struct cld_worker *worker, const struct cld_copies *copies, size_t offset,
                                    size_t size) {
    struct cld_item *item = cld_item_new();
    uint64_t number = cld_cluster_number();
    if (!item)
        return NULL;
    cld_put_list(&item->message, 5);
    cld_put_int(&item->message, CLD_READ_MESSAGE);
    cld_put_int(&item->message, (int64_t)number);
    cld_put_int(&item->message, (int64_t)copies->known->number);
    cld_put_int(&item->message, (int64_t)offset);
    cld_put_int(&item->message, (int64_t)size);
    struct cld_request *request =
        item->message.failed ? NULL : cld_request(worker, number, NULL, offset, size);
    if (!request) {
        cld_msg_free(&item->message);
        free(item);
        return NULL;
    }
    cld_send(worker, item);
    return request;
}

static bool ask_for(struct cld_fetch *fetch, struct cld_worker *worker, size_t offset, size_t size) {
    struct cld_request *request = cld_copies_read(worker, fetch->copies, offset, size);
    if (!request)
        return false;
    request->fetch = fetch;
    fetch->missing++;
    return true;
}

/* CL_DEVICE_NOT_AVAILABLE: nobody has it any more. CL_OUT_OF_HOST_MEMORY. */
static cl_int fetch(struct cld_copies *copies, struct cld_segment *segment) {
    if (segment->coming)
        return CL_SUCCESS;
    struct cld_worker *worker = cld_worker_in(&segment->valid);
    if (!worker)
        return CL_DEVICE_NOT_AVAILABLE;
    struct cld_fetch *fetch = malloc(sizeof *fetch);
    if (!fetch)
        return CL_OUT_OF_HOST_MEMORY;
    *fetch = (struct cld_fetch){.copies = copies,
                                .worker = worker->number,
                                .begin = segment->begin,
                                .end = segment->end,
                                .version = copies->version};
    cld_object_hold(copies->mem);
    for (size_t at = fetch->begin; at < fetch->end && !fetch->is_partial; at += CLD_MOST_MESSAGE_BYTES) {
        size_t left = fetch->end - at;
        fetch->is_partial =
            !ask_for(fetch, worker, at, left < CLD_MOST_MESSAGE_BYTES ? left : CLD_MOST_MESSAGE_BYTES);
    }
    if (!fetch->missing) {
        cld_object_drop(copies->mem); /* which the command has, too */
        free(fetch);
        return CL_OUT_OF_HOST_MEMORY;
    }
    segment->coming++;
    return CL_SUCCESS;
}

/* Has the command wait until what it uses is here; it has failed if that will never be. */
static void fetch_for(struct cld_event *command, const struct cld_used *used, struct cld_segment *segment) {
    for (; segment && segment->begin < used->end; segment = segment->next) {
        cl_int error = segment->is_here ? CL_SUCCESS : fetch(used->copies, segment);
        if (error) {
            cld_command_fail(command, error);
            return;
        }
    }
    wait_for(used->copies, command);
}

void cld_wake(struct cld_event **waiting, struct cld_event **again) {
    while (*waiting) {
        struct cld_event *command = *waiting;
        *waiting = command->next;
        command->next = *again;
        *again = command;
    }
}

/* The worker lacks what it takes to send the contents; what it had it has still. */
static bool is_kept(cl_int error) {
    return error == CL_OUT_OF_RESOURCES || error == CL_MEM_OBJECT_ALLOCATION_FAILURE;
}

static bool needs(const struct cld_event *command, const struct cld_fetch *fetch) {
    bool uses_all = cld_is_cut_up(command);
    struct cld_used used;
    for (uint32_t i = 0; i < command->mem_count; i++) {
        struct cld_mem *mem = cld_mem_at(command, i);
        if (mem && cld_root_of(mem) == fetch->copies->mem && cld_find_used(command, i, uses_all, &used) &&
            used.use && used.use != CLD_WRITES_ALL && used.begin < fetch->end && used.end > fetch->begin)
            return true;
    }
    return false;
}

/* Those that wait for it do in vain; later ones ask anew. */
static void fail_waiting(const struct cld_fetch *fetch) {
    for (struct cld_event *command = fetch->copies->waiting; command; command = command->next)
        if (needs(command, fetch))
            cld_command_fail(command, fetch->error);
}

void cld_copies_arrive(struct cld_request *request, cl_int status, struct cld_ended *ended) {
    struct cld_fetch *fetch = request->fetch;
    struct cld_copies *copies = fetch->copies;
    if (status && (!fetch->error || is_kept(fetch->error)))
        fetch->error = status;
    if (--fetch->missing)
        return;
    for (struct cld_segment *segment = copies->segments; segment; segment = segment->next) {
        if (segment->end <= fetch->begin || segment->begin >= fetch->end)
            continue;
        segment->coming--;
        /* Written meanwhile, by a command that this one was not to wait for: whoever waits fetches it anew.
         */
        if (segment->version > fetch->version)
            continue;
        if (fetch->error && !is_kept(fetch->error))
            cld_set_remove(&segment->valid, fetch->worker);
        else if (!fetch->error && !fetch->is_partial) /* who waits asks for the rest */
            segment->is_here = true;
    }
    if (is_kept(fetch->error))
        fail_waiting(fetch);
    cld_segments_join(copies, (struct cld_bytes_range){fetch->begin, fetch->end});
    fetch->next = ended->fetches;
    ended->fetches = fetch;
    cld_wake(&copies->waiting, &ended->again);
}

void cld_fetches_free(struct cld_fetch *fetches) {
    while (fetches) {
        struct cld_fetch *fetch = fetches;
        fetches = fetch->next;
        cld_object_drop(fetch->copies->mem);
        free(fetch);
    }
}

/* The worker has it, this machine, or another worker that can send it there. */
static bool can_be_there(const struct cld_segment *segment, const struct cld_worker *worker) {
    return cld_set_has(&segment->valid, worker->number) || segment->is_here ||
           cld_transfer_source(segment, worker);
}

/* True if all can be there, and is not used here. */
static bool gather_argument(struct cld_event *command, const struct cld_used *used,
                            const struct cld_worker *worker) {
    struct cld_segment *first = cld_segments_in(used->copies, used->begin, used->end), *segment = first;
    if (!first) {
        cld_command_fail(command, CL_OUT_OF_HOST_MEMORY);
        return false;
    }
    bool is_missing = false;
    for (; segment && segment->begin < used->end; segment = segment->next) {
        if (segment->users) { /* what is used here is neither taken away nor half written when it is sent */
            wait_for(used->copies, command);
            return false;
        }
        is_missing |= !can_be_there(segment, worker);
    }
    for (segment = first; is_missing && segment && segment->begin < used->end; segment = segment->next) {
        cl_int error = can_be_there(segment, worker) ? CL_SUCCESS : fetch(used->copies, segment);
        if (error) {
            cld_command_fail(command, error);
            return false;
        }
    }
    if (is_missing)
        wait_for(used->copies, command);
    return !is_missing;
}

bool cld_copies_gather(struct cld_event *command, struct cld_worker *worker, bool *uses_all) {
    const struct cld_launch_part *part = command->kernel.message->part;
    *uses_all = !(part && part->of->is_cut) && cld_is_cut_up(command);
    for (uint32_t i = 0; i < command->mem_count; i++) {
        struct cld_used used;
        if (!cld_find_used(command, i, *uses_all, &used)) {
            cld_command_fail(command, CL_OUT_OF_HOST_MEMORY);
            return false;
        }
        if (used.use && !gather_argument(command, &used, worker))
            return false;
    }
    return true;
}

struct cld_item *cld_copies_item(int message, const struct cld_copies *copies, uint32_t count) {
    struct cld_item *item = cld_item_new();
    if (!item)
        return NULL;
    cld_put_list(&item->message, count);
    cld_put_int(&item->message, message);
    cld_put_int(&item->message, (int64_t)copies->known->number);
    return item;
}

static bool send_part(struct cld_worker *worker, struct cld_copies *copies, size_t offset, size_t size) {
    struct cld_item *item = cld_copies_item(CLD_WRITE_MESSAGE, copies, 4);
    if (!item)
        return false;
    cld_put_int(&item->message, (int64_t)offset);
    if (size <= CLD_MOST_INLINE_BYTES) {
        cld_put_bytes(&item->message, copies->mem->data + offset, size);
        return cld_send(worker, item);
    }
    cld_put_int(&item->message, (int64_t)size);
    item->offset = offset;
    item->size = size;
    item->held = copies->mem;
    cld_object_hold(copies->mem);
    return cld_send(worker, item);
}

bool cld_copies_tell(struct cld_worker *worker, struct cld_copies *copies) {
    if (cld_set_has(&copies->known->workers, worker->number))
        return true;
    struct cld_item *item = cld_copies_item(CLD_BUFFER_MESSAGE, copies, 3);
    if (!item)
        return false;
    cld_put_int(&item->message, (int64_t)copies->mem->size);
    if (!cld_send(worker, item))
        return false;
    cld_set_add(&copies->known->workers, worker->number);
    return true;
}

/* From here, or else from another worker. */
static bool send_segment(struct cld_worker *worker, struct cld_copies *copies, struct cld_segment *segment) {
    struct cld_worker *from = segment->is_here ? NULL : cld_transfer_source(segment, worker);
    for (size_t at = segment->begin; at < segment->end; at += CLD_MOST_MESSAGE_BYTES) {
        size_t left = segment->end - at;
        size_t size = left < CLD_MOST_MESSAGE_BYTES ? left : CLD_MOST_MESSAGE_BYTES;
        bool is_sent =
            from ? cld_transfer(copies, from, worker, at, size) : send_part(worker, copies, at, size);
        if (!is_sent)
            return false;
    }
    cld_set_add(&segment->valid, worker->number);
    return true;
}

static bool send_argument(const struct cld_used *used, struct cld_worker *worker) {
    struct cld_segment *segment = cld_segments_in(used->copies, used->begin, used->end);
    if (!segment || !cld_copies_tell(worker, used->copies))
        return false;
    for (; segment && segment->begin < used->end; segment = segment->next)
        if (!cld_set_has(&segment->valid, worker->number) && !send_segment(worker, used->copies, segment))
            return false;
    return true;
}

/* Written by the worker, or here where there is none: what others have is worth nothing any more. Where the
 * range is not that of segments yet there is memory for them (cld_segments_reserve). */
static void write_segments(struct cld_copies *copies, struct cld_bytes_range range,
                           const struct cld_worker *worker) {
    struct cld_segment *segment = cld_segments_of(copies, range.begin, range.end);
    copies->version++;
    for (; segment && segment->begin < range.end; segment = segment->next) {
        segment->version = copies->version;
        segment->valid = (struct cld_worker_set){0};
        if (worker)
            cld_set_add(&segment->valid, worker->number);
        segment->is_here = !worker;
    }
}

bool cld_copies_send(struct cld_event *command, struct cld_worker *worker, bool uses_all) {
    struct cld_used used;
    for (uint32_t i = 0; i < command->mem_count; i++) {
        if (!cld_find_used(command, i, uses_all, &used))
            return false;
        /* A part of a launch has arguments of which it uses nothing. */
        bool is_sent = used.use || !used.copies || cld_copies_tell(worker, used.copies);
        if (!is_sent || (used.use && !send_argument(&used, worker)))
            return false;
    }
    return true;
}

void cld_copies_written(struct cld_event *command, struct cld_worker *worker, bool uses_all) {
    struct cld_used used;
    for (uint32_t i = 0; i < command->mem_count; i++)
        if (cld_find_used(command, i, uses_all, &used) && used.use >= CLD_WRITES)
            write_segments(used.copies, used.written, worker);
    for (uint32_t i = 0; i < command->mem_count; i++)
        if (cld_find_used(command, i, uses_all, &used) && used.use)
            cld_segments_join(used.copies, (struct cld_bytes_range){used.begin, used.end});
}

/* True if all that it uses is here. */
static bool gather_here(struct cld_event *command, bool uses_all) {
    for (uint32_t i = 0; i < command->mem_count; i++) {
        struct cld_used used;
        struct cld_segment *first = NULL;
        bool is_found = cld_find_used(command, i, uses_all, &used);
        if (is_found && !used.use)
            continue;
        if (is_found)
            first = cld_segments_in(used.copies, used.begin, used.end);
        if (!first) {
            cld_command_fail(command, CL_OUT_OF_HOST_MEMORY);
            return false;
        }
        for (struct cld_segment *segment = first; segment && segment->begin < used.end;
             segment = segment->next) {
            /* What is on its way here comes before anything else is written to its place. */
            if (segment->is_here || (used.use == CLD_WRITES_ALL && !segment->coming))
                continue;
            if (used.use == CLD_WRITES_ALL)
                wait_for(used.copies, command);
            else
                fetch_for(command, &used, segment);
            return false;
        }
    }
    return true;
}

static void use_here(struct cld_event *command, bool uses_all) {
    for (uint32_t i = 0; i < command->mem_count; i++) {
        struct cld_used used;
        if (!cld_find_used(command, i, uses_all, &used) || !used.use)
            continue;
        struct cld_segment *segment = cld_segments_in(used.copies, used.begin, used.end);
        for (; segment && segment->begin < used.end; segment = segment->next)
            segment->users++;
        if (used.use != CLD_READS)
            write_segments(used.copies, used.written, NULL);
    }
}

/* A child of a fork has no cluster: what is here it may use. */
static void look_in_child(struct cld_event *command) {
    for (uint32_t i = 0; i < command->mem_count; i++) {
        struct cld_mem *mem = cld_mem_at(command, i);
        const struct cld_copies *copies = mem ? cld_root_of(mem)->copies : NULL;
        const struct cld_segment *segment = copies ? copies->segments : NULL;
        for (; segment; segment = segment->next)
            if (!segment->is_here)
                cld_command_fail(command, CL_DEVICE_NOT_AVAILABLE);
    }
}

static bool fetch_command(struct cld_event *command) {
    if (command->operation == &cld_cluster_operation) /* others may look whether they follow it */
        __atomic_store_n(&command->elsewhere, CLD_TO_BE_SENT, __ATOMIC_RELAXED);
    if (command->elsewhere == CLD_TO_BE_SENT || command->elsewhere >= CLD_USED_HERE ||
        atomic_load_explicit(&command->error, memory_order_relaxed))
        return false;
    if (!cld_cluster_is_here()) {
        look_in_child(command);
        return false;
    }
    pthread_mutex_lock(&cld_cluster_lock);
    bool uses_all = cld_is_cut_up(command), is_ready = gather_here(command, uses_all);
    if (is_ready) {
        use_here(command, uses_all);
        command->elsewhere = uses_all ? CLD_ALL_USED_HERE : CLD_USED_HERE;
    }
    bool has_failed = atomic_load_explicit(&command->error, memory_order_relaxed);
    pthread_mutex_unlock(&cld_cluster_lock);
    return !is_ready && !has_failed;
}

void cld_cluster_push(struct cld_event *again) {
    struct cld_ready ready = {0};
    while (again) {
        struct cld_event *command = again;
        again = command->next;
        cld_ready_add(&ready, command);
    }
    if (ready.first)
        cld_pool_push(&ready);
}

static void command_ended(struct cld_event *command) {
    struct cld_event *again = NULL;
    bool uses_all = command->elsewhere == CLD_ALL_USED_HERE;
    command->elsewhere = CLD_NOT_ELSEWHERE;
    if (!cld_cluster_is_here())
        return;
    pthread_mutex_lock(&cld_cluster_lock);
    for (uint32_t i = 0; i < command->mem_count; i++) {
        struct cld_used used;
        if (!cld_find_used(command, i, uses_all, &used) || !used.use)
            continue;
        struct cld_segment *segment = cld_segments_in(used.copies, used.begin, used.end);
        for (; segment && segment->begin < used.end; segment = segment->next)
            segment->users--;
        cld_segments_join(used.copies, (struct cld_bytes_range){used.begin, used.end});
        cld_wake(&used.copies->waiting, &again);
    }
    pthread_mutex_unlock(&cld_cluster_lock);
    cld_cluster_push(again);
}

static void mem_freed(struct cld_mem *mem) {
    struct cld_copies *copies = mem->copies;
    if (!copies || !cld_cluster_is_here())
        return;
    pthread_mutex_lock(&cld_cluster_lock);
    cld_transfers_forget(copies);
    cld_forget(copies->known);
    pthread_mutex_unlock(&cld_cluster_lock);
    mem->copies = NULL;
    cld_segments_free(copies);
    free(copies);
}

bool cld_copies_enter(struct cld_event *command, struct cld_copies *copies, struct cld_bytes_range range) {
    const struct cld_used used = {.copies = copies, .begin = range.begin, .end = range.end};
    struct cld_segment *segment = cld_segments_in(copies, range.begin, range.end);
    if (!segment) {
        cld_command_fail(command, CL_OUT_OF_HOST_MEMORY);
        return false;
    }
    for (; segment && segment->begin < range.end; segment = segment->next) {
        if (segment->users) {
            wait_for(copies, command);
            return false;
        }
        if (!segment->is_here) {
            fetch_for(command, &used, segment);
            return false;
        }
    }
    return true;
}

static void count_users(struct cld_copies *copies, struct cld_bytes_range range, int more) {
    struct cld_segment *segment = cld_segments_in(copies, range.begin, range.end);
    for (; segment && segment->begin < range.end; segment = segment->next)
        segment->users += (uint32_t)more;
}

void cld_copies_hold(struct cld_copies *copies, struct cld_bytes_range range) {
    count_users(copies, range, 1);
    write_segments(copies, range, NULL);
}

void cld_copies_leave(struct cld_copies *copies, struct cld_bytes_range range, struct cld_event **again) {
    count_users(copies, range, -1);
    cld_segments_join(copies, range);
    cld_wake(&copies->waiting, again);
}

static const struct cld_mover mover = {fetch_command, cld_launch_follows, command_ended,
                                       mem_freed,     cld_program_freed,  cld_image_freed};

void cld_copies_begin(void) {
    atomic_store_explicit(&cld_mover_table, &mover, memory_order_release);
}
