/* What the host is to be told. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "executor/internal.h"

/* With the lock held: whoever takes them is woken by the first ones. */
static void tell(const struct cld_executor *executor) {
    const uint64_t one = 1;
    ssize_t written = write(executor->descriptor, &one, sizeof one);
    (void)written; /* it is full only where it is readable */
}

static bool is_empty(const struct cld_executor *executor) {
    return !executor->answers.size && !executor->released_count && !executor->departure_count;
}

static void *room(void *list, uint64_t count, uint64_t *capacity, size_t size) {
    if (count < *capacity)
        return list;
    uint64_t more = *capacity ? 2 * *capacity : 16;
    void *larger = realloc(list, more * size);
    if (larger)
        *capacity = more;
    return larger;
}

void cld_batch_leave(struct cld_executor *executor, struct cld_batch *batch) {
    if (atomic_fetch_sub(&batch->users, 1) != 1)
        return;
    pthread_mutex_lock(&executor->lock);
    bool is_first = is_empty(executor);
    uint64_t *list = room(executor->released, executor->released_count, &executor->released_room,
                          sizeof *executor->released);
    if (list) { /* else it stays until the worker closes the connection */
        executor->released = list;
        list[executor->released_count++] = batch->token;
    }
    if (is_first)
        tell(executor);
    pthread_mutex_unlock(&executor->lock);
    free(batch);
}

void cld_answer_done(struct cld_executor *executor, uint64_t command, cl_int status, uint64_t start,
                     uint64_t end) {
    pthread_mutex_lock(&executor->lock);
    bool is_first = is_empty(executor);
    cld_put_list(&executor->answers, 5);
    cld_put_int(&executor->answers, CLD_DONE_MESSAGE);
    cld_put_int(&executor->answers, (int64_t)command);
    cld_put_int(&executor->answers, status);
    cld_put_int(&executor->answers, (int64_t)start);
    cld_put_int(&executor->answers, (int64_t)end);
    if (is_first)
        tell(executor);
    pthread_mutex_unlock(&executor->lock);
}

void cld_answer_data(struct cld_executor *executor, uint64_t request, cl_int status, void *data,
                     size_t size) {
    pthread_mutex_lock(&executor->lock);
    bool is_first = is_empty(executor), is_payload = !status && size > CLD_MOST_INLINE_BYTES;
    if (is_payload) {
        struct cld_range *list = room(executor->payloads, executor->payload_count, &executor->payload_room,
                                      sizeof *executor->payloads);
        if (list) {
            executor->payloads = list;
            list[executor->payload_count++] = (struct cld_range){data, size};
            data = NULL;
        } else {
            status = CL_OUT_OF_HOST_MEMORY;
        }
    }
    cld_put_list(&executor->answers, 4);
    cld_put_int(&executor->answers, CLD_DATA_MESSAGE);
    cld_put_int(&executor->answers, (int64_t)request);
    cld_put_int(&executor->answers, status);
    if (is_payload && !status)
        cld_put_int(&executor->answers, (int64_t)size);
    else
        cld_put_bytes(&executor->answers, data, status ? 0 : size);
    if (is_first)
        tell(executor);
    pthread_mutex_unlock(&executor->lock);
    free(data);
}

static void put_lost(struct cld_executor *executor, uint64_t transfer) {
    cld_put_list(&executor->answers, 2);
    cld_put_int(&executor->answers, CLD_LOST_MESSAGE);
    cld_put_int(&executor->answers, (int64_t)transfer);
}

void cld_answer_lost(struct cld_executor *executor, uint64_t transfer) {
    pthread_mutex_lock(&executor->lock);
    bool is_first = is_empty(executor);
    put_lost(executor, transfer);
    if (is_first)
        tell(executor);
    pthread_mutex_unlock(&executor->lock);
}

void cld_answer_departure(struct cld_executor *executor, uint64_t peer, uint64_t transfer, void *data,
                          size_t size) {
    pthread_mutex_lock(&executor->lock);
    bool is_first = is_empty(executor);
    struct cld_departure *list = room(executor->departures, executor->departure_count,
                                      &executor->departure_room, sizeof *executor->departures);
    if (list) {
        executor->departures = list;
        list[executor->departure_count++] = (struct cld_departure){peer, transfer, {data, size}};
    } else {
        put_lost(executor, transfer);
    }
    if (is_first)
        tell(executor);
    pthread_mutex_unlock(&executor->lock);
    if (!list)
        free(data);
}

void cld_answer_text(struct cld_executor *executor, int kind, uint64_t number, cl_int status,
                     const char *text, size_t size) {
    pthread_mutex_lock(&executor->lock);
    bool is_first = is_empty(executor);
    cld_put_list(&executor->answers, 4);
    cld_put_int(&executor->answers, kind);
    cld_put_int(&executor->answers, (int64_t)number);
    cld_put_int(&executor->answers, status);
    cld_put_bytes(&executor->answers, text, size);
    if (is_first)
        tell(executor);
    pthread_mutex_unlock(&executor->lock);
}
