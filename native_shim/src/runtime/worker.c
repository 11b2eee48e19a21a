/* The threads of a device, and how work finds them. */
#define _GNU_SOURCE
#include "runtime/worker.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/numa.h"
#include "base/own_thread.h"
#include "base/settings.h"
#include "base/thread.h"
#include "base/work_stealing.h"
#include "object/lock.h"

enum { STACK_SIZE = 4 << 20, LINE = 64, MOST_WOKEN = 4 };

/* What threads look at while they wait for work is in cache lines of its own: who looks slows down who writes
 * to the same line. */
struct cld_pool {
    pthread_mutex_t lock; /* the next four, and the members of open commands that command.h names */
    struct cld_ready ready;
    unsigned ready_count;
    struct cld_event *open;    /* commands that more threads may join */
    bool knows_urgent;         /* there have been commands of urgent queues */
    _Atomic bool wants_urgent; /* some of them want threads; written with the lock held */
    _Atomic bool stop;
    unsigned threads; /* that the device has */
    struct cld_device *device;
    uint8_t number;           /* of those of the device */
    uint32_t *cpus;           /* of the device, in the order of their places */
    struct cld_place *places; /* theirs; NULL where they are in one place */
    _Atomic int32_t users;    /* the device, and each thread */
    struct cld_pool *next;    /* with pools_lock held */

    _Alignas(LINE) _Atomic uint32_t epoch; /* counts the calls for help; workers sleep on it */
    /* Threads for which there is work, without those that are on their way to it: stored with the lock held,
     * taken by each that goes. Who cannot take one need not ask for the lock. */
    _Atomic unsigned places_free;

    _Alignas(LINE) _Atomic unsigned started;
    _Atomic unsigned homes;      /* that were given to threads */
    _Atomic unsigned held;       /* of those started, by commands that may wait for others: more may be */
    _Atomic unsigned idle;       /* of them, looking for work or asleep */
    _Atomic unsigned coming;     /* of them, with a place that they have taken */
    _Atomic unsigned busy_hosts; /* threads of the host that execute what takes a while, or look for it */
    _Atomic uint32_t sleepers;   /* and those that are about to sleep, or were woken and do not run yet */
    _Atomic uint32_t settled;    /* of them: base/own_thread.h */
};

static pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER; /* making pools, and their list */
static struct cld_pool *pools;

static void find_places(struct cld_pool *pool) {
    size_t size = pool->threads * sizeof *pool->cpus;
    if (!pool->device->cpus || !(pool->cpus = malloc(size)))
        return;
    memcpy(pool->cpus, pool->device->cpus, size);
    const char *folder = cld_setting(CL_DRIVER_TOPOLOGY_SETTING);
    pool->places = cld_places(*folder ? folder : CLD_SYSTEM_FOLDER, pool->cpus, pool->threads);
}

/* It is held for less time than it takes to sleep and be woken. */
static void init_lock(pthread_mutex_t *lock) {
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
    pthread_mutexattr_t attributes;
    if (!pthread_mutexattr_init(&attributes)) {
        pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
        pthread_mutex_init(lock, &attributes);
        pthread_mutexattr_destroy(&attributes);
        return;
    }
#endif
    pthread_mutex_init(lock, NULL);
}

static struct cld_pool *pool_of(const struct cld_queue *queue) {
    struct cld_device *device = queue->device;
    struct cld_pool *pool = atomic_load_explicit(&device->pools[queue->pool], memory_order_acquire);
    if (pool)
        return pool;
    pthread_mutex_lock(&pools_lock);
    pool = atomic_load_explicit(&device->pools[queue->pool], memory_order_relaxed);
    if (!pool && (pool = aligned_alloc(LINE, sizeof *pool))) {
        memset(pool, 0, sizeof *pool);
        init_lock(&pool->lock);
        pool->threads = device->compute_units ? device->compute_units : 1;
        pool->device = device;
        pool->number = queue->pool;
        find_places(pool);
        atomic_init(&pool->users, 1);
        pool->next = pools;
        pools = pool;
        atomic_store_explicit(&device->pools[queue->pool], pool, memory_order_release);
    }
    pthread_mutex_unlock(&pools_lock);
    return pool;
}

unsigned cld_pool_threads(const struct cld_queue *queue) {
    return queue->threads;
}

const struct cld_place *cld_pool_places(const struct cld_queue *queue, unsigned *threads) {
    const struct cld_pool *pool = pool_of(queue);
    *threads = pool ? pool->threads : 1;
    return pool ? pool->places : NULL;
}

bool cld_pool_may_help(const struct cld_queue *queue, const struct cld_self *self) {
    return !queue->device->parent && queue->pool == CLD_FOREGROUND && !self->executing;
}

/* Where there are several places, workers stay in that of their home; a thread of the host is where it is. */
static unsigned preferred_slot(const struct cld_pool *pool, const struct cld_event *command,
                               const struct cld_self *self) {
    if (!pool || !pool->places)
        return self->slot;
    unsigned home = self->home;
    if (self->role != CLD_WORKER_THREAD &&
        (home = cld_cpu_index(pool->cpus, pool->threads, sched_getcpu())) == pool->threads)
        return self->slot;
    return cld_slot_of_home(home, cld_work_slots(command->share), pool->threads);
}

/* With the lock held, or before anybody else knows of it. */
static void join(const struct cld_pool *pool, struct cld_event *command, struct cld_self *self) {
    self->slot = cld_work_join(command->share, preferred_slot(pool, command, self));
}

/* Whether another thread may join an open command. Those that may wait for others get no more threads than
 * the device has, all together: each goes on with the one that began it. With the lock held. */
static bool may_join(struct cld_pool *pool, const struct cld_event *command) {
    return cld_work_is_open(command->share, atomic_load(&command->participants)) &&
           (!command->waits || atomic_load(&pool->held) < pool->threads);
}

/* With the lock held. */
static bool wants_threads(struct cld_pool *pool, const struct cld_event *command) {
    return command->queue->is_urgent && command->calls && may_join(pool, command);
}

/* To be called where what is ready or open has changed. With the lock held. */
static void note_work(struct cld_pool *pool) {
    unsigned count = pool->ready_count, coming = atomic_load(&pool->coming), most = pool->threads;
    for (const struct cld_event *command = pool->open; command && count < most; command = command->open_next)
        if (may_join(pool, command))
            count += cld_work_places(command->share, atomic_load(&command->participants));
    count = count < most ? count : most;
    atomic_store(&pool->places_free, count > coming ? count - coming : 0);
    if (!pool->knows_urgent)
        return;
    bool wants = pool->ready.urgent;
    for (const struct cld_event *command = pool->open; command && !wants; command = command->open_next)
        wants = wants_threads(pool, command);
    atomic_store_explicit(&pool->wants_urgent, wants, memory_order_relaxed);
}

/* An open command: that which is wanted, or one that it may need; any where none is wanted. One of an urgent
 * queue, if there is one, else the newest. With the lock held. */
static struct cld_event *find_open(struct cld_pool *pool, struct cld_event *first,
                                   const struct cld_event *wanted) {
    struct cld_event *found = NULL;
    for (struct cld_event *command = first; command; command = command->open_next) {
        bool suits = !wanted || command == wanted || cld_ready_may_be_needed(command, wanted->queue);
        if (!suits || !may_join(pool, command))
            continue;
        if (command->queue->is_urgent || !pool->knows_urgent)
            return command;
        found = found ? found : command;
    }
    return found;
}

/* A command to join, or a ready one. With the lock held. wanted restricts the choice to its queue. */
static struct cld_event *find_work(struct cld_pool *pool, const struct cld_event *wanted,
                                   struct cld_self *self, bool *joined) {
    const struct cld_queue *queue = wanted ? wanted->queue : NULL;
    bool may_be_ready = wanted && cld_event_may_be_ready(wanted);
    struct cld_event *ready =
        wanted ? cld_ready_choose(&pool->ready, may_be_ready ? wanted : NULL, queue) : NULL;
    *joined = false;
    pool->ready_count -= ready != NULL;
    if (ready && ready == wanted) {
        note_work(pool);
        return ready;
    }
    struct cld_event *open = pool->ready.urgent && !wanted ? NULL : pool->open;
    struct cld_event *command = find_open(pool, open, wanted);
    if (!command) {
        if (!wanted && (ready = cld_ready_take(&pool->ready)))
            pool->ready_count--;
        note_work(pool);
        return ready;
    }
    if (ready) { /* back to where it was, or nearly so */
        cld_ready_put_back(&pool->ready, ready);
        pool->ready_count++;
    }
    atomic_fetch_add(&command->participants, 1);
    join(pool, command, self);
    command->calls -= command->calls > 0;
    note_work(pool);
    *joined = true;
    return command;
}

static void unuse(struct cld_pool *pool) {
    if (atomic_fetch_sub(&pool->users, 1) != 1)
        return;
    pthread_mutex_lock(&pools_lock);
    struct cld_pool **at = &pools;
    while (*at && *at != pool)
        at = &(*at)->next;
    if (*at)
        *at = pool->next;
    pthread_mutex_unlock(&pools_lock);
    pthread_mutex_destroy(&pool->lock);
    free(pool->cpus);
    free(pool->places);
    free(pool);
}

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

/* Threads of the pool that are awake and will look for work, or are being woken. */
static unsigned looking(struct cld_pool *pool) {
    unsigned idle = atomic_load(&pool->idle), asleep = atomic_load(&pool->sleepers);
    return idle > asleep ? idle - asleep : 0;
}

/* Threads that the pool may have now. */
static unsigned most(struct cld_pool *pool) {
    return pool->threads + atomic_load(&pool->held);
}

/* Calls for that many threads, of which some may be awake: others are woken, and more are made up to the
 * device's number. The CPUs are no more than the threads of the pool, and a thread of the host that waits
 * does the work of one: to wake one too many costs more than it does. */
static void call(struct cld_pool *pool, unsigned count, const struct cld_queue *queue) {
    atomic_fetch_add(&pool->epoch, 1);
    /* Only now: a thread that stops looking later sees that it was called. */
    unsigned awake = looking(pool) + (queue ? atomic_load(&queue->helpers) : 0);
    if (count <= awake)
        return;
    count -= awake;
    /* Or about to sleep, which they will not, or just woken: who is counted here looks for work after this.
     */
    unsigned asleep = atomic_load(&pool->sleepers);
    if (asleep)
        cld_futex_wake(&pool->epoch, (int)count);
    count -= asleep < count ? asleep : count;
    unsigned started = atomic_load_explicit(&pool->started, memory_order_relaxed);
    while (count && started < most(pool)) {
        if (!atomic_compare_exchange_strong(&pool->started, &started, started + 1))
            continue;
        atomic_fetch_add(&pool->users, 1);
        if (!start(pool->device, pool->number == CLD_BACKGROUND, CLD_WORKER_THREAD, work, pool)) {
            atomic_fetch_sub(&pool->started, 1);
            unuse(pool);
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

/* To wake a thread costs about a microsecond, and until it runs it takes several, on virtual machines some
 * dozens: nobody wakes more than a few, but each of those that find work goes on with it, until enough have
 * come. With the lock held. */
static unsigned wanted(struct cld_pool *pool) {
    unsigned count = pool->ready.first != NULL; /* one call may have been meant for several commands */
    for (const struct cld_event *command = pool->open; command && count < MOST_WOKEN;
         command = command->open_next)
        if (may_join(pool, command))
            count += command->calls;
    return count < MOST_WOKEN ? count : MOST_WOKEN;
}

static void pass_on(struct cld_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    unsigned count = wanted(pool);
    pthread_mutex_unlock(&pool->lock);
    if (count)
        call(pool, count, NULL);
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
        note_work(pool);
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
    struct cld_event *command = find_work(pool, event, self, &joined);
    unsigned others = command ? wanted(pool) : 0;
    pthread_mutex_unlock(&pool->lock);
    if (!command)
        return false;
    if (others)
        call(pool, others, NULL);
    execute(pool, command, joined, self, ready);
    return true;
}

/* For something to do, until there may be, or the event is complete, or it is time to sleep: at once where
 * each CPU has a worker that is busy. True if somebody has called. */
static bool look(struct cld_pool *pool, const struct cld_event *event, uint32_t epoch) {
    uint64_t start = cld_now();
    atomic_fetch_add(&event->queue->helpers, 1);
    for (unsigned turn = 0; atomic_load_explicit(&pool->epoch, memory_order_relaxed) == epoch; turn++)
        if (atomic_load_explicit(&event->status, memory_order_relaxed) <= 0 || is_busy(pool) ||
            !cld_linger(turn, start))
            break;
    atomic_fetch_sub(&event->queue->helpers, 1);
    /* Only now: who has counted on this thread has called before. */
    return atomic_load(&pool->epoch) != epoch;
}

bool cld_pool_help(const struct cld_event *event, struct cld_self *self, struct cld_ready *ready) {
    struct cld_pool *pool = pool_of(event->queue);
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
    unuse(pool);
}

enum looking { HAS_PLACE, IS_STOPPED, FINDS_NONE };

/* Looks for a place until it has one, or none for a while since it had work. Calls that others answer do not
 * keep it awake: all who look read what each launch writes, and where launches are small that is what they
 * wait for. FINDS_NONE: it is better to sleep until *epoch has changed. */
static enum looking look_for_place(struct cld_pool *pool, uint64_t since, uint32_t *epoch) {
    *epoch = atomic_load(&pool->epoch);
    for (unsigned turn = 0; !atomic_load(&pool->stop); turn++) {
        if (take_place(pool))
            return HAS_PLACE;
        /* After a call once more: who called may have counted on this thread. */
        uint32_t now = atomic_load(&pool->epoch);
        if (now == *epoch && !cld_linger(turn, since))
            return FINDS_NONE;
        *epoch = now;
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
static enum looking wait_for_place(struct cld_pool *pool, uint64_t *since) {
    if (take_place(pool))
        return HAS_PLACE;
    uint32_t epoch;
    atomic_fetch_add(&pool->idle, 1);
    enum looking found = look_for_place(pool, *since, &epoch);
    bool ends = false;
    /* Where there are more threads than are wanted, the others are enough. */
    if (found == FINDS_NONE && !(ends = atomic_load(&pool->started) > most(pool))) {
        atomic_fetch_add(&pool->sleepers, 1);
        ends = cld_rest(&pool->epoch, epoch, &pool->settled);
        atomic_fetch_sub(&pool->sleepers, 1); /* itself: who woke it may be late to tell */
        *since = cld_now();
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
    enum looking found;
    while ((found = wait_for_place(pool, &since)) != IS_STOPPED)
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
    unuse(working.pool);
    return NULL;
}

static void push(struct cld_pool *pool, struct cld_ready *ready, unsigned count) {
    pthread_mutex_lock(&pool->lock);
    pool->knows_urgent |= ready->urgent != NULL;
    cld_ready_splice(&pool->ready, ready);
    pool->ready_count += count;
    note_work(pool);
    pthread_mutex_unlock(&pool->lock);
    call(pool, count, NULL);
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
        struct cld_pool *pool = pool_of(queue);
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
        unuse(pool);
    }
}

bool cld_pool_open(struct cld_event *command, struct cld_self *self, unsigned count) {
    struct cld_queue *queue = command->queue;
    struct cld_pool *pool = pool_of(queue);
    atomic_store(&command->participants, 1);
    command->leaving = 0;
    join(pool, command, self);
    if (!pool)
        return false;
    /* Who has just enqueued a command is likely to wait for it soon, and to take part. */
    bool later = count && self->role == CLD_WORKER_THREAD && !queue->device->parent &&
                 !atomic_load_explicit(&queue->waiters, memory_order_relaxed);
    pthread_mutex_lock(&pool->lock);
    atomic_store(&command->open, true);
    command->open_previous = NULL;
    command->open_next = pool->open;
    if (pool->open)
        pool->open->open_previous = command;
    pool->open = command;
    command->calls = (uint16_t)(count - later);
    pool->knows_urgent |= queue->is_urgent;
    note_work(pool);
    count = wanted(pool);
    pthread_mutex_unlock(&pool->lock);
    /* Also where nobody is to be woken: those that are awake will see it. */
    call(pool, count, queue);
    return later;
}

void cld_pool_call(struct cld_event *command, unsigned count) {
    struct cld_pool *pool = pool_of(command->queue);
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    bool wanted = atomic_load(&command->open) && may_join(pool, command);
    command->calls += wanted ? count : 0;
    note_work(pool);
    unsigned waking = count < MOST_WOKEN ? count : MOST_WOKEN;
    pthread_mutex_unlock(&pool->lock);
    if (wanted)
        call(pool, waking, NULL);
}

static struct cld_pool *made_pool_of(const struct cld_queue *queue) {
    return atomic_load_explicit(&queue->device->pools[queue->pool], memory_order_acquire);
}

unsigned cld_pool_spare(const struct cld_queue *queue) {
    struct cld_pool *pool = made_pool_of(queue);
    if (!pool)
        return queue->threads;
    unsigned started = atomic_load_explicit(&pool->started, memory_order_relaxed);
    unsigned idle = atomic_load_explicit(&pool->idle, memory_order_relaxed);
    unsigned taken = atomic_load_explicit(&pool->busy_hosts, memory_order_relaxed);
    taken += started > idle ? started - idle : 0;
    return taken < pool->threads ? pool->threads - taken : 0;
}

struct cld_pool *cld_pool_enter(const struct cld_queue *queue, struct cld_self *self) {
    if (self->role != CLD_HOST_THREAD || self->is_counted)
        return NULL;
    struct cld_pool *pool = made_pool_of(queue);
    if (!pool)
        return NULL;
    atomic_fetch_add_explicit(&pool->busy_hosts, 1, memory_order_relaxed);
    self->is_counted = true;
    return pool;
}

void cld_pool_exit(struct cld_pool *pool, struct cld_self *self) {
    atomic_fetch_sub_explicit(&pool->busy_hosts, 1, memory_order_relaxed);
    self->is_counted = false;
}

bool cld_pool_wants_back(struct cld_event *command, const struct cld_self *self) {
    struct cld_pool *pool = made_pool_of(command->queue);
    if (!pool || !atomic_load_explicit(&pool->wants_urgent, memory_order_relaxed) ||
        command->queue->is_urgent || self->role != CLD_WORKER_THREAD || self->executing > 1)
        return false;
    pthread_mutex_lock(&pool->lock);
    bool leaves = atomic_load_explicit(&pool->wants_urgent, memory_order_relaxed) &&
                  atomic_load(&command->participants) - command->leaving > 1;
    command->leaving += leaves;
    pthread_mutex_unlock(&pool->lock);
    return leaves;
}

bool cld_pool_step_aside(struct cld_event *command, const struct cld_self *self) {
    struct cld_pool *pool = made_pool_of(command->queue);
    pthread_mutex_lock(&pool->lock);
    cld_work_quit(command->share, self->slot);
    command->calls += atomic_load(&command->open);
    command->leaving--;
    bool last = atomic_fetch_sub(&command->participants, 1) == 1;
    note_work(pool);
    pthread_mutex_unlock(&pool->lock);
    return last;
}

/* Nobody joins any more. */
static void close_command(struct cld_pool *pool, struct cld_event *command) {
    pthread_mutex_lock(&pool->lock);
    if (atomic_load(&command->open)) {
        atomic_store(&command->open, false);
        if (command->open_previous)
            command->open_previous->open_next = command->open_next;
        else
            pool->open = command->open_next;
        if (command->open_next)
            command->open_next->open_previous = command->open_previous;
        note_work(pool);
    }
    pthread_mutex_unlock(&pool->lock);
}

bool cld_pool_leave(struct cld_event *command) {
    struct cld_pool *pool = made_pool_of(command->queue);
    if (!pool)
        return true;
    if (atomic_load(&command->open))
        close_command(pool, command);
    return atomic_fetch_sub(&command->participants, 1) == 1;
}

void cld_pools_free(struct cld_device *device) {
    for (int i = 0; i < CLD_POOLS; i++) {
        struct cld_pool *pool = atomic_exchange(&device->pools[i], NULL);
        if (!pool)
            continue;
        atomic_store(&pool->stop, true);
        atomic_fetch_add(&pool->epoch, 1);
        cld_futex_wake(&pool->epoch, INT32_MAX);
        unuse(pool);
    }
}

/* Wakes the threads of pools that sleep for long. Whether any are at work. */
static bool stir(void) {
    bool busy = false;
    pthread_mutex_lock(&pools_lock);
    for (struct cld_pool *pool = pools; pool; pool = pool->next) {
        busy |= atomic_load(&pool->started) > atomic_load(&pool->idle);
        if (atomic_load(&pool->settled)) {
            atomic_fetch_add(&pool->epoch, 1);
            cld_futex_wake(&pool->epoch, INT32_MAX);
        }
    }
    pthread_mutex_unlock(&pools_lock);
    return busy;
}

__attribute__((constructor)) static void register_pools(void) {
    cld_on_hosts_end(stir);
}

/* The child of a fork has none of the threads, and nothing of what they were about to do. */
static void renew(void *object) {
    struct cld_device *device = object;
    for (int i = 0; i < CLD_POOLS; i++)
        atomic_store(&device->pools[i], NULL);
}

void cld_pools_fork_child(void) {
    pthread_mutex_init(&pools_lock, NULL);
    pools = NULL;
    cld_object_each(CLD_DEVICE, renew);
}
