/* Copies and fills: on all cores when they are large, at once when they are small. */
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "check/check.h"
#include "enqueue/enqueue.h"
#include "kernel/executable.h"
#include "memory/mem.h"
#include "object/call.h"

enum {
    BLOCK = 128 << 10,   /* bytes of a unit of a large linear copy or fill */
    LARGE = 1 << 20,     /* bytes from which other threads help */
    AT_ONCE = 4 << 10,   /* bytes up to which a command is not worth being queued */
    BLOCKING = 32 << 10, /* the same when the caller waits anyway */
    STREAM = 24 << 20,   /* bytes that no cache will keep: written past it, without being read first */
};

/* What one core copies in a nanosecond. */
static uint64_t estimate(size_t bytes) {
    return bytes / 8;
}

#if defined(__SSE2__)
/* size: a multiple of 64; destination: aligned to 16. */
static void stream_lines(uint8_t *destination, const uint8_t *source, size_t size) {
    for (size_t at = 0; at < size; at += 64) {
        const __m128i *from = (const __m128i *)(source + at);
        __m128i *to = (__m128i *)(destination + at);
        __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
        __m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);
        _mm_stream_si128(to, a);
        _mm_stream_si128(to + 1, b);
        _mm_stream_si128(to + 2, c);
        _mm_stream_si128(to + 3, d);
    }
    _mm_sfence();
}

static void stream_copy(uint8_t *destination, const uint8_t *source, size_t size) {
    size_t head = (64 - (uintptr_t)destination % 64) % 64;
    head = head < size ? head : size;
    size_t lines = (size - head) & ~(size_t)63, tail = head + lines;
    memcpy(destination, source, head);
    stream_lines(destination + head, source + head, lines);
    memcpy(destination + tail, source + tail, size - tail);
}
#else
static void stream_copy(uint8_t *destination, const uint8_t *source, size_t size) {
    memcpy(destination, source, size);
}
#endif

static void copy_rows(const struct cld_copy_region *region, uint64_t first, uint64_t last) {
    for (uint64_t row = first; row < last; row++) {
        size_t y = row % region->height, z = row / region->height;
        uint8_t *to = region->destination + z * region->destination_slice + y * region->destination_row;
        const uint8_t *from = region->source + z * region->source_slice + y * region->source_row;
        memmove(to, from, region->width);
        if (__builtin_expect(cld_kcheck_is_on, 0))
            cld_kcheck_copied(to, from, region->width);
    }
}

static bool is_linear(const struct cld_copy_region *region) {
    return region->height == 1 && region->depth == 1;
}

static uint64_t row_grain(const struct cld_copy_region *region) {
    return region->width < BLOCK ? BLOCK / region->width + 1 : 1;
}

static cl_int run_copy(struct cld_event *command, struct cld_self *self, uint64_t first, uint64_t last) {
    const struct cld_copy_region *region = &command->copy;
    (void)self;
    if (!is_linear(region)) {
        copy_rows(region, first, last);
        return CL_SUCCESS;
    }
    /* With one unit it is a whole, whatever its size. */
    size_t start = first * BLOCK;
    size_t end = last == command->total ? region->width : last * BLOCK;
    if (__builtin_expect(cld_kcheck_is_on, 0))
        cld_kcheck_copied(region->destination + start, region->source + start, end - start);
    /* More than one unit means that source and destination are separate. */
    if (command->total > 1 && region->width >= STREAM)
        stream_copy(region->destination + start, region->source + start, end - start);
    else
        memmove(region->destination + start, region->source + start, end - start);
    return CL_SUCCESS;
}

static uint64_t bytes_of(const struct cld_copy_region *region) {
    return region->width * region->height * region->depth;
}

static uint64_t bytes_of_copy(const struct cld_event *command) {
    return bytes_of(&command->copy);
}

static struct cld_extent extent_of(const uint8_t *begin, size_t slice, size_t row,
                                   const struct cld_copy_region *region) {
    size_t size = (region->depth - 1) * slice + (region->height - 1) * row + region->width;
    return (struct cld_extent){begin, begin + size, is_linear(region)};
}

static struct cld_extent extent_of_copy(const struct cld_event *command, bool is_written) {
    const struct cld_copy_region *region = &command->copy;
    return is_written
               ? extent_of(region->destination, region->destination_slice, region->destination_row, region)
               : extent_of(region->source, region->source_slice, region->source_row, region);
}

static const struct cld_operation copy_operation = {
    .run = run_copy, .bytes = bytes_of_copy, .extent = extent_of_copy};

static void end_variable_copy(struct cld_event *command, cl_int status) {
    (void)status;
    cld_executable_drop(command->executable);
}

static const struct cld_operation variable_copy_operation = {
    .run = run_copy, .end = end_variable_copy, .bytes = bytes_of_copy, .extent = extent_of_copy};

/* Pieces may be copied in any order only where source and destination have nothing in common. */
static bool separate(const struct cld_copy_region *region) {
    uintptr_t from = (uintptr_t)region->source, to = (uintptr_t)region->destination;
    return from + region->width <= to || to + region->width <= from;
}

/* Whether it is done: a small one, if the queue is idle. */
static bool copy_at_once(struct cld_queue *queue, cl_command_type type, const struct cld_copy_region *region,
                         bool blocking, const struct cld_wait *wait) {
    size_t rows = region->height * region->depth, bytes = region->width * rows;
    struct cld_event *command;
    if (bytes > (blocking ? BLOCKING : AT_ONCE) || !cld_immediate_begin(queue, type, wait, &command))
        return false;
    if (__builtin_expect(cld_kcheck_is_on, 0))
        copy_rows(region, 0, rows);
    else if (is_linear(region))
        memmove(region->destination, region->source, region->width);
    else
        copy_rows(region, 0, rows);
    cld_immediate_end(queue, command, wait->event);
    return true;
}

static struct cld_event *new_copy(struct cld_queue *queue, cl_command_type type,
                                  const struct cld_operation *operation, const struct cld_copy_region *region,
                                  const struct cld_wait *wait) {
    size_t rows = region->height * region->depth, bytes = region->width * rows;
    struct cld_event *command = cld_command_new(queue, type, operation, wait->event);
    if (!command)
        return NULL;
    command->copy = *region;
    command->estimate = estimate(bytes);
    if (!is_linear(region)) {
        command->total = rows;
        command->grain = row_grain(region);
    } else if (bytes >= LARGE && separate(region)) {
        command->total = (bytes + BLOCK - 1) / BLOCK;
    }
    return command;
}

cl_int cld_enqueue_copy(struct cld_queue *queue, cl_command_type type, struct cld_mem *a, struct cld_mem *b,
                        const struct cld_copy_region *region, bool blocking, const struct cld_wait *wait) {
    if (copy_at_once(queue, type, region, blocking, wait))
        return CL_SUCCESS;
    struct cld_event *command = new_copy(queue, type, &copy_operation, region, wait);
    CLD_REQUIRE(command, CL_OUT_OF_HOST_MEMORY, "no memory");
    if ((a && !cld_command_hold_mem(command, a)) || (b && !cld_command_hold_mem(command, b))) {
        cld_command_discard(command);
        return CL_OUT_OF_HOST_MEMORY;
    }
    return cld_command_enqueue(command, wait, blocking ? CLD_BLOCKING : 0);
}

cl_int cld_enqueue_variable_copy(struct cld_queue *queue, cl_command_type type,
                                 struct cld_executable *executable, const struct cld_copy_region *region,
                                 bool blocking, const struct cld_wait *wait) {
    bool is_done = copy_at_once(queue, type, region, blocking, wait);
    struct cld_event *command =
        is_done ? NULL : new_copy(queue, type, &variable_copy_operation, region, wait);
    if (!command)
        cld_executable_drop(executable);
    if (is_done)
        return CL_SUCCESS;
    CLD_REQUIRE(command, CL_OUT_OF_HOST_MEMORY, "no memory");
    command->executable = executable;
    return cld_command_enqueue(command, wait, blocking ? CLD_BLOCKING : 0);
}

/* The same for fills; destination: aligned to 16, size: a multiple of 128. */
#if defined(__SSE2__)
static void stream_fill(uint8_t *destination, size_t size, const uint8_t *pattern) {
    __m128i parts[8];
    memcpy(parts, pattern, sizeof parts);
    for (size_t at = 0; at < size; at += 128)
        for (int i = 0; i < 8; i++)
            _mm_stream_si128((__m128i *)(destination + at) + i, parts[i]);
    _mm_sfence();
}
#else
static void stream_fill(uint8_t *destination, size_t size, const uint8_t *pattern) {
    for (size_t at = 0; at < size; at += 128)
        memcpy(destination + at, pattern, 128);
}
#endif

/* pattern: 128 bytes, whatever the size of the application's pattern, which `period` is a multiple of. */
static void fill(uint8_t *destination, size_t size, const uint8_t *pattern, size_t period) {
    size_t at = 0;
    if (__builtin_expect(cld_kcheck_is_on, 0))
        cld_kcheck_written(destination, size);
    for (; at + 128 <= size; at += period)
        memcpy(destination + at, pattern, 128);
    memcpy(destination + at, pattern, size - at);
}

static cl_int run_fill(struct cld_event *command, struct cld_self *self, uint64_t first, uint64_t last) {
    (void)self;
    size_t start = first * BLOCK;
    size_t end = last == command->total ? command->fill.size : last * BLOCK;
    uint8_t *destination = command->fill.destination + start;
    size_t streamed = 0;
    if (__builtin_expect(cld_kcheck_is_on, 0))
        cld_kcheck_written(destination, end - start);
    if (command->fill.size >= STREAM && (uintptr_t)destination % 16 == 0) {
        streamed = (end - start) & ~(size_t)127;
        stream_fill(destination, streamed, command->fill.pattern);
    }
    if (command->fill.pattern_size == 1)
        memset(destination + streamed, command->fill.pattern[0], end - start - streamed);
    else
        fill(destination + streamed, end - start - streamed, command->fill.pattern, 128);
    return CL_SUCCESS;
}

static uint64_t bytes_of_fill(const struct cld_event *command) {
    return command->fill.size;
}

static struct cld_extent extent_of_fill(const struct cld_event *command, bool is_written) {
    const uint8_t *begin = command->fill.destination;
    (void)is_written;
    return (struct cld_extent){begin, begin + command->fill.size, true};
}

static const struct cld_operation fill_operation = {
    .run = run_fill, .bytes = bytes_of_fill, .extent = extent_of_fill};

cl_int cld_enqueue_fill(struct cld_queue *queue, cl_command_type type, struct cld_mem *buffer,
                        uint8_t *destination, size_t size, const void *pattern, size_t pattern_size,
                        const struct cld_wait *wait) {
    uint8_t repeated[128];
    for (size_t at = 0; at < sizeof repeated; at += pattern_size)
        memcpy(repeated + at, pattern, pattern_size);
    struct cld_event *command;
    if (size <= AT_ONCE && cld_immediate_begin(queue, type, wait, &command)) {
        fill(destination, size, repeated, 128);
        cld_immediate_end(queue, command, wait->event);
        return CL_SUCCESS;
    }
    command = cld_command_new(queue, type, &fill_operation, wait->event);
    CLD_REQUIRE(command, CL_OUT_OF_HOST_MEMORY, "no memory");
    command->fill.destination = destination;
    command->fill.size = size;
    command->fill.pattern_size = pattern_size;
    memcpy(command->fill.pattern, repeated, sizeof repeated);
    command->estimate = estimate(size);
    if (size >= LARGE)
        command->total = (size + BLOCK - 1) / BLOCK;
    if (buffer && !cld_command_hold_mem(command, buffer)) {
        cld_command_discard(command);
        return CL_OUT_OF_HOST_MEMORY;
    }
    return cld_command_enqueue(command, wait, 0);
}

/* pattern: period bytes, at most 16. */
static void fill_rows(const struct cld_copy_region *to, const uint8_t *pattern, size_t period, uint64_t first,
                      uint64_t last) {
    uint8_t repeated[128 + 16];
    for (size_t at = 0; at < 128; at += period)
        memcpy(repeated + at, pattern, period);
    for (uint64_t row = first; row < last; row++) {
        size_t y = row % to->height, z = row / to->height;
        fill(to->destination + z * to->destination_slice + y * to->destination_row, to->width, repeated,
             128 / period * period);
    }
}

static cl_int run_fill_rows(struct cld_event *command, struct cld_self *self, uint64_t first, uint64_t last) {
    (void)self;
    fill_rows(&command->fill_rows.to, command->fill_rows.pattern, command->fill_rows.period, first, last);
    return CL_SUCCESS;
}

static uint64_t bytes_of_fill_rows(const struct cld_event *command) {
    return bytes_of(&command->fill_rows.to);
}

static struct cld_extent extent_of_fill_rows(const struct cld_event *command, bool is_written) {
    const struct cld_copy_region *to = &command->fill_rows.to;
    (void)is_written;
    return extent_of(to->destination, to->destination_slice, to->destination_row, to);
}

static const struct cld_operation fill_rows_operation = {
    .run = run_fill_rows, .bytes = bytes_of_fill_rows, .extent = extent_of_fill_rows};

cl_int cld_enqueue_fill_rows(struct cld_queue *queue, cl_command_type type, struct cld_mem *mem,
                             const struct cld_copy_region *region, const void *pattern, size_t pattern_size,
                             const struct cld_wait *wait) {
    bool is_power_of_two = 16 % pattern_size == 0;
    if (is_power_of_two && is_linear(region))
        return cld_enqueue_fill(queue, type, mem, region->destination, region->width, pattern, pattern_size,
                                wait);
    uint8_t repeated[16] = {0};
    size_t period = sizeof repeated / pattern_size * pattern_size;
    for (size_t at = 0; at < period; at += pattern_size)
        memcpy(repeated + at, pattern, pattern_size);
    size_t rows = region->height * region->depth, bytes = region->width * rows;
    struct cld_event *command;
    if (bytes <= AT_ONCE && cld_immediate_begin(queue, type, wait, &command)) {
        fill_rows(region, repeated, period, 0, rows);
        cld_immediate_end(queue, command, wait->event);
        return CL_SUCCESS;
    }
    command = cld_command_new(queue, type, &fill_rows_operation, wait->event);
    CLD_REQUIRE(command, CL_OUT_OF_HOST_MEMORY, "no memory");
    command->fill_rows.to = *region;
    memcpy(command->fill_rows.pattern, repeated, sizeof repeated);
    command->fill_rows.period = (uint32_t)period;
    command->estimate = estimate(bytes);
    command->total = rows;
    command->grain = row_grain(region);
    if (!cld_command_hold_mem(command, mem)) {
        cld_command_discard(command);
        return CL_OUT_OF_HOST_MEMORY;
    }
    return cld_command_enqueue(command, wait, 0);
}

cl_int cld_enqueue_nothing(struct cld_queue *queue, cl_command_type type, struct cld_mem *const *mems,
                           cl_uint mem_count, bool blocking, const struct cld_wait *wait) {
    struct cld_event *command;
    if (cld_immediate_begin(queue, type, wait, &command)) {
        cld_immediate_end(queue, command, wait->event);
        return CL_SUCCESS;
    }
    command = cld_command_new(queue, type, NULL, wait->event);
    CLD_REQUIRE(command, CL_OUT_OF_HOST_MEMORY, "no memory");
    command->estimate = 0;
    for (cl_uint i = 0; i < mem_count; i++)
        if (!cld_command_hold_mem(command, mems[i])) {
            cld_command_discard(command);
            return CL_OUT_OF_HOST_MEMORY;
        }
    return cld_command_enqueue(command, wait, blocking ? CLD_BLOCKING : 0);
}
