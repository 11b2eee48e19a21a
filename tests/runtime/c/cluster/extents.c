/* cluster/extents.c: what parts of a launch read and write, by numbers that a program binary may have. */
#include "cluster/extents.h"

#include "../harness.h"

/* As in extents.py. */
enum { END, NUMBER, SYMBOL, ADD, MULTIPLY, DIVIDE, REMAINDER, LEAST, GREATEST, EITHER, IDS, ROUNDS, AT_MOST };
enum { AT_LEAST = AT_MOST + 1, ASSUME, ALL };
enum { ARGUMENT, GLOBAL_SIZE, LOCAL_SIZE, GROUPS, OFFSET, GLOBAL_ID, LOCAL_ID, GROUP_ID };
enum { ELEMENT_SIZE = 9, ROW_PITCH, SLICE_PITCH, WIDTH, HEIGHT, DEPTH, LAYERS };
enum { SIZE = 4096, TRIES = 300000, MOST = 64 };

static struct cld_arg_info args[2] = {{.kind = CLD_ARG_GLOBAL},
                                      {.kind = CLD_ARG_VALUE, .size = 4, .offset = 8}};
static struct cld_kernel_info info = {.arg_count = 2, .args = args};
static uint8_t block[16];
static struct cld_event launch;
static struct cld_argument_extent extents[2];
static const struct cld_image_desc image = {
    .element_size = 8, .row_pitch = 200, .slice_pitch = 1000, .width = 24, .height = 4, .depth = 2};
static struct cld_extent_memory memories[2] = {{.size = SIZE}};

static bool evaluate(const int64_t *numbers, size_t count, uint64_t first, uint64_t last) {
    const struct cld_group_range groups = {0, first, last};
    info.extents = (int64_t *)(uintptr_t)numbers;
    info.extent_count = (uint32_t)count;
    return cld_extents_of(&launch, &groups, memories, extents);
}

#define EVALUATE(first, last, ...)                                                                           \
    evaluate((const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t),       \
             first, last)

static void check_read(long begin, long end) {
    CHECK_IS(extents[0].read.begin, begin);
    CHECK_IS(extents[0].read.end, end);
}

static void values(void) {
    const int64_t argument = 1 | 4 << 24;
    /* a[4 * get_global_id(0)], of groups of 16 */
    CHECK(EVALUATE(2, 5, 0, 1, 4, 0, NUMBER, 4, IDS, GLOBAL_ID, 0, MULTIPLY, END));
    check_read(4 * 32, 4 * 80);
    /* the same where it is below the argument, 40, as ints are compared */
    CHECK(EVALUATE(2, 5, 0, 1, 4, 0, NUMBER, 4, IDS, GLOBAL_ID, 0, NUMBER, -1, SYMBOL, ARGUMENT, argument,
                   ADD, IDS, GLOBAL_ID, 0, ASSUME, 32, 1, AT_MOST, 1, MULTIPLY, END));
    check_read(4 * 32, 4 * 40);
    /* which no work-item of these is */
    CHECK(EVALUATE(3, 5, 0, 1, 4, 0, IDS, GLOBAL_ID, 0, NUMBER, 39, AT_MOST, 0, END));
    check_read(0, 0);
    /* what is assumed is not so: all of it */
    CHECK(EVALUATE(2, 5, 0, 1, 4, 1, 5, 0, IDS, GLOBAL_ID, 0, END, IDS, GLOBAL_ID, 0, END));
    check_read(0, SIZE);
    CHECK(EVALUATE(0, 1, 0, 1, 1, 0, ALL, END));
    check_read(0, SIZE);
    /* iterations while 10 - 4 t >= 0, behind the condition and not */
    CHECK(EVALUATE(0, 1, 0, 1, 1, 0, NUMBER, 10, NUMBER, 4, ROUNDS, 1, 0, END));
    check_read(0, 3);
    CHECK(EVALUATE(0, 1, 0, 1, 1, 0, NUMBER, 10, NUMBER, 4, ROUNDS, 0, 0, END));
    check_read(0, 4);
    CHECK(EVALUATE(0, 1, 0, 1, 1, 0, NUMBER, -1, NUMBER, 4, ROUNDS, 1, 0, END));
    check_read(0, 0);
    /* a[id / 7 * 7 + id % 7], not joined: a little more than that */
    CHECK(EVALUATE(1, 2, 0, 1, 1, 0, IDS, GLOBAL_ID, 0, NUMBER, 7, DIVIDE, NUMBER, 7, MULTIPLY, IDS,
                   GLOBAL_ID, 0, NUMBER, 7, REMAINDER, ADD, END));
    check_read(14, 35);
    /* a[max(id - 1, 0)], and products that are no int64 */
    CHECK(EVALUATE(0, 1, 0, 1, 1, 0, IDS, GLOBAL_ID, 0, NUMBER, -1, ADD, NUMBER, 0, GREATEST, END));
    check_read(0, 15);
    CHECK(EVALUATE(0, 1, 0, 1, 1, 0, NUMBER, INT64_MAX - 1, NUMBER, 3, MULTIPLY, END));
    check_read(0, SIZE);
    /* outside of the buffer */
    CHECK(EVALUATE(0, 1, 0, 1, 4, 0, NUMBER, SIZE, END));
    check_read(0, 0);
    CHECK(EVALUATE(0, 1, 0, 1, 4, 0, NUMBER, -6, NUMBER, 2, EITHER, END));
    check_read(0, 6);
}

static void malformed(void) {
    CHECK(!EVALUATE(0, 1, 5, 1, 4, 0, NUMBER, 0, END));                     /* argument */
    CHECK(!EVALUATE(0, 1, 0, 1, 0, 0, NUMBER, 0, END));                     /* bytes */
    CHECK(!EVALUATE(0, 1, 0, 3, 4, 0, NUMBER, 0, END));                     /* kind */
    CHECK(!EVALUATE(0, 1, 0, 4 | 16 * 9, 4, 0, NUMBER, 0, END));            /* combination */
    CHECK(!EVALUATE(0, 1, 0, 1, 4, 0, ADD, END));                           /* no operands */
    CHECK(!EVALUATE(0, 1, 0, 1, 4, 0, NUMBER, 1, NUMBER, 2, END));          /* two values */
    CHECK(!EVALUATE(0, 1, 0, 1, 4, 0, NUMBER, 1));                          /* no end */
    CHECK(!EVALUATE(0, 1, 0, 1, 4, 0, 99, END));                            /* code */
    CHECK(!EVALUATE(0, 1, 0, 1, 4, 0, SYMBOL, ARGUMENT, 0, END));           /* no value */
    CHECK(!EVALUATE(0, 1, 0, 1, 4, 0, SYMBOL, ARGUMENT, 1 | 8 << 24, END)); /* beyond it */
    CHECK(!EVALUATE(0, 1, 0, 1, 4, 0, IDS, GROUP_ID, 3, END));              /* dimension */
    int64_t deep[3 * MOST * 2] = {0, 1, 4, 0};
    for (int i = 4; i < 3 * MOST * 2; i += 2)
        deep[i] = NUMBER;
    CHECK(!evaluate(deep, 3 * MOST * 2, 0, 1));
}

/* Any numbers end, and what they say lies in the buffer. */
static void random_numbers(void) {
    uint64_t state = 7;
    for (int i = 0; i < TRIES; i++) {
        int64_t numbers[MOST];
        uint32_t count = 0, wanted = 4 + (uint32_t)(state >> 33) % (MOST - 4);
        for (; count < wanted; count++) {
            state = state * 6364136223846793005 + 1442695040888963407;
            uint64_t chance = state >> 33;
            numbers[count] = chance % 64 ? (int64_t)(chance / 64 % 20) - 2 : (int64_t)(state ^ state << 31);
        }
        if (evaluate(numbers, count, 0, 3))
            for (int k = 0; k < 2; k++)
                CHECK(extents[k].read.end <= memories[k].size && extents[k].written.end <= memories[k].size &&
                      extents[k].combined.end <= memories[k].size);
    }
}

/* A row of an image for each work-item of dimension 0, all of its pixels. */
static void pixels(void) {
    const int64_t at[] = {0,        2,        0,        0,       IDS,    GLOBAL_ID,    0,
                          NUMBER,   0,        AT_LEAST, 0,       SYMBOL, HEIGHT,       0,
                          NUMBER,   -1,       ADD,      AT_MOST, 0,      SYMBOL,       ROW_PITCH,
                          0,        MULTIPLY, NUMBER,   0,       SYMBOL, WIDTH,        0,
                          NUMBER,   -1,       ADD,      EITHER,  SYMBOL, ELEMENT_SIZE, 0,
                          MULTIPLY, ADD,      END};
    CHECK(!evaluate(at, sizeof at / sizeof *at, 0, 1)); /* it is no image */
    args[0].kind = CLD_ARG_IMAGE;
    CHECK(evaluate(at, sizeof at / sizeof *at, 0, 1)); /* whose pixels share bytes */
    CHECK_IS(extents[0].written.end, SIZE);
    CHECK(EVALUATE(0, 1, 0, 1, 0, 0, NUMBER, 0, SYMBOL, ELEMENT_SIZE, 0, MULTIPLY, END));
    CHECK_IS(extents[0].read.end, SIZE);
    memories[0].image = &image;
    launch.kernel.launch.local_size[0] = 2;
    CHECK(evaluate(at, sizeof at / sizeof *at, 0, 1));
    CHECK_IS(extents[0].written.begin, 0);
    CHECK_IS(extents[0].written.end, 200 + 24 * 8);
    CHECK(evaluate(at, sizeof at / sizeof *at, 1, 8)); /* no more rows than it has */
    CHECK_IS(extents[0].written.begin, 2 * 200);
    CHECK_IS(extents[0].written.end, 3 * 200 + 24 * 8);
    CHECK(evaluate(at, sizeof at / sizeof *at, 2, 8));
    CHECK_IS(extents[0].written.end, 0);
    CHECK(!EVALUATE(0, 1, 0, 2, 0, 0, SYMBOL, WIDTH, 1, END)); /* another argument */
    CHECK(!EVALUATE(0, 1, 0, 2, 0, 0, SYMBOL, LAYERS + 1, 0, END));
    launch.kernel.launch.local_size[0] = 16;
    random_numbers();
    memories[0].image = NULL;
}

int main(void) {
    const int32_t value = 40;
    launch.kernel.info = &info;
    launch.kernel.args = block;
    memcpy(block + 8, &value, sizeof value);
    launch.kernel.launch = (struct cld_launch){
        .global_size = {160, 1, 1}, .local_size = {16, 1, 1}, .num_groups = {10, 1, 1}, .work_dim = 1};
    values();
    malformed();
    pixels();
    random_numbers();
    return 0;
}
