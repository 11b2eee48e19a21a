/* The work of a device: what is ready, which commands threads may join, and who may have them. */
#define _GNU_SOURCE
#include "runtime/pool.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/own_thread.h"
#include "base/settings.h"
#include "base/thread.h"
#include "object/lock.h"
#include "schedule/work_stealing.h"

void cld_ready_put_urgent(struct cld_ready *ready, struct cld_event *command) {
    struct cld_event **after = ready->urgent ? &ready->urgent->next : &ready->first;
    command->next = *after;
    *after = command;
    if (!command->next)
        ready->last = command;
    ready->urgent = command;
}

void cld_ready_put_back(struct cld_ready *ready, struct cld_event *command) {
    bool is_urgent = command->queue->is_urgent;
    struct cld_event **after = ready->urgent && !is_urgent ? &ready->urgent->next : &ready->first;
    command->next = *after;
    *after = command;
    if (!command->next)
        ready->last = command;
    if (is_urgent && !ready->urgent)
        ready->urgent = command;
}

void cld_ready_splice(struct cld_ready *ready, struct cld_ready *more) {
    while (more->urgent)
        cld_ready_put_urgent(ready, cld_ready_take(more));
    if (!more->first)
        return;
    if (ready->last)
        ready->last->next = more->first;
    else
        ready->first = more->first;
    ready->last = more->last;
    more->first = more->last = NULL;
}

struct cld_event *cld_ready_choose(struct cld_ready *ready, const struct cld_event *command,
                                   const struct cld_queue *queue) {
    struct cld_event *previous = NULL, *before = NULL, *found = NULL;
    for (struct cld_event *at = ready->first; at; previous = at, at = at->next) {
        if (at != command && (found || (queue && !cld_ready_may_be_needed(at, queue))))
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
    if (ready->urgent == found)
        ready->urgent = before;
    return found;
}

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

struct cld_pool *cld_pool_of(const struct cld_queue *queue) {
    struct cld_device *device = queue->local;
    struct cld_pool *pool = atomic_load_explicit(&device->pools[queue->pool], memory_order_acquire);
    if (pool)
        return pool;
    pthread_mutex_lock(&pools_lock);
    pool = atomic_load_explicit(&device->pools[queue->pool], memory_order_relaxed);
    if (!pool && (pool = aligned_alloc(CLD_LINE, sizeof *pool))) {
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
    const struct cld_pool *pool = cld_pool_of(queue);
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
void cld_pool_note_work(struct cld_pool *pool) {
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
struct cld_event *cld_pool_find_work(struct cld_pool *pool, const struct cld_event *wanted,
                                     struct cld_self *self, bool *joined) {
    const struct cld_queue *queue = wanted ? wanted->queue : NULL;
    bool may_be_ready = wanted && cld_event_may_be_ready(wanted);
    struct cld_event *ready =
        wanted ? cld_ready_choose(&pool->ready, may_be_ready ? wanted : NULL, queue) : NULL;
    *joined = false;
    pool->ready_count -= ready != NULL;
    if (ready && ready == wanted) {
        cld_pool_note_work(pool);
        return ready;
    }
    struct cld_event *open = pool->ready.urgent && !wanted ? NULL : pool->open;
    struct cld_event *command = find_open(pool, open, wanted);
    if (!command) {
        if (!wanted && (ready = cld_ready_take(&pool->ready)))
            pool->ready_count--;
        cld_pool_note_work(pool);
        return ready;
    }
    if (ready) { /* back to where it was, or nearly so */
        cld_ready_put_back(&pool->ready, ready);
        pool->ready_count++;
    }
    atomic_fetch_add(&command->participants, 1);
    join(pool, command, self);
    command->calls -= command->calls > 0;
    cld_pool_note_work(pool);
    *joined = true;
    return command;
}

void cld_pool_unuse(struct cld_pool *pool) {
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

unsigned cld_pool_wanted(struct cld_pool *pool) {
    unsigned count = pool->ready.first != NULL; /* one call may have been meant for several commands */
    unsigned most = pool->threads, coming = atomic_load(&pool->coming);
    for (const struct cld_event *command = pool->open; command && count < most; command = command->open_next)
        if (may_join(pool, command))
            count += command->calls;
    count = count < most ? count : most;
    return count > coming ? count - coming : 0;
}

/* ns in which a thread that has ended a command looks for another. */
enum { LEAVING_TIME = 5000 };

static unsigned threads_at_work(struct cld_pool *pool) {
    unsigned started = atomic_load_explicit(&pool->started, memory_order_relaxed);
    unsigned idle = atomic_load_explicit(&pool->idle, memory_order_relaxed);
    return started > idle ? started - idle : 0;
}

/* Of so many that seem to be at work: who waited for the last command may enqueue the next one before they
 * are back. */
static unsigned about_to_look(struct cld_pool *pool, unsigned working) {
    unsigned freed = atomic_load_explicit(&pool->freed, memory_order_relaxed);
    if (!working || !freed ||
        cld_now() - atomic_load_explicit(&pool->freed_at, memory_order_relaxed) > LEAVING_TIME)
        return 0;
    return freed < working ? freed : working;
}

/* Who has just enqueued a command is likely to wait for it soon, and to take part. */
static bool host_will_help(const struct cld_queue *queue, const struct cld_self *self) {
    return self->role == CLD_WORKER_THREAD && !queue->device->parent &&
           !atomic_load_explicit(&queue->waiters, memory_order_relaxed);
}

unsigned cld_pool_count_on(const struct cld_queue *queue, const struct cld_self *self, double left,
                           unsigned wanted, unsigned *to_call) {
    struct cld_pool *pool = cld_pool_of(queue);
    *to_call = wanted;
    if (!pool || queue->is_urgent)
        return wanted;
    unsigned awake = cld_pool_awake(pool, queue) + host_will_help(queue, self);
    unsigned soon = about_to_look(pool, threads_at_work(pool));
    uint64_t now = cld_now();
    pthread_mutex_lock(&pool->lock);
    unsigned count =
        cld_calls_worth(&pool->calls, left, awake + soon, wanted, now, atomic_load(&pool->wake_time));
    pthread_mutex_unlock(&pool->lock);
    *to_call = count <= awake + soon && count > awake ? awake : count; /* who looks soon needs no call */
    return count;
}

bool cld_pool_open(struct cld_event *command, struct cld_self *self, unsigned count) {
    struct cld_queue *queue = command->queue;
    struct cld_pool *pool = cld_pool_of(queue);
    atomic_store(&command->participants, 1);
    command->leaving = 0;
    join(pool, command, self);
    if (!pool)
        return false;
    bool later = count && host_will_help(queue, self);
    pthread_mutex_lock(&pool->lock);
    atomic_store(&command->open, true);
    command->open_previous = NULL;
    command->open_next = pool->open;
    if (pool->open)
        pool->open->open_previous = command;
    pool->open = command;
    command->calls = (uint16_t)(count - later);
    pool->knows_urgent |= queue->is_urgent;
    cld_pool_note_work(pool);
    count = cld_pool_wanted(pool);
    pthread_mutex_unlock(&pool->lock);
    /* Also where nobody is to be woken: those that are awake will see it. */
    cld_pool_wake(pool, count, CLD_MOST_WOKEN, queue);
    return later;
}

void cld_pool_call(struct cld_event *command, unsigned count) {
    struct cld_pool *pool = cld_pool_of(command->queue);
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    bool wanted = atomic_load(&command->open) && may_join(pool, command);
    command->calls += wanted ? count : 0;
    cld_pool_note_work(pool);
    pthread_mutex_unlock(&pool->lock);
    if (wanted)
        cld_pool_wake(pool, count, CLD_MOST_WOKEN, NULL);
}

static struct cld_pool *made_pool_of(const struct cld_queue *queue) {
    return atomic_load_explicit(&queue->local->pools[queue->pool], memory_order_acquire);
}

unsigned cld_pool_spare(const struct cld_queue *queue) {
    struct cld_pool *pool = made_pool_of(queue);
    if (!pool)
        return queue->threads;
    unsigned taken = atomic_load_explicit(&pool->busy_hosts, memory_order_relaxed);
    unsigned working = threads_at_work(pool);
    taken += working - about_to_look(pool, working);
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
    cld_pool_note_work(pool);
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
        cld_pool_note_work(pool);
    }
    pthread_mutex_unlock(&pool->lock);
}

bool cld_pool_leave(struct cld_event *command) {
    struct cld_pool *pool = made_pool_of(command->queue);
    if (!pool)
        return true;
    if (atomic_load(&command->open))
        close_command(pool, command);
    if (atomic_fetch_sub(&command->participants, 1) != 1)
        return false;
    atomic_store_explicit(&pool->freed, cld_work_slots(command->share), memory_order_relaxed);
    atomic_store_explicit(&pool->freed_at, cld_now(), memory_order_relaxed);
    return true;
}

void cld_pools_free(struct cld_device *device) {
    for (int i = 0; i < CLD_POOLS; i++) {
        struct cld_pool *pool = atomic_exchange(&device->pools[i], NULL);
        if (!pool)
            continue;
        atomic_store(&pool->stop, true);
        cld_pool_wake_all(pool);
        cld_pool_unuse(pool);
    }
}

/* Wakes the threads of pools that sleep for long. Whether any are at work. */
static bool stir(void) {
    bool busy = false;
    pthread_mutex_lock(&pools_lock);
    for (struct cld_pool *pool = pools; pool; pool = pool->next) {
        busy |= atomic_load(&pool->started) > atomic_load(&pool->idle);
        if (atomic_load(&pool->settled))
            cld_pool_wake_all(pool);
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
