/* A link and its workers in a thread of the test: what they are told they do at once, with contents of their
 * own. A launch adds its second argument, an int, to every other int of its first one. */
#ifndef STAND_IN_H
#define STAND_IN_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "../harness.h"
#include "base/codec.h"
#include "cluster/internal.h"

enum { WORKERS = 2, MOST_BUFFERS = 256, MOST_TRANSFERS = 4096 };
#define HALF ((size_t)CLD_PLACES * CLD_MOST_MESSAGE_BYTES)

static _Thread_local bool is_stand_in; /* its own memory never ends */

struct stand_in_buffer {
    uint64_t number;
    size_t size;
    uint8_t *data;
};

struct stand_in_batch {
    struct stand_in_batch *next;
    struct cld_msg msg;
    struct cld_msg payload;
};

static struct stand_in_worker {
    struct stand_in_buffer buffers[MOST_BUFFERS];
    _Atomic int buffer_count, program_count;
    struct stand_in_batch *first, **last;
    struct cld_msg answers;
} stand_ins[WORKERS];

static struct {
    uint64_t number;
    struct cld_msg contents;
} transfers[MOST_TRANSFERS];
static _Atomic int read_countdown; /* reads until one is answered with an error; 0: none is */
static _Atomic cl_int read_error;
static uint8_t *stand_in_memory;
static int stand_in_socket;

static struct stand_in_buffer *buffer_of(struct stand_in_worker *worker, uint64_t number) {
    for (int i = 0; i < MOST_BUFFERS; i++)
        if (worker->buffers[i].number == number && worker->buffers[i].data)
            return &worker->buffers[i];
    return NULL;
}

static void make_buffer(struct stand_in_worker *worker, uint64_t number, size_t size) {
    struct stand_in_buffer *buffer = worker->buffers;
    CHECK(!buffer_of(worker, number));
    while (buffer->data)
        CHECK(++buffer < worker->buffers + MOST_BUFFERS);
    *buffer = (struct stand_in_buffer){number, size, malloc(size)};
    memset(buffer->data, 0xee, size);
    worker->buffer_count++;
}

static void forget_buffer(struct stand_in_worker *worker, uint64_t number) {
    struct stand_in_buffer *buffer = buffer_of(worker, number);
    CHECK(buffer);
    free(buffer->data);
    buffer->data = NULL;
    worker->buffer_count--;
}

static uint8_t *bytes_of(struct stand_in_worker *worker, uint64_t number, size_t offset, size_t size) {
    struct stand_in_buffer *buffer = buffer_of(worker, number);
    CHECK(buffer && offset <= buffer->size && size <= buffer->size - offset);
    return buffer->data + offset;
}

static void answer_done(struct stand_in_worker *worker, uint64_t number) {
    int64_t now = (int64_t)cld_now();
    cld_put_list(&worker->answers, 5);
    cld_put_int(&worker->answers, CLD_DONE_MESSAGE);
    cld_put_int(&worker->answers, (int64_t)number);
    cld_put_int(&worker->answers, CL_SUCCESS);
    cld_put_int(&worker->answers, now - 1000);
    cld_put_int(&worker->answers, now);
}

static size_t get_first(struct cld_msg *msg) {
    uint32_t count = cld_get_list(msg);
    size_t first = (size_t)cld_get_int(msg);
    for (uint32_t i = 1; i < count; i++)
        cld_get_int(msg);
    return first;
}

static void execute_launch(struct stand_in_worker *worker, struct cld_msg *msg) {
    size_t size, local = 1;
    uint64_t number = (uint64_t)cld_get_int(msg);
    cld_get_int(msg); /* the program */
    cld_get_bytes(msg, &size);
    get_first(msg); /* offsets */
    size_t first = 0, last = get_first(msg);
    if (!cld_get_none(msg))
        local = get_first(msg);
    for (uint32_t count = cld_get_list(msg); count--;)
        cld_get_int(msg);
    if (!cld_get_none(msg)) {
        size_t all = last;
        CHECK_IS(cld_get_list(msg), 3);
        CHECK_IS(cld_get_int(msg), 0);
        first = (size_t)cld_get_int(msg) * local;
        last = (size_t)cld_get_int(msg) * local;
        last = last < all ? last : all;
    }
    CHECK_IS(cld_get_list(msg), 2);
    CHECK_IS(cld_get_list(msg), 3);
    uint64_t buffer = (uint64_t)cld_get_int(msg);
    size_t offset = (size_t)cld_get_int(msg);
    uint8_t *data = bytes_of(worker, buffer, offset, (size_t)cld_get_int(msg));
    const void *value = cld_get_bytes(msg, &size);
    int by, one;
    CHECK(!msg->failed && size == sizeof by);
    memcpy(&by, value, sizeof by);
    for (size_t i = first; i < last; i++) {
        memcpy(&one, data + 2 * i * sizeof one, sizeof one);
        one += by;
        memcpy(data + 2 * i * sizeof one, &one, sizeof one);
    }
    answer_done(worker, number);
}

static void execute_write(struct stand_in_worker *worker, struct stand_in_batch *batch) {
    struct cld_msg *msg = &batch->msg;
    uint64_t number = (uint64_t)cld_get_int(msg);
    size_t offset = (size_t)cld_get_int(msg), size;
    const void *data = batch->payload.data;
    if (msg->data[msg->at] == 'b')
        data = cld_get_bytes(msg, &size);
    else
        CHECK_IS(size = (size_t)cld_get_int(msg), batch->payload.size);
    memcpy(bytes_of(worker, number, offset, size), data, size);
}

static void execute_read(struct stand_in_worker *worker, struct cld_msg *msg) {
    uint64_t request = (uint64_t)cld_get_int(msg), number = (uint64_t)cld_get_int(msg);
    size_t offset = (size_t)cld_get_int(msg), size = (size_t)cld_get_int(msg);
    cld_put_list(&worker->answers, 4);
    cld_put_int(&worker->answers, CLD_DATA_MESSAGE);
    cld_put_int(&worker->answers, (int64_t)request);
    bool fails = read_countdown && !--read_countdown;
    cld_put_int(&worker->answers, fails ? read_error : CL_SUCCESS);
    cld_put_bytes(&worker->answers, bytes_of(worker, number, offset, size), fails ? 0 : size);
}

static void execute_fill(struct stand_in_worker *worker, struct cld_msg *msg) {
    uint64_t number = (uint64_t)cld_get_int(msg);
    size_t offset = (size_t)cld_get_int(msg), size = (size_t)cld_get_int(msg), pattern_size;
    const uint8_t *pattern = cld_get_bytes(msg, &pattern_size);
    uint8_t *data = bytes_of(worker, number, offset, size);
    for (size_t i = 0; i < size; i++)
        data[i] = pattern[i % pattern_size];
}

static void execute_send(struct stand_in_worker *worker, struct cld_msg *msg) {
    uint64_t transfer = (uint64_t)cld_get_int(msg), number = (uint64_t)cld_get_int(msg);
    size_t offset = (size_t)cld_get_int(msg), size = (size_t)cld_get_int(msg);
    cld_get_int(msg);
    int i = 0;
    while (transfers[i].number)
        CHECK(++i < MOST_TRANSFERS);
    transfers[i].number = transfer;
    cld_msg_init(&transfers[i].contents);
    memcpy(cld_msg_grow(&transfers[i].contents, size), bytes_of(worker, number, offset, size), size);
}

/* False: it has not come yet. */
static bool execute_receive(struct stand_in_worker *worker, struct cld_msg *msg) {
    uint64_t transfer = (uint64_t)cld_get_int(msg), number = (uint64_t)cld_get_int(msg);
    size_t offset = (size_t)cld_get_int(msg), size = (size_t)cld_get_int(msg);
    for (int i = 0; i < MOST_TRANSFERS; i++) {
        if (transfers[i].number != transfer)
            continue;
        CHECK_IS(transfers[i].contents.size, size);
        memcpy(bytes_of(worker, number, offset, size), transfers[i].contents.data, size);
        cld_msg_free(&transfers[i].contents);
        transfers[i].number = 0;
        answer_done(worker, transfer);
        return true;
    }
    return false;
}

static void skip_bytes(struct cld_msg *msg) {
    size_t size;
    cld_get_bytes(msg, &size);
}

/* False: the message waits. */
static bool execute_message(struct stand_in_worker *worker, struct stand_in_batch *batch) {
    struct cld_msg *msg = &batch->msg;
    size_t begin = msg->at;
    cld_get_list(msg);
    switch (cld_get_int(msg)) {
    case CLD_PROGRAM_MESSAGE:
        worker->program_count++;
        cld_get_int(msg);
        skip_bytes(msg);
        skip_bytes(msg);
        break;
    case CLD_FORGET_PROGRAM_MESSAGE:
        worker->program_count--;
        cld_get_int(msg);
        break;
    case CLD_BUFFER_MESSAGE: {
        uint64_t number = (uint64_t)cld_get_int(msg);
        make_buffer(worker, number, (size_t)cld_get_int(msg));
        break;
    }
    case CLD_FORGET_BUFFER_MESSAGE:
        forget_buffer(worker, (uint64_t)cld_get_int(msg));
        break;
    case CLD_WRITE_MESSAGE:
        execute_write(worker, batch);
        break;
    case CLD_READ_MESSAGE:
        execute_read(worker, msg);
        break;
    case CLD_FILL_MESSAGE:
        execute_fill(worker, msg);
        break;
    case CLD_LAUNCH_MESSAGE:
        execute_launch(worker, msg);
        break;
    case CLD_SEND_MESSAGE:
        execute_send(worker, msg);
        break;
    case CLD_RECEIVE_MESSAGE:
        if (!execute_receive(worker, msg)) {
            msg->at = begin;
            return false;
        }
        break;
    case CLD_CONNECT_MESSAGE:
        cld_put_list(&worker->answers, 2);
        cld_put_int(&worker->answers, CLD_REACHABLE_MESSAGE);
        cld_put_int(&worker->answers, cld_get_int(msg));
        break;
    default:
        CHECK(false);
    }
    CHECK(!msg->failed);
    return true;
}

static void stand_in_write(const void *data, size_t size) {
    CHECK_IS(send(stand_in_socket, data, size, MSG_NOSIGNAL), size);
}

static void send_frame(uint32_t number, int kind, const struct cld_payload *payload,
                       const struct cld_msg *msg) {
    const struct cld_frame_head head = {number, (uint16_t)kind, payload != NULL, msg ? msg->size : 0};
    stand_in_write(&head, sizeof head);
    if (payload)
        stand_in_write(payload, sizeof *payload);
    if (msg)
        stand_in_write(msg->data, msg->size);
}

/* True: something was done. */
static bool go_on(struct stand_in_worker *worker) {
    bool has_done = false;
    while (worker->first) {
        struct stand_in_batch *batch = worker->first;
        while (batch->msg.at < batch->msg.size) {
            if (!execute_message(worker, batch))
                return has_done;
            has_done = true;
        }
        if (!(worker->first = batch->next))
            worker->last = &worker->first;
        cld_msg_free(&batch->msg);
        cld_msg_free(&batch->payload);
        free(batch);
    }
    return has_done;
}

static void execute_all(void) {
    bool has_done = true;
    while (has_done) {
        has_done = false;
        for (int i = 0; i < WORKERS; i++)
            has_done |= go_on(&stand_ins[i]);
    }
    for (uint32_t i = 0; i < WORKERS; i++)
        if (stand_ins[i].answers.size) {
            send_frame(i, CLD_BATCH_FRAME, NULL, &stand_ins[i].answers);
            cld_msg_free(&stand_ins[i].answers);
        }
}

static void take_batch(const struct cld_frame_head *head, const struct cld_payload *payload) {
    struct stand_in_worker *worker = &stand_ins[head->worker];
    struct stand_in_batch *batch = calloc(1, sizeof *batch);
    CHECK(batch && head->worker < WORKERS);
    if (payload)
        memcpy(cld_msg_grow(&batch->payload, payload->size), stand_in_memory + payload->at, payload->size);
    if (head->size)
        CHECK(cld_cluster_receive(stand_in_socket, cld_msg_grow(&batch->msg, head->size), head->size));
    send_frame(head->worker, CLD_TAKEN_FRAME, NULL, NULL);
    if (payload)
        send_frame(CLD_NOBODY, CLD_FREE_FRAME, payload, NULL);
    *worker->last = batch;
    worker->last = &batch->next;
}

static void put_answers(struct cld_msg *msg) {
    const cl_uint one = 1;
    cld_put_list(msg, 1);
    cld_put_list(msg, 2);
    cld_put_int(msg, CL_DEVICE_MAX_COMPUTE_UNITS);
    cld_put_bytes(msg, &one, sizeof one);
}

static void send_hello(void) {
    struct cld_msg hello;
    cld_msg_init(&hello);
    for (int i = 0; i <= WORKERS; i++) {
        cld_put_list(&hello, 2);
        cld_put_bytes(&hello, "address", i < WORKERS ? 7 : 0);
        put_answers(&hello);
    }
    send_frame(CLD_NOBODY, CLD_BATCH_FRAME, NULL, &hello);
    cld_msg_free(&hello);
}

static void *stand_in(void *unused) {
    (void)unused;
    is_stand_in = true;
    char nothing;
    struct iovec part = {&nothing, 1};
    char control[CMSG_SPACE(sizeof(int))];
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    int memory;
    CHECK_IS(recvmsg(stand_in_socket, &message, 0), 1);
    memcpy(&memory, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof memory);
    stand_in_memory = mmap(NULL, 2 * HALF, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    CHECK(stand_in_memory != MAP_FAILED);
    close(memory);
    send_hello();
    struct cld_frame_head head;
    struct cld_payload payload;
    while (cld_cluster_receive(stand_in_socket, &head, sizeof head)) {
        CHECK(head.count <= 1);
        if (head.count)
            CHECK(cld_cluster_receive(stand_in_socket, &payload, sizeof payload));
        if (head.kind == CLD_BATCH_FRAME)
            take_batch(&head, head.count ? &payload : NULL);
        execute_all();
    }
    return NULL;
}

/* In place of the process that connects. */
int __wrap_cld_spawn(char *const *argv, char *const *envp, int socket_type);
const struct cld_guest_config *__wrap_cld_guest_config(void);

int __wrap_cld_spawn(char *const *argv, char *const *envp, int socket_type) {
    (void)argv, (void)envp;
    int ends[2];
    pthread_t thread;
    for (int i = 0; i < WORKERS; i++)
        stand_ins[i].last = &stand_ins[i].first;
    CHECK(!socketpair(AF_UNIX, socket_type | SOCK_CLOEXEC, 0, ends));
    stand_in_socket = ends[1];
    CHECK(!pthread_create(&thread, NULL, stand_in, NULL) && !pthread_detach(thread));
    return ends[0];
}

const struct cld_guest_config *__wrap_cld_guest_config(void) {
    static char none[] = "";
    static const struct cld_guest_config config = {.python = none};
    return &config;
}

#endif
