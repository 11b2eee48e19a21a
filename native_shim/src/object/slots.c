/* Slots that nobody has: a bit each, outside of the slots.
 *
 * A handle may be asked for long after its object has gone: by an ICD loader, which reads the table of entry
 * points through it, and then by cld_object_check. So the header of a dead slot stays readable for ever.
 * Where all slots of a chunk are dead, the chunk's pages are given back all the same: the chunk then shows
 * the pages of a template, which all such chunks share, and in which each slot is dead. It is "cold" until
 * its slots are needed again. Both changes are one mremap, so that a header can be read at any time while
 * they happen. */
#define _GNU_SOURCE
#include "object/slots.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum {
    COMMIT = 2 << 20,
    WORDS = 4, /* of bits, in a chunk */
    CHUNK_SLOTS = WORDS * 64,
    CHUNK = CHUNK_SLOTS * CLD_SLOT_SIZE,
    KEPT = 96, /* chunks without a live slot that keep their pages: what soon comes back costs nothing */
    MOST_COLD = 16384, /* each is a mapping, and a process may have 65,530 of them */
};

#define RESERVE ((size_t)4 << 30)
#define CHUNKS (RESERVE / CHUNK + 1)

_Static_assert(CLD_SLOT_SIZE % 128 == 0, "slots keep their alignment");
_Static_assert(CHUNK % 65536 == 0, "a chunk is whole pages, also of 64 KiB");
_Static_assert(CLD_SLOT_BATCH == 64, "fresh slots are a word of bits");

_Atomic(uint8_t *) cld_slots;
_Atomic size_t cld_slots_used;

struct chunk {
    uint64_t dead[WORDS]; /* a bit for each dead slot that nobody has */
    uint16_t count;       /* of such */
    bool cold;
};

/* All below is guarded by the lock. */
static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t slots_once = PTHREAD_ONCE_INIT;
static size_t reserved, committed;
static const void *dispatch_table;
static void *dispatch_data;
static struct chunk chunks[CHUNKS];
static uint64_t
    available[CHUNKS / 64 + 1]; /* a bit for each chunk with dead slots that nobody has, cold or not */
static size_t first_available;  /* no word of them before this one has a bit */
static size_t idle, cold;       /* chunks all of whose slots are dead and nobody's: hot ones, cold ones */
static uint8_t *template;
static bool never_cold; /* this kernel does not go along */

static void (*around_fork[3])(void);

void cld_object_around_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
    around_fork[0] = prepare;
    around_fork[1] = parent;
    around_fork[2] = child;
}

/* Address space is all that the reservation costs; less of it where RLIMIT_AS says that the host counts it.
 */
static void reserve(void) {
    struct rlimit limit;
    size_t size = RESERVE;
    if (!getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY)
        while (size > limit.rlim_cur / 16)
            size /= 2;
    for (; size >= COMMIT; size /= 2) {
        void *range = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range != MAP_FAILED) {
            cld_slots = range;
            reserved = size;
            break;
        }
    }
    pthread_atfork(around_fork[0], around_fork[1], around_fork[2]);
}

void cld_slots_fork_prepare(void) {
    pthread_mutex_lock(&slots_lock);
}

void cld_slots_fork_done(void) {
    pthread_mutex_unlock(&slots_lock);
}

static uint8_t *chunk_at(size_t index) {
    return cld_slots + index * CHUNK;
}

static void set_header(uint8_t *slot) {
    struct cld_object *object = (struct cld_object *)slot;
    object->dispatch = dispatch_table;
    object->dispatch_data = dispatch_data;
}

/* A chunk of dead slots somewhere else, or NULL. Its pages come at once, for a fault of each takes longer. */
static uint8_t *map_dead(int sharing) {
    uint8_t *memory = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE,
                           sharing | MAP_ANONYMOUS | MAP_NORESERVE | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    for (size_t at = 0; at < CHUNK; at += CLD_SLOT_SIZE)
        set_header(memory + at);
    return memory;
}

/* An mremap that fails may have unmapped where it was to go: then there must be dead slots again. */
static void restore(uint8_t *to) {
    unsigned char in_memory;
    if (!mincore(to, 1, &in_memory) || errno != ENOMEM)
        return;
    if (mmap(to, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
             0) == to)
        for (size_t at = 0; at < CHUNK; at += CLD_SLOT_SIZE)
            set_header(to + at);
}

/* Gives the pages of a chunk back, all of whose slots are dead and nobody's. */
static void cool(size_t index) {
    if (!template && (template = map_dead(MAP_SHARED)))
        mprotect(template, CHUNK, PROT_READ);
    if (!template) {
        never_cold = true;
        return;
    }
    /* Of an old size of 0, mremap makes a second mapping of shared pages. */
    uint8_t *to = chunk_at(index);
    if (mremap(template, 0, CHUNK, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to) {
        restore(to);
        never_cold = true;
        return;
    }
    chunks[index].cold = true;
    cold++;
    idle--;
}

/* Gives a cold chunk pages of its own again; false if there is no memory. */
static bool warm(size_t index) {
    uint8_t *to = chunk_at(index), *memory = map_dead(MAP_PRIVATE);
    if (!memory)
        return false;
    if (mremap(memory, CHUNK, CHUNK, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to) {
        munmap(memory, CHUNK);
        restore(to);
        return false;
    }
    chunks[index].cold = false;
    cold--;
    idle++;
    return true;
}

/* Slots that were never used, a word of bits of them; false if there are none or no memory. */
static struct dead *take_fresh(void) {
    size_t used = atomic_load_explicit(&cld_slots_used, memory_order_relaxed);
    size_t end = used + (size_t)CLD_SLOT_BATCH * CLD_SLOT_SIZE;
    if (end > committed && committed < reserved &&
        !mprotect(cld_slots + committed, COMMIT, PROT_READ | PROT_WRITE))
        committed += COMMIT;
    if (end > committed)
        return NULL;
    struct dead *chain = NULL;
    for (size_t at = end; at > used;) {
        at -= CLD_SLOT_SIZE;
        set_header(cld_slots + at);
        struct dead *dead = (struct dead *)(cld_slots + at);
        dead->next = chain;
        chain = dead;
    }
    atomic_store_explicit(&cld_slots_used, end, memory_order_release);
    return chain;
}

/* The first chunk, by address, with dead slots that nobody has and pages of its own; else CHUNKS. The lowest
 * are filled up first, so that the others become idle. */
static size_t find_available(void) {
    for (; first_available < sizeof available / sizeof *available; first_available++)
        if (available[first_available])
            return first_available * 64 + (size_t)__builtin_ctzll(available[first_available]);
    return CHUNKS;
}

struct dead *cld_slots_take(void) {
    pthread_once(&slots_once, reserve);
    pthread_mutex_lock(&slots_lock);
    struct dead *chain = NULL, **tail = &chain;
    int count = 0;
    while (count < CLD_SLOT_BATCH) {
        size_t index = find_available();
        if (index == CHUNKS || (chunks[index].cold && !warm(index)))
            break;
        struct chunk *chunk = &chunks[index];
        if (chunk->count == CHUNK_SLOTS)
            idle--;
        for (int word = 0; word < WORDS; word++)
            for (; chunk->dead[word] && count < CLD_SLOT_BATCH; count++) {
                int bit = __builtin_ctzll(chunk->dead[word]);
                chunk->dead[word] &= chunk->dead[word] - 1;
                chunk->count--;
                *tail = (struct dead *)(chunk_at(index) + (size_t)(word * 64 + bit) * CLD_SLOT_SIZE);
                tail = &(*tail)->next;
            }
        if (!chunk->count)
            available[index / 64] &= ~((uint64_t)1 << index % 64);
    }
    *tail = NULL;
    if (!chain)
        chain = take_fresh();
    pthread_mutex_unlock(&slots_lock);
    return chain;
}

void cld_slots_put(struct dead *chain) {
    pthread_mutex_lock(&slots_lock);
    while (chain) {
        size_t slot = (size_t)((uint8_t *)chain - cld_slots) / CLD_SLOT_SIZE, index = slot / CHUNK_SLOTS;
        chain = chain->next;
        struct chunk *chunk = &chunks[index];
        chunk->dead[slot / 64 % WORDS] |= (uint64_t)1 << slot % 64;
        available[index / 64] |= (uint64_t)1 << index % 64;
        if (index / 64 < first_available)
            first_available = index / 64;
        if (++chunk->count == CHUNK_SLOTS && ++idle > KEPT && cold < MOST_COLD && !never_cold)
            cool(index);
    }
    pthread_mutex_unlock(&slots_lock);
}

void cld_object_set_dispatch(const void *table) {
    dispatch_table = table;
}

void cld_object_set_dispatch_data(void *data) {
    pthread_once(&slots_once, reserve);
    pthread_mutex_lock(&slots_lock);
    dispatch_data = data;
    if (template)
        munmap(template, CHUNK);
    template = NULL;
    size_t used = atomic_load_explicit(&cld_slots_used, memory_order_relaxed);
    for (size_t at = 0; at < used; at += CLD_SLOT_SIZE)
        if (!chunks[at / CHUNK].cold || warm(at / CHUNK))
            ((struct cld_object *)(cld_slots + at))->dispatch_data = data;
    pthread_mutex_unlock(&slots_lock);
}
