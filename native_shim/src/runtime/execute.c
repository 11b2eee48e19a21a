/* The execution of commands: by one thread, or by several that share the work. */
#define _GNU_SOURCE
#include "runtime/command.h"

#include <stdlib.h>

#include "base/log.h"
#include "object/mover.h"
#include "runtime/callback.h"
#include "runtime/family.h"
#include "runtime/worker.h"
#include "schedule/alone.h"
#include "schedule/work_stealing.h"

/* Below: executed by one thread. Above: it pays to wake another. Of shared ones: what is worth a thread, a
 * chunk, the first chunk of a range, the time after which one calls that might have joined by then, and what
 * each that takes part costs all of them, who write to lines that the others read. Where all CPUs are taken:
 * what one thread does alone, and after what time others look whether some are free. */
enum { TINY_TIME = 10000, SHARE_TIME = 5000, CHUNK_TIME = 2000, FIRST_TIME = 250, CALL_TIME = 4000 };
enum { JOIN_TIME = 1500 };
enum { BUSY_TIME = 500000, LOOK_TIME = 100000 };

/* Of a command: a thread of the host that executes it counts as one that has a CPU. */
enum { COUNTED_TIME = 5000 };

/* Of a command that one thread executes to see whether it is sooner done; it looks after each. */
enum { ALONE_PIECES = 32 };

static uint64_t elapsed_since(uint64_t start) {
    uint64_t now = cld_now();
    return now > start ? now - start : 1;
}

static void leave(struct cld_event *command, struct cld_self *self) {
    if (command->operation->leave)
        command->operation->leave(command, self);
}

struct user_call {
    struct cld_event *command;
    void (*function)(struct cld_event *command);
    _Atomic uint32_t state;
};
enum { CALLING, RETURNED, HAS_ENDED_THREAD };

static void set_state(struct user_call *call, uint32_t state) {
    atomic_store(&call->state, state); /* `call` may be gone from here on */
    cld_futex_wake(&call->state, 1);
}

static void tell_caller(void *call) {
    set_state(call, HAS_ENDED_THREAD);
}

static void *call_for_another(void *pointer) {
    struct user_call *call = pointer;
    pthread_cleanup_push(tell_caller, call);
    call->function(call->command);
    pthread_cleanup_pop(0);
    set_state(call, RETURNED);
    return NULL;
}

static void finish_execution(struct cld_event *command, struct cld_ready *ready) {
    int32_t error = atomic_load(&command->error);
    if (command->alone)
        cld_alone_end(command->alone, cld_now(), error);
    command->alone = NULL;
    cld_event_complete(command, error, ready);
}

/* The executing thread is about to be gone. */
static void abandon(void *pointer) {
    struct cld_event *command = pointer;
    struct cld_self *self = cld_self();
    struct cld_ready ready = {0};
    cld_log(1, "user code has ended the thread that a command was executed on");
    self->executing--;
    cld_command_fail(command, CL_OUT_OF_RESOURCES);
    leave(command, self);
    finish_execution(command, &ready);
    if (ready.first)
        cld_pool_push(&ready);
}

cl_int cld_command_call_user(struct cld_event *command, struct cld_self *self,
                             void (*function)(struct cld_event *command)) {
    struct user_call call = {command, function, CALLING};
    if (self->role != CLD_WORKER_THREAD &&
        cld_thread_start(command->queue->device, CLD_DRIVER_THREAD, call_for_another, &call)) {
        while (atomic_load(&call.state) == CALLING)
            cld_futex_wait(&call.state, CALLING);
        if (atomic_load(&call.state) == RETURNED)
            return CL_SUCCESS;
        cld_log(1, "user code has ended the thread that it was called on");
        return CL_OUT_OF_RESOURCES;
    }
    pthread_cleanup_push(abandon, command);
    function(command);
    pthread_cleanup_pop(0);
    return CL_SUCCESS;
}

/* Runs units of the command and takes the time, for the operation to learn from. */
static uint64_t run_timed(struct cld_event *command, struct cld_self *self, uint64_t first, uint64_t last) {
    uint64_t start = cld_now();
    self->executing++;
    cl_int error = command->operation->run(command, self, first, last);
    self->executing--;
    uint64_t time = elapsed_since(start);
    if (error)
        cld_command_fail(command, error);
    else if (command->operation->learn)
        command->operation->learn(command, time, last - first);
    return time;
}

/* Executes a first piece where the duration is unknown or the command may be worth sharing, and extrapolates.
 * True if what remains should be shared; done is where it starts. */
static bool probe(struct cld_event *command, struct cld_self *self, uint64_t *done) {
    uint64_t piece = command->estimate == CLD_TIME_UNKNOWN ? 1 : command->total / 4 + 1;
    uint64_t time = run_timed(command, self, 0, piece);
    *done = atomic_load_explicit(&command->error, memory_order_relaxed) ? command->total : piece;
    uint64_t left = command->total - *done;
    double unit = (double)time / (double)piece;
    if (unit * (double)left < TINY_TIME)
        return false;
    command->estimate = (uint64_t)(unit * (double)command->total);
    return true;
}

/* Calls for threads that were not called at once: the first of them after a while, which may have come by
 * itself, others of a command that lasts, when CPUs are free. Returns when to look again. */
static uint64_t call_others(struct cld_event *command, struct cld_later *later, uint64_t start,
                            uint64_t now) {
    unsigned spare = later->free && now - start >= LOOK_TIME ? cld_pool_spare(command->queue) : 0;
    unsigned count = later->soon + (spare < later->free ? spare : later->free);
    if (count)
        cld_pool_call(command, count);
    later->free -= count - later->soon;
    later->soon = 0;
    return now + LOOK_TIME;
}

void cld_command_participate(struct cld_event *command, struct cld_self *self, uint64_t done,
                             struct cld_later later, struct cld_ready *ready) {
    struct cld_work *share = command->share;
    unsigned slot = self->slot;
    uint64_t first, last, start = cld_now(), due = start + (later.soon ? CALL_TIME : LOOK_TIME);
    struct cld_part part = {.units = done, .chunks = done > 0};
    bool steps_aside = false, is_observed = cld_is_observed(command);
    self->executing++;
    while (cld_work_take(share, slot, &first, &last)) {
        cl_int error = command->operation->run(command, self, first, last);
        if (later.soon + later.free) {
            uint64_t now = cld_now();
            if (now >= due)
                due = call_others(command, &later, start, now);
        }
        if (error)
            cld_command_fail(command, error);
        if (atomic_load_explicit(&command->error, memory_order_relaxed))
            cld_work_stop(share);
        part.units += last - first;
        part.chunks++;
        if (__builtin_expect(is_observed, 0))
            part.stolen += !cld_work_is_own(share, slot, first);
        if ((steps_aside = cld_pool_wants_back(command, self)))
            break;
    }
    if (part.units > done && command->operation->learn)
        command->operation->learn(command, elapsed_since(start), part.units - done);
    self->executing--;
    leave(command, self);
    if (is_observed)
        CLD_TELL(left, command, self, &part);
    if (steps_aside ? cld_pool_step_aside(command, self) : cld_pool_leave(command)) {
        free(share);
        finish_execution(command, ready);
    }
}

/* Units that take so long together, if each takes as long as it is thought to. */
static uint64_t units_of(const struct cld_event *command, double unit, double time) {
    uint64_t units = (uint64_t)(time / (unit + 0.001));
    return units > command->grain ? units : command->grain;
}

/* Executes a piece of a command that is too short for those who would have to be woken. Whether it takes
 * longer than was thought. */
static bool turns_out_long(struct cld_event *command, struct cld_self *self, uint64_t *done) {
    uint64_t piece = (command->total - *done) / 4 + 1;
    double expected = (double)command->estimate / (double)command->total * (double)piece;
    uint64_t time = run_timed(command, self, *done, *done + piece);
    *done = atomic_load_explicit(&command->error, memory_order_relaxed) ? command->total : *done + piece;
    if ((double)time < 2 * expected)
        return false;
    command->estimate = (uint64_t)((double)time / (double)piece * (double)command->total);
    return *done < command->total;
}

/* Of what is left, from *done on. False if there is no memory to do so, or all CPUs are taken, or asleep, for
 * longer than it will be. */
static bool share(struct cld_event *command, struct cld_self *self, uint64_t *done, struct cld_ready *ready) {
    double unit = (double)command->estimate / (double)command->total;
    uint64_t grain = units_of(command, unit, FIRST_TIME), usual = units_of(command, unit, CHUNK_TIME);
    double left = unit * (double)(command->total - *done), useful = left / SHARE_TIME;
    unsigned others = cld_pool_threads(command->queue) - 1;
    if (useful < others)
        others = (unsigned)useful;
    /* n threads take left / n + n * JOIN_TIME: one more saves about left / (n * n). */
    while (others > 1 && (double)others * others * JOIN_TIME > left)
        others--;
    unsigned spare = command->queue->is_urgent ? others : cld_pool_spare(command->queue);
    unsigned called = spare < others ? spare : others;
    if (!called && left < BUSY_TIME)
        return false;
    unsigned to_call = 0, counted = 0;
    if (called && !(counted = cld_pool_count_on(command->queue, self, left, called, &to_call)))
        return turns_out_long(command, self, done) && share(command, self, done, ready);
    unsigned threads;
    const struct cld_place *places = cld_pool_places(command->queue, &threads);
    command->share = cld_work_new(*done, command->total, grain, usual, others + 1, places, threads);
    if (!command->share)
        return false;
    struct cld_later later = {.soon = cld_pool_open(command, self, to_call), .free = others - counted};
    cld_command_participate(command, self, *done, later, ready);
    return true;
}

/* Begins with a command that may be sooner done by one thread, if it is one. Returns how far it came: to the
 * end, or to where others should join. */
static uint64_t run_ahead(struct cld_event *command, struct cld_self *self) {
    struct cld_alone_run *alone = command->operation->alone ? command->operation->alone(command) : NULL;
    if (!(command->alone = alone))
        return 0;
    uint64_t done = 0, piece = command->total / ALONE_PIECES + 1;
    alone->start = cld_now();
    while (alone->is_alone && done < command->total && (!done || cld_alone_goes_on(alone, cld_now(), done))) {
        uint64_t end = command->total - done < piece ? command->total : done + piece;
        run_timed(command, self, done, end);
        done = atomic_load_explicit(&command->error, memory_order_relaxed) ? command->total : end;
    }
    return done;
}

/* Executes the units from done on, in this thread alone. */
static inline __attribute__((always_inline)) void run_alone(struct cld_event *command, struct cld_self *self,
                                                            uint64_t done) {
    if (command->timed && !done) {
        run_timed(command, self, 0, command->total);
        return;
    }
    self->executing++;
    cl_int error = command->operation->run(command, self, done, command->total);
    self->executing--;
    if (error)
        cld_command_fail(command, error);
}

static __attribute__((noinline)) void tell_joined(struct cld_event *command, const struct cld_self *self) {
    CLD_TELL(joined, command, self);
}

static __attribute__((noinline)) void tell_left(struct cld_event *command, const struct cld_self *self) {
    CLD_TELL(left, command, self, &(struct cld_part){.units = command->total, .chunks = 1});
}

/* special: the command's. A constant for those that have nothing of it, whose code does not ask then. */
static inline __attribute__((always_inline)) void execute(struct cld_event *command, struct cld_self *self,
                                                          struct cld_ready *ready, uint8_t special) {
    const bool is_observed = special & CLD_OBSERVED;
    if (special & CLD_SPREAD && cld_mover()->fetch(command))
        return;
    command->alone = NULL;
    if (command->enqueues)
        cld_family_begin(command);
    if (atomic_load_explicit(&command->error, memory_order_relaxed)) {
        finish_execution(command, ready);
        return;
    }
    if (!command->is_node) {
        if (special & (CLD_PROFILED | CLD_OBSERVED))
            cld_command_note_start(command);
        if (!(special & CLD_SPREAD) || command->elsewhere != CLD_TO_BE_SENT) {
            atomic_store(&command->status, CL_RUNNING);
            cld_event_fire(command);
        }
    } else if (is_observed) {
        cld_command_note_start(command);
    }
    if (!command->operation || !command->operation->run) {
        finish_execution(command, ready);
        return;
    }
    if (command->operation->begin)
        command->operation->begin(command);
    if (command->operation->spread && command->operation->spread(command, self, ready))
        return;
    if (is_observed)
        tell_joined(command, self);
    uint64_t done = 0;
    bool sharable = command->total > 1 && cld_pool_threads(command->queue) > 1;
    bool is_long = command->estimate != CLD_TIME_UNKNOWN && command->estimate >= TINY_TIME;
    if (sharable && is_long)
        done = run_ahead(command, self);
    if (sharable && done < command->total && (is_long || probe(command, self, &done)) &&
        share(command, self, &done, ready))
        return;
    if (done < command->total)
        run_alone(command, self, done);
    leave(command, self);
    if (is_observed)
        tell_left(command, self);
    finish_execution(command, ready);
}

/* One that is special, or that counts as taking a CPU. */
static __attribute__((noinline)) void execute_with_care(struct cld_event *command, struct cld_self *self,
                                                        struct cld_ready *ready) {
    bool is_counted = command->estimate >= COUNTED_TIME;
    struct cld_pool *pool = is_counted ? cld_pool_enter(command->queue, self) : NULL;
    execute(command, self, ready, command->special);
    if (pool)
        cld_pool_exit(pool, self);
}

void cld_command_execute(struct cld_event *command, struct cld_self *self, struct cld_ready *ready) {
    if ((command->estimate >= COUNTED_TIME) | command->special)
        execute_with_care(command, self, ready);
    else
        execute(command, self, ready, 0);
}
