/* Storage that is kept when it is freed: who gets it, how much there is, and that nobody else has it. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>

#include "harness.h"
#include "memory/allocator.h"

#if defined(__SANITIZE_ADDRESS__)
enum { KEEPS = 0 };
#else
enum { KEEPS = 1 };
#endif

static uintptr_t page_of(const void *start) {
    return (uintptr_t)start & ~(uintptr_t)4095;
}

/* Whether storage of `next` bytes is where that of `size` was, which is freed. */
static int is_reused(size_t size, size_t next) {
    void *first = cld_allocate(size);
    uintptr_t place = page_of(first);
    memset(first, 1, size);
    cld_allocate_free(first, size);
    void *other = cld_allocate(next);
    int reused = page_of(other) == place;
    memset(other, 2, next);
    cld_allocate_free(other, next);
    return reused;
}

/* Eight sizes from one power of two to the next share it, at the most; it begins at another place of the
 * page. */
static void sizes(void) {
    for (size_t size = 64 << 10; size < 16 << 20; size += size / 5) {
        CHECK_IS(is_reused(size, size), KEEPS);
        CHECK_IS(is_reused(size, size + 1), KEEPS);
    }
    void *other = cld_allocate(1 << 20); /* none of this size is kept then */
    CHECK(!is_reused(800 << 10, 1 << 20));
    CHECK(!is_reused((1 << 20) + (200 << 10), 1 << 20));
    cld_allocate_free(other, 1 << 20);
}

static size_t in_use(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* What is kept is 64 MiB at most, and of 16 blocks. */
static void limits(void) {
    enum { MANY = 40 };
    void *blocks[MANY];
    size_t before = in_use();
    for (size_t size = 256 << 10; size < 16 << 20; size = size * 5 / 2) {
        for (int i = 0; i < MANY; i++) {
            CHECK((blocks[i] = cld_allocate(size)));
            memset(blocks[i], i, 4096);
        }
        for (int i = 0; i < MANY; i++)
            cld_allocate_free(blocks[i], size);
        if (KEEPS) {
            size_t more = in_use() > before ? in_use() - before : 0;
            CHECK(more <= (65 << 20) && more <= 18 * (size + size / 4));
        }
    }
}

/* Threads that allocate and free: what one has written stays as it is. */
static void *use(void *argument) {
    unsigned number = (unsigned)(uintptr_t)argument;
    uint64_t state = number + 1;
    void *blocks[4] = {NULL};
    size_t lengths[4];
    for (unsigned i = 0; i < 20000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        unsigned at = state >> 33 & 3;
        if (blocks[at]) {
            uint64_t *words = blocks[at];
            CHECK(words[0] == number && words[lengths[at] / 8 - 1] == number);
            cld_allocate_free(blocks[at], lengths[at]);
        }
        lengths[at] = (64 << 10) + (state >> 40) % 9 * (16 << 10);
        uint64_t *words = blocks[at] = cld_allocate(lengths[at]);
        words[0] = words[lengths[at] / 8 - 1] = number;
    }
    for (int i = 0; i < 4; i++)
        if (blocks[i])
            cld_allocate_free(blocks[i], lengths[i]);
    return NULL;
}

static void threads(void) {
    pthread_t made[4];
    for (uintptr_t i = 0; i < 4; i++)
        CHECK(!pthread_create(&made[i], NULL, use, (void *)i));
    for (int i = 0; i < 4; i++)
        pthread_join(made[i], NULL);
}

int main(void) {
    sizes();
    limits();
    threads();
    return 0;
}
