/* The threads of a device, and how work finds them. */
#define _GNU_SOURCE
#include "worker.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "lock.h"
#include "log.h"
#include "share.h"

enum { SPINS = 1500, STACK_SIZE = 4 << 20 };

struct cld_pool {
    pthread_mutex_t lock; /* the next three, and the members of open commands that command.h names */
    struct cld_ready ready;
    struct cld_event *open; /* commands that more threads may join */
    bool stop;
    unsigned threads; /* that the device has */
    struct cld_device *device;
    _Atomic unsigned started;
    _Atomic unsigned idle;  /* of them, looking for work or asleep */
    _Atomic uint32_t epoch; /* counts the calls for help; workers sleep on it */
    _Atomic uint32_t sleepers;
    _Atomic int32_t users; /* the device, and each thread */
};

static pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER; /* making pools */

static struct cld_pool *pool_of(struct cld_device *device) {
    struct cld_pool *pool = atomic_load_explicit(&device->pool, memory_order_acquire);
    if (pool)
        return pool;
    pthread_mutex_lock(&pools_lock);
    pool = atomic_load_explicit(&device->pool, memory_order_relaxed);
    if (!pool && (pool = calloc(1, sizeof *pool))) {
        pthread_mutex_init(&pool->lock, NULL);
        pool->threads = device->compute_units ? device->compute_units : 1;
        pool->device = device;
        atomic_init(&pool->users, 1);
        atomic_store_explicit(&device->pool, pool, memory_order_release);
    }
    pthread_mutex_unlock(&pools_lock);
    return pool;
}

unsigned cld_pool_threads(const struct cld_queue *queue) {
    return queue->device->compute_units;
}

bool cld_pool_may_help(const struct cld_queue *queue, const struct cld_self *self) {
    return !queue->device->parent && !self->executing;
}

struct cld_event *cld_ready_choose(struct cld_ready *ready, const struct cld_event *command,
                                   const struct cld_queue *queue) {
    struct cld_event *previous = NULL, *before = NULL, *found = NULL;
    for (struct cld_event *at = ready->first; at; previous = at, at = at->next) {
        if (at != command && (found || (queue && at->queue != queue)))
            continue;
        found = at;
        before = previous;
        if (at == command || !command)
            break;
    }
    if (!found)
        return NULL;
    if (before)
        before->next = found->next;
    else
        ready->first = found->next;
    if (ready->last == found)
        ready->last = before;
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
    if (ready && ready == wanted)
        return ready;
    for (struct cld_event *command = pool->open; command; command = command->open_next)
        if ((!queue || command->queue == queue) && cld_share_is_open(command->share, command->participants)) {
            if (ready) { /* back to where it was, or nearly so */
                ready->next = pool->ready.first;
                pool->ready.first = ready;
                if (!pool->ready.last)
                    pool->ready.last = ready;
            }
            command->participants++;
            self->slot = cld_share_join(command->share, self->slot);
            command->calls -= command->calls > 0;
            *joined = true;
            return command;
        }
    return wanted ? ready : cld_ready_take(&pool->ready);
}

static void call(struct cld_pool *pool, unsigned count);

/* To wake a thread costs about a microsecond: nobody wakes more than two for a command, but each of those
 * that join it goes on with it, until enough have come. With the lock held. */
static unsigned calls_for(const struct cld_event *command) {
    return command->calls < 2 ? command->calls : 2;
}

static bool work_once(struct cld_pool *pool, const struct cld_event *wanted, struct cld_self *self,
                      struct cld_ready *ready) {
    bool joined;
    pthread_mutex_lock(&pool->lock);
    struct cld_event *command = find_work(pool, wanted, self, &joined);
    unsigned others = 0;
    if (command && pool->ready.first) /* one wake may have been meant for several commands */
        others = 1;
    if (joined)
        others += calls_for(command);
    pthread_mutex_unlock(&pool->lock);
    if (!command)
        return false;
    if (others)
        call(pool, others);
    if (joined)
        cld_command_participate(command, self, ready);
    else
        cld_command_execute(command, self, ready);
    return true;
}

bool cld_pool_help(const struct cld_event *event, struct cld_self *self, struct cld_ready *ready) {
    struct cld_pool *pool = atomic_load_explicit(&event->queue->device->pool, memory_order_acquire);
    return pool && work_once(pool, event, self, ready);
}

static void unuse(struct cld_pool *pool) {
    if (atomic_fetch_sub(&pool->users, 1) != 1)
        return;
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

static void *work(void *argument) {
    struct cld_pool *pool = argument;
    struct cld_self *self = cld_self();
    struct cld_ready ready = {NULL, NULL};
    self->role = CLD_WORKER_THREAD;
    for (;;) {
        uint32_t epoch = atomic_load(&pool->epoch);
        if (work_once(pool, NULL, self, &ready)) {
            while (ready.first) {
                struct cld_event *command = cld_ready_take(&ready);
                if (ready.first && command->estimate > 5000)
                    cld_pool_push(&ready);
                cld_command_execute(command, self, &ready);
            }
            continue;
        }
        pthread_mutex_lock(&pool->lock);
        bool stop = pool->stop;
        pthread_mutex_unlock(&pool->lock);
        if (stop)
            break;
        atomic_fetch_add(&pool->idle, 1);
        for (int i = 0; i < SPINS && atomic_load_explicit(&pool->epoch, memory_order_relaxed) == epoch; i++)
            cld_pause();
        if (atomic_load(&pool->epoch) == epoch) {
            atomic_fetch_add(&pool->sleepers, 1);
            cld_futex_wait(&pool->epoch, epoch);
            atomic_fetch_sub(&pool->sleepers, 1);
        }
        atomic_fetch_sub(&pool->idle, 1);
    }
    unuse(pool);
    return NULL;
}

/* The threads of a sub-device are bound to its CPUs. The root's go where the thread may go that makes them,
 * unless it has bound itself to fewer CPUs than the device has: what a host chose for one of its threads is
 * not meant for ours. */
static void bind(pthread_attr_t *attributes, const struct cld_device *device) {
    cpu_set_t mine;
    if (!device->parent && !sched_getaffinity(0, sizeof mine, &mine) &&
        (uint32_t)CPU_COUNT(&mine) >= device->compute_units)
        return;
    size_t bits = 64;
    for (uint32_t i = 0; i < device->compute_units; i++)
        if (device->cpus[i] >= bits)
            bits = device->cpus[i] + 1;
    cpu_set_t *set = CPU_ALLOC(bits);
    if (!set)
        return;
    size_t size = CPU_ALLOC_SIZE(bits);
    CPU_ZERO_S(size, set);
    for (uint32_t i = 0; i < device->compute_units; i++)
        CPU_SET_S(device->cpus[i], size, set);
    pthread_attr_setaffinity_np(attributes, size, set);
    CPU_FREE(set);
}

/* The driver's threads take none of the host's signals. */
bool cld_thread_start(const struct cld_device *device, void *(*function)(void *), void *argument) {
    pthread_attr_t attributes;
    sigset_t all, old;
    pthread_t thread;
    if (pthread_attr_init(&attributes))
        return false;
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (device && device->cpus)
        bind(&attributes, device);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool made = !pthread_create(&thread, &attributes, function, argument);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    return made;
}

/* Calls for that many threads: those that sleep wake, and more are made up to the device's number. */
static void call(struct cld_pool *pool, unsigned count) {
    atomic_fetch_add(&pool->epoch, 1);
    /* Also where some are idle and awake: another caller may count on the same ones. */
    if (atomic_load(&pool->sleepers))
        cld_futex_wake(&pool->epoch, (int)count);
    unsigned idle = atomic_load_explicit(&pool->idle, memory_order_relaxed);
    unsigned started = atomic_load_explicit(&pool->started, memory_order_relaxed);
    while (count > idle && started < pool->threads) {
        if (!atomic_compare_exchange_strong(&pool->started, &started, started + 1))
            continue;
        atomic_fetch_add(&pool->users, 1);
        if (!cld_thread_start(pool->device, work, pool)) {
            atomic_fetch_sub(&pool->started, 1);
            unuse(pool);
            cld_log(1, "a worker thread cannot be made");
            break;
        }
        started++;
        count--;
    }
}

static void push(struct cld_pool *pool, struct cld_ready *ready, unsigned count) {
    pthread_mutex_lock(&pool->lock);
    if (pool->ready.last)
        pool->ready.last->next = ready->first;
    else
        pool->ready.first = ready->first;
    pool->ready.last = ready->last;
    pthread_mutex_unlock(&pool->lock);
    call(pool, count);
}

/* No thread can be made, so that the caller has to do it. */
static void execute_here(struct cld_pool *pool) {
    struct cld_self *self = cld_self();
    struct cld_ready ready = {NULL, NULL};
    if (self->executing)
        return;
    while (work_once(pool, NULL, self, &ready))
        while (ready.first)
            cld_command_execute(cld_ready_take(&ready), self, &ready);
}

void cld_pool_push(struct cld_ready *ready) {
    while (ready->first) {
        struct cld_device *device = ready->first->queue->device;
        struct cld_ready same = {NULL, NULL}, others = {NULL, NULL};
        unsigned count = 0;
        for (struct cld_event *command; (command = cld_ready_take(ready));) {
            bool is_same = command->queue->device == device;
            cld_ready_add(is_same ? &same : &others, command);
            count += is_same;
        }
        *ready = others;
        struct cld_pool *pool = pool_of(device);
        if (!pool) { /* no memory for it: the commands fail, nobody hangs */
            for (struct cld_event *command; (command = cld_ready_take(&same));)
                cld_event_complete(command, CL_OUT_OF_RESOURCES, ready);
            continue;
        }
        atomic_fetch_add(&pool->users, 1);
        push(pool, &same, count);
        if (!atomic_load_explicit(&pool->started, memory_order_relaxed))
            execute_here(pool);
        unuse(pool);
    }
}

void cld_pool_open(struct cld_event *command, struct cld_self *self, unsigned count) {
    struct cld_pool *pool = pool_of(command->queue->device);
    command->participants = 1;
    self->slot = cld_share_join(command->share, self->slot);
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    command->open = true;
    command->open_previous = NULL;
    command->open_next = pool->open;
    if (pool->open)
        pool->open->open_previous = command;
    pool->open = command;
    command->calls = count;
    count = calls_for(command);
    pthread_mutex_unlock(&pool->lock);
    if (count)
        call(pool, count);
}

bool cld_pool_leave(struct cld_event *command) {
    struct cld_pool *pool = atomic_load_explicit(&command->queue->device->pool, memory_order_acquire);
    if (!pool)
        return true;
    pthread_mutex_lock(&pool->lock);
    if (command->open) {
        command->open = false;
        if (command->open_previous)
            command->open_previous->open_next = command->open_next;
        else
            pool->open = command->open_next;
        if (command->open_next)
            command->open_next->open_previous = command->open_previous;
    }
    bool last = --command->participants == 0;
    pthread_mutex_unlock(&pool->lock);
    return last;
}

void cld_pool_free(struct cld_device *device) {
    struct cld_pool *pool = atomic_exchange(&device->pool, NULL);
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pthread_mutex_unlock(&pool->lock);
    atomic_fetch_add(&pool->epoch, 1);
    cld_futex_wake(&pool->epoch, INT32_MAX);
    unuse(pool);
}

/* The child of a fork has none of the threads, and nothing of what they were about to do. */
static void renew(void *object) {
    struct cld_device *device = object;
    atomic_store(&device->pool, NULL);
}

void cld_pools_fork_child(void) {
    pthread_mutex_init(&pools_lock, NULL);
    cld_object_each(CLD_DEVICE, renew);
}
