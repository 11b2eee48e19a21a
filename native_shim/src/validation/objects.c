/* What the program has made: where, and what it has released or left over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "validation/validation.h"

enum { BUCKETS = 1 << 14, MOST_RELEASED = 1 << 15 };

static struct known *buckets[BUCKETS];
static uint64_t number;
static size_t memories; /* CLD_DEAD ones that live: few programs have any */
/* The released ones, the oldest first: handles are not used again so soon (cld_object_hold_back). */
static uintptr_t released[MOST_RELEASED];
static uint64_t released_count;

static struct known **bucket(uintptr_t handle) {
    uint64_t hash = (uint64_t)handle * UINT64_C(0x9e3779b97f4a7c15);
    return &buckets[hash >> 50];
}

struct known *object_find(uintptr_t handle) {
    for (struct known *known = *bucket(handle); known; known = known->next)
        if (known->handle == handle)
            return known;
    return NULL;
}

static void forget_samplers(struct known *known) {
    while (known->samplers) {
        struct sampler_argument *sampler = known->samplers;
        known->samplers = sampler->next;
        free(sampler);
    }
}

static void forget(uintptr_t handle) {
    for (struct known **link = bucket(handle); *link; link = &(*link)->next)
        if ((*link)->handle == handle) {
            struct known *known = *link;
            *link = known->next;
            memories -= known->kind == CLD_DEAD && !known->released.number;
            object_forget_uses(known);
            forget_samplers(known);
            free(known);
            return;
        }
}

struct known *object_made(uintptr_t handle, enum cld_kind kind, const struct place *place, size_t size) {
    forget(handle);
    struct known *known = calloc(1, sizeof *known);
    if (!known)
        return NULL;
    struct known **head = bucket(handle);
    *known = (struct known){
        .next = *head, .handle = handle, .kind = kind, .number = ++number, .size = size, .made = *place};
    *head = known;
    memories += kind == CLD_DEAD;
    return known;
}

void object_released(struct known *known, const struct place *place) {
    memories -= known->kind == CLD_DEAD && !known->released.number;
    known->released = *place;
    uintptr_t *slot = &released[released_count++ % MOST_RELEASED];
    struct known *oldest = *slot ? object_find(*slot) : NULL;
    if (oldest && oldest != known && oldest->released.number)
        forget(*slot);
    *slot = known->handle;
}

void object_each(void (*visit)(struct known *known, void *argument), void *argument) {
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct known *known = buckets[i]; known; known = known->next)
            if (!known->released.number)
                visit(known, argument);
}

static struct known *find_memory(uintptr_t address, size_t size, bool is_freed) {
    struct known *found = NULL;
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct known *known = buckets[i]; known; known = known->next)
            if (known->kind == CLD_DEAD && !known->released.number == !is_freed &&
                known->handle < address + size && address < known->handle + known->size &&
                (!found || known->number > found->number))
                found = known;
    return found;
}

struct known *object_find_memory(uintptr_t address, size_t size) {
    return memories ? find_memory(address, size ? size : 1, false) : NULL;
}

struct known *object_find_freed(uintptr_t address) {
    return cld_kcheck_is_freed((const void *)address) ? find_memory(address, 1, true) : NULL;
}

struct known *object_root(const struct cld_mem *mem) {
    while (mem->parent)
        mem = mem->parent;
    return object_find((uintptr_t)mem);
}

static const char *noun(const struct known *known) {
    const struct cld_mem *mem =
        known->kind == CLD_MEM ? cld_object_check((const void *)known->handle, CLD_MEM) : NULL;
    if (known->kind == CLD_DEAD)
        return strstr(known->made.call, "SVM") ? "an SVM allocation" : "a USM allocation";
    if (strstr(known->made.call, "Image") || (mem && mem->image))
        return "an image";
    if (known->kind == CLD_MEM)
        return strstr(known->made.call, "Pipe") ? "a pipe" : "a buffer";
    return cld_kind_name(known->kind);
}

void object_describe(struct message *message, const struct known *known) {
    message_add(message, "%s", noun(known));
    if (*known->name)
        message_add(message, " '%s'", known->name);
    if (known->size)
        message_add(message, " of %zu bytes", known->size);
    message_add(message, " (%p)", (void *)known->handle);
}

/* What is left over, sorted. */
static int by_number(const void *a, const void *b) {
    const struct known *x = *(struct known *const *)a, *y = *(struct known *const *)b;
    return x->number < y->number ? -1 : x->number > y->number;
}

struct left_over {
    struct known **list;
    size_t count, room;
};

static void add_left_over(struct known *known, void *argument) {
    struct left_over *left = argument;
    if (known->kind != CLD_DEAD) {
        const struct cld_object *object = cld_object_check((const void *)known->handle, known->kind);
        if (!object || !cld_object_refs(object))
            return;
    }
    if (left->count == left->room) {
        size_t room = left->room ? 2 * left->room : 64;
        struct known **list = realloc(left->list, room * sizeof *list);
        if (!list)
            return;
        left->list = list;
        left->room = room;
    }
    left->list[left->count++] = known;
}

void objects_report_left_over(void) {
    enum { MOST_LISTED = 40 };
    struct left_over left = {0};
    object_each(add_left_over, &left);
    if (!left.count)
        return;
    qsort(left.list, left.count, sizeof *left.list, by_number);
    struct place nowhere = {.call = "left over at exit"};
    struct message message;
    if (message_begin(&message, "left over", &nowhere, 0)) {
        message_add(&message, "%zu object%s", left.count, left.count > 1 ? "s" : "");
        message_end(&message);
    }
    /* Those that were made at the same place are one line. */
    for (size_t i = 0, listed = 0; i < left.count && listed < MOST_LISTED; i++) {
        struct known *first = left.list[i];
        if (!first)
            continue;
        size_t count = 1, bytes = first->size;
        for (size_t k = i + 1; k < left.count; k++)
            if (left.list[k] && left.list[k]->made.caller == first->made.caller &&
                !strcmp(left.list[k]->made.call, first->made.call) &&
                !strcmp(left.list[k]->name, first->name)) {
                count++;
                bytes += left.list[k]->size;
                left.list[k] = NULL;
            }
        message.size = 0;
        message_add(&message, "  ");
        object_describe(&message, first);
        if (count > 1)
            message_add(&message, " and %zu more", count - 1);
        if (count > 1 && bytes)
            message_add(&message, ", %zu bytes in all", bytes);
        message_add_place(&message, "  made by", &first->made);
        message_end(&message);
        listed++;
    }
    free(left.list);
}
