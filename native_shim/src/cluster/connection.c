/* The threads that send to workers and receive from them, by way of the process that connects with the
 * cluster (cl_driver/cluster/link.py). */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own_thread.h"
#include "cluster/internal.h"
#include "memory/mem.h"

enum { STACK = 256 << 10, MOST_PARTS = 64 };

pthread_mutex_t cld_cluster_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_cond_t has_items = PTHREAD_COND_INITIALIZER;
static struct cld_item *first_item, **last_item = &first_item;
static uint64_t last_number;
static int descriptor = -1;
static _Atomic pid_t owner;

bool cld_cluster_is_here(void) {
    return atomic_load_explicit(&owner, memory_order_relaxed) == getpid();
}

uint64_t cld_cluster_number(void) {
    return ++last_number;
}

struct cld_item *cld_item_new(struct cld_worker *worker) {
    struct cld_item *item = calloc(1, sizeof *item);
    if (item)
        item->worker = worker;
    return item;
}

static void free_item(struct cld_item *item) {
    if (item->held)
        cld_object_drop(item->held);
    cld_msg_free(&item->message);
    free(item);
}

bool cld_send(struct cld_item *item) {
    bool failed = item->message.failed;
    if (failed) { /* sent all the same, to be freed without the lock: empty */
        item->message.size = item->size = 0;
    }
    *last_item = item;
    last_item = &item->next;
    pthread_cond_signal(&has_items);
    return !failed;
}

bool cld_request(struct cld_worker *worker, uint64_t number, struct cld_event *command,
                 struct cld_copies *copies, size_t offset, size_t size) {
    struct cld_request *request = malloc(sizeof *request);
    if (!request)
        return false;
    *request = (struct cld_request){NULL, number, command, copies, offset, size};
    *worker->newest = request;
    worker->newest = &request->next;
    return true;
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
    return request;
}

void cld_worker_end(struct cld_worker *worker, struct cld_event **failed, struct cld_event **again) {
    worker->is_gone = true;
    while (worker->oldest) {
        struct cld_request *request = worker->oldest;
        worker->oldest = request->next;
        if (request->command) {
            request->command->next = *failed;
            *failed = request->command;
        } else {
            cld_copies_arrive(request, CL_DEVICE_NOT_AVAILABLE, NULL, 0, again);
        }
        free(request);
    }
    worker->newest = &worker->oldest;
}

static void end_worker(struct cld_worker *worker) {
    struct cld_event *failed = NULL, *again = NULL;
    pthread_mutex_lock(&cld_cluster_lock);
    cld_worker_end(worker, &failed, &again);
    pthread_mutex_unlock(&cld_cluster_lock);
    cld_cluster_fail(failed);
    cld_cluster_push(again);
}

static void end_all(void) {
    struct cld_worker *worker;
    for (uint32_t i = 0; (worker = cld_worker_at(i)); i++)
        end_worker(worker);
}

static bool write_parts(struct iovec *parts, size_t count) {
    while (count) {
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
        ssize_t sent = sendmsg(descriptor, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        for (size_t left = (size_t)sent; count; parts++, count--) {
            if (left < parts->iov_len) {
                parts->iov_base = (uint8_t *)parts->iov_base + left;
                parts->iov_len -= left;
                break;
            }
            left -= parts->iov_len;
        }
    }
    return true;
}

/* Sends the first items, as many as are for one worker and fit into a frame. What is left; NULL in *items: an
 * error. */
static bool send_frame(struct cld_item **items) {
    struct iovec parts[MOST_PARTS + 2];
    struct cld_worker *worker = (*items)->worker;
    struct cld_frame_head head = {.worker = worker->number};
    size_t count = 1;
    struct cld_item *end = *items;
    for (; end && end->worker == worker && count < MOST_PARTS; end = end->next) {
        if (count > 1 && end->size) /* what is large comes alone */
            break;
        parts[count++] = (struct iovec){end->message.data, end->message.size};
        head.size += end->message.size + end->size;
        if (end->size) {
            parts[count++] = (struct iovec){(uint8_t *)(uintptr_t)end->data, end->size};
            end = end->next;
            break;
        }
    }
    parts[0] = (struct iovec){&head, sizeof head};
    bool sent = worker->is_gone || !head.size || write_parts(parts, count);
    while (*items != end) {
        struct cld_item *item = *items;
        *items = item->next;
        free_item(item);
    }
    return sent;
}

static void *send_all(void *unused) {
    (void)unused;
    bool is_open = true;
    for (;;) {
        pthread_mutex_lock(&cld_cluster_lock);
        while (!first_item)
            pthread_cond_wait(&has_items, &cld_cluster_lock);
        struct cld_item *items = first_item;
        first_item = NULL;
        last_item = &first_item;
        pthread_mutex_unlock(&cld_cluster_lock);
        while (items) {
            if (is_open && !send_frame(&items)) {
                is_open = false;
                shutdown(descriptor, SHUT_RDWR); /* the other thread ends all workers */
            }
            if (!is_open && items) {
                struct cld_item *item = items;
                items = item->next;
                free_item(item);
            }
        }
    }
    return NULL;
}

/* The descriptor has a time limit for reading and writing, in which there is always a sign of life. */
static bool receive(void *data, size_t size) {
    for (uint8_t *at = data; size;) {
        ssize_t got = recv(descriptor, at, size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

/* Times of the worker's clock. It is known as well as messages are fast: a launch that seems to have begun
 * before it was submitted, or to end later than now, is moved and keeps its duration. */
static void set_times(struct cld_event *command, int64_t start, int64_t end, int64_t clock) {
    int64_t submitted = (int64_t)command->times[CLD_TIME_SUBMIT], now = (int64_t)cld_now();
    int64_t most = now - submitted, duration = end < start ? 0 : end - start < most ? end - start : most;
    int64_t began = start > INT64_MAX / 2 || clock > INT64_MAX / 2 ? submitted : start + clock;
    if (began > now - duration)
        began = now - duration;
    if (began < submitted)
        began = submitted;
    command->times[CLD_TIME_START] = (uint64_t)began;
    command->times[CLD_TIME_END] = (uint64_t)(began + duration);
    command->elsewhere = CLD_SENT_WITH_TIMES;
}

static void end_launch(struct cld_worker *worker, uint64_t number, int64_t status, int64_t start,
                       int64_t end) {
    pthread_mutex_lock(&cld_cluster_lock);
    struct cld_request *request = take_request(worker, number);
    int64_t clock = worker->clock;
    pthread_mutex_unlock(&cld_cluster_lock);
    struct cld_event *command = request ? request->command : NULL;
    free(request);
    if (!command)
        return;
    if (status) {
        bool is_code = status < 0 && status >= INT32_MIN;
        cld_command_fail(command, is_code ? (cl_int)status : CL_OUT_OF_RESOURCES);
    } else if (command->profiled) {
        set_times(command, start, end, clock);
    }
    cld_event_complete(command, atomic_load(&command->error), NULL);
}

static void take_data(struct cld_worker *worker, uint64_t number, int64_t status, const uint8_t *bytes,
                      size_t size) {
    struct cld_event *again = NULL;
    pthread_mutex_lock(&cld_cluster_lock);
    struct cld_request *request = take_request(worker, number);
    if (request && request->copies)
        cld_copies_arrive(request, (cl_int)status, bytes, size, &again);
    pthread_mutex_unlock(&cld_cluster_lock);
    free(request);
    cld_cluster_push(again);
}

/* One message of a worker; false if it is none. */
static bool take_message(struct cld_worker *worker, struct cld_msg *msg) {
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
        const void *bytes = cld_get_bytes(msg, &size);
        if (!msg->failed)
            take_data(worker, number, status, bytes, size);
    } else if (kind == CLD_BUILT_MESSAGE && count == 4) {
        size_t size;
        cld_get_int(msg);
        int64_t status = cld_get_int(msg);
        const char *text = cld_get_bytes(msg, &size);
        if (!msg->failed)
            cld_log(1, "a worker cannot build a program (%d): %.*s", (int)status,
                    (int)(size < 4096 ? size : 4096), text);
    } else if (kind == CLD_CLOCK_MESSAGE && count == 2) {
        int64_t clock = cld_get_int(msg);
        pthread_mutex_lock(&cld_cluster_lock);
        worker->clock = clock;
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

/* One frame; false at the end. */
static bool take_frame(struct cld_msg *msg) {
    struct cld_frame_head head;
    if (!receive(&head, sizeof head) || head.size > SIZE_MAX / 2)
        return false;
    cld_msg_init(msg);
    if (!head.size) /* a sign of life */
        return true;
    void *place = cld_msg_grow(msg, (size_t)head.size);
    if (!place || !receive(place, (size_t)head.size))
        return false;
    struct cld_worker *worker = cld_worker_at(head.worker);
    while (msg->at < msg->size)
        if (!worker || !take_message(worker, msg))
            return false;
    return true;
}

static void *receive_all(void *unused) {
    (void)unused;
    struct cld_msg msg;
    bool is_open = true;
    while (is_open) {
        is_open = take_frame(&msg);
        cld_msg_free(&msg);
    }
    cld_log(1, "the connection with the cluster has ended");
    shutdown(descriptor, SHUT_RDWR);
    end_all();
    return NULL;
}

bool cld_cluster_start_threads(int socket) {
    descriptor = socket;
    atomic_store(&owner, getpid());
    return !cld_own_thread(NULL, NULL, STACK, CLD_DRIVER_THREAD, send_all, NULL) &&
           !cld_own_thread(NULL, NULL, STACK, CLD_DRIVER_THREAD, receive_all, NULL);
}
