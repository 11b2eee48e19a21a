/* Events, tracks and clocks as packets; the numbers are those of Perfetto's fields. */
#define _GNU_SOURCE
#include "trace/event.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "trace/command_record.h"
#include "trace/names.h"

enum { PACKET = 1 };
enum {
    CLOCK_SNAPSHOT = 6,
    TIMESTAMP = 8,
    SEQUENCE = 10,
    TRACK_EVENT = 11,
    SEQUENCE_FLAGS = 13,
    CLOCK_ID = 58,
    DEFAULTS = 59,
    TRACK_DESCRIPTOR = 60,
    FIRST_PACKET = 87,
};
enum { STATE_CLEARED = 1, NEEDS_STATE = 2 };
enum { ARGUMENT = 4, LEGACY_EVENT = 6, TYPE = 9, NAME_NUMBER = 10, TRACK = 11, DOUBLE_VALUE = 44 };
enum { ARGUMENT_NAME = 1, INT_VALUE = 4, POINTER_VALUE = 7, TEXT_NUMBER = 17 };
enum { PHASE = 2, UNSCOPED_ID = 6, BIND_TO_ENCLOSING = 12 };
enum { UUID = 1, TRACK_NAME = 2, PROCESS = 3, THREAD = 4, PARENT = 5, COUNTER = 8 };
enum { PID = 1, TID = 2, THREAD_NAME = 5, PROCESS_NAME = 6, UNIT_NAME = 6, UNIT = 3, SIZE_BYTES = 3 };
enum { MONOTONIC = 3, BOOTTIME = 6 };

static uint32_t sequence;        /* of this process */
static struct cld_packets usual; /* what packets have of it */
static int32_t process;

/* Of packets that refer to names by number. Times are of the clock that the defaults name. */
static size_t begin_packet(struct cld_packets *packets, uint64_t time) {
    size_t packet = cld_packet_begin(packets, PACKET);
    if (time)
        cld_packet_varint(packets, TIMESTAMP, time);
    cld_packet_append(packets, &usual);
    return packet;
}

struct cld_track_event cld_track_event_begin(struct cld_packets *packets, uint64_t time, uint64_t track,
                                             enum cld_event_type type, uint64_t name) {
    struct cld_track_event event = {.packets = packets};
    event.packet = begin_packet(packets, time);
    event.event = cld_packet_begin(packets, TRACK_EVENT);
    cld_packet_varint(packets, TYPE, type);
    cld_packet_varint(packets, TRACK, track);
    if (name)
        cld_packet_varint(packets, NAME_NUMBER, name);
    return event;
}

void cld_track_event_end(struct cld_track_event *event) {
    cld_packet_end(event->packets, event->event);
    cld_names_write(event->packets);
    cld_packet_end(event->packets, event->packet);
}

static size_t begin_argument(struct cld_track_event *event, const char *name, size_t size) {
    size_t place = cld_packet_begin(event->packets, ARGUMENT);
    cld_packet_varint(event->packets, ARGUMENT_NAME, cld_name_of_literal(CLD_ARGUMENT_NAME, name, size));
    return place;
}

void cld_argument_number(struct cld_track_event *event, const char *name, size_t size, int64_t value) {
    size_t place = begin_argument(event, name, size);
    cld_packet_varint(event->packets, INT_VALUE, (uint64_t)value);
    cld_packet_end(event->packets, place);
}

void cld_argument_bits(struct cld_track_event *event, const char *name, size_t size, uint64_t value) {
    size_t place = begin_argument(event, name, size);
    cld_packet_varint(event->packets, POINTER_VALUE, value);
    cld_packet_end(event->packets, place);
}

void cld_argument_text(struct cld_track_event *event, const char *name, size_t size, const char *text,
                       size_t text_size) {
    size_t place = begin_argument(event, name, size);
    cld_packet_varint(event->packets, TEXT_NUMBER, cld_name(CLD_TEXT, text, text_size));
    cld_packet_end(event->packets, place);
}

/* Bytes of the sequence of UTF-8 that text begins with; 0 where it begins with none. */
static size_t utf8_length(const unsigned char *text, size_t size) {
    unsigned first = text[0];
    size_t length = first < 0x80   ? 1
                    : first < 0xc2 ? 0
                    : first < 0xe0 ? 2
                    : first < 0xf0 ? 3
                    : first < 0xf5 ? 4
                                   : 0;
    if (length > size)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    bool is_wrong = (first == 0xe0 && text[1] < 0xa0) || (first == 0xed && text[1] > 0x9f) ||
                    (first == 0xf0 && text[1] < 0x90) || (first == 0xf4 && text[1] > 0x8f);
    return is_wrong ? 0 : length;
}

void cld_argument_any_text(struct cld_track_event *event, const char *name, size_t size, const char *text,
                           size_t text_size) {
    char good[CLD_MOST_TEXT + 40];
    size_t count = text_size < sizeof good ? text_size : sizeof good;
    memcpy(good, text, count);
    for (size_t i = 0; i < count;) {
        size_t length = utf8_length((const unsigned char *)good + i, count - i);
        if (!length)
            good[i] = '?';
        i += length ? length : 1;
    }
    cld_argument_text(event, name, size, good, count);
}

void cld_flow(struct cld_packets *packets, uint64_t time, uint64_t track, char phase, const char *name,
              uint64_t id) {
    size_t packet = begin_packet(packets, time);
    size_t event = cld_packet_begin(packets, TRACK_EVENT);
    cld_packet_varint(packets, TRACK, track);
    cld_packet_varint(packets, NAME_NUMBER, cld_name_of_literal(CLD_EVENT_NAME, name, strlen(name)));
    size_t legacy = cld_packet_begin(packets, LEGACY_EVENT);
    cld_packet_varint(packets, PHASE, (uint64_t)phase);
    cld_packet_varint(packets, UNSCOPED_ID, id);
    if (phase == 'f')
        cld_packet_varint(packets, BIND_TO_ENCLOSING, 1);
    cld_packet_end(packets, legacy);
    cld_packet_end(packets, event);
    cld_names_write(packets);
    cld_packet_end(packets, packet);
}

void cld_counter(struct cld_packets *packets, uint64_t time, uint64_t track, double value) {
    struct cld_track_event event = cld_track_event_begin(packets, time, track, CLD_COUNTER, 0);
    cld_packet_double(packets, DOUBLE_VALUE, value);
    cld_track_event_end(&event);
}

/* Fewer than 53 bits, so that JavaScript's numbers hold them. */
uint64_t cld_track(uint32_t number) {
    return (uint64_t)(sequence >> 12) << 32 | number;
}

static uint64_t clock_now(clockid_t clock) {
    struct timespec now = {0};
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void put_clock(struct cld_packets *packets, unsigned number, uint64_t time) {
    size_t place = cld_packet_begin(packets, 1);
    cld_packet_varint(packets, 1, number);
    cld_packet_varint(packets, 2, time);
    cld_packet_end(packets, place);
}

void cld_events_process(struct cld_packets *packets) {
    uint64_t now = clock_now(CLOCK_MONOTONIC);
    process = getpid();
    uint64_t mixed = ((uint64_t)process << 32 ^ now) * 0x9e3779b97f4a7c15u;
    sequence = (uint32_t)(mixed >> 32) | 1;
    cld_names_clear();
    usual.size = 0;
    cld_packet_varint(&usual, SEQUENCE, sequence);
    cld_packet_varint(&usual, SEQUENCE_FLAGS, NEEDS_STATE);

    size_t packet = cld_packet_begin(packets, PACKET);
    cld_packet_varint(packets, SEQUENCE, sequence);
    cld_packet_varint(packets, SEQUENCE_FLAGS, STATE_CLEARED);
    cld_packet_varint(packets, FIRST_PACKET, 1);
    size_t place = cld_packet_begin(packets, DEFAULTS);
    cld_packet_varint(packets, CLOCK_ID, MONOTONIC);
    cld_packet_end(packets, place);
    place = cld_packet_begin(packets, CLOCK_SNAPSHOT);
    put_clock(packets, BOOTTIME, clock_now(CLOCK_BOOTTIME));
    put_clock(packets, MONOTONIC, clock_now(CLOCK_MONOTONIC));
    cld_packet_end(packets, place);
    cld_packet_end(packets, packet);

    packet = begin_packet(packets, 0);
    place = cld_packet_begin(packets, TRACK_DESCRIPTOR);
    cld_packet_varint(packets, UUID, cld_track(0));
    size_t of_process = cld_packet_begin(packets, PROCESS);
    cld_packet_varint(packets, PID, (uint64_t)process);
    cld_packet_string(packets, PROCESS_NAME, program_invocation_short_name);
    cld_packet_end(packets, of_process);
    cld_packet_end(packets, place);
    cld_packet_end(packets, packet);
}

void cld_track_of_thread(struct cld_packets *packets, uint64_t track, int32_t thread, const char *name) {
    size_t packet = begin_packet(packets, 0), place = cld_packet_begin(packets, TRACK_DESCRIPTOR);
    cld_packet_varint(packets, UUID, track);
    cld_packet_varint(packets, PARENT, cld_track(0));
    size_t of_thread = cld_packet_begin(packets, THREAD);
    cld_packet_varint(packets, PID, (uint64_t)process);
    cld_packet_varint(packets, TID, (uint64_t)thread);
    cld_packet_string(packets, THREAD_NAME, name);
    cld_packet_end(packets, of_thread);
    cld_packet_end(packets, place);
    cld_packet_end(packets, packet);
}

void cld_track_of_name(struct cld_packets *packets, uint64_t track, const char *name, const char *unit) {
    size_t packet = begin_packet(packets, 0), place = cld_packet_begin(packets, TRACK_DESCRIPTOR);
    cld_packet_varint(packets, UUID, track);
    cld_packet_varint(packets, PARENT, cld_track(0));
    cld_packet_string(packets, TRACK_NAME, name);
    if (unit) {
        size_t counter = cld_packet_begin(packets, COUNTER);
        if (!strcmp(unit, "bytes"))
            cld_packet_varint(packets, UNIT, SIZE_BYTES);
        else
            cld_packet_string(packets, UNIT_NAME, unit);
        cld_packet_end(packets, counter);
    }
    cld_packet_end(packets, place);
    cld_packet_end(packets, packet);
}
