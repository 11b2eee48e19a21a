/* Tracks of the workers of a cluster. A worker executes one launch after the other, and their times say so.
 */
#include "trace/worker_tracks.h"

#include <stdio.h>

#include "base/worker_set.h"
#include "trace/event.h"

/* For cld_track: above all numbers of threads (PID_MAX_LIMIT of Linux), below those of queues (encode.c). */
enum { WORKER_TRACKS = 1 << 22 };

static struct cld_worker_set known; /* that the file has tracks of */

void cld_worker_slice(struct cld_packets *packets, const struct cld_elsewhere_record *about, uint64_t start,
                      uint64_t name, uint32_t queue) {
    uint32_t number = (uint32_t)about->number;
    if (number >= CLD_MOST_WORKERS)
        return;
    uint64_t track = cld_track(WORKER_TRACKS + number);
    if (!cld_set_has(&known, number)) {
        char text[CLD_MOST_TEXT];
        snprintf(text, sizeof text, "Worker %u (%s)", number + 1, (const char *)(uintptr_t)about->name);
        cld_track_of_name(packets, track, text, NULL);
        cld_set_add(&known, number);
    }
    struct cld_track_event event = cld_track_event_begin(packets, start, track, CLD_SLICE_BEGIN, name);
    cld_argument_number(&event, "queue", sizeof "queue" - 1, queue);
    cld_track_event_end(&event);
    event = cld_track_event_begin(packets, about->end, track, CLD_SLICE_END, 0);
    cld_track_event_end(&event);
}

void cld_worker_tracks_clear(void) {
    known = (struct cld_worker_set){0};
}
