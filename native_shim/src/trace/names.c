/* Strings by number. */
#include "trace/names.h"

#include <stdlib.h>
#include <string.h>

enum { INTERNED_DATA = 12, IID = 1, NAME = 2, BUCKETS = 1024, MOST_NAMES = 1 << 16 };

struct name {
    struct name *next, *next_new;
    uint64_t number;
    unsigned field;
    size_t size;
    char text[];
};

static struct name *buckets[BUCKETS], *new_names;
static uint64_t count;

uint64_t cld_name(unsigned field, const char *text, size_t size) {
    uint64_t hash = field;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3u;
    struct name **bucket = &buckets[(hash ^ hash >> 32) % BUCKETS];
    for (const struct name *name = *bucket; name; name = name->next)
        if (name->field == field && name->size == size && !memcmp(name->text, text, size))
            return name->number;
    struct name *name = count < MOST_NAMES ? malloc(sizeof *name + size) : NULL;
    if (!name)
        return 0;
    *name = (struct name){*bucket, new_names, ++count, field, size};
    memcpy(name->text, text, size);
    *bucket = new_names = name;
    return name->number;
}

void cld_names_write(struct cld_packets *packets) {
    if (!new_names)
        return;
    size_t place = cld_packet_begin(packets, INTERNED_DATA);
    for (const struct name *name = new_names; name; name = name->next_new) {
        size_t entry = cld_packet_begin(packets, name->field);
        cld_packet_varint(packets, IID, name->number);
        cld_packet_bytes(packets, NAME, name->text, name->size);
        cld_packet_end(packets, entry);
    }
    cld_packet_end(packets, place);
    new_names = NULL;
}

void cld_names_clear(void) {
    for (size_t i = 0; i < BUCKETS; i++)
        while (buckets[i]) {
            struct name *name = buckets[i];
            buckets[i] = name->next;
            free(name);
        }
    new_names = NULL;
    count = 0;
}
