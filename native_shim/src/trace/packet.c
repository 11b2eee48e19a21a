/* Protocol buffers, as far as a trace needs them. */
#include "trace/packet.h"

#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2 };

static uint8_t *grow(struct cld_packets *packets, size_t size) {
    if (packets->failed)
        return NULL;
    if (packets->capacity - packets->size < size) {
        size_t capacity = 2 * packets->capacity + size + 4096;
        uint8_t *bytes = realloc(packets->bytes, capacity);
        if (!bytes) {
            packets->failed = true;
            return NULL;
        }
        packets->bytes = bytes;
        packets->capacity = capacity;
    }
    return packets->bytes + packets->size;
}

static size_t put_varint(uint8_t *at, uint64_t value) {
    size_t size = 0;
    for (; value >= 0x80; value >>= 7)
        at[size++] = (uint8_t)(value | 0x80);
    at[size++] = (uint8_t)value;
    return size;
}

static void put_tag(struct cld_packets *packets, uint32_t field, unsigned type) {
    uint8_t *at = grow(packets, 5);
    if (at)
        packets->size += put_varint(at, field << 3 | type);
}

void cld_packet_varint(struct cld_packets *packets, uint32_t field, uint64_t value) {
    put_tag(packets, field, VARINT);
    uint8_t *at = grow(packets, 10);
    if (at)
        packets->size += put_varint(at, value);
}

void cld_packet_fixed64(struct cld_packets *packets, uint32_t field, uint64_t value) {
    put_tag(packets, field, FIXED64);
    uint8_t *at = grow(packets, sizeof value);
    if (!at)
        return;
    memcpy(at, &value, sizeof value); /* little-endian, as all machines of the driver's */
    packets->size += sizeof value;
}

void cld_packet_double(struct cld_packets *packets, uint32_t field, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    cld_packet_fixed64(packets, field, bits);
}

void cld_packet_bytes(struct cld_packets *packets, uint32_t field, const void *bytes, size_t size) {
    size_t place = cld_packet_begin(packets, field);
    uint8_t *at = grow(packets, size);
    if (at) {
        memcpy(at, bytes, size);
        packets->size += size;
    }
    cld_packet_end(packets, place);
}

void cld_packet_string(struct cld_packets *packets, uint32_t field, const char *text) {
    cld_packet_bytes(packets, field, text, strlen(text));
}

/* One byte for the length: most messages are short. */
size_t cld_packet_begin(struct cld_packets *packets, uint32_t field) {
    put_tag(packets, field, LENGTH);
    if (grow(packets, 1))
        packets->size++;
    return packets->size;
}

void cld_packet_end(struct cld_packets *packets, size_t place) {
    uint8_t length[10];
    size_t content = packets->size - place, size = put_varint(length, content);
    if (!grow(packets, size))
        return;
    uint8_t *start = packets->bytes + place;
    if (size > 1)
        memmove(start + size - 1, start, content);
    memcpy(start - 1, length, size);
    packets->size += size - 1;
}
