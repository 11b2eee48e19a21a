/* What goes to workers. Items are gathered while a frame of their worker is on its way to the process that
 * connects, and sent at once where there is none: so a command that is alone waits for nobody, and many are
 * sent together. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "cluster/internal.h"
#include "memory/mem.h"

enum { MOST_PARTS = 512, MOST_BATCH_BYTES = 1 << 20, MOST_FRAMES_WITH_PAYLOAD = 3 };

#define HALF ((size_t)CLD_PLACES * CLD_MOST_MESSAGE_BYTES)

static pthread_cond_t has_work = PTHREAD_COND_INITIALIZER;
static uint8_t *shared;
static uint32_t free_places = (1u << CLD_PLACES) - 1; /* a set, of those for what is sent */
static struct cld_payload used[CLD_PLACES];           /* of what came: the other process is to be told */
static uint32_t used_count;
static struct cld_worker *first_listed, **last_listed = &first_listed;
static struct cld_known *forgotten; /* that workers could not be told to forget yet */

bool cld_share_memory(int descriptor) {
    int memory = memfd_create("cl_driver cluster", MFD_CLOEXEC);
    if (memory < 0)
        return false;
    char nothing = 0;
    struct iovec part = {&nothing, 1};
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof memory)];
    } control = {0};
    control.head = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof memory), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.head), &memory, sizeof memory);
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (!ftruncate(memory, (off_t)(2 * HALF)) && sendmsg(descriptor, &message, MSG_NOSIGNAL) == 1)
        shared = mmap(NULL, 2 * HALF, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    close(memory);
    if (shared == MAP_FAILED)
        shared = NULL;
    if (shared)
        madvise(shared, 2 * HALF, MADV_DONTFORK);
    return shared;
}

const uint8_t *cld_shared_bytes(const struct cld_payload *payload) {
    bool is_inside =
        payload->at >= HALF && payload->at <= 2 * HALF && payload->size <= 2 * HALF - payload->at;
    return is_inside ? shared + payload->at : NULL;
}

void cld_places_used(const struct cld_payload *payloads, uint32_t count) {
    for (uint32_t i = 0; i < count && used_count < CLD_PLACES; i++)
        used[used_count++] = payloads[i];
    pthread_cond_signal(&has_work);
}

/* Has the thread that sends look at the worker. */
static void list_worker(struct cld_worker *worker) {
    if (!worker->first || worker->is_listed)
        return;
    worker->is_listed = true;
    worker->next_listed = NULL;
    *last_listed = worker;
    last_listed = &worker->next_listed;
    pthread_cond_signal(&has_work);
}

static struct cld_worker *take_listed(void) {
    struct cld_worker *worker = first_listed;
    if (!worker)
        return NULL;
    worker->is_listed = false;
    first_listed = worker->next_listed;
    if (!first_listed)
        last_listed = &first_listed;
    return worker;
}

void cld_places_free(const struct cld_payload *payloads, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (payloads[i].at < HALF)
            free_places |= 1u << payloads[i].at / CLD_MOST_MESSAGE_BYTES;
    struct cld_worker *worker;
    for (uint32_t i = 0; (worker = cld_worker_at(i)); i++)
        if (worker->first && worker->first->size)
            list_worker(worker);
}

void cld_frame_taken(struct cld_worker *worker) {
    if (worker->under_way)
        worker->under_way--;
    list_worker(worker);
}

struct cld_item *cld_item_new(void) {
    return calloc(1, sizeof(struct cld_item));
}

bool cld_send(struct cld_worker *worker, struct cld_item *item) {
    bool failed = item->message.failed;
    if (failed) /* sent all the same, to be freed without the lock: empty */
        item->message.size = item->size = 0;
    *worker->last = item;
    worker->last = &item->next;
    list_worker(worker);
    return !failed;
}

struct cld_item *cld_item_of(int message, uint64_t number) {
    struct cld_item *item = cld_item_new();
    if (!item)
        return NULL;
    cld_put_list(&item->message, 2);
    cld_put_int(&item->message, message);
    cld_put_int(&item->message, (int64_t)number);
    if (!item->message.failed)
        return item;
    cld_item_free(item);
    return NULL;
}

void cld_item_free(struct cld_item *item) {
    if (!item)
        return;
    if (item->held)
        cld_object_drop(item->held);
    cld_msg_free(&item->message);
    free(item);
}

struct cld_known *cld_known_new(int forget) {
    struct cld_known *known = calloc(1, sizeof *known);
    if (!known)
        return NULL;
    known->number = cld_cluster_number();
    known->forget = forget;
    return known;
}

/* Whether there was memory to tell all. */
static bool tell_to_forget(struct cld_known *known) {
    struct cld_worker *worker;
    for (uint32_t i = cld_set_next(&known->workers, 0); (worker = cld_worker_at(i));
         i = cld_set_next(&known->workers, i + 1)) {
        struct cld_item *item = worker->is_gone ? NULL : cld_item_of(known->forget, known->number);
        if (!item && !worker->is_gone)
            return false;
        if (item)
            cld_send(worker, item);
        cld_set_remove(&known->workers, i);
    }
    return true;
}

void cld_forget(struct cld_known *known) {
    if (tell_to_forget(known)) {
        free(known);
        return;
    }
    known->next = forgotten;
    forgotten = known;
}

/* What there was no memory for. */
static void forget_again(void) {
    struct cld_known *known = forgotten;
    forgotten = NULL;
    while (known) {
        struct cld_known *next = known->next;
        cld_forget(known);
        known = next;
    }
}

static void free_items(struct cld_item *items) {
    while (items) {
        struct cld_item *item = items;
        items = item->next;
        cld_item_free(item);
    }
}

static bool write_parts(int descriptor, struct iovec *parts, size_t count) {
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

/* With the lock held: what may be sent to the worker now, and the place of its payload, which only the last
 * item has: others get their turn between payloads. NULL: nothing. */
static struct cld_item *take_items(struct cld_worker *worker, struct cld_payload *payload) {
    struct cld_item *items = worker->first, **end = &worker->first;
    size_t size = 0;
    *payload = (struct cld_payload){0};
    if (items && worker->is_gone) {
        worker->first = NULL;
        worker->last = &worker->first;
        return items;
    }
    if (!items || worker->under_way >= (items->size ? MOST_FRAMES_WITH_PAYLOAD : 1))
        return NULL;
    for (uint32_t count = 0; *end && count < MOST_PARTS && size < MOST_BATCH_BYTES; count++) {
        struct cld_item *item = *end;
        if (item->size && !free_places)
            break;
        size += item->message.size;
        end = &item->next;
        if (item->size) {
            uint32_t place = (uint32_t)__builtin_ctz(free_places);
            free_places &= ~(1u << place);
            *payload = (struct cld_payload){(uint64_t)place * CLD_MOST_MESSAGE_BYTES, item->size};
            break;
        }
    }
    if (end == &worker->first)
        return NULL;
    worker->first = *end;
    *end = NULL;
    if (!worker->first)
        worker->last = &worker->first;
    worker->under_way++;
    return items;
}

static bool send_frame(int descriptor, const struct cld_worker *worker, const struct cld_item *items,
                       struct cld_payload *payload) {
    struct iovec parts[MOST_PARTS + 2];
    struct cld_frame_head head = {
        .worker = worker->number, .kind = CLD_BATCH_FRAME, .count = payload->size > 0};
    size_t count = 0;
    parts[count++] = (struct iovec){&head, sizeof head};
    if (head.count)
        parts[count++] = (struct iovec){payload, sizeof *payload};
    for (const struct cld_item *item = items; item; item = item->next) {
        parts[count++] = (struct iovec){item->message.data, item->message.size};
        head.size += item->message.size;
        if (item->size)
            memcpy(shared + payload->at, item->held->data + item->offset, item->size);
    }
    return write_parts(descriptor, parts, count);
}

static bool send_used(int descriptor, struct cld_payload *payloads, uint32_t count) {
    struct cld_frame_head head = {.worker = CLD_NOBODY, .kind = CLD_FREE_FRAME, .count = (uint16_t)count};
    struct iovec parts[] = {{&head, sizeof head}, {payloads, count * sizeof *payloads}};
    return write_parts(descriptor, parts, 2);
}

/* What there is to send, to one worker: the others get their turn. False: there was nothing. */
static bool send_some(int descriptor, bool *is_open) {
    struct cld_payload list[CLD_PLACES], payload;
    pthread_mutex_lock(&cld_cluster_lock);
    forget_again();
    uint32_t count = used_count;
    memcpy(list, used, sizeof list);
    used_count = 0;
    struct cld_worker *worker = take_listed();
    struct cld_item *items = worker ? take_items(worker, &payload) : NULL;
    bool is_wanted = worker && !worker->is_gone;
    if (items)
        list_worker(worker); /* there may be more */
    pthread_mutex_unlock(&cld_cluster_lock);
    if (count && *is_open)
        *is_open = send_used(descriptor, list, count);
    if (items && is_wanted && *is_open)
        *is_open = send_frame(descriptor, worker, items, &payload);
    free_items(items);
    return count || worker;
}

void *cld_send_all(void *argument) {
    int descriptor = *(const int *)argument;
    bool is_open = true, is_shut = false;
    for (;;) {
        bool has_sent = send_some(descriptor, &is_open);
        if (!is_open && !is_shut)
            shutdown(descriptor, SHUT_RDWR); /* the other thread ends all workers */
        is_shut = !is_open;
        if (has_sent)
            continue;
        pthread_mutex_lock(&cld_cluster_lock);
        while (!first_listed && !used_count)
            pthread_cond_wait(&has_work, &cld_cluster_lock);
        pthread_mutex_unlock(&cld_cluster_lock);
    }
    return NULL;
}
