/* Commands on buffers and shared virtual memory: what they do, against a plain loop, and every error that the
 * specification lists. */
#include <inttypes.h>

#include "harness.h"

static cl_context context;
static cl_command_queue queue;

static uint64_t random_state = 99;

static uint32_t next_word(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

static uint32_t next_random(uint32_t below) {
    return (next_word() >> 1) % below;
}

static uint8_t *bytes_of(cl_mem buffer) {
    return ((struct cld_mem *)buffer)->data;
}

static void scramble(uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i += sizeof(uint32_t)) { /* by words: sanitizers take their time for each */
        uint32_t word = next_word();
        memcpy(bytes + i, &word, size - i < sizeof word ? size - i : sizeof word);
    }
}

/* Sizes on both sides of every limit at which the way of copying changes. */
static void linear(void) {
    static const size_t sizes[] = {
        0, 1, 4, 4096, 4097, 32768, 32769, 1 << 20, (1 << 20) + 1, (5 << 20) + 77, (25 << 20) + 5};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t size = sizes[s], all = size + 1000;
        cl_mem a = test_buffer(context, all), b = test_buffer(context, all);
        uint8_t *from = malloc(all), *to = calloc(1, all);
        for (int blocking = 0; blocking < 2; blocking++) {
            scramble(from, all);
            memset(bytes_of(a), 1, all);
            memset(bytes_of(b), 2, all);
            memset(to, 3, all);
            OK(clEnqueueWriteBuffer(queue, a, (cl_bool)blocking, 300, size, from + 5, 0, NULL, NULL));
            OK(clEnqueueCopyBuffer(queue, a, b, 300, 400, size, 0, NULL, NULL));
            OK(clEnqueueReadBuffer(queue, b, (cl_bool)blocking, 400, size, to + 9, 0, NULL, NULL));
            OK(clFinish(queue));
            CHECK(!memcmp(to + 9, from + 5, size));
            CHECK(to[8] == 3 && to[9 + size] == 3 && bytes_of(a)[299] == 1 && bytes_of(a)[300 + size] == 1);
            CHECK(bytes_of(b)[399] == 2 && bytes_of(b)[400 + size] == 2);
        }
        for (size_t pattern = 1; pattern <= 128; pattern *= size > 1 << 24 ? 16 : 2) {
            size_t part = size / pattern * pattern, offset = pattern * 2;
            memset(bytes_of(a), 7, all);
            OK(clEnqueueFillBuffer(queue, a, from, pattern, offset, part, 0, NULL, NULL));
            OK(clFinish(queue));
            const uint8_t *filled = bytes_of(a) + offset;
            if (part) /* the pattern, and then what was a pattern before */
                CHECK(!memcmp(filled, from, pattern) && !memcmp(filled + pattern, filled, part - pattern));
            CHECK(bytes_of(a)[offset - 1] == 7 && bytes_of(a)[offset + part] == 7);
        }
        free(from);
        free(to);
        OK(clReleaseMemObject(a));
        OK(clReleaseMemObject(b));
    }
}

static void rectangles(void) {
    enum { SIZE = 40000 };
    static uint8_t host[SIZE], expected[SIZE];
    cl_mem a = test_buffer(context, SIZE), b = test_buffer(context, SIZE);
    int done = 0;
    for (int round = 0; round < 4000; round++) {
        size_t region[3], x[3], y[3], pitch[4] = {0};
        for (int i = 0; i < 3; i++) {
            region[i] = 1 + next_random(i ? 6 : 40);
            x[i] = next_random(5);
            y[i] = next_random(5);
        }
        size_t row_x = region[0] + (next_random(2) ? next_random(9) : 0);
        size_t row_y = region[0] + (next_random(2) ? next_random(9) : 0);
        size_t slice_x = row_x * (region[1] + (next_random(2) ? next_random(4) : 0));
        size_t slice_y = row_y * (region[1] + (next_random(2) ? next_random(4) : 0));
        pitch[0] = row_x == region[0] && next_random(2) ? 0 : row_x;
        pitch[1] = slice_x == row_x * region[1] && next_random(2) ? 0 : slice_x;
        pitch[2] = row_y == region[0] && next_random(2) ? 0 : row_y;
        pitch[3] = slice_y == row_y * region[1] && next_random(2) ? 0 : slice_y;
        uint8_t *from, *to;
        int what = (int)next_random(3);
        scramble(bytes_of(a), SIZE);
        scramble(bytes_of(b), SIZE);
        scramble(host, SIZE);
        from = what == 1 ? host : bytes_of(a);
        to = what == 0 ? host : what == 1 ? bytes_of(a) : bytes_of(b);
        memcpy(expected, to, SIZE);
        for (size_t k = 0; k < region[2]; k++)
            for (size_t j = 0; j < region[1]; j++)
                for (size_t i = 0; i < region[0]; i++)
                    expected[(y[2] + k) * slice_y + (y[1] + j) * row_y + y[0] + i] =
                        from[(x[2] + k) * slice_x + (x[1] + j) * row_x + x[0] + i];
        cl_bool blocking = next_random(2);
        if (what == 0)
            OK(clEnqueueReadBufferRect(queue, a, blocking, x, y, region, pitch[0], pitch[1], pitch[2],
                                       pitch[3], host, 0, NULL, NULL));
        else if (what == 1)
            OK(clEnqueueWriteBufferRect(queue, a, blocking, y, x, region, pitch[2], pitch[3], pitch[0],
                                        pitch[1], host, 0, NULL, NULL));
        else
            OK(clEnqueueCopyBufferRect(queue, a, b, x, y, region, pitch[0], pitch[1], pitch[2], pitch[3], 0,
                                       NULL, NULL));
        OK(clFinish(queue));
        CHECK(!memcmp(expected, to, SIZE));
        done++;
    }
    CHECK_IS(done, 4000);
    /* One that is worth several threads. */
    size_t wide[3] = {3000, 1000, 2}, zero[3] = {0};
    cl_mem c = test_buffer(context, 3100 * 1000 * 2), d = test_buffer(context, 3200 * 1000 * 2);
    scramble(bytes_of(c), 3100 * 1000 * 2);
    OK(clEnqueueCopyBufferRect(queue, c, d, zero, zero, wide, 3100, 0, 3200, 0, 0, NULL, NULL));
    OK(clFinish(queue));
    for (size_t row = 0; row < 2000; row++)
        CHECK(!memcmp(bytes_of(d) + row * 3200, bytes_of(c) + row * 3100, 3000));
    OK(clReleaseMemObject(a));
    OK(clReleaseMemObject(b));
    OK(clReleaseMemObject(c));
    OK(clReleaseMemObject(d));
}

/* Whether two rectangles of one buffer overlap, byte by byte, against the driver's answer. */
static void overlaps(void) {
    enum { SIZE = 4000 };
    static uint8_t touched[SIZE];
    cl_mem buffer = test_buffer(context, SIZE);
    int overlapping = 0;
    for (int round = 0; round < 20000; round++) {
        size_t region[3], x[3], y[3];
        for (int i = 0; i < 3; i++) {
            region[i] = 1 + next_random(i ? 3 : 6);
            x[i] = next_random(4);
            y[i] = next_random(6);
        }
        size_t row = region[0] + next_random(8), slice = row * (region[1] + next_random(4));
        memset(touched, 0, SIZE);
        int expected = 0;
        for (int pass = 0; pass < 2; pass++)
            for (size_t k = 0; k < region[2]; k++)
                for (size_t j = 0; j < region[1]; j++)
                    for (size_t i = 0; i < region[0]; i++) {
                        const size_t *o = pass ? y : x;
                        size_t at = (o[2] + k) * slice + (o[1] + j) * row + o[0] + i;
                        CHECK(at < SIZE);
                        if (pass)
                            expected |= touched[at];
                        else
                            touched[at] = 1;
                    }
        cl_int status = clEnqueueCopyBufferRect(queue, buffer, buffer, x, y, region, row, slice, row, slice,
                                                0, NULL, NULL);
        CHECK_IS(status, expected ? CL_MEM_COPY_OVERLAP : CL_SUCCESS);
        overlapping += expected;
    }
    CHECK(overlapping > 1000 && overlapping < 19000);
    OK(clFinish(queue));
    OK(clReleaseMemObject(buffer));
}

static void errors(void) {
    cl_int status;
    cl_context other = test_context();
    cl_mem buffer = test_buffer(context, 1024), foreign = test_buffer(other, 1024);
    char data[2048];
    cl_buffer_region whole = {256, 512}, later = {512, 512};
    cl_mem part = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &whole, &status);
    OK(status);
    cl_mem part2 = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &later, &status);
    OK(status);
    CHECK_IS(clEnqueueReadBuffer(NULL, buffer, 1, 0, 4, data, 0, NULL, NULL), CL_INVALID_COMMAND_QUEUE);
    CHECK_IS(clEnqueueReadBuffer(queue, NULL, 1, 0, 4, data, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
    CHECK_IS(clEnqueueReadBuffer(queue, (cl_mem)queue, 1, 0, 4, data, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
    CHECK_IS(clEnqueueReadBuffer(queue, foreign, 1, 0, 4, data, 0, NULL, NULL), CL_INVALID_CONTEXT);
    CHECK_IS(clEnqueueReadBuffer(queue, buffer, 1, 1021, 4, data, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueReadBuffer(queue, buffer, 1, SIZE_MAX, 4, data, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueReadBuffer(queue, buffer, 1, 4, SIZE_MAX, data, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueReadBuffer(queue, buffer, 1, 0, 4, NULL, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueReadBuffer(queue, part, 1, 500, 16, data, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueWriteBuffer(queue, buffer, 1, 0, 4, NULL, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueReadBuffer(queue, buffer, 1, 0, 4, data, 1, NULL, NULL), CL_INVALID_EVENT_WAIT_LIST);

    cl_mem no_read = clCreateBuffer(context, CL_MEM_HOST_WRITE_ONLY, 64, NULL, &status);
    cl_mem no_write = clCreateBuffer(context, CL_MEM_HOST_READ_ONLY, 64, NULL, &status);
    cl_mem no_host = clCreateBuffer(context, CL_MEM_HOST_NO_ACCESS, 64, NULL, &status);
    size_t zero[3] = {0}, one[3] = {4, 1, 1};
    CHECK_IS(clEnqueueReadBuffer(queue, no_read, 1, 0, 4, data, 0, NULL, NULL), CL_INVALID_OPERATION);
    CHECK_IS(clEnqueueReadBuffer(queue, no_host, 1, 0, 4, data, 0, NULL, NULL), CL_INVALID_OPERATION);
    CHECK_IS(clEnqueueWriteBuffer(queue, no_write, 1, 0, 4, data, 0, NULL, NULL), CL_INVALID_OPERATION);
    CHECK_IS(clEnqueueWriteBuffer(queue, no_host, 1, 0, 4, data, 0, NULL, NULL), CL_INVALID_OPERATION);
    CHECK_IS(clEnqueueReadBufferRect(queue, no_read, 1, zero, zero, one, 0, 0, 0, 0, data, 0, NULL, NULL),
             CL_INVALID_OPERATION);
    CHECK_IS(clEnqueueWriteBufferRect(queue, no_write, 1, zero, zero, one, 0, 0, 0, 0, data, 0, NULL, NULL),
             CL_INVALID_OPERATION);
    CHECK(!clEnqueueMapBuffer(queue, no_read, 1, CL_MAP_READ, 0, 4, 0, NULL, NULL, &status));
    CHECK_IS(status, CL_INVALID_OPERATION);
    CHECK(!clEnqueueMapBuffer(queue, no_write, 1, CL_MAP_WRITE, 0, 4, 0, NULL, NULL, &status));
    CHECK_IS(status, CL_INVALID_OPERATION);
    OK(clEnqueueCopyBuffer(queue, no_host, no_read, 0, 0, 64, 0, NULL, NULL));

    CHECK_IS(clEnqueueCopyBuffer(queue, buffer, buffer, 0, 8, 16, 0, NULL, NULL), CL_MEM_COPY_OVERLAP);
    OK(clEnqueueCopyBuffer(queue, buffer, buffer, 0, 16, 16, 0, NULL, NULL));
    CHECK_IS(clEnqueueCopyBuffer(queue, part, part2, 256, 0, 16, 0, NULL, NULL), CL_MEM_COPY_OVERLAP);
    CHECK_IS(clEnqueueCopyBuffer(queue, buffer, foreign, 0, 8, 16, 0, NULL, NULL), CL_INVALID_CONTEXT);
    CHECK_IS(clEnqueueCopyBuffer(queue, buffer, part, 0, 500, 16, 0, NULL, NULL), CL_INVALID_VALUE);

    CHECK_IS(clEnqueueFillBuffer(queue, buffer, NULL, 4, 0, 16, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueFillBuffer(queue, buffer, data, 0, 0, 16, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueFillBuffer(queue, buffer, data, 3, 0, 15, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueFillBuffer(queue, buffer, data, 256, 0, 256, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueFillBuffer(queue, buffer, data, 8, 4, 16, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueFillBuffer(queue, buffer, data, 8, 8, 12, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueFillBuffer(queue, buffer, data, 8, 1024, 8, 0, NULL, NULL), CL_INVALID_VALUE);

    size_t empty[3] = {4, 0, 1}, far[3] = {0, 0, 300}, huge[3] = {0, SIZE_MAX, 0};
#define READ_RECT(o, h, r, p1, p2, p3, p4, ptr)                                                              \
    clEnqueueReadBufferRect(queue, buffer, 1, o, h, r, p1, p2, p3, p4, ptr, 0, NULL, NULL)
    CHECK_IS(READ_RECT(NULL, zero, one, 0, 0, 0, 0, data), CL_INVALID_VALUE);
    CHECK_IS(READ_RECT(zero, NULL, one, 0, 0, 0, 0, data), CL_INVALID_VALUE);
    CHECK_IS(READ_RECT(zero, zero, NULL, 0, 0, 0, 0, data), CL_INVALID_VALUE);
    CHECK_IS(READ_RECT(zero, zero, one, 0, 0, 0, 0, NULL), CL_INVALID_VALUE);
    CHECK_IS(READ_RECT(zero, zero, empty, 0, 0, 0, 0, data), CL_INVALID_VALUE);
    CHECK_IS(READ_RECT(far, zero, one, 0, 0, 0, 0, data), CL_INVALID_VALUE);
    CHECK_IS(READ_RECT(huge, zero, one, 0, 0, 0, 0, data), CL_INVALID_VALUE);
    CHECK_IS(READ_RECT(zero, zero, one, 3, 0, 0, 0, data), CL_INVALID_VALUE);
    CHECK_IS(READ_RECT(zero, zero, one, 0, 0, 3, 0, data), CL_INVALID_VALUE);
    CHECK_IS(READ_RECT(zero, zero, one, 8, 12, 0, 0, data), CL_INVALID_VALUE);
    CHECK_IS(READ_RECT(zero, zero, one, 0, 0, 8, 12, data), CL_INVALID_VALUE);
    CHECK_IS(READ_RECT(zero, zero, one, 8, 4, 0, 0, data), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueCopyBufferRect(queue, buffer, buffer, zero, one, one, 8, 0, 16, 0, 0, NULL, NULL),
             CL_INVALID_VALUE);

    CHECK_IS(clEnqueueMigrateMemObjects(queue, 0, &buffer, 0, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueMigrateMemObjects(queue, 1, NULL, 0, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueMigrateMemObjects(queue, 1, &buffer, 64, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueMigrateMemObjects(queue, 1, (cl_mem *)&queue, 0, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
    CHECK_IS(clEnqueueMigrateMemObjects(queue, 1, &foreign, 0, 0, NULL, NULL), CL_INVALID_CONTEXT);
    OK(clEnqueueMigrateMemObjects(queue, 1, &buffer, CL_MIGRATE_MEM_OBJECT_HOST, 0, NULL, NULL));
    CHECK_IS(clEnqueueReadImage(queue, buffer, 1, zero, one, 0, 0, data, 0, NULL, NULL),
             CL_INVALID_MEM_OBJECT);
    CHECK_IS(clEnqueueReadImage(NULL, buffer, 1, zero, one, 0, 0, data, 0, NULL, NULL),
             CL_INVALID_COMMAND_QUEUE);

    /* A sub-buffer that is not aligned for this device (the creation would have refused it). */
    ((struct cld_mem *)part)->offset = 4;
    CHECK_IS(clEnqueueReadBuffer(queue, part, 1, 0, 4, data, 0, NULL, NULL), CL_MISALIGNED_SUB_BUFFER_OFFSET);
    ((struct cld_mem *)part)->offset = 256;
    OK(clFinish(queue));
    cl_mem all[] = {part, part2, buffer, foreign, no_read, no_write, no_host};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        OK(clReleaseMemObject(all[i]));
    OK(clReleaseContext(other));
}

static cl_uint map_count(cl_mem buffer) {
    cl_uint count;
    OK(clGetMemObjectInfo(buffer, CL_MEM_MAP_COUNT, sizeof count, &count, NULL));
    return count;
}

static void maps(void) {
    cl_int status;
    cl_mem buffer = test_buffer(context, 1024);
    uint8_t *a = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_WRITE, 100, 50, 0, NULL, NULL, &status);
    OK(status);
    CHECK(a == bytes_of(buffer) + 100);
    CHECK(!clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_WRITE, 149, 50, 0, NULL, NULL, &status));
    CHECK_IS(status, CL_INVALID_OPERATION);
    uint8_t *b = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_WRITE, 150, 50, 0, NULL, NULL, &status);
    OK(status);
    uint8_t *c = clEnqueueMapBuffer(queue, buffer, CL_FALSE, CL_MAP_READ, 100, 50, 0, NULL, NULL, &status);
    CHECK(a == c && map_count(buffer) == 3);
    CHECK(!clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, 0, 0, NULL, NULL, &status));
    CHECK_IS(status, CL_INVALID_VALUE);
    CHECK(!clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 1000, 25, 0, NULL, NULL, &status));
    CHECK_IS(status, CL_INVALID_VALUE);
    CHECK(!clEnqueueMapBuffer(queue, buffer, CL_TRUE, 64, 0, 8, 0, NULL, NULL, &status));
    CHECK_IS(status, CL_INVALID_VALUE);
    CHECK_IS(clEnqueueUnmapMemObject(queue, buffer, a + 1, 0, NULL, NULL), CL_INVALID_VALUE);
    OK(clEnqueueUnmapMemObject(queue, buffer, a, 0, NULL, NULL));
    OK(clEnqueueUnmapMemObject(queue, buffer, a, 0, NULL, NULL));
    CHECK_IS(clEnqueueUnmapMemObject(queue, buffer, a, 0, NULL, NULL), CL_INVALID_VALUE);
    OK(clEnqueueUnmapMemObject(queue, buffer, b, 0, NULL, NULL));
    CHECK_IS(map_count(buffer), 0);
    OK(clFinish(queue));
    a = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_WRITE, 0, 50, 0, NULL, NULL, &status);
    OK(clReleaseMemObject(buffer)); /* with something mapped */
}

static int freed;

static void CL_CALLBACK free_them(cl_command_queue in, cl_uint count, void *pointers[], void *data) {
    CHECK(in == queue && data == &freed);
    for (cl_uint i = 0; i < count; i++)
        free(pointers[i]);
    freed = (int)count;
}

static void shared_memory(void) {
    CHECK(!clSVMAlloc(NULL, 0, 64, 0));
    CHECK(!clSVMAlloc(context, 0, 0, 0));
    CHECK(!clSVMAlloc(context, 0, 64, 3));
    CHECK(!clSVMAlloc(context, 0, 64, 4096));
    CHECK(!clSVMAlloc(context, CL_MEM_SVM_ATOMICS, 64, 0));
    CHECK(!clSVMAlloc(context, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 64, 0));
    CHECK(!clSVMAlloc(context, CL_MEM_USE_HOST_PTR, 64, 0));
    CHECK(!clSVMAlloc(context, 0, (size_t)1 << 40, 0));
    enum { COUNT = 300 };
    uint8_t *all[COUNT];
    for (int i = 0; i < COUNT; i++) {
        all[i] = clSVMAlloc(context, i % 2 ? CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS : 0,
                            (size_t)i * 10 + 256, 0);
        CHECK(all[i] && (uintptr_t)all[i] % 128 == 0);
        memset(all[i], i, (size_t)i * 10 + 256);
    }
    int pattern[2] = {0x01020304, 0x05060708};
    OK(clEnqueueSVMMemFill(queue, all[7], pattern, 8, 256, 0, NULL, NULL));
    OK(clEnqueueSVMMemcpy(queue, CL_TRUE, all[8], all[7], 256, 0, NULL, NULL));
    for (int i = 0; i < 64; i++)
        CHECK(((int *)all[8])[i] == pattern[i % 2]);
    CHECK_IS(clEnqueueSVMMemcpy(queue, CL_TRUE, all[8] + 5, all[8], 256, 0, NULL, NULL), CL_MEM_COPY_OVERLAP);
    CHECK_IS(clEnqueueSVMMemcpy(queue, CL_TRUE, NULL, all[8], 256, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueSVMMemFill(queue, all[7] + 4, pattern, 8, 256, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueSVMMemFill(queue, all[7], pattern, 8, 255, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueSVMMemFill(queue, all[7], pattern, 7, 256, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, NULL, 4, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, all[0], 0, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueSVMMap(queue, CL_TRUE, 128, all[0], 4, 0, NULL, NULL), CL_INVALID_VALUE);
    OK(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, all[0], 4, 0, NULL, NULL));
    OK(clEnqueueSVMUnmap(queue, all[0], 0, NULL, NULL));
    CHECK_IS(clEnqueueSVMUnmap(queue, NULL, 0, NULL, NULL), CL_INVALID_VALUE);
    const void *ranges[2] = {all[3] + 8, all[4]};
    size_t sizes[2] = {8, 0}, too_long[2] = {300, 0};
    OK(clEnqueueSVMMigrateMem(queue, 2, ranges, sizes, 0, 0, NULL, NULL));
    OK(clEnqueueSVMMigrateMem(queue, 2, ranges, NULL, 0, 0, NULL, NULL));
    CHECK_IS(clEnqueueSVMMigrateMem(queue, 2, ranges, too_long, 0, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_IS(clEnqueueSVMMigrateMem(queue, 0, ranges, sizes, 0, 0, NULL, NULL), CL_INVALID_VALUE);
    cl_event event;
    cl_command_type type;
    void *three[3] = {malloc(8), malloc(8), malloc(8)};
    OK(clEnqueueSVMFree(queue, 3, three, free_them, &freed, 0, NULL, &event));
    OK(clWaitForEvents(1, &event));
    OK(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL));
    CHECK_IS(type, CL_COMMAND_SVM_FREE);
    CHECK_IS(freed, 3);
    OK(clReleaseEvent(event));
    CHECK_IS(clEnqueueSVMFree(queue, 0, three, NULL, NULL, 0, NULL, NULL), CL_INVALID_VALUE);
    OK(clEnqueueSVMFree(queue, 100, (void **)all, NULL, NULL, 0, NULL, NULL));
    OK(clFinish(queue));
    for (int i = 100; i < 200; i++)
        clSVMFree(context, all[299 - i]);
    clSVMFree(context, NULL);
    clSVMFree(context, &freed); /* not ours: nothing happens */
}

/* Buffers that a command in flight uses live until it ends; their destructors run in reverse order. */
static int order[3];
static _Atomic int calls;

static void CL_CALLBACK destroyed(cl_mem buffer, void *data) {
    (void)buffer;
    order[calls] = (int)(intptr_t)data;
    calls++;
}

static void lifetime(void) {
    cl_event user = clCreateUserEvent(context, NULL);
    cl_mem buffer = test_buffer(context, 1 << 20);
    char *data = malloc(1 << 20);
    for (intptr_t i = 0; i < 3; i++)
        OK(clSetMemObjectDestructorCallback(buffer, destroyed, (void *)i));
    OK(clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, 1 << 20, data, 1, &user, NULL));
    OK(clReleaseMemObject(buffer));
    CHECK_IS(calls, 0);
    OK(clSetUserEventStatus(user, CL_COMPLETE));
    OK(clFinish(queue));
    for (int i = 0; i < 60000 && calls < 3; i++) /* not before the thread of callbacks gets a CPU */
        usleep(1000);
    CHECK(calls == 3 && order[0] == 2 && order[1] == 1 && order[2] == 0);
    OK(clReleaseEvent(user));
    free(data);
}

/* Whether the kernel has been told that huge pages are wanted where the address is. */
static bool wants_huge_pages(const void *address) {
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[512];
    bool here = false, wants = false;
    while (file && fgets(line, sizeof line, file)) {
        uintptr_t first, last;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &first, &last) == 2)
            here = first <= (uintptr_t)address && (uintptr_t)address < last;
        else if (here && !strncmp(line, "VmFlags:", 8))
            wants = strstr(line, " hg");
    }
    if (file)
        fclose(file);
    return wants;
}

static void large_pages(void) {
    cl_mem large = clCreateBuffer(context, 0, 16 << 20, NULL, NULL);
    void *svm = clSVMAlloc(context, 0, 16 << 20, 0);
    CHECK(large && svm);
    if (!access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK)) {
        CHECK(wants_huge_pages(bytes_of(large) + (15 << 20)));
        CHECK(wants_huge_pages(svm));
    }
    OK(clReleaseMemObject(large));
    clSVMFree(context, svm);
    for (size_t size = 1; size <= 64 << 20; size *= 2)
        for (int i = 0; i < 9; i++) { /* freed is what was allocated, wherever it begins */
            cl_mem buffer = clCreateBuffer(context, 0, size, NULL, NULL);
            CHECK(buffer && (uintptr_t)bytes_of(buffer) % 128 == 0);
            bytes_of(buffer)[0] = bytes_of(buffer)[size - 1] = 1;
            OK(clReleaseMemObject(buffer));
            CHECK((svm = clSVMAlloc(context, 0, size, 0)) && (uintptr_t)svm % 128 == 0);
            memset(svm, 1, size < 4096 ? size : 4096);
            clSVMFree(context, svm);
        }
}

int main(void) {
    context = test_context();
    queue = test_queue(context, 0);
    linear();
    rectangles();
    overlaps();
    errors();
    maps();
    shared_memory();
    large_pages();
    lifetime();
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseContext(context));
}
