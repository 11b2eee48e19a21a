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
 * cl_driver/door/codec.py is the same in Python, and cl_driver/wire.py has more types. */
struct cld_msg {
    uint8_t *data;
    size_t size, capacity;
    size_t at;   /* of the reader */
    bool failed; /* out of memory while writing, or malformed while reading: sticky */
};

/* An empty message to write; frees what it has, and leaves it empty. */
void cld_msg_init(struct cld_msg *msg);
void cld_msg_free(struct cld_msg *msg);

/* size more bytes at the end; NULL: out of memory. */
void *cld_msg_grow(struct cld_msg *msg, size_t size);

/* Each appends a value, unless the message has failed. NULL as a string is written as none; a list is count
 * values, which follow. */
void cld_put_int(struct cld_msg *msg, int64_t value);
void cld_put_bytes(struct cld_msg *msg, const void *bytes, size_t size);
void cld_put_string(struct cld_msg *msg, const char *string);
void cld_put_list(struct cld_msg *msg, uint32_t count);
void cld_put_none(struct cld_msg *msg);

/* True, and past it, if the next value is none. */
bool cld_get_none(struct cld_msg *msg);

/* Each reads the next value: 0, NULL or no bytes, and the message has failed, if it is of another type or
 * cut off. Bytes point into the message; of a list this is the number of values, to be read next. */
int64_t cld_get_int(struct cld_msg *msg);
const void *cld_get_bytes(struct cld_msg *msg, size_t *size);
uint32_t cld_get_list(struct cld_msg *msg);

#endif
