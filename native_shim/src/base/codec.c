/* Messages of the door: writing and reading values. cl_driver/door/codec.py is the same in Python. */
#include <stdlib.h>
#include <string.h>

#include "base/codec.h"

void cld_msg_init(struct cld_msg *msg) {
    memset(msg, 0, sizeof *msg);
}

void cld_msg_free(struct cld_msg *msg) {
    free(msg->data);
    cld_msg_init(msg);
}

void *cld_msg_grow(struct cld_msg *msg, size_t size) {
    if (msg->failed || size > SIZE_MAX / 2 - msg->size) {
        msg->failed = true;
        return NULL;
    }
    if (msg->capacity - msg->size < size) {
        size_t capacity = msg->capacity ? msg->capacity : 256;
        while (capacity - msg->size < size)
            capacity *= 2;
        uint8_t *data = realloc(msg->data, capacity);
        if (!data) {
            msg->failed = true;
            return NULL;
        }
        msg->data = data;
        msg->capacity = capacity;
    }
    void *place = msg->data + msg->size;
    msg->size += size;
    return place;
}

static void put(struct cld_msg *msg, char tag, const void *head, size_t head_size, const void *body,
                size_t body_size) {
    uint8_t *place = body_size < SIZE_MAX / 4 ? cld_msg_grow(msg, 1 + head_size + body_size) : NULL;
    if (!place) {
        msg->failed = true;
        return;
    }
    place[0] = (uint8_t)tag;
    if (head_size)
        memcpy(place + 1, head, head_size);
    if (body_size)
        memcpy(place + 1 + head_size, body, body_size);
}

void cld_put_int(struct cld_msg *msg, int64_t value) {
    put(msg, 'i', &value, sizeof value, NULL, 0);
}

void cld_put_bytes(struct cld_msg *msg, const void *bytes, size_t size) {
    uint64_t count = size;
    put(msg, 'b', &count, sizeof count, bytes, size);
}

void cld_put_string(struct cld_msg *msg, const char *string) {
    if (string)
        cld_put_bytes(msg, string, strlen(string));
    else
        cld_put_none(msg);
}

void cld_put_list(struct cld_msg *msg, uint32_t count) {
    put(msg, 'l', &count, sizeof count, NULL, 0);
}

void cld_put_none(struct cld_msg *msg) {
    put(msg, 'n', NULL, 0, NULL, 0);
}

/* The next size bytes, or NULL past the end. */
static const void *take(struct cld_msg *msg, size_t size) {
    if (msg->failed || size > msg->size - msg->at) {
        msg->failed = true;
        return NULL;
    }
    const void *place = msg->data + msg->at;
    msg->at += size;
    return place;
}

/* Past the tag and a fixed-size head of the next value, copied to head; all or nothing. */
static bool take_head(struct cld_msg *msg, char tag, void *head, size_t size) {
    const uint8_t *place = take(msg, 1 + size);
    if (!place)
        return false;
    if (place[0] != (uint8_t)tag) {
        msg->failed = true;
        return false;
    }
    memcpy(head, place + 1, size);
    return true;
}

bool cld_get_none(struct cld_msg *msg) {
    if (msg->failed || msg->at >= msg->size || msg->data[msg->at] != 'n')
        return false;
    msg->at++;
    return true;
}

int64_t cld_get_int(struct cld_msg *msg) {
    int64_t value;
    return take_head(msg, 'i', &value, sizeof value) ? value : 0;
}

const void *cld_get_bytes(struct cld_msg *msg, size_t *size) {
    uint64_t count;
    *size = 0;
    if (!take_head(msg, 'b', &count, sizeof count))
        return NULL;
    if (count > SIZE_MAX) {
        msg->failed = true;
        return NULL;
    }
    const void *bytes = take(msg, (size_t)count);
    *size = bytes ? (size_t)count : 0;
    return bytes;
}

uint32_t cld_get_list(struct cld_msg *msg) {
    uint32_t count;
    return take_head(msg, 'l', &count, sizeof count) ? count : 0;
}
