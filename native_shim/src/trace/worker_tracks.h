/* Tracks of the workers of a cluster: what each of them has executed. */
#ifndef CLD_WORKER_TRACKS_H
#define CLD_WORKER_TRACKS_H

#include "trace/command_record.h"
#include "trace/packet.h"

/* A launch, or a part of one, from start to the end in the record. name: its number, of CLD_EVENT_NAME;
 * queue: as the name of the queue's track has it. */
void cld_worker_slice(struct cld_packets *packets, const struct cld_elsewhere_record *about, uint64_t start,
                      uint64_t name, uint32_t queue);

/* Another process, in whose part of the file there are none yet. */
void cld_worker_tracks_clear(void);

#endif
