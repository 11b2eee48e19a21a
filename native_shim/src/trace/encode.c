/* Records to packets: which track an event is on, and what it is called. */
#define _GNU_SOURCE
#include "trace/encode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_names.h"
#include "base/thread.h"
#include "object/objects.h"
#include "trace/command_record.h"
#include "trace/event.h"
#include "trace/names.h"
#include "trace/worker_tracks.h"

/* Numbers of tracks, for cld_track: threads by their number of the system, queues in the order in which they
 * are first used, and for each its lanes. Those of workers (worker_tracks.c) are between them. */
enum {
    BYTES_TRACK = 1,
    LOST_TRACK = 2,
    QUEUE_TRACKS = 1 << 23,
    MOST_LANES = 1 << 12,
    DEPTH_LANE = MOST_LANES - 1,
    BANDWIDTH_LANE = MOST_LANES - 2,
};

struct queue {
    struct queue *next;
    uint64_t address;
    uint32_t number;
    uint32_t lanes; /* that the file knows of */
    int64_t depth;  /* commands that were queued and have not ended */
    bool *is_busy;  /* by lane */
    uint64_t *ends; /* by lane: of the last slice */
};

/* A command that has not ended. */
struct open_command {
    struct open_command *next;
    struct cld_command_record about;
    struct queue *queue;
    uint64_t queued, submitted, started;
    uint32_t lane;
    int32_t type;
    uint32_t wait_count;
    const char *name; /* in `rest` */
    uint64_t *waits;  /* likewise */
    uint64_t rest[];
};

static struct queue *queues;
static uint32_t queue_count;
static struct open_command **commands; /* by id */
static size_t bucket_count, command_count;
static bool has_bytes;

#define KEY(name) (name), sizeof(name) - 1

static struct open_command **place_of(uint64_t id) {
    if (!bucket_count)
        return NULL;
    struct open_command **at = &commands[id % bucket_count];
    while (*at && (*at)->about.id != id)
        at = &(*at)->next;
    return at;
}

static struct open_command *find(uint64_t id) {
    struct open_command **at = place_of(id);
    return at ? *at : NULL;
}

/* False: no memory. */
static bool make_room(void) {
    if (command_count < bucket_count)
        return true;
    size_t count = bucket_count ? 4 * bucket_count + 1 : 1021;
    struct open_command **made = calloc(count, sizeof(struct open_command *));
    if (!made)
        return bucket_count > 0;
    for (size_t i = 0; i < bucket_count; i++)
        while (commands[i]) {
            struct open_command *command = commands[i];
            commands[i] = command->next;
            command->next = made[command->about.id % count];
            made[command->about.id % count] = command;
        }
    free(commands);
    commands = made;
    bucket_count = count;
    return true;
}

static struct queue *queue_of(struct cld_packets *packets, const struct cld_command_record *about) {
    for (struct queue *queue = queues; queue; queue = queue->next)
        if (queue->address == about->queue)
            return queue;
    struct queue *queue = calloc(1, sizeof *queue);
    bool *is_busy = calloc(MOST_LANES, sizeof *is_busy);
    uint64_t *ends = calloc(MOST_LANES, sizeof *ends);
    if (!queue || !is_busy || !ends) {
        free(queue);
        free(is_busy);
        free(ends);
        return NULL;
    }
    *queue = (struct queue){
        .next = queues, .address = about->queue, .number = queue_count++, .is_busy = is_busy, .ends = ends};
    queues = queue;
    char name[64];
    uint32_t first = QUEUE_TRACKS + queue->number * MOST_LANES;
    snprintf(name, sizeof name, "Queue %u: unfinished commands", queue->number + 1);
    cld_track_of_name(packets, cld_track(first + DEPTH_LANE), name, "commands");
    snprintf(name, sizeof name, "Queue %u: bandwidth of copies", queue->number + 1);
    cld_track_of_name(packets, cld_track(first + BANDWIDTH_LANE), name, "GB/s");
    return queue;
}

static uint64_t lane_track(const struct queue *queue, uint32_t lane) {
    return cld_track(QUEUE_TRACKS + queue->number * MOST_LANES + lane);
}

/* The first lane on which nothing goes on at that time, which may be a while ago for what was executed
 * elsewhere: slices of a track must nest. */
static uint32_t take_lane(struct cld_packets *packets, const struct open_command *command, uint64_t time) {
    struct queue *queue = command->queue;
    uint32_t lane = 0;
    while (lane < BANDWIDTH_LANE - 1 && (queue->is_busy[lane] || queue->ends[lane] > time))
        lane++;
    queue->is_busy[lane] = true;
    if (lane >= queue->lanes) {
        char name[64];
        bool out_of_order = command->about.properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
        int size = snprintf(name, sizeof name, "Queue %u (%s%s)", queue->number + 1,
                            command->about.properties & CL_QUEUE_ON_DEVICE ? "on device, " : "",
                            out_of_order ? "out of order" : "in order");
        if (lane)
            snprintf(name + size, sizeof name - (size_t)size, " +%u", lane);
        cld_track_of_name(packets, lane_track(queue, lane), name, NULL);
        queue->lanes = lane + 1;
    }
    return lane;
}

static const char *type_name(int32_t type) {
    static const struct {
        int32_t type;
        const char *name;
    } names[] = {
        {CL_COMMAND_NDRANGE_KERNEL, "NDRange kernel"},
        {CL_COMMAND_TASK, "task"},
        {CL_COMMAND_NATIVE_KERNEL, "native kernel"},
        {CL_COMMAND_READ_BUFFER, "read buffer"},
        {CL_COMMAND_WRITE_BUFFER, "write buffer"},
        {CL_COMMAND_COPY_BUFFER, "copy buffer"},
        {CL_COMMAND_READ_IMAGE, "read image"},
        {CL_COMMAND_WRITE_IMAGE, "write image"},
        {CL_COMMAND_COPY_IMAGE, "copy image"},
        {CL_COMMAND_COPY_IMAGE_TO_BUFFER, "copy image to buffer"},
        {CL_COMMAND_COPY_BUFFER_TO_IMAGE, "copy buffer to image"},
        {CL_COMMAND_MAP_BUFFER, "map buffer"},
        {CL_COMMAND_MAP_IMAGE, "map image"},
        {CL_COMMAND_UNMAP_MEM_OBJECT, "unmap"},
        {CL_COMMAND_MARKER, "marker"},
        {CL_COMMAND_BARRIER, "barrier"},
        {CL_COMMAND_MIGRATE_MEM_OBJECTS, "migrate"},
        {CL_COMMAND_FILL_BUFFER, "fill buffer"},
        {CL_COMMAND_FILL_IMAGE, "fill image"},
        {CL_COMMAND_READ_BUFFER_RECT, "read buffer rect"},
        {CL_COMMAND_WRITE_BUFFER_RECT, "write buffer rect"},
        {CL_COMMAND_COPY_BUFFER_RECT, "copy buffer rect"},
        {CL_COMMAND_SVM_FREE, "SVM free"},
        {CL_COMMAND_SVM_MEMCPY, "SVM copy"},
        {CL_COMMAND_SVM_MEMFILL, "SVM fill"},
        {CL_COMMAND_SVM_MAP, "SVM map"},
        {CL_COMMAND_SVM_UNMAP, "SVM unmap"},
        {CLD_COMMAND_COMMAND_BUFFER, "command-buffer"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].type == type)
            return names[i].name;
    return "command";
}

static uint64_t name_of(const struct open_command *command) {
    const char *type = type_name(command->type);
    return *command->name ? cld_name(CLD_EVENT_NAME, command->name, strlen(command->name))
                          : cld_name_of_literal(CLD_EVENT_NAME, type, strlen(type));
}

static void know(struct cld_packets *packets, struct cld_ring *ring) {
    static const char *const roles[] = {
        [CLD_HOST_THREAD] = "host", [CLD_WORKER_THREAD] = "worker", [CLD_CALLBACK_THREAD] = "callbacks"};
    const char *role = ring->role < sizeof roles / sizeof *roles ? roles[ring->role] : "driver";
    char name[64];
    snprintf(name, sizeof name, "%s %d", role, (int)ring->thread);
    cld_track_of_thread(packets, cld_track((uint32_t)ring->thread), ring->thread, name);
    ring->is_known = true;
}

static void put_sizes(struct cld_track_event *event, const char *name, size_t size, const uint64_t *sizes,
                      uint64_t count) {
    char text[80];
    size_t used = 0;
    for (uint64_t i = 0; i < count && i < 3; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%llu", i ? " x " : "",
                                 (unsigned long long)sizes[i]);
    cld_argument_text(event, name, size, text, used);
}

static void put_list(struct cld_track_event *event, const char *name, size_t size, const uint64_t *words,
                     size_t count) {
    char text[20 * CLD_MOST_PROPERTIES];
    size_t used = 0;
    for (size_t i = 0; i < count && used < sizeof text - 20; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%#llx", i ? ", " : "",
                                 (unsigned long long)words[i]);
    cld_argument_text(event, name, size, text, used);
}

/* What lies behind a pointer; returns the words that it has taken. */
static size_t put_pointed(struct cld_track_event *event, char kind, const char *name, size_t size,
                          uint64_t value, const uint64_t *words) {
    uint64_t count = words[0];
    if (count == CLD_NOT_READ) {
        cld_argument_bits(event, name, size, value);
        return 1;
    }
    if (kind == 'z')
        put_sizes(event, name, size, words + 1, count / sizeof(uint64_t));
    else if (kind == 'l')
        put_list(event, name, size, words + 1, count / sizeof(uint64_t));
    else
        cld_argument_any_text(event, name, size, (const char *)(words + 1), count);
    return 1 + (count + 7) / 8;
}

static void call(struct cld_packets *packets, uint64_t track, const struct cld_record *record) {
    const char *form = (const char *)(uintptr_t)record->body[0], *at = strchr(form, ' ');
    uint64_t name = cld_name_of_literal(CLD_EVENT_NAME, form, at ? (size_t)(at - form) : strlen(form));
    struct cld_track_event event = cld_track_event_begin(packets, record->time, track, CLD_SLICE_BEGIN, name);
    for (size_t word = 1; at && word < record->words - 2u; word++) {
        const char *start = at + 2;
        char kind = at[1];
        uint64_t value = record->body[word];
        at = strchr(start, ' ');
        size_t size = at ? (size_t)(at - start) : strlen(start);
        if ((size == 11 && !memcmp(start, "errcode_ret", 11)) || (value && strchr(CLD_POINTED, kind)))
            continue;
        if (kind == 'u' || kind == 'i')
            cld_argument_number(&event, start, size, (int64_t)value);
        else
            cld_argument_bits(&event, start, size, value);
    }
    cld_track_event_end(&event);
}

static void call_returns(struct cld_packets *packets, uint64_t track, const struct cld_record *record) {
    struct cld_track_event event = cld_track_event_begin(packets, record->time, track, CLD_SLICE_END, 0);
    const char *at = strchr((const char *)(uintptr_t)record->body[0], ' ');
    uint64_t number = 0;
    for (size_t word = 2; word + 3 <= record->words - 2u;) {
        for (; at && number < record->body[word]; number++)
            at = strchr(at + 1, ' ');
        if (!at)
            break;
        uint64_t value = record->body[word + 1];
        word += 2;
        word += put_pointed(&event, at[1], at + 2, strcspn(at + 2, " "), value, &record->body[word]);
    }
    if (record->value) {
        const char *error = cld_error_name(record->value);
        cld_argument_text(&event, KEY("error"), error, strlen(error));
    }
    if (record->body[1])
        cld_argument_bits(&event, KEY("returns"), record->body[1]);
    cld_track_event_end(&event);
}

static void count_depth(struct cld_packets *packets, struct queue *queue, uint64_t time, int change) {
    queue->depth += change;
    cld_counter(packets, time, lane_track(queue, DEPTH_LANE), (double)queue->depth);
}

static void queued(struct cld_packets *packets, uint64_t track, const struct cld_record *record) {
    size_t words = sizeof(struct cld_command_record) / sizeof(uint64_t), rest = record->words - 2u - words;
    struct open_command *command =
        make_room() ? malloc(sizeof *command + (rest + 1) * sizeof(uint64_t)) : NULL;
    if (!command) {
        cld_encode_lost(packets, 1);
        return;
    }
    *command = (struct open_command){.queued = record->time, .type = record->value};
    memcpy(&command->about, record->body, sizeof command->about);
    /* The name gets an end, in a word of its own if it fills its words. */
    uint64_t size = record->body[words];
    size_t name_words = (size + 7) / 8;
    command->rest[0] = 0;
    memcpy(command->rest, &record->body[words + 1], size);
    ((char *)command->rest)[size] = 0;
    command->name = (const char *)command->rest;
    command->wait_count = (uint32_t)record->body[words + 1 + name_words];
    command->waits = &command->rest[name_words + 1];
    memcpy(command->waits, &record->body[words + 2 + name_words], command->wait_count * sizeof(uint64_t));
    command->queue = queue_of(packets, &command->about);
    if (!command->queue) {
        free(command);
        cld_encode_lost(packets, 1);
        return;
    }
    struct open_command **place = place_of(command->about.id);
    command->next = *place;
    *place = command;
    command_count++;
    if (command->about.is_node)
        return;
    cld_flow(packets, record->time, track, 's', "enqueue", command->about.id);
    count_depth(packets, command->queue, record->time, 1);
}

static void begin_slice(struct cld_packets *packets, struct open_command *command, uint64_t time) {
    const struct cld_command_record *about = &command->about;
    command->lane = take_lane(packets, command, time);
    command->started = time;
    uint64_t track = lane_track(command->queue, command->lane);
    struct cld_track_event event =
        cld_track_event_begin(packets, time, track, CLD_SLICE_BEGIN, name_of(command));
    const char *type = type_name(command->type);
    cld_argument_text(&event, KEY("command"), type, strlen(type));
    if (about->dimensions) {
        put_sizes(&event, KEY("global_size"), about->global_size, about->dimensions);
        put_sizes(&event, KEY("local_size as executed"), about->local_size, about->dimensions);
    }
    if (about->bytes)
        cld_argument_number(&event, KEY("bytes"), (int64_t)about->bytes);
    if (about->mem_bytes)
        cld_argument_number(&event, KEY("bytes of memory objects"), (int64_t)about->mem_bytes);
    if (!about->is_node) {
        cld_argument_number(&event, KEY("queued"), (int64_t)command->queued);
        cld_argument_number(&event, KEY("submitted"), (int64_t)command->submitted);
    }
    cld_track_event_end(&event);
    if (!about->is_node)
        cld_flow(packets, time, track, 'f', "enqueue", about->id);
    for (uint32_t i = 0; i < command->wait_count; i++)
        cld_flow(packets, time, track, 'f', "dependency", command->waits[i]);
    if (about->has_event)
        cld_flow(packets, time, track, 's', "dependency", about->id);
}

static void ended(struct cld_packets *packets, const struct cld_record *record) {
    struct open_command **place = place_of(record->body[0]);
    struct open_command *command = place ? *place : NULL;
    if (!command)
        return;
    if (!command->started)
        begin_slice(packets, command, record->time);
    struct queue *queue = command->queue;
    struct cld_track_event event =
        cld_track_event_begin(packets, record->time, lane_track(queue, command->lane), CLD_SLICE_END, 0);
    if (record->value < 0) {
        const char *error = cld_error_name(record->value);
        cld_argument_text(&event, KEY("error"), error, strlen(error));
    }
    cld_track_event_end(&event);
    queue->is_busy[command->lane] = false;
    queue->ends[command->lane] = record->time;
    if (!command->about.is_node)
        count_depth(packets, queue, record->time, -1);
    if (command->about.bytes && record->time > command->started) {
        double time = (double)(record->time - command->started);
        uint64_t track = lane_track(queue, BANDWIDTH_LANE);
        cld_counter(packets, command->started, track, (double)command->about.bytes / time);
        cld_counter(packets, record->time, track, 0);
    }
    *place = command->next;
    command_count--;
    free(command);
}

static void joined(struct cld_packets *packets, uint64_t track, const struct cld_record *record) {
    const struct open_command *command = find(record->body[0]);
    struct cld_track_event event = cld_track_event_begin(
        packets, record->time, track, CLD_SLICE_BEGIN,
        command ? name_of(command) : cld_name_of_literal(CLD_EVENT_NAME, KEY("command")));
    if (command)
        cld_argument_number(&event, KEY("queue"), command->queue->number + 1);
    cld_track_event_end(&event);
}

static void left(struct cld_packets *packets, uint64_t track, const struct cld_record *record) {
    struct cld_track_event event = cld_track_event_begin(packets, record->time, track, CLD_SLICE_END, 0);
    cld_argument_number(&event, KEY("groups"), (int64_t)record->body[0]);
    cld_argument_number(&event, KEY("pieces"), (int64_t)record->body[1]);
    cld_argument_number(&event, KEY("stolen"), (int64_t)record->body[2]);
    cld_track_event_end(&event);
}

static void elsewhere(struct cld_packets *packets, const struct cld_record *record) {
    struct cld_elsewhere_record about;
    memcpy(&about, record->body, sizeof about);
    const struct open_command *command = find(about.id);
    if (command)
        cld_worker_slice(packets, &about, record->time, name_of(command), command->queue->number + 1);
}

static void bytes(struct cld_packets *packets, const struct cld_record *record) {
    if (!has_bytes)
        cld_track_of_name(packets, cld_track(BYTES_TRACK), "Memory in use", "bytes");
    has_bytes = true;
    cld_counter(packets, record->time, cld_track(BYTES_TRACK), (double)(int64_t)record->body[0]);
}

void cld_encode(struct cld_packets *packets, struct cld_ring *ring, const struct cld_record *record) {
    if (!ring->is_known)
        know(packets, ring);
    uint64_t track = cld_track((uint32_t)ring->thread);
    struct open_command *command;
    switch ((enum cld_record_kind)record->kind) {
    case CLD_RECORD_SKIP:
        return;
    case CLD_RECORD_CALL:
        call(packets, track, record);
        return;
    case CLD_RECORD_RETURN:
        call_returns(packets, track, record);
        return;
    case CLD_RECORD_QUEUED:
        queued(packets, track, record);
        return;
    case CLD_RECORD_SUBMITTED:
        if ((command = find(record->body[0])))
            command->submitted = record->time;
        return;
    case CLD_RECORD_STARTED:
        if ((command = find(record->body[0])))
            begin_slice(packets, command, record->time);
        return;
    case CLD_RECORD_ENDED:
        ended(packets, record);
        return;
    case CLD_RECORD_JOINED:
        joined(packets, track, record);
        return;
    case CLD_RECORD_LEFT:
        left(packets, track, record);
        return;
    case CLD_RECORD_ELSEWHERE:
        elsewhere(packets, record);
        return;
    case CLD_RECORD_BYTES:
        bytes(packets, record);
        return;
    }
}

void cld_encode_process(struct cld_packets *packets) {
    for (size_t i = 0; i < bucket_count; i++)
        while (commands[i]) {
            struct open_command *command = commands[i];
            commands[i] = command->next;
            free(command);
        }
    while (queues) {
        struct queue *queue = queues;
        queues = queue->next;
        free(queue->is_busy);
        free(queue->ends);
        free(queue);
    }
    cld_worker_tracks_clear();
    command_count = 0;
    queue_count = 0;
    has_bytes = false;
    cld_events_process(packets);
}

void cld_encode_lost(struct cld_packets *packets, uint64_t count) {
    static uint64_t lost;
    lost += count;
    cld_track_of_name(packets, cld_track(LOST_TRACK), "Lost records", "records");
    cld_counter(packets, cld_now(), cld_track(LOST_TRACK), (double)lost);
}
