/* Memory of large pages for the objects of compiler processes' Python (cl_driver/arenas.py): they come up,
 * fill tens of megabytes and end, and the system takes as long to give them these page by page as Python
 * takes to run a good part of their code.
 *
 * Python takes arenas and returns them; it holds the GIL meanwhile. Those that it had before are returned
 * here, too: they were mapped as these are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define PUBLIC __attribute__((visibility("default")))

/* Bytes of a large page of x86-64, and of aarch64 with small pages of 4 KiB. */
enum { LARGE = 2 << 20 };

/* PyObjectArenaAllocator. */
struct allocator {
    void *context;
    void *(*allocate)(void *context, size_t size);
    void (*release)(void *context, void *at, size_t size);
};

/* What is left of the large page that was mapped last. */
static char *rest;
static size_t rest_size;

static void *map(size_t size) {
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* A large page, at a multiple of its size, where the system will have one. */
static char *map_large(void) {
    char *at = map(2 * LARGE - 4096);
    if (!at)
        return NULL;
    char *first = (char *)(((uintptr_t)at + LARGE - 1) & ~(uintptr_t)(LARGE - 1));
    char *end = at + 2 * LARGE - 4096;
    if (first > at)
        munmap(at, (size_t)(first - at));
    if (end > first + LARGE)
        munmap(first + LARGE, (size_t)(end - first - LARGE));
    madvise(first, LARGE, MADV_HUGEPAGE);
    return first;
}

static void *allocate(void *context, size_t size) {
    (void)context;
    if (size > LARGE || LARGE % size)
        return map(size);
    if (rest_size < size) {
        char *at = map_large();
        if (!at)
            return map(size);
        if (rest_size)
            munmap(rest, rest_size);
        rest = at;
        rest_size = LARGE;
    }
    void *at = rest;
    rest += size;
    rest_size -= size;
    return at;
}

static void release(void *context, void *at, size_t size) {
    (void)context;
    munmap(at, size);
}

/* From now on this process's Python has its arenas from here; false where it has no such thing. */
PUBLIC bool cld_use_large_pages(void) {
    struct allocator allocator = {NULL, allocate, release};
    void (*set)(struct allocator *) =
        (void (*)(struct allocator *))dlsym(RTLD_DEFAULT, "PyObject_SetArenaAllocator");
    if (set)
        set(&allocator);
    return set;
}
