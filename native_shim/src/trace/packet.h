/* Packets of Perfetto's trace format: protocol buffers, written by hand (protos/perfetto/trace of Perfetto
 * has the numbers of the fields). A trace is a sequence of packets, so a file that ends early has all that
 * came before, and files that are put together, or written to by several processes, are one. */
#ifndef CLD_PACKET_H
#define CLD_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cld_packets {
    uint8_t *bytes;
    size_t size, capacity;
    bool failed; /* no memory: what was not written is lost */
};

void cld_packet_varint(struct cld_packets *packets, uint32_t field, uint64_t value);
void cld_packet_fixed64(struct cld_packets *packets, uint32_t field, uint64_t value);
void cld_packet_double(struct cld_packets *packets, uint32_t field, double value);
void cld_packet_bytes(struct cld_packets *packets, uint32_t field, const void *bytes, size_t size);
void cld_packet_string(struct cld_packets *packets, uint32_t field, const char *text);

/* Fields that were written before. */
void cld_packet_append(struct cld_packets *packets, const struct cld_packets *fields);

/* A message in a field: what is written in between. */
size_t cld_packet_begin(struct cld_packets *packets, uint32_t field);
void cld_packet_end(struct cld_packets *packets, size_t place);

#endif
