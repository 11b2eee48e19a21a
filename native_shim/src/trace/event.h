/* Events of a trace: one packet each, on a track, with arguments. */
#ifndef CLD_EVENT_H
#define CLD_EVENT_H

#include "trace/packet.h"

enum cld_event_type { CLD_SLICE_BEGIN = 1, CLD_SLICE_END, CLD_INSTANT, CLD_COUNTER };

/* An event in the making. */
struct cld_track_event {
    struct cld_packets *packets;
    size_t packet, event;
};

/* name: its number, of CLD_EVENT_NAME (names.h), 0 for none. */
struct cld_track_event cld_track_event_begin(struct cld_packets *packets, uint64_t time, uint64_t track,
                                             enum cld_event_type type, uint64_t name);
void cld_track_event_end(struct cld_track_event *event);

/* Arguments: a number, one in hexadecimal (an address, bits), a text. size: of the name, which stays where it
 * is, as that of an arrow does. */
void cld_argument_number(struct cld_track_event *event, const char *name, size_t size, int64_t value);
void cld_argument_bits(struct cld_track_event *event, const char *name, size_t size, uint64_t value);
void cld_argument_text(struct cld_track_event *event, const char *name, size_t size, const char *text,
                       size_t text_size);

/* A text of the host's, of CLD_MOST_TEXT bytes or little more, which may be cut off or anything at all; the
 * format wants UTF-8. */
void cld_argument_any_text(struct cld_track_event *event, const char *name, size_t size, const char *text,
                           size_t text_size);

/* An arrow begins ('s') or ends ('f') at what goes on on a track at that time. Of one beginning there may be
 * several ends. name: of the kind of arrow. */
void cld_flow(struct cld_packets *packets, uint64_t time, uint64_t track, char phase, const char *name,
              uint64_t id);

void cld_counter(struct cld_packets *packets, uint64_t time, uint64_t track, double value);

/* A number of a track or arrow that no other process has: kinds have some of the lowest 32 bits each. */
uint64_t cld_track(uint32_t number);

/* The first packets: clocks, and the process. */
void cld_events_process(struct cld_packets *packets);

/* A track for a thread, or another one, below the process, with a name; unit: NULL unless it is a counter's.
 */
void cld_track_of_thread(struct cld_packets *packets, uint64_t track, int32_t thread, const char *name);
void cld_track_of_name(struct cld_packets *packets, uint64_t track, const char *name, const char *unit);

#endif
