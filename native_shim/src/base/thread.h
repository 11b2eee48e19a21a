/* What the driver keeps per thread, of the host's and of its own. */
#ifndef CLD_THREAD_H
#define CLD_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi/kernel_abi.h"

enum cld_role {
    CLD_HOST_THREAD,
    CLD_WORKER_THREAD,
    CLD_CALLBACK_THREAD,
    CLD_DRIVER_THREAD, /* any other of the driver's own */
};

struct dead;        /* object/object.c */
struct cld_running; /* launch/fault.h */
struct cld_event;   /* runtime/command.h */

struct cld_self {
    struct dead *dead, *dead_spare; /* recycled slots of this thread */
    unsigned dead_count;
    bool registered;
    enum cld_role role;
    unsigned executing;    /* commands that this thread is in the middle of */
    bool is_counted;       /* threads of the host: as one that has a CPU (runtime/worker.h) */
    bool blocked;          /* callback threads: in a wait, counted as such */
    bool has_low_priority; /* base/own_thread.h */
    unsigned slot; /* of the last command that this thread shared with others (schedule/work_stealing.h) */
    unsigned home; /* of a worker: the slot that it prefers of as many as there are threads */
    struct cld_thread kernel;
    size_t local_capacity, scratch_capacity, counts_capacity;
    uint8_t *counts;                   /* launch/privatised_histogram.c */
    struct cld_combining_table *table; /* likewise */
    bool has_counts, has_table;        /* of the command that it executes */
    struct cld_running *running;       /* once it has executed a kernel */
    struct cld_event *parent; /* the kernel that it executes, if that may enqueue others (runtime/family.h) */
    struct cld_ready {        /* commands that it has made ready meanwhile */
        struct cld_event *first, *last;
        struct cld_event *urgent; /* the last one of an urgent queue; NULL: there is none */
    } children;
    unsigned kept_children; /* of these, by enqueue_kernel */
};

extern _Thread_local struct cld_self cld_self_storage;

void cld_self_register(struct cld_self *self);

static inline struct cld_self *cld_self(void) {
    struct cld_self *self = &cld_self_storage;
    /* The address takes a call. Compilers that know where it comes from make the call again for each use. */
    __asm__("" : "+r"(self));
    if (__builtin_expect(!self->registered, 0))
        cld_self_register(self);
    return self;
}

/* What else happens when a thread ends that used the driver. To be called by constructors. */
void cld_on_thread_end(void (*end)(struct cld_self *self));

/* Bytes behind the end of local memory, for whole vectors (cl_driver/codegen/lockstep/lane_constants.py). */
enum { CLD_LOCAL_SLACK = 512 };

/* Makes room for a launch in self->kernel: local memory and scratch of at least these sizes, 128-byte
 * aligned. They stay for later launches. False when out of memory. */
bool cld_self_grow(struct cld_self *self, size_t local_size, size_t scratch_size);

static inline bool cld_self_arenas(struct cld_self *self, size_t local_size, size_t scratch_size) {
    bool fits =
        local_size + CLD_LOCAL_SLACK <= self->local_capacity && scratch_size <= self->scratch_capacity;
    return __builtin_expect(fits, 1) || cld_self_grow(self, local_size, scratch_size);
}

/* Kernels run with the default floating-point environment, whatever the host chose for its own threads. */
uint64_t cld_float_enter(void);
void cld_float_leave(uint64_t saved);

/* Monotonic time in nanoseconds: profiling, clGetHostTimer, estimates. */
uint64_t cld_now(void);

/* The kernel's number of this thread: glibc has gettid() from 2.30 on only. For handlers of signals, too. */
pid_t cld_thread_id(void);

/* What kernels call that found nothing to do, and may ask again at once (abi/code_symbols.def). */
void cld_yield(void);

enum cld_waited {
    CLD_WAS_WOKEN, /* by cld_futex_wake(), which has counted this thread */
    CLD_WAS_AWAKE, /* the word was another one before, or a signal came */
    CLD_IS_LATE,
};

/* Sleeps while *word == expected; may return early. Never late. */
enum cld_waited cld_futex_wait(_Atomic uint32_t *word, uint32_t expected);

/* The same, for so many ns at most. */
enum cld_waited cld_futex_wait_for(_Atomic uint32_t *word, uint32_t expected, uint64_t time);

/* Wakes up to count sleepers. How many. */
unsigned cld_futex_wake(_Atomic uint32_t *word, int count);

/* For loops that look at a word again and again, called at each turn, counted from 0, with the time at which
 * the loop began: pauses, now and then lets other threads have the CPU. False once it is better to sleep. */
bool cld_linger(unsigned turn, uint64_t start);

static inline void cld_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
