/* The driver's own threads.
 *
 * Signals that are sent to the process are for the host's threads: a handler of the host's that ran on one of
 * ours would find nothing that it knows, and one that waits in sigwait() would lose the signal to the default
 * action. So our threads block them, whatever their disposition is at the time. Signals of an instruction (a
 * fault in a kernel, on memory that the host protects) are for whoever executes it: blocked, they end the
 * process before its handler sees them.
 *
 * Where nobody but our threads is left, a process would live on for ever and take no signal. So those that
 * have nothing to do end soon after the last thread of the host's that used the driver. The process ends with
 * the last thread, as if the driver had none. Meanwhile, if the main thread has ended, another takes the
 * signals that it would have taken. */
#define _GNU_SOURCE
#include "base/own_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"

enum {
    ALTERNATE_SIZE = 64 << 10,
    STAND_IN_STACK = 256 << 10, /* handlers of the host's run on it */
    REST_TIME = 1000000000,
    MOST_STIRRERS = 4,
    MAKER_STACK = 256 << 10,
    LOW_PRIORITY = 19, /* the nicest that there is */
};

struct start {
    void *(*function)(void *);
    void *argument;
    enum cld_role role;
    bool is_low;
};

/* What a thread of low priority waits for. */
struct task {
    void (*function)(void *);
    void *argument;
    _Atomic uint32_t done;
    struct task *next;
};

static pthread_mutex_t low_lock = PTHREAD_MUTEX_INITIALIZER; /* the next three */
static unsigned low_threads;
static bool has_maker; /* a thread for tasks: while there are threads of low priority */
static struct task *tasks;
static _Atomic uint32_t maker_calls; /* counts what the maker has to look at */

static _Atomic uint32_t hosts; /* threads of the host's that have used the driver */
static _Atomic uint32_t own;   /* threads of ours */
static atomic_flag has_stand_in = ATOMIC_FLAG_INIT;
static bool (*stirrers[MOST_STIRRERS])(void);

static void call_maker(void) {
    atomic_fetch_add(&maker_calls, 1);
    cld_futex_wake(&maker_calls, 1);
}

static void low_thread_ends(void) {
    pthread_mutex_lock(&low_lock);
    if (!--low_threads)
        call_maker();
    pthread_mutex_unlock(&low_lock);
}

static void leave(void *pointer) {
    const stack_t none = {.ss_flags = SS_DISABLE};
    if (cld_self_storage.has_low_priority)
        low_thread_ends();
    if (pointer)
        sigaltstack(&none, NULL);
    atomic_fetch_sub(&own, 1);
    cld_futex_wake(&own, INT32_MAX);
}

static void *run_on(const struct start *start, uint8_t *alternate) {
    void *result;
    pthread_cleanup_push(leave, alternate);
    result = start->function(start->argument);
    pthread_cleanup_pop(1);
    return result;
}

/* The alternate stack is at the upper end of the thread's own, which an overflow does not reach. */
static void *run(void *pointer) {
    struct start start = *(struct start *)pointer;
    _Alignas(64) uint8_t alternate[ALTERNATE_SIZE];
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate}, before;
    free(pointer);
    cld_self_storage.role = start.role;
    cld_self_storage.has_low_priority = start.is_low;
    if (start.is_low && setpriority(PRIO_PROCESS, 0, LOW_PRIORITY)) /* of this thread */
        cld_log(1, "a thread cannot be given low priority");
    /* Sanitizers give each thread one, and take it back. */
    bool has_one = sigaltstack(NULL, &before) || !(before.ss_flags & SS_DISABLE);
    bool has_ours = !has_one && !sigaltstack(&stack, NULL);
    return run_on(&start, has_ours ? alternate : NULL);
}

static void block_signals(sigset_t *before) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, before);
}

static int make(pthread_t *thread, pthread_attr_t *attributes, size_t stack_size, struct start what) {
    pthread_attr_t plain;
    pthread_t detached;
    sigset_t before;
    struct start *start = malloc(sizeof *start);
    int error = start ? 0 : ENOMEM;
    if (!attributes && !error)
        error = pthread_attr_init(&plain);
    if (error) {
        free(start);
        return error;
    }
    pthread_attr_t *used = attributes ? attributes : &plain;
    *start = what;
    pthread_attr_setstacksize(used, stack_size + ALTERNATE_SIZE);
    if (!thread)
        pthread_attr_setdetachstate(used, PTHREAD_CREATE_DETACHED);
    atomic_fetch_add(&own, 1);
    block_signals(&before);
    error = pthread_create(thread ? thread : &detached, used, run, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        atomic_fetch_sub(&own, 1);
        free(start);
    }
    if (!attributes)
        pthread_attr_destroy(&plain);
    return error;
}

struct making {
    pthread_t *thread;
    pthread_attr_t *attributes;
    size_t stack_size;
    struct start what;
    int error;
};

static void make_for(void *pointer) {
    struct making *making = pointer;
    making->error = make(making->thread, making->attributes, making->stack_size, making->what);
}

int cld_own_thread(pthread_t *thread, pthread_attr_t *attributes, size_t stack_size, enum cld_role role,
                   void *(*function)(void *), void *argument) {
    struct making making = {thread, attributes, stack_size, {function, argument, role, false}, 0};
    cld_at_usual_priority(make_for, &making);
    return making.error;
}

static void *maker(void *nothing) {
    (void)nothing;
    pthread_mutex_lock(&low_lock);
    while (low_threads || tasks) {
        struct task *task = tasks;
        uint32_t seen = atomic_load(&maker_calls);
        if (task)
            tasks = task->next;
        pthread_mutex_unlock(&low_lock);
        if (task) {
            task->function(task->argument);
            atomic_store(&task->done, 1); /* it may be gone from here on */
            cld_futex_wake(&task->done, 1);
        } else {
            cld_futex_wait(&maker_calls, seen);
        }
        pthread_mutex_lock(&low_lock);
    }
    has_maker = false;
    pthread_mutex_unlock(&low_lock);
    return NULL;
}

int cld_own_low_thread(pthread_attr_t *attributes, size_t stack_size, enum cld_role role,
                       void *(*function)(void *), void *argument) {
    struct making making = {NULL, attributes, stack_size, {function, argument, role, true}, 0};
    pthread_mutex_lock(&low_lock);
    low_threads++;
    /* Never by one of low priority: there is a maker as long as there is such a thread. */
    if (!has_maker)
        making.error = make(NULL, NULL, MAKER_STACK, (struct start){maker, NULL, CLD_DRIVER_THREAD, false});
    has_maker = !making.error;
    pthread_mutex_unlock(&low_lock);
    if (!making.error)
        cld_at_usual_priority(make_for, &making);
    if (making.error)
        low_thread_ends();
    return making.error;
}

void cld_at_usual_priority(void (*function)(void *), void *argument) {
    struct task task = {.function = function, .argument = argument};
    bool is_given = cld_self_storage.has_low_priority;
    if (is_given) {
        pthread_mutex_lock(&low_lock);
        is_given = has_maker; /* after a fork there is none */
        if (is_given) {
            task.next = tasks;
            tasks = &task;
            call_maker();
        }
        pthread_mutex_unlock(&low_lock);
    }
    if (!is_given)
        function(argument);
    while (is_given && !atomic_load(&task.done))
        cld_futex_wait(&task.done, 0);
}

enum cld_waited cld_rest(_Atomic uint32_t *word, uint32_t expected, _Atomic uint32_t *settled) {
    enum cld_waited waited = cld_futex_wait_for(word, expected, REST_TIME);
    if (waited != CLD_IS_LATE)
        return waited;
    atomic_fetch_add(settled, 1);
    /* Only now: the last thread of the host's that ends later sees who has settled. */
    bool stays = atomic_load(&hosts);
    if (stays)
        waited = cld_futex_wait(word, expected);
    atomic_fetch_sub(settled, 1);
    return waited;
}

void cld_on_hosts_end(bool (*stir)(void)) {
    for (int i = 0; i < MOST_STIRRERS; i++)
        if (!stirrers[i]) {
            stirrers[i] = stir;
            return;
        }
    abort(); /* one more than there is room for */
}

void cld_host_thread_begins(void) {
    atomic_fetch_add(&hosts, 1);
}

/* Whether the process goes on without its main thread. Where there is no /proc, it is taken to be there. */
static bool main_thread_has_ended(void) {
    char text[512];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[size > 0 ? size : 0] = 0;
    const char *name_end = strrchr(text, ')');
    return name_end && !strncmp(name_end, ") Z", 3);
}

/* Blocks what the main thread blocked, until there is no other thread of ours. */
static void *stand_in(void *argument) {
    pthread_sigmask(SIG_SETMASK, argument, NULL);
    free(argument);
    for (uint32_t count; (count = atomic_load(&own)) > 1;)
        cld_futex_wait(&own, count);
    atomic_flag_clear(&has_stand_in);
    return NULL;
}

static void start_stand_in(void) {
    sigset_t *mask = malloc(sizeof *mask);
    if (!mask || atomic_flag_test_and_set(&has_stand_in)) {
        free(mask);
        return;
    }
    pthread_sigmask(SIG_BLOCK, NULL, mask);
    if (cld_own_thread(NULL, NULL, STAND_IN_STACK, CLD_DRIVER_THREAD, stand_in, mask)) {
        cld_log(1, "no thread can be made that takes signals in place of the main thread");
        atomic_flag_clear(&has_stand_in);
        free(mask);
    }
}

void cld_host_thread_ends(void) {
    if (atomic_fetch_sub(&hosts, 1) != 1)
        return;
    bool is_main = cld_thread_id() == getpid();
    bool is_busy = false;
    for (int i = 0; i < MOST_STIRRERS && stirrers[i]; i++)
        is_busy |= stirrers[i]();
    if (is_main ? atomic_load(&own) > 0 : is_busy && main_thread_has_ended())
        start_stand_in();
}

/* The thread that forks is the only one. */
void cld_own_threads_fork_child(void) {
    const struct cld_self *self = &cld_self_storage;
    bool is_host = self->role == CLD_HOST_THREAD;
    atomic_store(&hosts, is_host && self->registered);
    atomic_store(&own, !is_host);
    atomic_flag_clear(&has_stand_in);
    pthread_mutex_init(&low_lock, NULL);
    low_threads = self->has_low_priority;
    has_maker = false;
    tasks = NULL;
}
