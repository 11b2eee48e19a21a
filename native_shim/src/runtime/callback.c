/* The callback thread, event callbacks, destructor callbacks. */
#define _GNU_SOURCE
#include "runtime/callback.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/own_thread.h"
#include "object/call.h"
#include "object/lock.h"
#include "runtime/worker.h"

struct cld_event_callback {
    struct cld_task task; /* once it is due */
    struct cld_event_callback *next;
    void(CL_CALLBACK *function)(cl_event, cl_int, void *);
    void *user_data;
    cl_int type;             /* the status that it waits for */
    cl_int status;           /* what it is told */
    struct cld_event *event; /* held when due */
};

static pthread_mutex_t tasks_lock = PTHREAD_MUTEX_INITIALIZER; /* all of these */
static struct cld_task *tasks, *tasks_end;
static unsigned threads, waiting, blocked;
static _Atomic uint32_t epoch, settled;

static bool have_thread(void);

/* User code has ended the thread (pthread_exit): what is still due is for another one. */
static void thread_is_gone(void *pointer) {
    struct cld_self *self = pointer;
    pthread_mutex_lock(&tasks_lock);
    threads--;
    blocked -= self->blocked;
    if (tasks && !have_thread())
        cld_log(1, "a callback thread cannot be made");
    pthread_mutex_unlock(&tasks_lock);
}

/* A function of its own: pthread_cleanup_push may be a setjmp, which puts a caller's variables at risk. */
static void run_task(struct cld_self *self, struct cld_task *task) {
    self->blocked = false;
    pthread_cleanup_push(thread_is_gone, self);
    task->run(task);
    pthread_cleanup_pop(0);
}

/* Threads beyond the first are there because others block in user code; they leave when there is nothing to
 * do. The first one stays as long as the host has threads. */
static void *run_tasks(void *nothing) {
    struct cld_self *self = cld_self();
    (void)nothing;
    pthread_mutex_lock(&tasks_lock);
    for (;;) {
        struct cld_task *task = tasks;
        if (task) {
            if (!(tasks = task->next))
                tasks_end = NULL;
            pthread_mutex_unlock(&tasks_lock);
            run_task(self, task);
            pthread_mutex_lock(&tasks_lock);
            blocked -= self->blocked;
            continue;
        }
        if (threads - blocked > 1) {
            threads--;
            pthread_mutex_unlock(&tasks_lock);
            return NULL;
        }
        uint32_t seen = atomic_load(&epoch);
        waiting++;
        pthread_mutex_unlock(&tasks_lock);
        bool ends = cld_rest(&epoch, seen, &settled) == CLD_IS_LATE;
        pthread_mutex_lock(&tasks_lock);
        waiting--;
        if (ends && !tasks) {
            threads--;
            pthread_mutex_unlock(&tasks_lock);
            return NULL;
        }
    }
}

/* With the lock held. False if there is no thread that will look at the tasks. */
static bool have_thread(void) {
    if (threads > blocked)
        return true;
    if (!cld_thread_start(NULL, CLD_CALLBACK_THREAD, run_tasks, NULL))
        return false;
    threads++;
    return true;
}

void cld_callback_post(struct cld_task *task) {
    pthread_mutex_lock(&tasks_lock);
    if (!have_thread()) {
        pthread_mutex_unlock(&tasks_lock);
        cld_log(1, "a callback thread cannot be made");
        task->run(task);
        return;
    }
    task->next = NULL;
    if (tasks_end)
        tasks_end->next = task;
    else
        tasks = task;
    tasks_end = task;
    atomic_fetch_add(&epoch, 1);
    bool wake = waiting;
    pthread_mutex_unlock(&tasks_lock);
    if (wake)
        cld_futex_wake(&epoch, 1);
}

void cld_callback_thread_blocks(void) {
    struct cld_self *self = cld_self();
    pthread_mutex_lock(&tasks_lock);
    if (!self->blocked) {
        self->blocked = true;
        blocked++;
        have_thread();
    }
    pthread_mutex_unlock(&tasks_lock);
}

static bool stir(void) {
    pthread_mutex_lock(&tasks_lock);
    bool busy = threads > waiting;
    pthread_mutex_unlock(&tasks_lock);
    if (atomic_load(&settled)) {
        atomic_fetch_add(&epoch, 1);
        cld_futex_wake(&epoch, INT32_MAX);
    }
    return busy;
}

__attribute__((constructor)) static void register_callbacks(void) {
    cld_on_hosts_end(stir);
}

void cld_callback_fork_prepare(void) {
    pthread_mutex_lock(&tasks_lock);
}

void cld_callback_fork_parent(void) {
    pthread_mutex_unlock(&tasks_lock);
}

/* The parent's thread calls what was due; the child starts without. */
void cld_callback_fork_child(void) {
    pthread_mutex_init(&tasks_lock, NULL);
    tasks = tasks_end = NULL;
    threads = waiting = blocked = 0;
    atomic_store(&settled, 0);
}

static void event_callback_done(void *pointer) {
    struct cld_event_callback *callback = pointer;
    cld_object_drop(callback->event);
    free(callback);
}

static void call_event_callback(struct cld_task *task) {
    struct cld_event_callback *callback = (struct cld_event_callback *)task;
    pthread_cleanup_push(event_callback_done, callback);
    callback->function((cl_event)callback->event, callback->status, callback->user_data);
    pthread_cleanup_pop(1);
}

void cld_event_fire_callbacks(struct cld_event *event) {
    struct cld_event_callback *due = NULL, *later = NULL, *next;
    cld_lock(event);
    int32_t status = atomic_load(&event->status);
    for (struct cld_event_callback *at = atomic_load(&event->callbacks); at; at = next) {
        bool is_due = at->type >= status;
        struct cld_event_callback **list = is_due ? &due : &later;
        next = at->next;
        at->next = *list;
        *list = at;
        /* "If the callback is called as the result of the command being abnormally terminated, an
         * appropriate error code is passed instead." */
        at->status = status < 0 ? status : at->type;
        if (is_due)
            cld_object_hold(event);
    }
    atomic_store(&event->callbacks, later);
    cld_unlock(event);
    for (; due; due = next) {
        next = due->next;
        cld_callback_post(&due->task);
    }
}

CL_API_ENTRY cl_int CL_API_CALL clSetEventCallback(cl_event handle, cl_int command_exec_callback_type,
                                                   void(CL_CALLBACK *pfn_notify)(cl_event, cl_int, void *),
                                                   void *user_data) {
    struct cld_event *event = cld_object_check(handle, CLD_EVENT);
    CLD_REQUIRE(event, CL_INVALID_EVENT, "not an event");
    CLD_REQUIRE(pfn_notify, CL_INVALID_VALUE, "pfn_notify is NULL");
    CLD_REQUIRE(command_exec_callback_type == CL_SUBMITTED || command_exec_callback_type == CL_RUNNING ||
                    command_exec_callback_type == CL_COMPLETE,
                CL_INVALID_VALUE,
                "command_exec_callback_type is %d, none of CL_SUBMITTED, CL_RUNNING, CL_COMPLETE",
                command_exec_callback_type);
    struct cld_event_callback *callback = malloc(sizeof *callback);
    CLD_REQUIRE(callback, CL_OUT_OF_HOST_MEMORY, "no memory");
    *callback = (struct cld_event_callback){
        .task.run = call_event_callback,
        .function = pfn_notify,
        .user_data = user_data,
        .type = command_exec_callback_type,
        .event = event,
    };
    cld_lock(event);
    callback->next = atomic_load(&event->callbacks);
    atomic_store(&event->callbacks, callback);
    cld_unlock(event);
    cl_int reached = atomic_load(&event->status);
    if (reached <= command_exec_callback_type) /* not for others: there may be thousands before this one */
        cld_event_fire_callbacks(event);
    else if (reached > CL_SUBMITTED) /* somebody waits for the command now */
        cld_queue_flush(event->queue, NULL);
    return CL_SUCCESS;
}

cl_int cld_destructor_add(void *object, struct cld_callback **list,
                          void (*function)(void *handle, void *user_data), void *user_data) {
    struct cld_callback *callback = malloc(sizeof *callback);
    if (!callback)
        return CL_OUT_OF_HOST_MEMORY;
    callback->function = function;
    callback->user_data = user_data;
    cld_lock(object);
    callback->next = *list;
    *list = callback;
    cld_unlock(object);
    return CL_SUCCESS;
}

struct destructors {
    struct cld_task task;
    void *object;
    struct cld_callback *list;
};

static void call_destructors(void *object, struct cld_callback *list) {
    while (list) {
        struct cld_callback *next = list->next;
        list->function(object, list->user_data);
        free(list);
        list = next;
    }
}

/* Nothing is left, or one has ended the thread. */
static void destructors_done(void *pointer) {
    struct destructors *destructors = pointer;
    if (destructors->list)
        cld_callback_post(&destructors->task);
    else
        free(destructors);
}

static void call_destructors_later(struct cld_task *task) {
    struct destructors *destructors = (struct destructors *)task;
    pthread_cleanup_push(destructors_done, destructors);
    while (destructors->list) {
        struct cld_callback one = *destructors->list;
        free(destructors->list);
        destructors->list = one.next;
        one.function(destructors->object, one.user_data);
    }
    pthread_cleanup_pop(1);
}

void cld_destructors_run(void *object, struct cld_callback **list) {
    struct cld_callback *first = *list;
    *list = NULL;
    struct cld_self *self = cld_self();
    if (!first)
        return;
    struct destructors *later = NULL;
    if (self->role == CLD_WORKER_THREAD || self->executing)
        later = malloc(sizeof *later);
    if (!later) {
        call_destructors(object, first);
        return;
    }
    later->task.run = call_destructors_later;
    later->object = object;
    later->list = first;
    cld_callback_post(&later->task);
}

/* What a context's pfn_notify is told. */
struct notice {
    struct cld_task task;
    struct cld_context *context; /* held: no destructor callback comes before this one */
    char text[256];
};

static void give_notice(struct cld_task *task) {
    struct notice *notice = (struct notice *)task;
    notice->context->notify(notice->text, NULL, 0, notice->context->notify_data);
    cld_object_drop(notice->context);
    free(notice);
}

void cld_context_notify(struct cld_context *context, const char *format, ...) {
    struct notice *notice = context->notify ? malloc(sizeof *notice) : NULL;
    if (!notice)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(notice->text, sizeof notice->text, format, arguments);
    va_end(arguments);
    notice->task.run = give_notice;
    notice->context = context;
    cld_object_hold(context);
    cld_callback_post(&notice->task);
}
