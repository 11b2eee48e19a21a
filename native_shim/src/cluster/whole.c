/* Launches on the device that is all workers: how they are executed. Each part is a command of its own, for
 * one worker; the launch has ended when all parts have.
 *
 * Launches of a queue in order end in the order in which they were sent, so that one which need not wait for
 * another here, for it comes behind it on each worker, does not seem to have ended before it. */
#include <stdlib.h>
#include <string.h>

#include "base/mean.h"
#include "cluster/internal.h"
#include "kernel/kernel.h"
#include "runtime/ready.h"

static struct cld_parts *trials; /* that others wait for; with the lock held */
static double trial_time;        /* running mean, ns; 0: not known */

/* ns; and how many times the usual is long. The first trials wait for compilers of workers, too. */
#define LONG_AT_FIRST 4e9
#define LEAST_LONG 2e9
#define TIMES_USUAL 8

static bool is_long(uint64_t since, uint64_t now) {
    double limit = trial_time ? TIMES_USUAL * trial_time : LONG_AT_FIRST;
    return (double)(now - since) > (limit > LEAST_LONG ? limit : LEAST_LONG);
}

bool cld_is_held_up(const struct cld_worker *worker, uint64_t now) {
    return worker->oldest && is_long(worker->answered, now);
}

void cld_trial_begin(struct cld_parts *parts) {
    parts->is_trial = true;
    parts->began = cld_now();
    parts->next_trial = trials;
    trials = parts;
}

static void end_trial(struct cld_parts **link, struct cld_event **again) {
    struct cld_parts *parts = *link;
    struct cld_works *works = parts->command->kernel.info->works;
    *link = parts->next_trial;
    parts->is_trial = works->is_tried = false;
    cld_wake(&works->waiting, again);
}

void cld_trial_end(struct cld_parts *parts, struct cld_event **again) {
    struct cld_parts **link = &trials;
    if (!parts->is_trial)
        return;
    while (*link != parts)
        link = &(*link)->next_trial;
    end_trial(link, again);
    if (!atomic_load_explicit(&parts->command->error, memory_order_relaxed))
        trial_time = cld_mean(trial_time, (double)(cld_now() - parts->began));
}

/* Of a launch that takes long, the workers that have not executed their parts are held up, whatever else they
 * answered. Whether others are left: who waits for it would wait at these workers, too. */
static bool leaves_others(struct cld_parts *parts, uint64_t now) {
    struct cld_worker *worker;
    for (uint32_t i = 0; i < parts->count; i++) {
        worker = parts->parts[i].worker;
        if (!parts->parts[i].arrived && worker->answered > parts->began)
            worker->answered = parts->began;
    }
    for (uint32_t i = 0; (worker = cld_worker_at(i)); i++)
        if (cld_is_in_whole(worker) && !cld_is_held_up(worker, now))
            return true;
    return false;
}

void cld_trials_look(struct cld_event **again) {
    uint64_t now = cld_now();
    for (struct cld_parts **link = &trials, *parts; (parts = *link);) {
        if (!is_long(parts->began, now) || !leaves_others(parts, now)) {
            link = &parts->next_trial;
            continue;
        }
        parts->command->kernel.info->works->trials = UINT32_MAX; /* others would be waited for as long */
        end_trial(link, again);
    }
}

/* The first part began when the launch did, and the last one ended when it did. */
static void note_times(struct cld_parts *parts) {
    struct cld_event *command = parts->command;
    uint64_t start = UINT64_MAX, end = 0;
    for (uint32_t i = 0; i < parts->count; i++) {
        const struct cld_event *part = parts->parts[i].command;
        if (part->elsewhere != CLD_SENT_WITH_TIMES)
            return;
        start = part->times[CLD_TIME_START] < start ? part->times[CLD_TIME_START] : start;
        end = part->times[CLD_TIME_END] > end ? part->times[CLD_TIME_END] : end;
    }
    command->times[CLD_TIME_START] = start;
    command->times[CLD_TIME_END] = end;
    command->elsewhere = CLD_SENT_WITH_TIMES;
}

static bool is_in_order(const struct cld_queue *queue) {
    return !(queue->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}

/* With the lock held: one of its parts or sums has ended. The launches that have thereby. */
static struct cld_event *leave(struct cld_parts *parts, cl_int status, struct cld_event **again) {
    struct cld_event *ended = NULL, **last = &ended;
    if (status < 0)
        cld_command_fail(parts->command, status);
    if (--parts->left)
        return NULL;
    parts->has_ended = true;
    if (!atomic_load_explicit(&parts->command->error, memory_order_relaxed))
        cld_parts_learn(parts);
    cld_sums_end(parts, again);
    if (cld_is_timed(parts->command))
        note_times(parts);
    struct cld_queue *queue = parts->command->queue;
    if (!parts->is_sent || !is_in_order(queue)) {
        parts->command->next = NULL;
        return parts->command;
    }
    while (queue->first_parts && queue->first_parts->has_ended) {
        *last = queue->first_parts->command;
        (*last)->next = NULL;
        last = &(*last)->next;
        queue->first_parts = queue->first_parts->next;
    }
    return ended;
}

static void complete(struct cld_event *ended, struct cld_event *again, struct cld_ready *ready) {
    while (ended) {
        struct cld_event *command = ended;
        ended = command->next;
        cld_event_complete(command, atomic_load(&command->error), ready);
    }
    cld_cluster_push(again);
}

/* A part's command has ended. */
static void part_ended(struct cld_event *node, cl_int status, struct cld_ready *ready) {
    struct cld_launch_part *part = node->kernel.message->part;
    struct cld_event *again = NULL;
    pthread_mutex_lock(&cld_cluster_lock);
    cld_part_leave(part);
    struct cld_event *ended = leave(part->of, status, &again);
    pthread_mutex_unlock(&cld_cluster_lock);
    complete(ended, again, ready);
}

void cld_sum_arrive(const struct cld_request *request, cl_int status) {
    struct cld_event *again = NULL;
    pthread_mutex_lock(&cld_cluster_lock);
    struct cld_event *ended = leave(request->sum->of, status, &again);
    pthread_mutex_unlock(&cld_cluster_lock);
    complete(ended, again, NULL);
}

void cld_part_sent(struct cld_launch_part *part, struct cld_ready *ready) {
    struct cld_parts *parts = part->of;
    struct cld_queue *queue = parts->command->queue;
    if (--parts->unsent)
        return;
    parts->is_sent = true;
    if (is_in_order(queue)) {
        *(queue->first_parts ? &queue->last_parts->next : &queue->first_parts) = parts;
        queue->last_parts = parts;
    }
    parts->command->elsewhere = CLD_SENT;
    cld_launch_release(parts->command, ready);
}

/* With the lock held: what all of them need is sent before any of them, for a worker sends nothing on to
 * another before it has executed what it was sent before. Those that have failed. */
static struct cld_event *start_parts(struct cld_parts *parts, struct cld_ready *ready) {
    enum cld_readiness readiness[CLD_MOST_WORKERS];
    struct cld_event *failed = NULL;
    uint32_t count = parts->count;
    cld_parts_time(parts);
    for (uint32_t i = 0; i < count; i++) {
        struct cld_launch_part *part = &parts->parts[i];
        part->command->times[CLD_TIME_SUBMIT] = parts->command->times[CLD_TIME_SUBMIT];
        part->command->times[CLD_TIME_START] = parts->command->times[CLD_TIME_START];
        readiness[i] = cld_launch_gather(part->command, part->worker);
        parts->is_timed &= readiness[i] == CLD_IS_READY;
    }
    for (uint32_t i = 0; i < count; i++)
        if (readiness[i] == CLD_IS_READY &&
            !cld_launch_send_needs(parts->parts[i].command, parts->parts[i].worker))
            readiness[i] = CLD_HAS_FAILED;
    for (uint32_t i = 0; i < count; i++)
        if (readiness[i] == CLD_IS_READY &&
            !cld_launch_send(parts->parts[i].command, parts->parts[i].worker, ready))
            readiness[i] = CLD_HAS_FAILED;
    for (uint32_t i = 0; i < count; i++)
        if (readiness[i] == CLD_HAS_FAILED) {
            parts->parts[i].command->next = failed;
            failed = parts->parts[i].command;
        }
    return failed;
}

bool cld_parts_start(struct cld_event *command, struct cld_ready *ready) {
    struct cld_parts *parts = command->kernel.message->parts;
    struct cld_choice choice;
    parts->whole.ended = part_ended;
    pthread_mutex_lock(&cld_cluster_lock);
    bool is_chosen = cld_parts_choose(parts, &choice);
    pthread_mutex_unlock(&cld_cluster_lock);
    if (!is_chosen)
        return true;
    cld_choice_log(command, &choice);
    pthread_mutex_lock(&cld_cluster_lock);
    if (!cld_sums_gather(command, parts)) {
        bool has_failed = atomic_load_explicit(&command->error, memory_order_relaxed);
        pthread_mutex_unlock(&cld_cluster_lock);
        return !has_failed;
    }
    struct cld_event *failed = start_parts(parts, ready);
    pthread_mutex_unlock(&cld_cluster_lock);
    while (failed) { /* where all have ended the launch is gone */
        struct cld_event *part = failed;
        failed = part->next;
        cld_event_complete(part, atomic_load(&part->error), ready);
    }
    return true;
}
