/* What happens, as records: CL_DRIVER_TRACE. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/settings.h"
#include "base/thread.h"
#include "kernel/kernel.h"
#include "memory/mem.h"
#include "object/call.h"
#include "object/observer.h"
#include "runtime/command.h"
#include "trace/command_record.h"
#include "trace/ring.h"
#include "trace/writer.h"

/* A record in the making. */
struct draft {
    unsigned count; /* words */
    uint64_t words[CLD_RECORD_WORDS];
};

static void put(struct draft *draft, uint64_t word) {
    if (draft->count < CLD_RECORD_WORDS)
        draft->words[draft->count++] = word;
}

/* How many bytes, and the bytes; none where there is no room. */
static void put_bytes(struct draft *draft, const void *bytes, size_t size) {
    size_t words = (size + 7) / 8;
    if (draft->count + 1 + words > CLD_RECORD_WORDS)
        size = words = 0;
    put(draft, size);
    if (words)
        draft->words[draft->count + words - 1] = 0;
    memcpy(&draft->words[draft->count], bytes, size);
    draft->count += (unsigned)words;
}

static void publish(enum cld_record_kind kind, int32_t value, uint64_t time, const struct draft *draft) {
    struct cld_record *record = cld_ring_reserve(kind, draft->count + 2);
    if (!record)
        return;
    record->value = value;
    record->time = time;
    memcpy(record->body, draft->words, draft->count * sizeof *draft->words);
    cld_ring_publish(record);
}

/* Slots are recycled, but not within a nanosecond. */
static uint64_t id_of(const struct cld_event *command) {
    uint64_t id = (uint64_t)(uintptr_t)command ^ command->times[CLD_TIME_QUEUED] * 0x9e3779b97f4a7c15u;
    id ^= id >> 29;
    return id * 0xbf58476d1ce4e5b9u ^ id >> 32;
}

/* Bytes that a call was given a pointer to, as many as there are. A call that has succeeded has read them
 * itself. What one that failed was given may point anywhere: the system reads it, or says that it cannot. */
static size_t look(bool is_accepted, void *to, uintptr_t from, size_t size) {
    if (is_accepted) {
        memcpy(to, (const void *)from, size);
        return size;
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE), first = page - from % page;
    first = size < first ? size : first; /* of two pieces the first is read if the second is not there */
    const struct iovec local = {to, size},
                       remote[] = {{(void *)from, first}, {(void *)(from + first), size - first}};
    int kept = errno;
    ssize_t count = process_vm_readv(getpid(), &local, 1, remote, 2, 0);
    errno = kept;
    return count < 0 ? 0 : (size_t)count;
}

/* The letters of gen/calls.py for what lies behind a pointer. */
static void put_pointed(struct draft *draft, char kind, uintptr_t value, size_t dimensions,
                        bool is_accepted) {
    uint64_t bytes[CLD_MOST_PROPERTIES];
    char text[160];
    size_t size = 0;
    bool is_read = true;
    if (kind == 's') {
        size = is_accepted ? strnlen((const char *)value, CLD_MOST_TEXT) : CLD_MOST_TEXT;
        size = look(is_accepted, text, value, size);
        is_read = is_accepted || size;
        size = strnlen(text, size);
    } else if (kind == 'l') {
        size_t count = 0;
        while (count < CLD_MOST_PROPERTIES && is_read) {
            is_read = look(is_accepted, &bytes[count], value + count * sizeof *bytes, sizeof *bytes) ==
                      sizeof *bytes;
            if (!is_read || !bytes[count])
                break;
            count++;
        }
        size = count * sizeof *bytes;
        memcpy(text, bytes, size);
    } else if (kind == 'z') {
        size = dimensions * sizeof(size_t);
        is_read = look(is_accepted, text, value, size) == size;
    } else if (kind == 'd') {
        cl_image_desc desc;
        is_read = look(is_accepted, &desc, value, sizeof desc) == sizeof desc;
        if (is_read)
            size = (size_t)snprintf(text, sizeof text,
                                    "type %#x, %zu x %zu x %zu, array size %zu, row pitch %zu",
                                    desc.image_type, desc.image_width, desc.image_height, desc.image_depth,
                                    desc.image_array_size, desc.image_row_pitch);
    } else {
        cl_image_format format;
        is_read = look(is_accepted, &format, value, sizeof format) == sizeof format;
        if (is_read)
            size = (size_t)snprintf(text, sizeof text, "order %#x, type %#x", format.image_channel_order,
                                    format.image_channel_data_type);
    }
    if (is_read)
        put_bytes(draft, text, size);
    else
        put(draft, CLD_NOT_READ);
}

static void call_begins(const struct cld_call *call) {
    struct draft draft;
    uint64_t time = cld_now();
    size_t i = 0;
    draft.count = 0;
    put(&draft, (uintptr_t)call->form);
    for (const char *at = call->form; (at = strchr(at + 1, ' '));)
        put(&draft, call->values[i++]);
    publish(CLD_RECORD_CALL, 0, time, &draft);
}

static void call_ends(const struct cld_call *call, int32_t status) {
    struct draft draft;
    uint64_t time = cld_now();
    size_t dimensions = 3, i = 0;
    draft.count = 0;
    put(&draft, (uintptr_t)call->form);
    put(&draft, call->result);
    for (const char *at = call->form; (at = strchr(at, ' ')); i++) {
        uintptr_t value = call->values[i];
        char kind = *++at;
        if (!strncmp(at, "uwork_dim", 9))
            dimensions = value <= 3 ? value : 0;
        if (value && strchr(CLD_POINTED, kind)) {
            put(&draft, i);
            put(&draft, value);
            put_pointed(&draft, kind, value, dimensions, !status);
        }
    }
    publish(CLD_RECORD_RETURN, status, time, &draft);
}

static void describe(struct cld_event *command, uint32_t wait_count, struct cld_event *const *wait_list) {
    struct draft draft;
    const struct cld_queue *queue = command->queue;
    struct cld_command_record about = {
        .id = id_of(command),
        .queue = (uintptr_t)queue,
        .properties = queue->properties,
        .is_node = command->is_node,
        .has_event = !command->is_node && cld_object_refs(command) > 0,
        .bytes = cld_command_bytes(command),
    };
    struct cld_mem *const *mems = command->more_mems ? command->more_mems : command->mems;
    for (uint32_t i = 0; i < command->mem_count; i++)
        about.mem_bytes += mems[i]->size;
    const char *name = "";
    if (cld_command_is_launch(command)) {
        const struct cld_kernel_info *info = command->kernel.info;
        const struct cld_launch *launch = &command->kernel.launch;
        bool is_exchanged = info->flags & CLD_KERNEL_EXCHANGED && !command->kernel.is_plain;
        name = info->name;
        about.dimensions = launch->work_dim;
        for (int i = 0; i < 3; i++) {
            int from = is_exchanged && i < 2 ? 1 - i : i;
            about.global_size[i] = launch->global_size[from];
            about.local_size[i] = launch->local_size[from];
        }
    }
    draft.count = sizeof about / sizeof(uint64_t);
    memcpy(draft.words, &about, sizeof about);
    put_bytes(&draft, name, strnlen(name, CLD_MOST_TEXT));
    uint64_t *count = &draft.words[draft.count];
    put(&draft, 0);
    for (uint32_t i = 0; i < wait_count; i++)
        if (wait_list[i]->queue && draft.count < CLD_RECORD_WORDS - 2) { /* no user event */
            put(&draft, id_of(wait_list[i]));
            ++*count;
        }
    publish(CLD_RECORD_QUEUED, (int32_t)command->type, command->times[CLD_TIME_QUEUED], &draft);
}

static void publish_id(enum cld_record_kind kind, int32_t value, uint64_t time,
                       const struct cld_event *command) {
    struct draft draft;
    draft.count = 0;
    put(&draft, id_of(command));
    publish(kind, value, time, &draft);
}

static void submitted(struct cld_event *command) {
    publish_id(CLD_RECORD_SUBMITTED, 0, command->times[CLD_TIME_SUBMIT], command);
}

/* A node is queued anew each time. */
static void started(struct cld_event *command) {
    if (command->is_node) {
        command->times[CLD_TIME_QUEUED] = command->times[CLD_TIME_START];
        describe(command, 0, NULL);
    }
    publish_id(CLD_RECORD_STARTED, 0, command->times[CLD_TIME_START], command);
}

static void ended(struct cld_event *command, int32_t status) {
    uint64_t time = command->enqueues ? command->node.complete_time : command->times[CLD_TIME_END];
    publish_id(CLD_RECORD_ENDED, status, time, command);
}

static void joined(struct cld_event *command, const struct cld_self *self) {
    (void)self;
    publish_id(CLD_RECORD_JOINED, 0, cld_now(), command);
}

static void left(struct cld_event *command, const struct cld_self *self, const struct cld_part *part) {
    struct draft draft;
    (void)self, (void)command;
    draft.count = 0;
    put(&draft, part->units);
    put(&draft, part->chunks);
    put(&draft, part->stolen);
    publish(CLD_RECORD_LEFT, 0, cld_now(), &draft);
}

static void executed_elsewhere(struct cld_event *command, uint32_t number, const char *name, uint64_t start,
                               uint64_t end) {
    const struct cld_elsewhere_record about = {id_of(command), number, (uintptr_t)name, end};
    struct draft draft = {.count = sizeof about / sizeof(uint64_t)};
    memcpy(draft.words, &about, sizeof about);
    publish(CLD_RECORD_ELSEWHERE, 0, start, &draft);
}

/* Changes of one counter by several threads: the records have the sums. */
static void allocated(int64_t bytes) {
    static _Atomic int64_t sum;
    struct draft draft;
    draft.count = 0;
    put(&draft, (uint64_t)(atomic_fetch_add(&sum, bytes) + bytes));
    publish(CLD_RECORD_BYTES, 0, cld_now(), &draft);
}

static const struct cld_observer observer = {
    .queued = describe,
    .submitted = submitted,
    .started = started,
    .ended = ended,
    .joined = joined,
    .left = left,
    .executed_elsewhere = executed_elsewhere,
    .call_begins = call_begins,
    .call_ends = call_ends,
    .allocated = allocated,
};

CLD_OBSERVER_CONSTRUCTOR static void begin(void) {
    const char *path = cld_setting(CL_DRIVER_TRACE_SETTING);
    if (!*path)
        return;
    cld_writer_open(path);
    cld_ring_register();
    cld_observe(&observer);
}
