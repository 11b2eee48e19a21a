/* Memory objects: which machine has what was written last, and how it gets to where a command wants it.
 *
 * A launch on a worker has every buffer of its arguments sent there if it is not there yet, and what it may
 * write is nowhere else from then on. A command that is executed here has what it uses fetched first.
 * Whatever a worker is sent it does in that order, so that what is read after a launch was written by it, and
 * nobody waits but for what comes back. Sub-buffers are one with the buffer that they are of. */
#include <stdlib.h>
#include <string.h>

#include "cluster/internal.h"
#include "memory/mem.h"
#include "object/mover.h"
#include "runtime/worker.h"

static struct cld_mem *root_of(struct cld_mem *mem) {
    while (mem->parent)
        mem = mem->parent;
    return mem;
}

static struct cld_mem *mem_at(const struct cld_event *command, uint32_t i) {
    struct cld_mem *mem = command->more_mems ? command->more_mems[i] : command->mems[i];
    /* Queues are held like memory objects. */
    bool is_mem = atomic_load_explicit(&mem->obj.tag, memory_order_relaxed) == CLD_MEM;
    return is_mem ? root_of(mem) : NULL;
}

struct cld_copies *cld_copies_of(struct cld_mem *mem) {
    mem = root_of(mem);
    if (!mem->copies && (mem->copies = calloc(1, sizeof *mem->copies))) {
        mem->copies->mem = mem;
        mem->copies->number = cld_cluster_number();
        mem->copies->is_here = true;
    }
    return mem->copies;
}

static void wait_for(struct cld_copies *copies, struct cld_event *command) {
    command->next = copies->waiting;
    copies->waiting = command;
}

static bool ask_for(struct cld_copies *copies, struct cld_worker *worker, size_t offset, size_t size) {
    struct cld_item *item = cld_item_new();
    uint64_t number = cld_cluster_number();
    if (!item)
        return false;
    cld_put_list(&item->message, 5);
    cld_put_int(&item->message, CLD_READ_MESSAGE);
    cld_put_int(&item->message, (int64_t)number);
    cld_put_int(&item->message, (int64_t)copies->number);
    cld_put_int(&item->message, (int64_t)offset);
    cld_put_int(&item->message, (int64_t)size);
    if (!cld_request(worker, number, NULL, copies, offset, size)) {
        cld_msg_free(&item->message);
        free(item);
        return false;
    }
    copies->missing++; /* who waits for it holds the memory object */
    return cld_send(worker, item);
}

/* False: nobody has it any more, or there is no memory. */
static bool fetch(struct cld_copies *copies) {
    if (copies->missing)
        return true;
    struct cld_worker *worker = cld_worker_in(copies->valid);
    if (!worker)
        return false;
    copies->fetched = copies->version;
    copies->failed = false;
    size_t size = copies->mem->size;
    for (size_t at = 0; at < size; at += CLD_MOST_MESSAGE_BYTES) {
        size_t part = size - at < CLD_MOST_MESSAGE_BYTES ? size - at : CLD_MOST_MESSAGE_BYTES;
        if (!ask_for(copies, worker, at, part))
            copies->failed = true;
    }
    return copies->missing > 0;
}

/* Has the command wait until the contents are here; it has failed if they never will be. */
static void fetch_for(struct cld_event *command, struct cld_copies *copies) {
    if (fetch(copies))
        wait_for(copies, command);
    else
        cld_command_fail(command, CL_DEVICE_NOT_AVAILABLE);
}

static void wake(struct cld_copies *copies, struct cld_event **again) {
    while (copies->waiting) {
        struct cld_event *command = copies->waiting;
        copies->waiting = command->next;
        command->next = *again;
        *again = command;
    }
}

void cld_copies_arrive(struct cld_request *request, cl_int status, struct cld_event **again) {
    struct cld_copies *copies = request->copies;
    if (status)
        copies->failed = true;
    if (--copies->missing)
        return;
    /* Written meanwhile, by a command that this one was not to wait for: whoever waits fetches it anew. */
    if (copies->failed)
        copies->valid = 0;
    else if (copies->fetched == copies->version)
        copies->is_here = true;
    wake(copies, again);
}

bool cld_copies_gather(struct cld_event *command, struct cld_worker *worker) {
    uint64_t bit = cld_worker_bit(worker);
    for (uint32_t i = 0; i < command->mem_count; i++) {
        struct cld_mem *mem = mem_at(command, i);
        struct cld_copies *copies = mem ? cld_copies_of(mem) : NULL;
        if (!copies) {
            cld_command_fail(command, CL_OUT_OF_HOST_MEMORY);
            return false;
        }
        if (copies->valid & bit && !copies->users)
            continue;
        if (copies->users) { /* what is used here is neither taken away nor half written when it is sent */
            wait_for(copies, command);
            return false;
        }
        if (!copies->is_here) {
            fetch_for(command, copies);
            return false;
        }
    }
    return true;
}

static struct cld_item *buffer_item(int message, const struct cld_copies *copies, uint32_t count) {
    struct cld_item *item = cld_item_new();
    if (!item)
        return NULL;
    cld_put_list(&item->message, count);
    cld_put_int(&item->message, message);
    cld_put_int(&item->message, (int64_t)copies->number);
    return item;
}

static bool send_part(struct cld_worker *worker, struct cld_copies *copies, size_t offset, size_t size) {
    struct cld_item *item = buffer_item(CLD_WRITE_MESSAGE, copies, 4);
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

static bool send_contents(struct cld_worker *worker, struct cld_copies *copies) {
    size_t size = copies->mem->size;
    if (!(copies->known & cld_worker_bit(worker))) {
        struct cld_item *item = buffer_item(CLD_BUFFER_MESSAGE, copies, 3);
        if (!item)
            return false;
        cld_put_int(&item->message, (int64_t)size);
        if (!cld_send(worker, item))
            return false;
        copies->known |= cld_worker_bit(worker);
    }
    for (size_t at = 0; at < size; at += CLD_MOST_MESSAGE_BYTES) {
        size_t part = size - at < CLD_MOST_MESSAGE_BYTES ? size - at : CLD_MOST_MESSAGE_BYTES;
        if (!send_part(worker, copies, at, part))
            return false;
    }
    copies->valid |= cld_worker_bit(worker);
    return true;
}

/* What a kernel may write is not known but by the flags of the memory object, which are the promise of the
 * program. */
static bool may_write(const struct cld_event *command, uint32_t i) {
    const struct cld_mem *mem = command->more_mems ? command->more_mems[i] : command->mems[i];
    return !(mem->flags & (CL_MEM_READ_ONLY | CLD_MEM_IMMUTABLE));
}

bool cld_copies_send(struct cld_event *command, struct cld_worker *worker) {
    for (uint32_t i = 0; i < command->mem_count; i++) {
        struct cld_copies *copies = mem_at(command, i)->copies;
        if (!(copies->valid & cld_worker_bit(worker)) && !send_contents(worker, copies))
            return false;
    }
    for (uint32_t i = 0; i < command->mem_count; i++) {
        struct cld_copies *copies = mem_at(command, i)->copies;
        if (!may_write(command, i))
            continue;
        copies->version++;
        copies->valid = cld_worker_bit(worker);
        copies->is_here = false;
    }
    return true;
}

/* What a command does here with the i-th of its memory objects. */
enum use { USES_NOTHING, READS, WRITES, WRITES_ALL };

static bool is_all(const struct cld_event *command, const struct cld_mem *mem, size_t bytes) {
    return command->mem_count == 1 && bytes == mem->size && !mem->parent;
}

static enum use use_of(const struct cld_event *command, uint32_t i) {
    const struct cld_mem *mem = command->more_mems ? command->more_mems[i] : command->mems[i];
    switch (command->type) {
    case CL_COMMAND_READ_BUFFER:
    case CL_COMMAND_READ_BUFFER_RECT:
    case CL_COMMAND_READ_IMAGE:
    case CL_COMMAND_MAP_BUFFER:
    case CL_COMMAND_MAP_IMAGE:
        return READS;
    case CL_COMMAND_MIGRATE_MEM_OBJECTS:
        return USES_NOTHING;
    case CL_COMMAND_COPY_BUFFER:
    case CL_COMMAND_COPY_BUFFER_RECT:
    case CL_COMMAND_COPY_IMAGE:
    case CL_COMMAND_COPY_IMAGE_TO_BUFFER:
    case CL_COMMAND_COPY_BUFFER_TO_IMAGE:
        return i ? WRITES : READS;
    case CL_COMMAND_WRITE_BUFFER:
    case CL_COMMAND_FILL_BUFFER:
        return is_all(command, mem, cld_command_bytes(command)) ? WRITES_ALL : WRITES;
    default:
        return WRITES;
    }
}

/* True if all that it uses is here. */
static bool gather_here(struct cld_event *command) {
    for (uint32_t i = 0; i < command->mem_count; i++) {
        struct cld_mem *mem = mem_at(command, i);
        enum use use = mem ? use_of(command, i) : USES_NOTHING;
        struct cld_copies *copies = use ? cld_copies_of(mem) : NULL;
        if (use && !copies) {
            cld_command_fail(command, CL_OUT_OF_HOST_MEMORY);
            return false;
        }
        /* What is on its way here comes before anything else is written to its place. */
        bool may_go_on = !use || copies->is_here || (use == WRITES_ALL && !copies->missing);
        if (may_go_on)
            continue;
        if (copies->missing)
            wait_for(copies, command);
        else
            fetch_for(command, copies);
        return false;
    }
    return true;
}

static void use_here(struct cld_event *command) {
    for (uint32_t i = 0; i < command->mem_count; i++) {
        struct cld_mem *mem = mem_at(command, i);
        enum use use = mem ? use_of(command, i) : USES_NOTHING;
        if (!use)
            continue;
        mem->copies->users++;
        if (use == READS)
            continue;
        mem->copies->version++;
        mem->copies->valid = 0;
        mem->copies->is_here = true;
    }
}

/* A child of a fork has no cluster: what is here it may use. */
static void look_in_child(struct cld_event *command) {
    for (uint32_t i = 0; i < command->mem_count; i++) {
        const struct cld_mem *mem = mem_at(command, i);
        if (mem && mem->copies && !mem->copies->is_here)
            cld_command_fail(command, CL_DEVICE_NOT_AVAILABLE);
    }
}

static bool fetch_command(struct cld_event *command) {
    if (command->operation == &cld_cluster_operation)
        command->elsewhere = CLD_TO_BE_SENT;
    if (command->elsewhere == CLD_TO_BE_SENT || command->elsewhere == CLD_USED_HERE ||
        atomic_load_explicit(&command->error, memory_order_relaxed))
        return false;
    if (!cld_cluster_is_here()) {
        look_in_child(command);
        return false;
    }
    pthread_mutex_lock(&cld_cluster_lock);
    bool is_ready = gather_here(command);
    if (is_ready) {
        use_here(command);
        command->elsewhere = CLD_USED_HERE;
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
    command->elsewhere = CLD_NOT_ELSEWHERE;
    if (!cld_cluster_is_here())
        return;
    pthread_mutex_lock(&cld_cluster_lock);
    for (uint32_t i = 0; i < command->mem_count; i++) {
        struct cld_mem *mem = mem_at(command, i);
        if (mem && use_of(command, i) && !--mem->copies->users)
            wake(mem->copies, &again);
    }
    pthread_mutex_unlock(&cld_cluster_lock);
    cld_cluster_push(again);
}

static void mem_freed(struct cld_mem *mem) {
    struct cld_copies *copies = mem->copies;
    if (!copies || !cld_cluster_is_here())
        return;
    pthread_mutex_lock(&cld_cluster_lock);
    for (uint32_t i = 0; i < CLD_MOST_WORKERS; i++) {
        struct cld_worker *worker = copies->known >> i & 1 ? cld_worker_at(i) : NULL;
        struct cld_item *item =
            worker && !worker->is_gone ? buffer_item(CLD_FORGET_BUFFER_MESSAGE, copies, 2) : NULL;
        if (item)
            cld_send(worker, item);
    }
    pthread_mutex_unlock(&cld_cluster_lock);
    mem->copies = NULL;
    free(copies);
}

static const struct cld_mover mover = {fetch_command, cld_launch_follows, command_ended,
                                       mem_freed,     cld_program_freed,  cld_image_freed};

void cld_copies_begin(void) {
    atomic_store_explicit(&cld_mover_table, &mover, memory_order_release);
}
