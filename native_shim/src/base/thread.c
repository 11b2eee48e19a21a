/* Per-thread state, futexes, time, floating-point environment. */
#define _GNU_SOURCE
#include "base/thread.h"

#include "base/own_thread.h"
#include "base/stacks.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Thread_local struct cld_self cld_self_storage;

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

enum { MOST_ENDS = 4 };
static void (*ends[MOST_ENDS])(struct cld_self *self);

void cld_on_thread_end(void (*end)(struct cld_self *self)) {
    for (int i = 0; i < MOST_ENDS; i++)
        if (!ends[i]) {
            ends[i] = end;
            return;
        }
    abort(); /* one more than there is room for */
}

/* May run several times for one thread: another destructor may use OpenCL after us, which registers anew. */
static void thread_end(void *pointer) {
    struct cld_self *self = pointer;
    self->registered = false;
    for (int i = 0; i < MOST_ENDS && ends[i]; i++)
        ends[i](self);
    free(self->kernel.local_memory);
    free(self->kernel.scratch);
    cld_stacks_drop();
    self->kernel.local_memory = self->kernel.scratch = NULL;
    free(self->counts);
    free(self->table);
    self->counts = NULL;
    self->table = NULL;
    self->local_capacity = self->scratch_capacity = self->counts_capacity = 0;
    if (self->role == CLD_HOST_THREAD)
        cld_host_thread_ends();
}

static void make_key(void) {
    pthread_key_create(&key, thread_end);
}

void cld_self_register(struct cld_self *self) {
    pthread_once(&key_once, make_key);
    self->registered = true;
    pthread_setspecific(key, self);
    if (self->role == CLD_HOST_THREAD)
        cld_host_thread_begins();
}

/* Grows in powers of two, so that a series of slightly larger launches does not allocate each time. */
static bool grow(uint8_t **memory, size_t *capacity, size_t size) {
    if (size <= *capacity)
        return true;
    size_t wanted = 4096;
    while (wanted < size && wanted <= SIZE_MAX / 4)
        wanted *= 2;
    void *grown = NULL;
    if (wanted < size || posix_memalign(&grown, 128, wanted))
        return false;
    free(*memory);
    *memory = grown;
    *capacity = wanted;
    return true;
}

bool cld_self_grow(struct cld_self *self, size_t local_size, size_t scratch_size) {
    return grow(&self->kernel.local_memory, &self->local_capacity, local_size + CLD_LOCAL_SLACK) &&
           grow(&self->kernel.scratch, &self->scratch_capacity, scratch_size);
}

#if defined(__x86_64__)
uint64_t cld_float_enter(void) {
    unsigned saved = __builtin_ia32_stmxcsr();
    if (saved != 0x1f80) /* all exceptions masked, round to nearest, denormals kept */
        __builtin_ia32_ldmxcsr(0x1f80);
    return saved;
}

void cld_float_leave(uint64_t saved) {
    if (__builtin_ia32_stmxcsr() != (unsigned)saved)
        __builtin_ia32_ldmxcsr((unsigned)saved);
}
#elif defined(__aarch64__)
uint64_t cld_float_enter(void) {
    uint64_t saved;
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
    if (saved)
        __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
    return saved;
}

void cld_float_leave(uint64_t saved) {
    if (saved)
        __asm__ volatile("msr fpcr, %0" : : "r"(saved));
}
#else
#error "which register holds the rounding mode of this architecture?"
#endif

pid_t cld_thread_id(void) {
    return (pid_t)syscall(SYS_gettid);
}

uint64_t cld_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A sleep and a wake take some microseconds; where the CPU has fallen asleep, too, some dozens. */
enum { LINGER_TIME = 50000, TURNS = 64 };

bool cld_linger(unsigned turn, uint64_t start) {
    cld_pause();
    if (turn % TURNS != TURNS - 1)
        return true;
    sched_yield();
    return cld_now() - start < LINGER_TIME;
}

/* A pipe is full or empty: what changes that may need this CPU. Each thread counts for itself. */
void cld_yield(void) {
    enum { TURNS_OF_KERNELS = 32 };
    static _Thread_local unsigned turn;
    cld_pause();
    if (++turn % TURNS_OF_KERNELS == 0)
        sched_yield();
}

static enum cld_waited wait_on(_Atomic uint32_t *word, uint32_t expected, const struct timespec *span) {
    if (!syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, span, NULL, 0))
        return CLD_WAS_WOKEN;
    return errno == ETIMEDOUT ? CLD_IS_LATE : CLD_WAS_AWAKE;
}

enum cld_waited cld_futex_wait(_Atomic uint32_t *word, uint32_t expected) {
    return wait_on(word, expected, NULL);
}

enum cld_waited cld_futex_wait_for(_Atomic uint32_t *word, uint32_t expected, uint64_t time) {
    const struct timespec span = {(time_t)(time / 1000000000u), (long)(time % 1000000000u)};
    return wait_on(word, expected, &span);
}

unsigned cld_futex_wake(_Atomic uint32_t *word, int count) {
    long woken = syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
    return woken > 0 ? (unsigned)woken : 0;
}
