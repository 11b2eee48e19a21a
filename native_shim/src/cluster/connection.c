/* What comes from workers, by way of the process that connects with the cluster (cl_driver/cluster/link.py).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own_thread.h"
#include "cluster/internal.h"
#include "memory/mem.h"
#include "object/observer.h"

enum { STACK = 256 << 10, MOST_PAYLOADS = 64, MOST_KEPT = 1 << 20 };
enum { ROOM_PAUSE = 10000000, ROOM_TURNS = 100 }; /* ns */

pthread_mutex_t cld_cluster_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t last_number;
static int descriptor = -1;
static _Atomic pid_t owner;

bool cld_cluster_is_here(void) {
    return atomic_load_explicit(&owner, memory_order_relaxed) == getpid();
}

uint64_t cld_cluster_number(void) {
    return ++last_number;
}

struct cld_request *cld_request(struct cld_worker *worker, uint64_t number, struct cld_event *command,
                                size_t offset, size_t size) {
    struct cld_request *request = calloc(1, sizeof *request);
    if (!request)
        return NULL;
    *request = (struct cld_request){.number = number,
                                    .command = command,
                                    .offset = offset,
                                    .size = size,
                                    .sent = cld_is_idle(worker) ? cld_now() : 0};
    if (!worker->oldest)
        worker->answered = cld_now();
    *worker->newest = request;
    worker->newest = &request->next;
    return request;
}

void cld_request_free(struct cld_request *request) {
    if (request)
        cld_item_free(request->miss);
    free(request);
}

/* The request with that number, which is no longer among those of the worker; NULL: there is none. */
static struct cld_request *take_request(struct cld_worker *worker, uint64_t number) {
    struct cld_request **link = &worker->oldest;
    while (*link && (*link)->number != number)
        link = &(*link)->next;
    struct cld_request *request = *link;
    if (!request)
        return NULL;
    *link = request->next;
    if (!*link)
        worker->newest = link;
    if (link == &worker->oldest)
        worker->answered = cld_now();
    return request;
}

/* Of what the worker says. What it has too little of is the device's, not the host's. */
static cl_int code_of(int64_t status) {
    bool is_code = status <= 0 && status >= INT32_MIN && status != CL_OUT_OF_HOST_MEMORY;
    return is_code ? (cl_int)status : CL_OUT_OF_RESOURCES;
}

void cld_worker_end(struct cld_worker *worker, struct cld_ended *ended) {
    worker->is_gone = true;
    while (worker->oldest) {
        struct cld_request *request = worker->oldest;
        worker->oldest = request->next;
        if (request->command) {
            request->command->next = ended->failed;
            ended->failed = request->command;
        } else if (request->from) {
            cld_transfer_end(worker, request, CL_DEVICE_NOT_AVAILABLE);
        } else if (request->sum) {
            request->next = ended->sums;
            ended->sums = request;
            continue;
        } else {
            cld_copies_arrive(request, CL_DEVICE_NOT_AVAILABLE, ended);
        }
        cld_request_free(request);
    }
    worker->newest = &worker->oldest;
    cld_transfers_miss(worker, NULL, 0);
    cld_frame_taken(worker); /* what is to be sent is dropped */
}

void cld_end_all(struct cld_ended *ended) {
    while (ended->sums) {
        struct cld_request *request = ended->sums;
        ended->sums = request->next;
        cld_sum_arrive(request, CL_DEVICE_NOT_AVAILABLE);
        cld_request_free(request);
    }
    cld_cluster_fail(ended->failed);
    cld_fetches_free(ended->fetches); /* what waits for them holds the memory objects, too */
    cld_cluster_push(ended->again);
}

static void end_worker(struct cld_worker *worker) {
    struct cld_ended ended = {0};
    pthread_mutex_lock(&cld_cluster_lock);
    cld_worker_end(worker, &ended);
    pthread_mutex_unlock(&cld_cluster_lock);
    cld_end_all(&ended);
}

static void end_all(void) {
    struct cld_worker *worker;
    for (uint32_t i = 0; (worker = cld_worker_at(i)); i++)
        end_worker(worker);
}

/* Times of the worker's clock. It is known as well as messages are fast: a launch that seems to have begun
 * before it was sent, or before the one before it on the worker has ended, or to end later than now, is moved
 * and keeps its duration, if there is room for it. */
static void set_times(struct cld_worker *worker, struct cld_event *command, int64_t start, int64_t end,
                      int64_t clock) {
    int64_t sent = (int64_t)command->times[CLD_TIME_START], now = (int64_t)cld_now();
    int64_t least = worker->busy_until > sent ? worker->busy_until : sent, most = now - least;
    int64_t duration = end < start ? 0 : end - start < most ? end - start : most;
    int64_t began = start > INT64_MAX / 2 || clock > INT64_MAX / 2 ? least : start + clock;
    if (began > now - duration)
        began = now - duration;
    if (began < least)
        began = least;
    worker->busy_until = began + duration;
    command->times[CLD_TIME_START] = (uint64_t)began;
    command->times[CLD_TIME_END] = (uint64_t)(began + duration);
    __atomic_store_n(&command->elsewhere, CLD_SENT_WITH_TIMES, __ATOMIC_RELAXED);
}

static void tell_observers(const struct cld_worker *worker, struct cld_event *command) {
    bool is_part = command->is_node;
    struct cld_event *launch = is_part ? command->kernel.message->part->of->command : command;
    if (!cld_is_observed(launch))
        return;
    size_t size = 0;
    const char *name = cld_cluster_answer(worker->device, CL_DEVICE_NAME, &size);
    CLD_TELL(executed_elsewhere, launch, worker->number, size && !name[size - 1] ? name : "",
             command->times[CLD_TIME_START], command->times[CLD_TIME_END]);
}

/* Its answer has come, after so many ns in which another message was under way. */
static void learn_link(struct cld_worker *worker, const struct cld_request *request, double other) {
    cld_link_learn(&worker->link, (double)(cld_now() - request->sent) - other, (double)request->size);
}

static void end_launch(struct cld_worker *worker, uint64_t number, int64_t status, int64_t start,
                       int64_t end) {
    pthread_mutex_lock(&cld_cluster_lock);
    struct cld_request *request = take_request(worker, number);
    int64_t clock = worker->clock;
    struct cld_launch_part *part =
        request && request->command ? request->command->kernel.message->part : NULL;
    if (part) {
        part->taken = end > start ? (uint64_t)(end - start) : 0;
        part->arrived = cld_now();
    }
    if (request && request->from) {
        cld_transfer_end(worker, request, status);
        if (request->sent && !status && request->size > CLD_MOST_INLINE_BYTES)
            learn_link(worker, request, worker->link.trip / 2); /* the message between them */
    }
    pthread_mutex_unlock(&cld_cluster_lock);
    struct cld_event *command = request ? request->command : NULL;
    cld_request_free(request);
    if (!command)
        return;
    if (status) {
        cld_command_fail(command, code_of(status));
    } else if (cld_is_timed(command)) {
        set_times(worker, command, start, end, clock);
        tell_observers(worker, command);
    }
    cld_event_complete(command, atomic_load(&command->error), NULL);
}

/* What is read is written to its place without the lock: nobody else uses it before all of it has come. */
static void take_data(struct cld_worker *worker, uint64_t number, int64_t status, const uint8_t *bytes,
                      size_t size) {
    struct cld_ended ended = {0};
    pthread_mutex_lock(&cld_cluster_lock);
    struct cld_request *request = take_request(worker, number);
    if (request && request->sent && !status)
        learn_link(worker, request, 0);
    pthread_mutex_unlock(&cld_cluster_lock);
    if (request && !status && size != request->size)
        status = CL_OUT_OF_RESOURCES;
    if (request && request->sum) {
        if (!status)
            cld_sum_add(request, bytes);
        cld_sum_arrive(request, code_of(status));
    } else if (request && request->fetch) {
        if (!status)
            memcpy(request->fetch->copies->mem->data + request->offset, bytes, size);
        pthread_mutex_lock(&cld_cluster_lock);
        cld_copies_arrive(request, code_of(status), &ended);
        pthread_mutex_unlock(&cld_cluster_lock);
    }
    cld_request_free(request);
    cld_end_all(&ended);
}

/* What came with a frame. */
struct payloads {
    struct cld_payload list[MOST_PAYLOADS];
    uint32_t count, at;
};

/* The message's next value: bytes, or the size of the next payload. */
static const uint8_t *data_of(struct cld_msg *msg, struct payloads *payloads, size_t *size) {
    if (msg->failed || msg->at >= msg->size || msg->data[msg->at] == 'b')
        return cld_get_bytes(msg, size);
    *size = (size_t)cld_get_int(msg);
    const struct cld_payload *payload =
        payloads->at < payloads->count ? &payloads->list[payloads->at++] : NULL;
    const uint8_t *bytes = payload && payload->size == *size ? cld_shared_bytes(payload) : NULL;
    if (!bytes)
        msg->failed = true;
    return bytes;
}

static void print(const char *text, size_t size) {
    fwrite(text, 1, size, stdout);
    fflush(stdout); /* as of kernels on this machine */
}

/* NULL: there is none of a number that a worker has told. */
static const struct cld_worker *worker_of(uint64_t number) {
    return number <= UINT32_MAX ? cld_worker_at((uint32_t)number) : NULL;
}

/* The worker cannot send what it was to: a transfer, or anything to a worker of that number. */
static void lose(struct cld_worker *worker, bool is_transfer, uint64_t number) {
    const struct cld_worker *peer = is_transfer ? NULL : worker_of(number);
    if (!is_transfer && !peer)
        return;
    pthread_mutex_lock(&cld_cluster_lock);
    if (peer)
        cld_set_remove(&worker->reachable, peer->number);
    cld_transfers_miss(worker, peer, is_transfer ? number : 0);
    pthread_mutex_unlock(&cld_cluster_lock);
}

static void reach(struct cld_worker *worker, uint64_t number) {
    const struct cld_worker *peer = worker_of(number);
    if (!peer)
        return;
    pthread_mutex_lock(&cld_cluster_lock);
    cld_set_add(&worker->reachable, peer->number);
    pthread_mutex_unlock(&cld_cluster_lock);
}

/* One message of a worker; false if it is none. */
static bool take_message(struct cld_worker *worker, struct cld_msg *msg, struct payloads *payloads) {
    uint32_t count = cld_get_list(msg);
    int64_t kind = cld_get_int(msg);
    if (kind == CLD_DONE_MESSAGE && count == 5) {
        uint64_t number = (uint64_t)cld_get_int(msg);
        int64_t status = cld_get_int(msg), start = cld_get_int(msg), end = cld_get_int(msg);
        if (!msg->failed)
            end_launch(worker, number, status, start, end);
    } else if (kind == CLD_DATA_MESSAGE && count == 4) {
        size_t size;
        uint64_t number = (uint64_t)cld_get_int(msg);
        int64_t status = cld_get_int(msg);
        const uint8_t *bytes = data_of(msg, payloads, &size);
        if (!msg->failed)
            take_data(worker, number, status, bytes, size);
    } else if ((kind == CLD_BUILT_MESSAGE || kind == CLD_PRINTED_MESSAGE) && count == 4) {
        size_t size;
        cld_get_int(msg);
        int64_t status = cld_get_int(msg);
        const char *text = cld_get_bytes(msg, &size);
        if (!msg->failed && kind == CLD_PRINTED_MESSAGE)
            print(text, size);
        else if (!msg->failed)
            cld_log(1, "a worker cannot build a program (%d): %.*s", (int)status,
                    (int)(size < 4096 ? size : 4096), text);
    } else if ((kind == CLD_LOST_MESSAGE || kind == CLD_UNREACHABLE_MESSAGE) && count == 2) {
        uint64_t number = (uint64_t)cld_get_int(msg);
        if (!msg->failed)
            lose(worker, kind == CLD_LOST_MESSAGE, number);
    } else if (kind == CLD_REACHABLE_MESSAGE && count == 2) {
        uint64_t number = (uint64_t)cld_get_int(msg);
        if (!msg->failed)
            reach(worker, number);
    } else if (kind == CLD_CLOCK_MESSAGE && count == 3) {
        int64_t clock = cld_get_int(msg), trip = cld_get_int(msg);
        pthread_mutex_lock(&cld_cluster_lock);
        worker->clock = clock;
        if (!worker->link.trip && trip > 0) /* until one of this process was measured, which takes longer */
            worker->link.trip = (double)trip;
        pthread_mutex_unlock(&cld_cluster_lock);
    } else if (kind == CLD_GONE_MESSAGE && count == 2) {
        size_t size;
        const char *why = cld_get_bytes(msg, &size);
        if (!msg->failed)
            cld_log(1, "a worker of the cluster has gone: %.*s", (int)(size < 4096 ? size : 4096), why);
        end_worker(worker);
    } else {
        return false;
    }
    return !msg->failed;
}

static bool take_batch(struct cld_worker *worker, struct cld_msg *msg, struct payloads *payloads) {
    while (msg->at < msg->size)
        if (!worker || !take_message(worker, msg, payloads))
            return false;
    if (payloads->count) {
        pthread_mutex_lock(&cld_cluster_lock);
        cld_places_used(payloads->list, payloads->count);
        pthread_mutex_unlock(&cld_cluster_lock);
    }
    return true;
}

/* Room for a frame, in what there is of the last one. Without it all workers would have gone: there may be
 * memory again soon. NULL: there is not. */
static void *room_for(struct cld_msg *msg, size_t size) {
    const struct timespec pause = {.tv_nsec = ROOM_PAUSE};
    for (int turn = 0; turn < ROOM_TURNS; turn++) {
        msg->failed = false;
        void *place = cld_msg_grow(msg, size);
        if (place)
            return place;
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* Signs of life of the process that connects come each second, whatever workers do. */
static void take_sign(void) {
    struct cld_event *again = NULL;
    pthread_mutex_lock(&cld_cluster_lock);
    cld_trials_look(&again);
    pthread_mutex_unlock(&cld_cluster_lock);
    cld_cluster_push(again);
}

/* One frame; false at the end. */
static bool take_frame(struct cld_msg *msg) {
    struct cld_frame_head head;
    struct payloads payloads = {0};
    if (!cld_cluster_receive(descriptor, &head, sizeof head) || head.size > SIZE_MAX / 2 ||
        head.count > MOST_PAYLOADS ||
        !cld_cluster_receive(descriptor, payloads.list, head.count * sizeof *payloads.list))
        return false;
    payloads.count = head.count;
    msg->size = msg->at = 0;
    void *place = head.size ? room_for(msg, (size_t)head.size) : NULL;
    if (head.size && (!place || !cld_cluster_receive(descriptor, place, (size_t)head.size)))
        return false;
    struct cld_worker *worker = cld_worker_at(head.worker);
    if (head.kind == CLD_BATCH_FRAME && head.worker == CLD_NOBODY)
        take_sign();
    if (head.kind == CLD_WORKER_FRAME)
        return cld_worker_come(msg);
    if (head.kind == CLD_BATCH_FRAME)
        return take_batch(worker, msg, &payloads);
    pthread_mutex_lock(&cld_cluster_lock);
    if (head.kind == CLD_FREE_FRAME)
        cld_places_free(payloads.list, payloads.count);
    else if (worker)
        cld_frame_taken(worker);
    pthread_mutex_unlock(&cld_cluster_lock);
    return true;
}

static void *receive_all(void *unused) {
    (void)unused;
    struct cld_msg msg;
    bool is_open = true;
    cld_msg_init(&msg);
    while (is_open) {
        is_open = take_frame(&msg);
        if (msg.capacity > MOST_KEPT)
            cld_msg_free(&msg);
    }
    cld_msg_free(&msg);
    cld_log(1, "the connection with the cluster has ended");
    shutdown(descriptor, SHUT_RDWR);
    end_all();
    return NULL;
}

bool cld_cluster_start_threads(int socket) {
    descriptor = socket;
    atomic_store(&owner, getpid());
    return !cld_own_thread(NULL, NULL, STACK, CLD_DRIVER_THREAD, cld_send_all, &descriptor) &&
           !cld_own_thread(NULL, NULL, STACK, CLD_DRIVER_THREAD, receive_all, NULL);
}
