/* What the parts of a launch add up by atomics, or combine in another way whose order does not matter: each
 * worker begins with numbers that change nothing, and this machine combines what they come to. */
#include <stdlib.h>
#include <string.h>

#include "cluster/internal.h"
#include "memory/mem.h"

enum { MOST_NUMBER = 8 };

/* The bytes of a number that changes nothing. */
static size_t neutral(int64_t combination, uint8_t number[static MOST_NUMBER]) {
    size_t size = (size_t)combination / 16;
    memset(number, 0, MOST_NUMBER);
    switch (combination % 16) {
    case CLD_COMBINE_AND:
    case CLD_COMBINE_UMIN:
        memset(number, 0xff, size);
        break;
    case CLD_COMBINE_SMIN:
        memset(number, 0xff, size);
        number[size - 1] = 0x7f;
        break;
    case CLD_COMBINE_SMAX:
        number[size - 1] = 0x80;
        break;
    default: /* ADD, OR, XOR, UMAX */
        break;
    }
    return size;
}

#define COMBINE_ALL(TYPE, SIGNED)                                                                            \
    static void combine_##TYPE(int64_t combination, uint8_t *to, const uint8_t *from, size_t size) {         \
        for (size_t at = 0; at + sizeof(TYPE) <= size; at += sizeof(TYPE)) {                                 \
            TYPE a, b;                                                                                       \
            memcpy(&a, to + at, sizeof a);                                                                   \
            memcpy(&b, from + at, sizeof b);                                                                 \
            switch (combination) {                                                                           \
            case CLD_COMBINE_ADD:                                                                            \
                a += b;                                                                                      \
                break;                                                                                       \
            case CLD_COMBINE_AND:                                                                            \
                a &= b;                                                                                      \
                break;                                                                                       \
            case CLD_COMBINE_OR:                                                                             \
                a |= b;                                                                                      \
                break;                                                                                       \
            case CLD_COMBINE_XOR:                                                                            \
                a ^= b;                                                                                      \
                break;                                                                                       \
            case CLD_COMBINE_SMIN:                                                                           \
                a = (SIGNED)b < (SIGNED)a ? b : a;                                                           \
                break;                                                                                       \
            case CLD_COMBINE_SMAX:                                                                           \
                a = (SIGNED)b > (SIGNED)a ? b : a;                                                           \
                break;                                                                                       \
            case CLD_COMBINE_UMIN:                                                                           \
                a = b < a ? b : a;                                                                           \
                break;                                                                                       \
            default:                                                                                         \
                a = b > a ? b : a;                                                                           \
            }                                                                                                \
            memcpy(to + at, &a, sizeof a);                                                                   \
        }                                                                                                    \
    }
COMBINE_ALL(uint32_t, int32_t)
COMBINE_ALL(uint64_t, int64_t)

void cld_sum_add(const struct cld_request *request, const uint8_t *bytes) {
    const struct cld_sum *sum = request->sum;
    uint8_t *to = sum->copies->mem->data + request->offset;
    int64_t combination = sum->combination % 16, size = sum->combination / 16;
    if (size == sizeof(uint64_t))
        combine_uint64_t(combination, to, bytes, request->size);
    else
        combine_uint32_t(combination, to, bytes, request->size);
}

bool cld_sums_gather(struct cld_event *command, struct cld_parts *parts) {
    for (uint32_t i = 0; i < parts->sum_count; i++)
        if (!cld_copies_enter(command, parts->sums[i].copies, parts->sums[i].range))
            return false;
    for (uint32_t i = 0; i < parts->sum_count; i++)
        cld_copies_hold(parts->sums[i].copies, parts->sums[i].range);
    parts->holds_sums = parts->sum_count;
    return true;
}

static bool fill(struct cld_worker *worker, const struct cld_sum *sum) {
    uint8_t number[MOST_NUMBER];
    size_t size = neutral(sum->combination, number);
    struct cld_item *item = cld_copies_item(CLD_FILL_MESSAGE, sum->copies, 5);
    if (!item)
        return false;
    cld_put_int(&item->message, (int64_t)sum->range.begin);
    cld_put_int(&item->message, (int64_t)(sum->range.end - sum->range.begin));
    cld_put_bytes(&item->message, number, size);
    return cld_send(worker, item);
}

bool cld_sums_begin(struct cld_parts *parts, struct cld_worker *worker) {
    for (uint32_t i = 0; i < parts->sum_count; i++)
        if (!cld_copies_tell(worker, parts->sums[i].copies) || !fill(worker, &parts->sums[i]))
            return false;
    return true;
}

static bool ask(struct cld_worker *worker, struct cld_sum *sum, size_t offset, size_t size) {
    struct cld_request *request = cld_copies_read(worker, sum->copies, offset, size);
    if (!request)
        return false;
    request->sum = sum;
    sum->of->left++;
    return true;
}

bool cld_sums_ask(struct cld_parts *parts, struct cld_worker *worker) {
    for (uint32_t i = 0; i < parts->sum_count; i++) {
        struct cld_sum *sum = &parts->sums[i];
        for (size_t at = sum->range.begin; at < sum->range.end; at += CLD_MOST_MESSAGE_BYTES) {
            size_t left = sum->range.end - at;
            if (!ask(worker, sum, at, left < CLD_MOST_MESSAGE_BYTES ? left : CLD_MOST_MESSAGE_BYTES))
                return false;
        }
    }
    return true;
}

void cld_sums_end(struct cld_parts *parts, struct cld_event **again) {
    for (uint32_t i = 0; parts->holds_sums && i < parts->sum_count; i++)
        cld_copies_leave(parts->sums[i].copies, parts->sums[i].range, again);
    parts->holds_sums = false;
}
