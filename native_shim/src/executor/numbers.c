/* Tables of things by number. */
#include <stdlib.h>

#include "executor/internal.h"

enum { FIRST_BUCKETS = 64 };

static struct cld_numbered **place_of(const struct cld_numbers *numbers, uint64_t number) {
    struct cld_numbered **link = &numbers->buckets[number & (numbers->bucket_count - 1)];
    while (*link && (*link)->number != number)
        link = &(*link)->next;
    return link;
}

static bool grow(struct cld_numbers *numbers) {
    struct cld_numbers larger = {.bucket_count =
                                     numbers->bucket_count ? 2 * numbers->bucket_count : FIRST_BUCKETS};
    larger.buckets = calloc(larger.bucket_count, sizeof *larger.buckets);
    if (!larger.buckets)
        return numbers->bucket_count > 0; /* slower, and right */
    for (uint64_t i = 0; i < numbers->bucket_count; i++)
        for (struct cld_numbered *thing = numbers->buckets[i], *next; thing; thing = next) {
            next = thing->next;
            struct cld_numbered **bucket = &larger.buckets[thing->number & (larger.bucket_count - 1)];
            thing->next = *bucket;
            *bucket = thing;
        }
    larger.count = numbers->count;
    free(numbers->buckets);
    *numbers = larger;
    return true;
}

bool cld_numbers_add(struct cld_numbers *numbers, struct cld_numbered *thing, uint64_t number) {
    if (numbers->count >= numbers->bucket_count && !grow(numbers))
        return false;
    thing->number = number;
    struct cld_numbered **place = place_of(numbers, number);
    if (*place)
        return false;
    thing->next = NULL;
    *place = thing;
    numbers->count++;
    return true;
}

void *cld_numbers_find(const struct cld_numbers *numbers, uint64_t number) {
    return numbers->bucket_count ? *place_of(numbers, number) : NULL;
}

void *cld_numbers_take(struct cld_numbers *numbers, uint64_t number) {
    if (!numbers->bucket_count)
        return NULL;
    struct cld_numbered **place = place_of(numbers, number), *thing = *place;
    if (thing) {
        *place = thing->next;
        numbers->count--;
    }
    return thing;
}

void *cld_numbers_any(struct cld_numbers *numbers) {
    for (uint64_t i = 0; numbers->count && i < numbers->bucket_count; i++)
        if (numbers->buckets[i])
            return cld_numbers_take(numbers, numbers->buckets[i]->number);
    return NULL;
}

void cld_numbers_free(struct cld_numbers *numbers) {
    free(numbers->buckets);
    *numbers = (struct cld_numbers){0};
}
