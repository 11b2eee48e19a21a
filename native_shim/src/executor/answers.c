/* What the host is to be told. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "executor/internal.h"

/* With the lock held: whoever takes them is woken by the first ones. */
static void tell(const struct cld_executor *executor) {
    const uint64_t one = 1;
    ssize_t written = write(executor->descriptor, &one, sizeof one);
    (void)written; /* it is full only where it is readable */
}

static bool is_empty(const struct cld_executor *executor) {
    return !executor->told && !executor->released_count && !executor->departure_count;
}

/* The list with room for one more; NULL: no memory, and the list as it was. */
static void *room(void *list, uint64_t count, uint64_t *capacity, size_t size) {
    if (count < *capacity)
        return list;
    uint64_t more = *capacity ? 2 * *capacity : 16;
    void *larger = realloc(list, more * size);
    if (larger)
        *capacity = more;
    return larger;
}

/* With the lock held: the batch that the next message goes to, which has no payload yet if that is to have
 * one. NULL: no memory. */
static struct cld_told *open_batch(struct cld_executor *executor, bool has_payload) {
    struct cld_told *told = executor->newest_told;
    if (told && !(has_payload && told->payload.at))
        return told;
    if (!(told = calloc(1, sizeof *told)))
        return NULL;
    if (is_empty(executor))
        tell(executor);
    if (executor->newest_told)
        executor->newest_told->next = told;
    else
        executor->told = told;
    return executor->newest_told = told;
}

/* Of contents that nobody has taken yet. */
#define MOST_IN_FLIGHT ((size_t)32 * CLD_MOST_MESSAGE_BYTES)

bool cld_flight_begin(struct cld_executor *executor, size_t size) {
    size_t most = ((const struct cld_device *)executor->device)->max_alloc_size;
    pthread_mutex_lock(&executor->lock);
    bool waits = executor->in_flight > MOST_IN_FLIGHT && !executor->gate_count;
    pthread_mutex_unlock(&executor->lock);
    if (waits)
        clFlush(executor->queue);
    pthread_mutex_lock(&executor->lock);
    while (executor->in_flight > MOST_IN_FLIGHT && !executor->gate_count && !executor->is_closing)
        pthread_cond_wait(&executor->has_room, &executor->lock);
    bool begins = !executor->is_closing && executor->in_flight <= most && size <= most - executor->in_flight;
    if (begins)
        executor->in_flight += size;
    pthread_mutex_unlock(&executor->lock);
    return begins;
}

/* With the lock held. */
static void end_flight(struct cld_executor *executor, size_t size) {
    executor->in_flight -= size;
    pthread_cond_signal(&executor->has_room);
}

void cld_flight_end(struct cld_executor *executor, size_t size) {
    pthread_mutex_lock(&executor->lock);
    end_flight(executor, size);
    pthread_mutex_unlock(&executor->lock);
}

/* With the lock held. A message that is lost would be waited for forever: the connection ends instead. */
static void close_message(struct cld_executor *executor, const struct cld_told *told) {
    if (told && !told->messages.failed)
        return;
    cld_log(1, "cluster: no memory for an answer");
    executor->has_failed = true;
}

static void begin_message(struct cld_msg *messages, int kind, uint64_t number, cl_int status,
                          uint32_t count) {
    cld_put_list(messages, count);
    cld_put_int(messages, kind);
    cld_put_int(messages, (int64_t)number);
    cld_put_int(messages, status);
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
    struct cld_told *told = open_batch(executor, false);
    if (told) {
        begin_message(&told->messages, CLD_DONE_MESSAGE, command, status, 5);
        cld_put_int(&told->messages, (int64_t)start);
        cld_put_int(&told->messages, (int64_t)end);
    }
    close_message(executor, told);
    pthread_mutex_unlock(&executor->lock);
}

void cld_answer_data(struct cld_executor *executor, uint64_t request, cl_int status, void *data,
                     size_t size) {
    bool is_payload = !status && size > CLD_MOST_INLINE_BYTES;
    pthread_mutex_lock(&executor->lock);
    struct cld_told *told = open_batch(executor, is_payload);
    if (told) {
        begin_message(&told->messages, CLD_DATA_MESSAGE, request, status, 4);
        if (is_payload) {
            cld_put_int(&told->messages, (int64_t)size);
            told->payload = (struct cld_range){data, size};
            data = NULL;
        } else {
            cld_put_bytes(&told->messages, data, status ? 0 : size);
        }
        told->in_flight += size;
    } else {
        end_flight(executor, size);
    }
    close_message(executor, told);
    pthread_mutex_unlock(&executor->lock);
    free(data);
}

static void put_lost(struct cld_executor *executor, uint64_t transfer) {
    struct cld_told *told = open_batch(executor, false);
    if (told) {
        cld_put_list(&told->messages, 2);
        cld_put_int(&told->messages, CLD_LOST_MESSAGE);
        cld_put_int(&told->messages, (int64_t)transfer);
    }
    close_message(executor, told);
}

void cld_answer_lost(struct cld_executor *executor, uint64_t transfer) {
    pthread_mutex_lock(&executor->lock);
    put_lost(executor, transfer);
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
        if (is_first)
            tell(executor);
    } else {
        if (transfer)
            put_lost(executor, transfer);
        end_flight(executor, size);
    }
    pthread_mutex_unlock(&executor->lock);
    if (!list)
        free(data);
}

void cld_answer_text(struct cld_executor *executor, int kind, uint64_t number, cl_int status,
                     const char *text, size_t size) {
    pthread_mutex_lock(&executor->lock);
    struct cld_told *told = open_batch(executor, false);
    if (told) {
        begin_message(&told->messages, kind, number, status, 4);
        cld_put_bytes(&told->messages, text, size);
    }
    close_message(executor, told);
    pthread_mutex_unlock(&executor->lock);
}

void cld_answers_take(struct cld_executor *executor, struct cld_answers *answers) {
    pthread_mutex_lock(&executor->lock);
    struct cld_told *told = executor->told;
    *answers = (struct cld_answers){.released = executor->released,
                                    .released_count = executor->released_count,
                                    .departures = executor->departures,
                                    .departure_count = executor->departure_count};
    executor->released = NULL;
    executor->departures = NULL;
    executor->released_count = executor->released_room = 0;
    executor->departure_count = executor->departure_room = 0;
    for (uint64_t i = 0; i < answers->departure_count; i++)
        end_flight(executor, answers->departures[i].contents.size);
    if (told) {
        end_flight(executor, told->in_flight);
        answers->batch = (struct cld_range){told->messages.data, told->messages.size};
        answers->payload = told->payload;
        if (!(executor->told = told->next))
            executor->newest_told = NULL;
        else
            tell(executor);
    }
    pthread_mutex_unlock(&executor->lock);
    free(told);
}

void cld_answers_free(struct cld_executor *executor) {
    while (executor->told) {
        struct cld_told *told = executor->told;
        executor->told = told->next;
        cld_msg_free(&told->messages);
        free(told->payload.at);
        free(told);
    }
    free(executor->released);
    for (uint64_t i = 0; i < executor->departure_count; i++)
        free(executor->departures[i].contents.at);
    free(executor->departures);
}
