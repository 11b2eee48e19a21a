/* Protocol buffers, as far as a trace needs them. */
#include "trace/packet.h"

#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2 };
enum { TAG_SIZE = 10, VARINT_SIZE = 10 /* that are written; the next one begins where it ends */ };

static __attribute__((noinline)) bool make_room(struct cld_packets *packets, size_t size) {
    size_t capacity = 2 * packets->capacity + size + 4096;
    uint8_t *bytes = packets->failed ? NULL : realloc(packets->bytes, capacity);
    packets->failed = !bytes;
    if (packets->failed)
        return false;
    packets->bytes = bytes;
    packets->capacity = capacity;
    return true;
}

/* Where so many bytes may be written next, or NULL. */
static inline uint8_t *grow(struct cld_packets *packets, size_t size) {
    bool has_room = !packets->failed && packets->capacity - packets->size >= size;
    return __builtin_expect(has_room, 1) || make_room(packets, size) ? packets->bytes + packets->size : NULL;
}

static inline void advance(struct cld_packets *packets, const uint8_t *to) {
    packets->size = (size_t)(to - packets->bytes);
}

/* Seven bits of each of the eight bytes: the lowest 56 bits. In three steps of halves rather than by bytes:
 * most numbers here are times and ids, and how many bytes the next one has is not to be guessed. */
static inline uint64_t spread(uint64_t value) {
    value = (value & 0x000000000fffffff) | (value & 0x00fffffff0000000) << 4;
    value = (value & 0x00003fff00003fff) | (value & 0x0fffc0000fffc000) << 2;
    return (value & 0x007f007f007f007f) | (value & 0x3f803f803f803f80) << 1;
}

/* Writes up to VARINT_SIZE bytes, of which those before what it returns count. */
static inline uint8_t *put_varint(uint8_t *at, uint64_t value) {
    if (value < 0x80) {
        *at = (uint8_t)value;
        return at + 1;
    }
    const uint64_t more = 0x8080808080808080; /* in each byte: another one follows */
    uint64_t bytes = spread(value);
    if (value >> 56) {
        bytes |= more;
        memcpy(at, &bytes, sizeof bytes);
        at[8] = (uint8_t)(value >> 56); /* its highest bit is set where there is a tenth byte */
        at[9] = 1;
        return at + 9 + (value >> 63);
    }
    unsigned last = (63 - (unsigned)__builtin_clzll(value)) / 7;
    bytes |= more & ((UINT64_C(1) << 8 * last) - 1);
    memcpy(at, &bytes, sizeof bytes);
    return at + last + 1;
}

static inline uint8_t *put_tag(uint8_t *at, uint32_t field, unsigned type) {
    return put_varint(at, field << 3 | type);
}

void cld_packet_varint(struct cld_packets *packets, uint32_t field, uint64_t value) {
    uint8_t *at = grow(packets, TAG_SIZE + VARINT_SIZE);
    if (at)
        advance(packets, put_varint(put_tag(at, field, VARINT), value));
}

void cld_packet_fixed64(struct cld_packets *packets, uint32_t field, uint64_t value) {
    uint8_t *at = grow(packets, TAG_SIZE + sizeof value);
    if (!at)
        return;
    at = put_tag(at, field, FIXED64);
    memcpy(at, &value, sizeof value); /* little-endian, as all machines of the driver's */
    advance(packets, at + sizeof value);
}

void cld_packet_double(struct cld_packets *packets, uint32_t field, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    cld_packet_fixed64(packets, field, bits);
}

void cld_packet_bytes(struct cld_packets *packets, uint32_t field, const void *bytes, size_t size) {
    uint8_t *at = grow(packets, TAG_SIZE + VARINT_SIZE + size);
    if (!at)
        return;
    at = put_varint(put_tag(at, field, LENGTH), size);
    memcpy(at, bytes, size);
    advance(packets, at + size);
}

void cld_packet_append(struct cld_packets *packets, const struct cld_packets *fields) {
    uint8_t *at = grow(packets, fields->size);
    if (!at || fields->failed)
        return;
    memcpy(at, fields->bytes, fields->size);
    advance(packets, at + fields->size);
}

void cld_packet_string(struct cld_packets *packets, uint32_t field, const char *text) {
    cld_packet_bytes(packets, field, text, strlen(text));
}

/* One byte for the length: most messages are short. */
size_t cld_packet_begin(struct cld_packets *packets, uint32_t field) {
    uint8_t *at = grow(packets, TAG_SIZE + 1);
    if (at)
        advance(packets, put_tag(at, field, LENGTH) + 1);
    return packets->size;
}

void cld_packet_end(struct cld_packets *packets, size_t place) {
    size_t content = packets->size - place;
    if (content < 0x80 && !packets->failed) {
        packets->bytes[place - 1] = (uint8_t)content;
        return;
    }
    if (!grow(packets, VARINT_SIZE))
        return;
    uint8_t length[VARINT_SIZE], *start = packets->bytes + place;
    size_t size = (size_t)(put_varint(length, content) - length);
    memmove(start + size - 1, start, content);
    memcpy(start - 1, length, size);
    packets->size += size - 1;
}
