/* Memory of the host that a command which does not block reads: the host may not change it before it knows
 * that the command has ended, whenever this driver reads it. What it holds is compared. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "validation/validation.h"

enum { MOST_BYTES = 1 << 26, PIECE = 1 << 16 };

struct promise {
    struct promise *next;
    const uint8_t *start;
    size_t size;
    uint64_t hash;
    struct command *command;
};
static struct promise *promises;

static uint64_t mix(uint64_t hash, const uint8_t *bytes, size_t size) {
    while (size >= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
        bytes += 8;
        size -= 8;
    }
    for (; size; size--)
        hash = (hash ^ *bytes++) * UINT64_C(0x100000001b3);
    return hash;
}

enum content { READ, GONE, UNKNOWN };

/* What process_vm_readv does, where sandboxes forbid it or emulators lack it: a pipe takes what is there. */
static enum content read_by_pipe(uint8_t *to, const uint8_t *from, size_t size) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        return UNKNOWN;
    enum content found = READ;
    while (size && found == READ) {
        ssize_t taken = write(ends[1], from, size);
        if (taken < 0)
            found = errno == EFAULT ? GONE : UNKNOWN;
        else if (read(ends[0], to, (size_t)taken) != taken)
            found = UNKNOWN;
        else
            to += taken, from += taken, size -= (size_t)taken;
    }
    close(ends[0]);
    close(ends[1]);
    return found;
}

/* By way of the system, for which memory that is not there any more is no fault. */
static enum content hash_of(const uint8_t *start, size_t size, uint64_t *hash) {
    static uint8_t piece[PIECE]; /* under the lock */
    *hash = size;
    while (size) {
        size_t part = size < PIECE ? size : PIECE;
        struct iovec to = {piece, part}, from = {(void *)(uintptr_t)start, part};
        ssize_t done = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
        enum content found = done == (ssize_t)part          ? READ
                             : done >= 0 || errno == EFAULT ? GONE
                                                            : read_by_pipe(piece, start, part);
        if (found != READ)
            return found;
        *hash = mix(*hash, piece, part);
        start += part;
        size -= part;
    }
    return READ;
}

struct meeting {
    const uint8_t *start;
    size_t size;
    bool found;
};

static void meet(struct known *known, void *argument) {
    struct meeting *meeting = argument;
    const struct cld_mem *mem =
        known->kind == CLD_MEM ? cld_object_check((const void *)known->handle, CLD_MEM) : NULL;
    const uint8_t *start = mem ? mem->data : known->kind == CLD_DEAD ? (const uint8_t *)known->handle : NULL;
    size_t size = mem ? mem->size : known->size;
    if (start && start < meeting->start + meeting->size && meeting->start < start + size)
        meeting->found = true;
}

/* Whether kernels may write there: it is memory of an object. */
static bool is_of_objects(const uint8_t *start, size_t size) {
    struct meeting meeting = {start, size, false};
    object_each(meet, &meeting);
    return meeting.found;
}

void host_memory_promise(const void *start, size_t size, struct command *command) {
    uint64_t hash;
    if (!size || size > MOST_BYTES || !command->position || is_of_objects(start, size) ||
        hash_of(start, size, &hash) != READ)
        return;
    struct promise *promise = malloc(sizeof *promise);
    if (!promise)
        return;
    command->holds++;
    *promise = (struct promise){promises, start, size, hash, command};
    promises = promise;
}

static void tell(const struct promise *promise, bool is_there) {
    struct message message;
    if (!message_begin(&message, "host memory", &promise->command->place, 0))
        return;
    message_add(
        &message,
        "the host %s the %zu bytes at %p that the command reads, before it knew that the command had ended",
        is_there ? "changed" : "gave back", promise->size, (const void *)promise->start);
    message_add_place(&message, "", &promise->command->place);
    message_end(&message);
}

static void end(const struct clock *over, bool compares) {
    for (struct promise **link = &promises; *link;) {
        struct promise *promise = *link;
        if (over->at[promise->command->chain] < promise->command->position) {
            link = &promise->next;
            continue;
        }
        if (compares && !is_of_objects(promise->start, promise->size)) {
            uint64_t hash;
            enum content found = hash_of(promise->start, promise->size, &hash);
            if (found == GONE || (found == READ && hash != promise->hash))
                tell(promise, found == READ);
        }
        *link = promise->next;
        command_drop(promise->command);
        free(promise);
    }
}

void host_memory_check(const struct clock *over) {
    end(over, true);
}

void host_memory_forget(const struct clock *over) {
    end(over, false);
}

static struct known *all_shared; /* with CL_MEM_USE_HOST_PTR, or coarse-grained */

void host_memory_written(const void *start, size_t size) {
    for (struct known *known = all_shared; known; known = known->next_shared)
        if (known->shared < (const uint8_t *)start + size &&
            (const uint8_t *)start < known->shared + known->size)
            known->has_hash = false;
    for (struct promise **link = &promises; *link;) {
        struct promise *promise = *link;
        const uint8_t *from = start;
        if (promise->start >= from + size || from >= promise->start + promise->size) {
            link = &promise->next;
            continue;
        }
        *link = promise->next;
        command_drop(promise->command);
        free(promise);
    }
}

/* Devices may have copies of such memory: what the host changes without a mapping they need not see. */
static bool trusts_nobody;

void host_memory_share(struct known *known, const uint8_t *memory) {
    if (!known->size || known->size > MOST_BYTES)
        return;
    known->shared = memory;
    known->has_hash = hash_of(known->shared, known->size, &known->hash) == READ;
    known->next_shared = all_shared;
    all_shared = known;
}

void host_memory_unshare(struct known *known) {
    for (struct known **link = &all_shared; *link; link = &(*link)->next_shared)
        if (*link == known) {
            *link = known->next_shared;
            break;
        }
    known->shared = NULL;
}

void host_memory_check_shared(struct known *known, const struct place *place) {
    uint64_t hash;
    if (!known->shared || !known->has_hash || known->mappings || trusts_nobody)
        return;
    enum content found = hash_of(known->shared, known->size, &hash);
    if (found == UNKNOWN || (found == READ && hash == known->hash))
        return;
    known->has_hash = false;
    struct message message;
    if (!message_begin(&message, "shared memory", place, known->number))
        return;
    message_add(&message, "the host has changed, without a mapping, the memory of ");
    object_describe(&message, known);
    message_add(&message, ", %s: commands need not see what is written without %s",
                known->is_coarse ? "which is coarse-grained" : "made with CL_MEM_USE_HOST_PTR",
                known->is_coarse ? "clEnqueueSVMMap" : "clEnqueueMapBuffer or clEnqueueMapImage");
    message_add_place(&message, "", place);
    message_add_place(&message, "made by", &known->made);
    message_end(&message);
}

void host_memory_settle(void) {
    for (struct known *known = all_shared; known && !trusts_nobody; known = known->next_shared) {
        bool is_quiet = !known->mappings;
        for (const struct use *use = known->uses; use && is_quiet; use = use->next)
            is_quiet = command_is_over(use->command);
        if (is_quiet && !known->has_hash)
            known->has_hash = hash_of(known->shared, known->size, &known->hash) == READ;
    }
}

void host_memory_trust_nobody(void) {
    trusts_nobody = true;
}
