/* Evaluates what the compiler says of accesses, for a part of a launch (cl_driver/passes/extents/extents.py
 * has the form). It may come from a program binary: nothing in it is trusted.
 *
 * A value is an interval: of the ids of all work-items in these groups, of all iterations, whichever
 * work-item has which. One that is empty belongs to code that no work-item of these comes to. */
#include "cluster/extents.h"

#include <string.h>

#include "kernel/kernel.h"

/* As in extents.py, terms.py, and in traffic/polynomial.py. */
enum {
    END,
    NUMBER,
    SYMBOL,
    ADD,
    MULTIPLY,
    DIVIDE,
    REMAINDER,
    LEAST,
    GREATEST,
    EITHER,
    IDS,
    ROUNDS,
    AT_MOST,
    AT_LEAST,
    ASSUME,
    ALL
};
enum { ARGUMENT, GLOBAL_SIZE, LOCAL_SIZE, GROUPS, OFFSET, GLOBAL_ID, LOCAL_ID, GROUP_ID };
enum { ELEMENT_SIZE = 9, ROW_PITCH, SLICE_PITCH, WIDTH, HEIGHT, DEPTH, LAYERS };

enum { MOST_STACK = 48, DIMENSIONS = 3 };

/* Empty where low > high. Of what may be any number, low is INT64_MIN and high INT64_MAX. */
struct interval {
    int64_t low, high;
};

static const struct interval any = {INT64_MIN, INT64_MAX}, none = {1, 0};

struct reader {
    const struct cld_event *launch;
    const struct cld_group_range *groups;
    const struct cld_extent_memory *memories;
    const int64_t *at, *end;
    bool is_lost;
};

static bool is_any(struct interval a) {
    return a.low == INT64_MIN || a.high == INT64_MAX;
}

static bool is_empty(struct interval a) {
    return a.low > a.high;
}

static int64_t next(struct reader *reader) {
    if (reader->at == reader->end) {
        reader->is_lost = true;
        return 0;
    }
    return *reader->at++;
}

static struct interval from(uint64_t low, uint64_t high) {
    return high > INT64_MAX / 2 ? any : (struct interval){(int64_t)low, (int64_t)high};
}

/* number: of the argument, of a component of it, and the bytes of one. */
static struct interval argument_value(struct reader *reader, int64_t number) {
    const struct cld_kernel_info *info = reader->launch->kernel.info;
    uint32_t place = (uint32_t)number & 0xffff, component = (uint32_t)(number >> 16) & 0xff;
    uint32_t size = (uint32_t)(number >> 24) & 0xff;
    const struct cld_arg_info *arg = place < info->arg_count ? &info->args[place] : NULL;
    int64_t value = 0;
    if (!arg || arg->kind != CLD_ARG_VALUE || !size || size > sizeof value || size & (size - 1) ||
        (component + 1) * size > arg->size) {
        reader->is_lost = true;
        return none;
    }
    memcpy(&value, reader->launch->kernel.args + arg->offset + component * size, size);
    uint32_t unused = 64 - 8 * size;
    value = (int64_t)((uint64_t)value << unused) >> unused;
    return value == INT64_MIN || value == INT64_MAX ? any : (struct interval){value, value};
}

static bool is_image(const struct reader *reader, int64_t argument) {
    const struct cld_kernel_info *info = reader->launch->kernel.info;
    return argument >= 0 && argument < info->arg_count && info->args[argument].kind == CLD_ARG_IMAGE;
}

static struct interval image_value(struct reader *reader, int64_t kind, int64_t argument) {
    const struct cld_image_desc *image = NULL;
    if (is_image(reader, argument))
        image = reader->memories[argument].image;
    else
        reader->is_lost = true;
    if (!image)
        return any;
    const uint64_t fields[] = {image->element_size,        image->row_pitch,        image->slice_pitch,
                               (uint64_t)image->width,     (uint64_t)image->height, (uint64_t)image->depth,
                               (uint64_t)image->array_size};
    return from(fields[kind - ELEMENT_SIZE], fields[kind - ELEMENT_SIZE]);
}

static struct interval symbol(struct reader *reader) {
    const struct cld_launch *launch = &reader->launch->kernel.launch;
    int64_t kind = next(reader), number = next(reader);
    if (kind == ARGUMENT)
        return argument_value(reader, number);
    if (kind >= ELEMENT_SIZE && kind <= LAYERS)
        return image_value(reader, kind, number);
    const uint64_t *sizes[] = {NULL, launch->global_size, launch->local_size, launch->num_groups,
                               launch->global_offset};
    if (kind < 0 || kind > OFFSET || number < 0 || number >= DIMENSIONS) {
        reader->is_lost = true;
        return none;
    }
    return from(sizes[kind][number], sizes[kind][number]);
}

static struct interval ids(struct reader *reader) {
    const struct cld_launch *launch = &reader->launch->kernel.launch;
    int64_t kind = next(reader), dimension = next(reader);
    if (kind < GLOBAL_ID || kind > GROUP_ID || dimension < 0 || dimension >= DIMENSIONS) {
        reader->is_lost = true;
        return none;
    }
    bool is_cut = dimension == reader->groups->dimension;
    uint64_t local = launch->local_size[dimension], size = launch->global_size[dimension];
    uint64_t first = is_cut ? reader->groups->first : 0;
    uint64_t last = is_cut ? reader->groups->last : launch->num_groups[dimension];
    if (first >= last)
        return none;
    if (kind == GROUP_ID)
        return from(first, last - 1);
    if (kind == LOCAL_ID)
        return from(0, (local < size ? local : size) - 1);
    uint64_t end = last == launch->num_groups[dimension] ? size : last * local;
    return from(launch->global_offset[dimension] + first * local, launch->global_offset[dimension] + end - 1);
}

static struct interval add(struct interval a, struct interval b) {
    struct interval sum;
    if (is_any(a) || is_any(b) || __builtin_add_overflow(a.low, b.low, &sum.low) ||
        __builtin_add_overflow(a.high, b.high, &sum.high))
        return any;
    return sum;
}

static struct interval multiply(struct interval a, struct interval b) {
    const struct interval zero = {0, 0};
    if ((!a.low && !a.high) || (!b.low && !b.high))
        return zero;
    if (is_any(a) || is_any(b))
        return any;
    const int64_t left[2] = {a.low, a.high}, right[2] = {b.low, b.high};
    struct interval product = none;
    for (int i = 0; i < 4; i++) {
        int64_t one;
        if (__builtin_mul_overflow(left[i & 1], right[i >> 1], &one))
            return any;
        product.low = !i || one < product.low ? one : product.low;
        product.high = !i || one > product.high ? one : product.high;
    }
    return product;
}

static int64_t rounded_down(int64_t a, int64_t b) {
    return a / b - (a % b && a < 0);
}

static struct interval divide(struct interval a, struct interval b) {
    if (is_any(a) || b.low < 1)
        return any;
    /* Of a number that is negative the smallest divisor leaves the least, of others the most. */
    return (struct interval){rounded_down(a.low, a.low < 0 ? b.low : b.high),
                             rounded_down(a.high, a.high < 0 ? b.high : b.low)};
}

static struct interval remainder_of(struct interval a, struct interval b) {
    if (b.low < 1 || is_any(b))
        return any;
    struct interval result = {0, b.high - 1};
    if (is_any(a) || a.low < 0)
        return result;
    if (b.low == b.high && a.low / b.low == a.high / b.low)
        return (struct interval){a.low % b.low, a.high % b.low};
    result.high = a.high < result.high ? a.high : result.high;
    return result;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t greatest(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static struct interval combine(int64_t code, struct interval a, struct interval b) {
    if (is_empty(a) || is_empty(b))
        return none;
    switch (code) {
    case ADD:
        return add(a, b);
    case MULTIPLY:
        return multiply(a, b);
    case DIVIDE:
        return divide(a, b);
    case REMAINDER:
        return remainder_of(a, b);
    case LEAST:
        return (struct interval){least(a.low, b.low), least(a.high, b.high)};
    case GREATEST:
        return (struct interval){greatest(a.low, b.low), greatest(a.high, b.high)};
    default:
        return (struct interval){least(a.low, b.low), greatest(a.high, b.high)};
    }
}

static bool fits(struct interval a, int64_t bits, bool is_signed) {
    if (is_empty(a))
        return true;
    if (is_any(a) || bits < 0 || bits > 64)
        return false;
    int64_t low = !is_signed ? 0 : bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1));
    bool has_high = is_signed ? bits < 64 : bits < 63;
    int64_t high = has_high ? ((int64_t)1 << (is_signed ? bits - 1 : bits)) - 1 : INT64_MAX;
    return a.low >= low && a.high <= high;
}

struct stack {
    struct interval values[MOST_STACK];
    uint32_t depth;
};

static void push(struct reader *reader, struct stack *stack, struct interval value) {
    if (stack->depth == MOST_STACK)
        reader->is_lost = true;
    else
        stack->values[stack->depth++] = value;
}

static struct interval pop(struct reader *reader, struct stack *stack) {
    if (!stack->depth) {
        reader->is_lost = true;
        return none;
    }
    return stack->values[--stack->depth];
}

/* What ASSUME has left so many times. */
static bool are_true(struct reader *reader, struct stack *stack, int64_t count) {
    bool all = true;
    for (int64_t i = 0; i < count && !reader->is_lost; i++)
        all &= pop(reader, stack).low != 0;
    return all;
}

static struct interval limit(struct reader *reader, struct stack *stack, bool is_upper) {
    bool is_limit = are_true(reader, stack, next(reader));
    struct interval other = pop(reader, stack), value = pop(reader, stack);
    if (is_empty(other) || is_empty(value))
        return none;
    if (!is_limit || is_any(other))
        return value;
    if (is_upper)
        value.high = least(value.high, other.high);
    else
        value.low = greatest(value.low, other.low);
    return value;
}

/* The numbers of iterations, from 0. */
static struct interval rounds(struct reader *reader, struct stack *stack) {
    bool is_inside = next(reader), is_known = are_true(reader, stack, next(reader));
    struct interval step = pop(reader, stack), rest = pop(reader, stack);
    if (is_empty(step) || is_empty(rest))
        return none;
    if (!is_known || is_any(rest) || is_any(step) || step.low < 1)
        return any;
    int64_t last = rounded_down(rest.high, rest.high < 0 ? step.high : step.low) + !is_inside;
    return !is_inside && last < 0 ? (struct interval){0, 0} : (struct interval){0, last};
}

static struct interval value(struct reader *reader) {
    struct stack stack = {.depth = 0};
    for (int64_t code; !reader->is_lost && (code = next(reader)) != END;) {
        struct interval result;
        if (code == NUMBER) {
            int64_t number = next(reader);
            result = (struct interval){number, number};
        } else if (code == SYMBOL) {
            result = symbol(reader);
        } else if (code == IDS) {
            result = ids(reader);
        } else if (code == ALL) {
            result = any;
        } else if (code == ROUNDS) {
            result = rounds(reader, &stack);
        } else if (code == AT_MOST || code == AT_LEAST) {
            result = limit(reader, &stack, code == AT_MOST);
        } else if (code == ASSUME) {
            int64_t bits = next(reader);
            bool is_true = fits(pop(reader, &stack), bits, next(reader));
            result = (struct interval){is_true, is_true};
        } else if (code >= ADD && code <= EITHER) {
            struct interval b = pop(reader, &stack), a = pop(reader, &stack);
            result = combine(code, a, b);
        } else {
            reader->is_lost = true;
            break;
        }
        push(reader, &stack, result);
    }
    reader->is_lost |= stack.depth != 1;
    return reader->is_lost ? none : stack.values[0];
}

static void include(struct cld_bytes_range *range, size_t begin, size_t end) {
    if (range->begin == range->end) {
        range->begin = begin;
        range->end = end;
        return;
    }
    range->begin = begin < range->begin ? begin : range->begin;
    range->end = end > range->end ? end : range->end;
}

static void read_access(struct reader *reader, struct cld_argument_extent *extents) {
    int64_t argument = next(reader), kind = next(reader), bytes = next(reader);
    bool is_known = true;
    if (!bytes && is_image(reader, argument)) {
        const struct cld_image_desc *image = reader->memories[argument].image;
        is_known = image;
        bytes = image ? image->element_size : 1;
    }
    for (int64_t assumptions = next(reader); assumptions > 0 && !reader->is_lost; assumptions--) {
        int64_t bits = next(reader), is_signed = next(reader);
        is_known &= fits(value(reader), bits, is_signed);
    }
    struct interval place = value(reader), end = add(place, (struct interval){bytes, bytes});
    if (argument < 0 || argument >= reader->launch->kernel.info->arg_count || bytes < 1)
        reader->is_lost = true;
    if (reader->is_lost || is_empty(place) || !reader->memories[argument].size)
        return;
    /* What lies outside of the buffer no work-item may touch. */
    size_t size = reader->memories[argument].size;
    bool is_all = !is_known || is_any(place) || is_any(end);
    if (!is_all && (end.high <= 0 || (uint64_t)greatest(place.low, 0) >= size))
        return;
    size_t first = is_all ? 0 : (size_t)greatest(place.low, 0);
    size_t last = is_all || (uint64_t)end.high > size ? size : (size_t)end.high;
    struct cld_argument_extent *extent = &extents[argument];
    if (kind == CLD_EXTENT_READS)
        include(&extent->read, first, last);
    else if (kind == CLD_EXTENT_WRITES)
        include(&extent->written, first, last);
    else {
        int64_t combination = kind / 16 + 16 * bytes;
        if ((kind & 7) != CLD_EXTENT_COMBINES || kind / 16 >= CLD_COMBINATIONS)
            reader->is_lost = true;
        bool is_first = extent->combined.begin == extent->combined.end;
        extent->is_mixed |= !is_first && extent->combination != combination;
        extent->combination = combination;
        include(&extent->combined, first, last);
    }
}

bool cld_extents_of(const struct cld_event *launch, const struct cld_group_range *groups,
                    const struct cld_extent_memory *memories, struct cld_argument_extent *extents) {
    const struct cld_kernel_info *info = launch->kernel.info;
    struct reader reader = {launch, groups, memories, info->extents, info->extents + info->extent_count,
                            false};
    memset(extents, 0, info->arg_count * sizeof *extents);
    while (reader.at < reader.end && !reader.is_lost)
        read_access(&reader, extents);
    return !reader.is_lost;
}
