/* The threads of a device: how they are made and woken, look for work, and sleep. */
#define _GNU_SOURCE
#include "runtime/worker.h"

#include <errno.h>
#include <sched.h>

#include "base/log.h"
#include "base/mean.h"
#include "base/own_thread.h"
#include "base/thread.h"
#include "runtime/pool.h"

enum { STACK_SIZE = 4 << 20 };

static void *work(void *argument);

/* The threads of a sub-device are bound to its CPUs. The root's go where the thread may go that makes them,
 * unless it has bound itself to fewer CPUs than the device has: what a host chose for one of its threads is
 * not meant for ours. */
static void bind(pthread_attr_t *attributes, const struct cld_device *device) {
    cpu_set_t mine;
    if (!device->parent && !sched_getaffinity(0, sizeof mine, &mine) &&
        (uint32_t)CPU_COUNT(&mine) >= device->compute_units)
        return;
    cld_cpus_bind(attributes, device->cpus, device->compute_units);
}

static int try_start(const struct cld_device *device, bool is_low, enum cld_role role,
                     void *(*function)(void *), void *argument) {
    pthread_attr_t attributes;
    int failed = pthread_attr_init(&attributes);
    if (failed)
        return failed;
    if (device && device->cpus)
        bind(&attributes, device);
    int error = is_low ? cld_own_low_thread(&attributes, STACK_SIZE, role, function, argument)
                       : cld_own_thread(NULL, &attributes, STACK_SIZE, role, function, argument);
    pthread_attr_destroy(&attributes);
    return error;
}

/* CPUs may have gone offline, or be none of this machine's (CL_DRIVER_TOPOLOGY): the thread goes anywhere. */
static bool start(const struct cld_device *device, bool is_low, enum cld_role role, void *(*function)(void *),
                  void *argument) {
    int error = try_start(device, is_low, role, function, argument);
    return !error || (error == EINVAL && !try_start(NULL, is_low, role, function, argument));
}

bool cld_thread_start(const struct cld_device *device, enum cld_role role, void *(*function)(void *),
                      void *argument) {
    return start(device, false, role, function, argument);
}

/* ns after which one that was woken may be held up, and in which the usual time is looked for. */
enum { MOST_WAKE_TIME = 100000 };

/* Of those who sleep, who were woken and will run soon. */
static unsigned waking(struct cld_pool *pool) {
    int32_t woken = atomic_load_explicit(&pool->woken, memory_order_relaxed);
    if (woken <= 0 ||
        cld_now() - atomic_load_explicit(&pool->woken_at, memory_order_relaxed) > MOST_WAKE_TIME)
        return 0;
    return (unsigned)woken;
}

unsigned cld_pool_awake(struct cld_pool *pool, const struct cld_queue *queue) {
    unsigned idle = atomic_load(&pool->idle), asleep = atomic_load(&pool->sleepers);
    unsigned looking = (idle > asleep ? idle - asleep : 0) + waking(pool);
    return looking + (queue ? atomic_load(&queue->helpers) : 0);
}

static void wake_sleepers(struct cld_pool *pool, unsigned count) {
    uint64_t now = cld_now(), none = 0;
    atomic_store_explicit(&pool->woken_at, now, memory_order_relaxed);
    atomic_compare_exchange_strong(&pool->timed_from, &none, now);
    unsigned woken = cld_futex_wake(&pool->epoch, (int)count);
    atomic_fetch_add(&pool->woken, (int32_t)woken);
    if (!woken)
        atomic_compare_exchange_strong(&pool->timed_from, &now, 0);
}

void cld_pool_wake_all(struct cld_pool *pool) {
    atomic_fetch_add(&pool->epoch, 1);
    wake_sleepers(pool, INT32_MAX);
}

/* Of a thread that was woken. Of several the first one tells how long that takes. */
static void note_woken(struct cld_pool *pool) {
    atomic_fetch_sub(&pool->woken, 1);
    uint64_t from = atomic_exchange(&pool->timed_from, 0);
    if (!from)
        return;
    uint64_t time = cld_now() - from;
    double usual = atomic_load_explicit(&pool->wake_time, memory_order_relaxed);
    usual = cld_mean(usual, (double)(time < MOST_WAKE_TIME ? time : MOST_WAKE_TIME));
    atomic_store_explicit(&pool->wake_time, (uint32_t)usual, memory_order_relaxed);
}

/* Threads that the pool may have now. */
static unsigned most(struct cld_pool *pool) {
    return pool->threads + atomic_load(&pool->held);
}

/* Calls for that many threads, of which some may be awake: others are woken, and more are made up to the
 * device's number. The CPUs are no more than the threads of the pool, and a thread of the host that waits
 * does the work of one: to wake one too many costs more than it does. */
void cld_pool_wake(struct cld_pool *pool, unsigned count, unsigned most_woken,
                   const struct cld_queue *queue) {
    atomic_fetch_add(&pool->epoch, 1);
    /* Only now: a thread that stops looking later sees that it was called. */
    unsigned awake = cld_pool_awake(pool, queue);
    if (count <= awake)
        return;
    count -= awake;
    count = count < most_woken ? count : most_woken;
    /* Or about to sleep, which they will not, or just woken: who is counted here looks for work after this.
     */
    unsigned asleep = atomic_load(&pool->sleepers), woken = waking(pool);
    asleep = asleep > woken ? asleep - woken : 0;
    if (asleep)
        wake_sleepers(pool, count);
    count -= asleep < count ? asleep : count;
    unsigned started = atomic_load_explicit(&pool->started, memory_order_relaxed);
    while (count && started < most(pool)) {
        if (!atomic_compare_exchange_strong(&pool->started, &started, started + 1))
            continue;
        atomic_fetch_add(&pool->users, 1);
        if (!start(pool->device, pool->number == CLD_BACKGROUND, CLD_WORKER_THREAD, work, pool)) {
            atomic_fetch_sub(&pool->started, 1);
            cld_pool_unuse(pool);
            cld_log(1, "a worker thread cannot be made");
            break;
        }
        started++;
        count--;
    }
}

/* Whether every CPU has a worker that executes something. */
static bool is_busy(struct cld_pool *pool) {
    return !atomic_load_explicit(&pool->idle, memory_order_relaxed) &&
           atomic_load_explicit(&pool->started, memory_order_relaxed) >= pool->threads;
}

static void pass_on(struct cld_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    unsigned count = cld_pool_wanted(pool);
    pthread_mutex_unlock(&pool->lock);
    if (count)
        cld_pool_wake(pool, count, CLD_MOST_WOKEN, NULL);
}

/* Threads that may be held up by a command are none of those that the pool counts on: what the command waits
 * for may be ready, and gets another thread. */
static void execute(struct cld_pool *pool, struct cld_event *command, bool joined, struct cld_self *self,
                    struct cld_ready *ready) {
    bool waits = command->waits && self->role == CLD_WORKER_THREAD;
    if (waits) {
        atomic_fetch_add(&pool->held, 1);
        pass_on(pool);
    }
    if (joined && cld_is_observed(command))
        CLD_TELL(joined, command, self);
    if (joined)
        cld_command_participate(command, self, 0, (struct cld_later){0}, ready);
    else
        cld_command_execute(command, self, ready);
    if (waits) {
        atomic_fetch_sub(&pool->held, 1);
        pthread_mutex_lock(&pool->lock);
        cld_pool_note_work(pool);
        pthread_mutex_unlock(&pool->lock);
    }
}

/* Takes one of the places for which there is work. */
static bool take_place(struct cld_pool *pool) {
    unsigned count = atomic_load(&pool->places_free);
    while (count)
        if (atomic_compare_exchange_weak(&pool->places_free, &count, count - 1)) {
            atomic_fetch_add(&pool->coming, 1);
            return true;
        }
    return false;
}

/* has_place: one that the thread has taken. */
static bool work_once(struct cld_pool *pool, const struct cld_event *event, bool has_place,
                      struct cld_self *self, struct cld_ready *ready) {
    bool joined;
    pthread_mutex_lock(&pool->lock);
    if (has_place)
        atomic_fetch_sub(&pool->coming, 1);
    struct cld_event *command = cld_pool_find_work(pool, event, self, &joined);
    unsigned others = command ? cld_pool_wanted(pool) : 0;
    pthread_mutex_unlock(&pool->lock);
    if (!command)
        return false;
    if (others)
        cld_pool_wake(pool, others, CLD_MOST_WOKEN, NULL);
    execute(pool, command, joined, self, ready);
    return true;
}

/* In which turn who waits for the host stops looking, where each CPU has a worker that is busy. What these
 * have begun to end takes no longer than to sleep and be woken. */
enum { BUSY_TURNS = 256 };

/* For something to do, until there may be, or the event is complete, or it is time to sleep: soon where each
 * CPU has a worker that is busy. True if somebody has called. */
static bool look(struct cld_pool *pool, const struct cld_event *event, uint32_t epoch) {
    uint64_t start = cld_now();
    atomic_fetch_add(&event->queue->helpers, 1);
    for (unsigned turn = 0; atomic_load_explicit(&pool->epoch, memory_order_relaxed) == epoch; turn++)
        if (atomic_load_explicit(&event->status, memory_order_relaxed) <= 0 ||
            (turn >= BUSY_TURNS && is_busy(pool)) || !cld_linger(turn, start))
            break;
    atomic_fetch_sub(&event->queue->helpers, 1);
    /* Only now: who has counted on this thread has called before. */
    return atomic_load(&pool->epoch) != epoch;
}

bool cld_pool_help(const struct cld_event *event, struct cld_self *self, struct cld_ready *ready) {
    struct cld_pool *pool = cld_pool_of(event->queue);
    if (!pool)
        return false;
    for (;;) {
        uint32_t epoch = atomic_load(&pool->epoch);
        /* Without a place the others have it all, or will tell. */
        if (atomic_load(&pool->places_free) && work_once(pool, event, false, self, ready))
            return true;
        if (!look(pool, event, epoch))
            return false;
        if (atomic_load(&event->status) <= 0) { /* the call may have been meant for this thread */
            pass_on(pool);
            return false;
        }
    }
}

/* A worker keeps its slot, and with it its part of the data, as far as it can. It stays in the place where
 * that will be, if there are several, and else goes where the system likes: a bound thread waits for its CPU
 * while others are idle. */
static void take_home(struct cld_pool *pool, struct cld_self *self) {
    self->slot = self->home =
        (atomic_fetch_add(&pool->homes, 1) + 1) % pool->threads; /* the host begins with 0 */
    if (pool->places)
        cld_stay(pool->cpus, pool->places, pool->places[self->home], pool->threads);
}

/* False if somebody has called, and may have counted on this thread: it has to look for work once more. */
static bool ends_unless_called(struct cld_pool *pool, uint32_t epoch) {
    unsigned started = atomic_fetch_sub(&pool->started, 1) - 1;
    if (atomic_load(&pool->epoch) == epoch)
        return true;
    while (started < most(pool))
        if (atomic_compare_exchange_weak(&pool->started, &started, started + 1))
            return false;
    return true; /* others have been made in its place */
}

struct working {
    struct cld_pool *pool;
    struct cld_ready ready; /* what the thread is to execute next */
};

/* User code has ended the thread (pthread_exit): another takes its place, at once if there is work. */
static void worker_is_gone(void *pointer) {
    struct working *working = pointer;
    struct cld_pool *pool = working->pool;
    atomic_fetch_sub(&pool->started, 1);
    if (working->ready.first)
        cld_pool_push(&working->ready);
    pass_on(pool);
    cld_pool_unuse(pool);
}

enum search { HAS_PLACE, IS_STOPPED, FINDS_NONE };

/* ns by which each goes behind the one before it, and who is the last that does. */
enum { STEP_TIME = 350, MOST_STEPS = 15 };

/* Where launches are small they take few of those who look: the same ones each time, who have the data in
 * their caches. The others do not join in the rush, and soon sleep. */
static void give_way(const struct cld_pool *pool, unsigned home) {
    unsigned rank = (home + pool->threads - 1) % pool->threads; /* the first worker's home is 1 */
    if (!rank)
        return;
    uint64_t time = (uint64_t)STEP_TIME * (rank < MOST_STEPS ? rank : MOST_STEPS), start = cld_now();
    while (cld_now() - start < time)
        cld_pause();
}

/* Looks for a place until it has one, or none for a while since it had work. Calls that others answer do not
 * keep it awake: all who look read what each launch writes, and where launches are small that is what they
 * wait for. FINDS_NONE: it is better to sleep until *epoch has changed. */
static enum search look_for_place(struct cld_pool *pool, unsigned home, uint64_t since, uint32_t *epoch) {
    bool is_long = false;
    for (unsigned turn = 0; !atomic_load(&pool->stop); turn++) {
        /* After the last turn once more, which may have taken long: who called until then may have counted on
         * this thread, and has told of the work before. */
        *epoch = atomic_load(&pool->epoch);
        if (atomic_load_explicit(&pool->places_free, memory_order_relaxed))
            give_way(pool, home);
        if (take_place(pool))
            return HAS_PLACE;
        if (is_long)
            return FINDS_NONE;
        is_long = !cld_linger(turn, since);
    }
    return IS_STOPPED;
}

/* What it has taken, and what that makes ready. */
static void work_on(struct working *working, struct cld_self *self) {
    struct cld_pool *pool = working->pool;
    struct cld_ready *ready = &working->ready;
    while (ready->first) {
        if (atomic_load_explicit(&pool->wants_urgent, memory_order_relaxed) && !ready->urgent) {
            cld_pool_push(ready);
            return;
        }
        struct cld_event *command = cld_ready_take(ready);
        if (ready->first && (command->estimate > 5000 || command->waits))
            cld_pool_push(ready);
        execute(pool, command, false, self, ready);
    }
}

/* The thread has a place (HAS_PLACE), or was called or has looked in vain and may look again (FINDS_NONE), or
 * ends (IS_STOPPED). since: when it had work. */
static enum search wait_for_place(struct cld_pool *pool, unsigned home, uint64_t *since) {
    if (take_place(pool))
        return HAS_PLACE;
    uint32_t epoch;
    atomic_fetch_add(&pool->idle, 1);
    enum search found = look_for_place(pool, home, *since, &epoch);
    bool ends = false;
    /* Where there are more threads than are wanted, the others are enough. */
    if (found == FINDS_NONE && !(ends = atomic_load(&pool->started) > most(pool))) {
        atomic_fetch_add(&pool->sleepers, 1);
        enum cld_waited waited = cld_rest(&pool->epoch, epoch, &pool->settled);
        ends = waited == CLD_IS_LATE;
        atomic_fetch_sub(&pool->sleepers, 1); /* itself: who woke it may be late to tell */
        if (waited == CLD_WAS_WOKEN) {
            note_woken(pool);
            *since = cld_now();
        }
    }
    /* Before the thread takes the lock: who has counted on it, though it had a place, has made ready or
     * opened before what it will see there. */
    atomic_fetch_sub(&pool->idle, 1);
    return ends && ends_unless_called(pool, epoch) ? IS_STOPPED : found;
}

static void work_until_stopped(struct working *working) {
    struct cld_pool *pool = working->pool;
    struct cld_self *self = cld_self();
    take_home(pool, self);
    uint64_t since = cld_now();
    enum search found;
    while ((found = wait_for_place(pool, self->home, &since)) != IS_STOPPED)
        if (found == HAS_PLACE && work_once(pool, NULL, true, self, &working->ready)) {
            work_on(working, self);
            since = cld_now();
        }
}

static void *work(void *argument) {
    struct working working = {.pool = argument};
    pthread_cleanup_push(worker_is_gone, &working);
    work_until_stopped(&working);
    pthread_cleanup_pop(0);
    cld_pool_unuse(working.pool);
    return NULL;
}

static void push(struct cld_pool *pool, struct cld_ready *ready, unsigned count) {
    pthread_mutex_lock(&pool->lock);
    pool->knows_urgent |= ready->urgent != NULL;
    cld_ready_splice(&pool->ready, ready);
    pool->ready_count += count;
    cld_pool_note_work(pool);
    pthread_mutex_unlock(&pool->lock);
    cld_pool_wake(pool, count, count, NULL);
}

/* No thread can be made, so that the caller has to do it. */
static void execute_here(struct cld_pool *pool) {
    struct cld_self *self = cld_self();
    struct cld_ready ready = {0};
    if (self->executing)
        return;
    while (work_once(pool, NULL, false, self, &ready))
        while (ready.first)
            cld_command_execute(cld_ready_take(&ready), self, &ready);
}

void cld_pool_push(struct cld_ready *ready) {
    while (ready->first) {
        const struct cld_queue *queue = ready->first->queue;
        struct cld_ready same = {0}, others = {0};
        unsigned count = 0;
        for (struct cld_event *command; (command = cld_ready_take(ready));) {
            bool is_same = cld_pool_has_both(command->queue, queue);
            cld_ready_add(is_same ? &same : &others, command);
            count += is_same;
        }
        *ready = others;
        struct cld_pool *pool = cld_pool_of(queue);
        if (!pool) { /* no memory for it: the commands fail, nobody hangs */
            for (struct cld_event *command; (command = cld_ready_take(&same));) {
                command->enqueues = false; /* it has not begun */
                cld_event_complete(command, CL_OUT_OF_RESOURCES, ready);
            }
            continue;
        }
        atomic_fetch_add(&pool->users, 1);
        push(pool, &same, count);
        if (!atomic_load_explicit(&pool->started, memory_order_relaxed))
            execute_here(pool);
        cld_pool_unuse(pool);
    }
}
