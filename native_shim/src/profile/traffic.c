/* Evaluates the accounts that the compiler makes (cl_driver/passes/traffic/account.py has their form). They
 * may come from a program binary: nothing in them is trusted. */
#include "profile/traffic.h"

#include <string.h>

#include "kernel/kernel.h"
#include "runtime/command.h"

/* As in account.py. */
enum { END, NUMBER, SYMBOL, ADD, MULTIPLY, DIVIDE };
enum { MUST, UNLESS };
enum { ARGUMENT, GLOBAL_SIZE, LOCAL_SIZE, GROUPS, OFFSET };

enum { MOST_STACK = 24, MOST_VARIABLES = 12, MOST_DIMENSIONS = 6, MOST_ACCESSES = 32 };

/* Bytes that lie `size` at a time, in each dimension `count` times `step` apart; steps are not negative and
 * ascend. */
struct access {
    int64_t argument, writes, size, offset;
    uint32_t dimensions;
    int64_t steps[MOST_DIMENSIONS], counts[MOST_DIMENSIONS];
};

struct reader {
    const struct cld_event *launch;
    const int64_t *at, *end;
    bool is_lost; /* the account is malformed, or says that nothing is known, or a number is too large */
    uint64_t sizes[OFFSET + 1][3];
    uint32_t access_count;
    struct access accesses[MOST_ACCESSES];
};

static int64_t next(struct reader *reader) {
    if (reader->at == reader->end) {
        reader->is_lost = true;
        return 0;
    }
    return *reader->at++;
}

static int64_t argument_value(struct reader *reader, int64_t number) {
    const struct cld_kernel_info *info = reader->launch->kernel.info;
    const struct cld_arg_info *arg = number >= 0 && number < info->arg_count ? &info->args[number] : NULL;
    const uint8_t *bytes = arg ? reader->launch->kernel.args + arg->offset : NULL;
    int32_t word = 0;
    int64_t value = 0;
    if (!arg || arg->kind != CLD_ARG_VALUE || arg->size > sizeof value || arg->size == 3) {
        reader->is_lost = true;
    } else if (arg->size == sizeof word) { /* sizes of other types than int are seldom negative */
        memcpy(&word, bytes, sizeof word);
        value = word;
    } else {
        memcpy(&value, bytes, arg->size);
    }
    return value;
}

static int64_t symbol(struct reader *reader) {
    int64_t kind = next(reader), number = next(reader);
    if (kind == ARGUMENT)
        return argument_value(reader, number);
    if (kind < 0 || kind > OFFSET || number < 0 || number > 2) {
        reader->is_lost = true;
        return 0;
    }
    return (int64_t)reader->sizes[kind][number];
}

static int64_t divide(struct reader *reader, int64_t a, int64_t b) {
    if (!b || b == -1) {
        reader->is_lost |= !b || a == INT64_MIN;
        return reader->is_lost ? 0 : -a;
    }
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t value(struct reader *reader) {
    int64_t stack[MOST_STACK];
    uint32_t depth = 0;
    for (int64_t code; !reader->is_lost && (code = next(reader)) != END;) {
        if (code == NUMBER || code == SYMBOL) {
            int64_t one = code == NUMBER ? next(reader) : symbol(reader);
            if (depth == MOST_STACK)
                reader->is_lost = true;
            else
                stack[depth++] = one;
            continue;
        }
        if (depth < 2 || code < ADD || code > DIVIDE) {
            reader->is_lost = true;
            break;
        }
        int64_t b = stack[--depth], a = stack[depth - 1], *result = &stack[depth - 1];
        if (code == DIVIDE)
            *result = divide(reader, a, b);
        else if (code == ADD ? __builtin_add_overflow(a, b, result) : __builtin_mul_overflow(a, b, result))
            reader->is_lost = true;
    }
    reader->is_lost |= depth != 1;
    return reader->is_lost ? 0 : stack[0];
}

/* The largest, or least, of some values. */
static int64_t bound(struct reader *reader, bool is_largest) {
    int64_t count = next(reader), best = 0;
    reader->is_lost |= count < 1;
    for (int64_t i = 0; i < count && !reader->is_lost; i++) {
        int64_t one = value(reader);
        best = !i || (is_largest ? one > best : one < best) ? one : best;
    }
    return best;
}

static void add_dimension(struct reader *reader, struct access *access, int64_t step, int64_t count) {
    int64_t backwards;
    if (step < 0 && (__builtin_mul_overflow(step, count - 1, &backwards) ||
                     __builtin_add_overflow(access->offset, backwards, &access->offset)))
        reader->is_lost = true;
    step = step < 0 ? -step : step;
    if (!step || count == 1)
        return;
    if (access->dimensions == MOST_DIMENSIONS || step < 0) {
        reader->is_lost = true;
        return;
    }
    uint32_t place = access->dimensions++;
    for (; place && access->steps[place - 1] > step; place--) {
        access->steps[place] = access->steps[place - 1];
        access->counts[place] = access->counts[place - 1];
    }
    access->steps[place] = step;
    access->counts[place] = count;
}

static void read_access(struct reader *reader, const int64_t *least, const int64_t *counts,
                        uint32_t variables, bool is_executed) {
    struct access access = {next(reader), next(reader), next(reader), value(reader), 0, {0}, {0}};
    for (uint32_t i = 0; i < variables && !reader->is_lost; i++) {
        int64_t factor = value(reader), start;
        if (__builtin_mul_overflow(factor, least[i], &start) ||
            __builtin_add_overflow(access.offset, start, &access.offset))
            reader->is_lost = true;
        else if (is_executed)
            add_dimension(reader, &access, factor, counts[i]);
    }
    if (!is_executed)
        return;
    if (access.size < 1 || reader->access_count == MOST_ACCESSES)
        reader->is_lost = true;
    else
        reader->accesses[reader->access_count++] = access;
}

static void read_entry(struct reader *reader, struct cld_traffic *traffic) {
    bool is_executed = true;
    for (int64_t guards = next(reader); guards > 0 && !reader->is_lost; guards--) {
        int64_t kind = next(reader), guard = value(reader);
        reader->is_lost |= kind == UNLESS && guard;
        is_executed &= kind != MUST || guard >= 0;
    }
    int64_t variables = next(reader), least[MOST_VARIABLES], counts[MOST_VARIABLES];
    uint64_t times = 1;
    reader->is_lost |= variables < 0 || variables > MOST_VARIABLES;
    for (int64_t i = 0; i < variables && !reader->is_lost; i++) {
        least[i] = bound(reader, true);
        int64_t most = bound(reader, false);
        if (__builtin_sub_overflow(most, least[i], &counts[i]) ||
            __builtin_add_overflow(counts[i], 1, &counts[i]))
            reader->is_lost = true;
        is_executed &= counts[i] > 0;
        if (is_executed && __builtin_mul_overflow(times, (uint64_t)counts[i], &times))
            reader->is_lost = true;
    }
    uint64_t operations = (uint64_t)next(reader);
    if (is_executed && (__builtin_mul_overflow(operations, times, &operations) ||
                        __builtin_add_overflow(traffic->operations, operations, &traffic->operations)))
        reader->is_lost = true;
    for (int64_t accesses = next(reader); accesses > 0 && !reader->is_lost; accesses--)
        read_access(reader, least, counts, (uint32_t)variables, is_executed);
}

/* What lies between the first byte and the last. */
static double span_of(const struct access *access) {
    double span = (double)access->size;
    for (uint32_t i = 0; i < access->dimensions; i++)
        span += (double)access->steps[i] * (double)(access->counts[i] - 1);
    return span;
}

/* Bytes of one access, each once. */
static double bytes_of(const struct access *access) {
    double run = (double)access->size, runs = 1;
    for (uint32_t i = 0; i < access->dimensions; i++) {
        double step = (double)access->steps[i], count = (double)access->counts[i];
        if (runs == 1 && step <= run)
            run += step * (count - 1);
        else
            runs *= count;
    }
    double span = span_of(access);
    return runs * run < span ? runs * run : span;
}

static bool is_alike(const struct access *a, const struct access *b) {
    size_t size = a->dimensions * sizeof *a->steps;
    return a->size == b->size && a->dimensions == b->dimensions && !memcmp(a->steps, b->steps, size) &&
           !memcmp(a->counts, b->counts, size);
}

/* Bytes of an access that one before it, so far away, does not have: if that is a number of steps in one
 * dimension, the last ones in it. */
static double bytes_beyond(const struct access *access, int64_t distance) {
    double all = bytes_of(access), least = all;
    if (!distance)
        return 0;
    for (uint32_t i = 0; i < access->dimensions; i++) {
        int64_t steps = distance / access->steps[i];
        if (distance % access->steps[i] == 0 && steps < access->counts[i]) {
            double share = all * (double)steps / (double)access->counts[i];
            least = share < least ? share : least;
        }
    }
    return least;
}

static void sort(struct reader *reader) {
    for (uint32_t i = 1; i < reader->access_count; i++)
        for (uint32_t k = i; k && reader->accesses[k - 1].offset > reader->accesses[k].offset; k--) {
            struct access other = reader->accesses[k];
            reader->accesses[k] = reader->accesses[k - 1];
            reader->accesses[k - 1] = other;
        }
}

/* Bytes of all accesses to one argument: those of each that are of none before it, but not more than lie
 * between the first and the last. */
static double bytes_of_argument(const struct reader *reader, int64_t argument, int64_t writes) {
    double sum = 0, first = 0, end = 0;
    bool is_first = true;
    for (uint32_t i = 0; i < reader->access_count; i++) {
        const struct access *access = &reader->accesses[i];
        if (access->argument != argument || access->writes != writes)
            continue;
        double more = bytes_of(access);
        for (uint32_t k = 0; k < i; k++) {
            const struct access *before = &reader->accesses[k];
            if (before->argument != argument || before->writes != writes || !is_alike(before, access))
                continue;
            double beyond = bytes_beyond(access, access->offset - before->offset);
            more = beyond < more ? beyond : more;
        }
        sum += more;
        double start = (double)access->offset, last = start + span_of(access);
        first = is_first || start < first ? start : first;
        end = is_first || last > end ? last : end;
        is_first = false;
    }
    return sum < end - first ? sum : end - first;
}

static void sum_bytes(struct reader *reader, struct cld_traffic *traffic) {
    const struct cld_kernel_info *info = reader->launch->kernel.info;
    sort(reader);
    for (uint32_t argument = 0; argument < info->arg_count; argument++)
        if (info->args[argument].kind == CLD_ARG_GLOBAL) {
            traffic->read += (uint64_t)bytes_of_argument(reader, argument, 0);
            traffic->written += (uint64_t)bytes_of_argument(reader, argument, 1);
        }
}

/* The sizes as the application gave them, whatever the code has exchanged. */
static void take_sizes(struct reader *reader) {
    const struct cld_event *launch = reader->launch;
    bool is_exchanged = launch->kernel.info->flags & CLD_KERNEL_EXCHANGED && !launch->kernel.is_plain;
    for (int i = 0; i < 3; i++) {
        int from = is_exchanged && i < 2 ? 1 - i : i;
        reader->sizes[GLOBAL_SIZE][i] = launch->kernel.launch.global_size[from];
        reader->sizes[LOCAL_SIZE][i] = launch->kernel.launch.local_size[from];
        reader->sizes[GROUPS][i] = launch->kernel.launch.num_groups[from];
        reader->sizes[OFFSET][i] = launch->kernel.launch.global_offset[from];
    }
}

struct cld_traffic cld_traffic_of(const struct cld_event *launch) {
    const struct cld_kernel_info *info = launch->kernel.info;
    struct cld_traffic traffic = {0};
    if (!info->account_count || !launch->total)
        return traffic;
    struct reader reader;
    reader.launch = launch;
    reader.at = info->account;
    reader.end = info->account + info->account_count;
    reader.is_lost = false;
    reader.access_count = 0;
    take_sizes(&reader);
    bool knows_operations = next(&reader), knows_bytes = next(&reader);
    for (int64_t entries = next(&reader); entries > 0 && !reader.is_lost; entries--)
        read_entry(&reader, &traffic);
    if (reader.is_lost)
        return (struct cld_traffic){0};
    traffic.knows_operations = knows_operations && traffic.operations;
    traffic.knows_bytes = knows_bytes;
    if (knows_bytes)
        sum_bytes(&reader, &traffic);
    return traffic;
}
