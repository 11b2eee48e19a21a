/* Records to packets, in the order of time. All with the writer's lock held. */
#ifndef CLD_ENCODE_H
#define CLD_ENCODE_H

#include "trace/packet.h"
#include "trace/ring.h"

/* The first packets of a process: what follows depends on nothing that came before. */
void cld_encode_process(struct cld_packets *packets);

void cld_encode(struct cld_packets *packets, struct cld_ring *ring, const struct cld_record *record);

/* So many records were lost up to now. */
void cld_encode_lost(struct cld_packets *packets, uint64_t count);

#endif
