// Threads that take ranges of a loop from a common counter. They spin for a while after a loop, then sleep.
#include "pool.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { SPINS = 20000, MOST_THREADS = 256 };

static struct {
    part_of_loop *part;
    const void *context;
    size_t count, grain;
    _Alignas(64) atomic_size_t next;
    _Alignas(64) atomic_uint loop; // the number of the latest loop
    _Alignas(64) atomic_uint working;
    unsigned helpers;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void pause_cpu(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void take_ranges(void) {
    size_t first;
    while ((first = atomic_fetch_add(&pool.next, pool.grain)) < pool.count) {
        size_t last = first + pool.grain;
        pool.part(pool.context, first, last < pool.count ? last : pool.count);
    }
}

static void wait_for_loop(unsigned done) {
    for (int spin = 0; spin < SPINS; spin++, pause_cpu())
        if (atomic_load(&pool.loop) != done)
            return;
    pthread_mutex_lock(&pool.mutex);
    while (atomic_load(&pool.loop) == done)
        pthread_cond_wait(&pool.changed, &pool.mutex);
    pthread_mutex_unlock(&pool.mutex);
}

static void *help(void *unused) {
    (void)unused;
    for (unsigned done = 0;;) {
        wait_for_loop(done);
        done++;
        take_ranges();
        atomic_fetch_sub(&pool.working, 1);
    }
    return NULL;
}

static void start_helpers(void) {
    long wanted = sysconf(_SC_NPROCESSORS_ONLN) - 1;
    for (; pool.helpers < wanted && pool.helpers < MOST_THREADS; pool.helpers++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, help, NULL))
            return;
        pthread_detach(thread);
    }
}

void run(part_of_loop *part, const void *context, size_t count, size_t grain) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_helpers);
    pool.part = part, pool.context = context, pool.count = count, pool.grain = grain;
    atomic_store(&pool.next, 0);
    atomic_store(&pool.working, pool.helpers);
    pthread_mutex_lock(&pool.mutex);
    atomic_fetch_add(&pool.loop, 1);
    pthread_cond_broadcast(&pool.changed);
    pthread_mutex_unlock(&pool.mutex);
    take_ranges();
    while (atomic_load(&pool.working))
        pause_cpu();
}
