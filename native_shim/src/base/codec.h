/* Messages between the planes: plain data only. */
#ifndef CLD_CODEC_H
#define CLD_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing byte buffer that holds a message. A message is a sequence of values, each a tag byte and its
 * content, little endian and unaligned:
 *   'i' int64          integers, enums, flags, keys, sizes (unsigned 64-bit ones by their bits)
 *   'b' uint64 n, n bytes   strings without a final NUL, binaries, values of info queries
 *   'l' uint32 n, n values  lists
 *   'n'                none (a NULL pointer where that differs from empty)
 * cl_driver/door/codec.py is the same in Python. */
struct cld_msg {
    uint8_t *data;
    size_t size, capacity;
    size_t at;   /* of the reader */
    bool failed; /* out of memory while writing, or malformed while reading: sticky */
};

void cld_msg_init(struct cld_msg *msg);
void cld_msg_free(struct cld_msg *msg);
void *cld_msg_grow(struct cld_msg *msg, size_t size); /* size more bytes at the end; NULL: out of memory */
void cld_put_int(struct cld_msg *msg, int64_t value);
void cld_put_bytes(struct cld_msg *msg, const void *bytes, size_t size);
void cld_put_string(struct cld_msg *msg, const char *string); /* NULL is written as none */
void cld_put_list(struct cld_msg *msg, uint32_t count);       /* count values follow */
void cld_put_none(struct cld_msg *msg);

bool cld_get_none(struct cld_msg *msg); /* true, and past it, if the next value is none */
int64_t cld_get_int(struct cld_msg *msg);
const void *cld_get_bytes(struct cld_msg *msg, size_t *size); /* points into the message */
uint32_t cld_get_list(struct cld_msg *msg);

#endif
