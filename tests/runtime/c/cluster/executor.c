/* executor/: batches that were changed at random. Whatever a host or another worker says is executed, or an
 * error, or ends the connection; it takes no memory that is not there, and nothing waits for ever.
 *
 * Usage: executor [SEED [TRIES]] */
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "../harness.h"
#include "executor/executor.h"
#include "executor/internal.h"
#include "launch/kernel_command.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { TRIES = 1500, IS_LIMITED = 0 }; /* their own memory has no limit */
#else
enum { TRIES = 6000, IS_LIMITED = 1 };
#endif

enum {
    SIZE = 1 << 20,
    MOST_PLACES = 512,
    MOST_GROUPS = 1 << 16,
    QUIET_MS = 10,
    LIMIT_MIB = 8 << 10,
    MOST_RESIDENT_MIB = 1 << 10
};

static const struct cld_executor_table *table;
static void no_code(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                    uint64_t first, uint64_t last) {
    (void)launch, (void)args, (void)thread, (void)first, (void)last;
}

static cl_kernel kernel;

/* Programs need a compiler: all have the same kernel. */
cl_int __wrap_cld_remote_kernel_of(struct cld_executor *executor, uint64_t number, const char *name,
                                   size_t name_size, cl_kernel *found);

cl_int __wrap_cld_remote_kernel_of(struct cld_executor *executor, uint64_t number, const char *name,
                                   size_t name_size, cl_kernel *found) {
    if (!cld_numbers_find(&executor->programs, number))
        return CL_INVALID_PROGRAM;
    if (name_size != 3 || memcmp(name, "add", 3))
        return CL_INVALID_KERNEL_NAME;
    if (!kernel)
        kernel = test_kernel(executor->context, no_code, "gil");
    *found = kernel;
    return CL_SUCCESS;
}

/* Those that would take some time are not executed. */
cl_int __real_cld_launch_enqueue(cl_command_queue queue, cl_kernel kernel,
                                 const struct cld_launch_sizes *sizes, const struct cld_wait *wait);
cl_int __wrap_cld_launch_enqueue(cl_command_queue queue, cl_kernel kernel,
                                 const struct cld_launch_sizes *sizes, const struct cld_wait *wait);

cl_int __wrap_cld_launch_enqueue(cl_command_queue queue, cl_kernel kernel_,
                                 const struct cld_launch_sizes *sizes, const struct cld_wait *wait) {
    double groups = 1;
    for (cl_uint i = 0; i < sizes->work_dim; i++)
        groups *= (double)sizes->size[i] / (double)(sizes->local ? sizes->local[i] : 64);
    CHECK(groups / 64 <= (double)((uint64_t)1 << 40) || sizes->part);
    return groups > MOST_GROUPS ? CL_OUT_OF_RESOURCES
                                : __real_cld_launch_enqueue(queue, kernel_, sizes, wait);
}

/* Without Python. */
cl_context __wrap_clCreateContext(const cl_context_properties *properties, cl_uint count,
                                  const cl_device_id *devices,
                                  void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
                                  void *data, cl_int *status);

cl_context __wrap_clCreateContext(const cl_context_properties *properties, cl_uint count,
                                  const cl_device_id *devices,
                                  void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
                                  void *data, cl_int *status) {
    (void)properties, (void)notify, (void)data;
    *status = CL_SUCCESS;
    return test_context_of(count, devices);
}

static void put_ints(struct cld_msg *msg, uint32_t count, const int64_t *values) {
    cld_put_list(msg, count);
    for (uint32_t i = 0; i < count; i++)
        cld_put_int(msg, values[i]);
}
#define INTS(msg, ...)                                                                                       \
    put_ints(msg, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]){__VA_ARGS__})

/* The first ones of a list. */
static void put_head(struct cld_msg *msg, uint32_t count, int kind, int64_t number) {
    cld_put_list(msg, count);
    cld_put_int(msg, kind);
    cld_put_int(msg, number);
}

static void put_launch(struct cld_msg *msg, int64_t number, bool is_part) {
    const int by = 1;
    put_head(msg, 10, CLD_LAUNCH_MESSAGE, number);
    cld_put_int(msg, 1);
    cld_put_bytes(msg, "add", 3);
    INTS(msg, 0, 0);
    INTS(msg, 256, 4);
    if (is_part)
        INTS(msg, 16, 1);
    else
        cld_put_none(msg);
    INTS(msg, number - 1, 999);
    if (is_part)
        INTS(msg, 0, 2, 5);
    else
        cld_put_none(msg);
    cld_put_list(msg, 3);
    INTS(msg, 7, is_part ? 1024 : 0, 4096);
    cld_put_bytes(msg, &by, sizeof by);
    cld_put_int(msg, 64);
}

/* What a host says. */
static void put_batch(struct cld_msg *msg) {
    put_head(msg, 4, CLD_PROGRAM_MESSAGE, 1);
    cld_put_bytes(msg, "-cl-std=CL3.0", 13);
    cld_put_bytes(msg, "program", 7);
    INTS(msg, CLD_BUFFER_MESSAGE, 7, SIZE);
    INTS(msg, CLD_BUFFER_MESSAGE, 8, SIZE);
    put_head(msg, 4, CLD_WRITE_MESSAGE, 7);
    cld_put_int(msg, 64);
    cld_put_bytes(msg, "contents", 8);
    put_head(msg, 4, CLD_WRITE_MESSAGE, 8);
    cld_put_int(msg, 0);
    cld_put_int(msg, SIZE); /* the first payload */
    put_head(msg, 5, CLD_FILL_MESSAGE, 7);
    cld_put_int(msg, 128);
    cld_put_int(msg, 1024);
    cld_put_bytes(msg, "abcd", 4);
    put_launch(msg, 10, false);
    put_launch(msg, 11, true);
    INTS(msg, CLD_READ_MESSAGE, 12, 7, 0, 256);
    INTS(msg, CLD_READ_MESSAGE, 13, 8, 0, SIZE);
    INTS(msg, CLD_CONNECT_MESSAGE, 1);
    INTS(msg, CLD_SEND_MESSAGE, 14, 7, 0, 4096, 1);
    INTS(msg, CLD_RECEIVE_MESSAGE, 15, 8, 4096, 8);
    put_launch(msg, 16, false);
    INTS(msg, CLD_RECEIVE_MESSAGE, 17, 7, 0, 16);
    put_launch(msg, 18, false);
    INTS(msg, CLD_READ_MESSAGE, 19, 7, 0, 64);
    INTS(msg, CLD_MISS_MESSAGE, 17);
    put_head(msg, 10, CLD_IMAGE_MESSAGE, 20);
    INTS(msg, 8, 1024, 1024);
    cld_put_int(msg, CL_MEM_READ_WRITE);
    cld_put_int(msg, CL_RGBA);
    cld_put_int(msg, CL_UNORM_INT8);
    cld_put_int(msg, CL_MEM_OBJECT_IMAGE2D);
    INTS(msg, 16, 8, 1, 1);
    cld_put_int(msg, 64);
    cld_put_int(msg, 0);
    INTS(msg, CLD_FORGET_IMAGE_MESSAGE, 20);
    INTS(msg, CLD_FORGET_BUFFER_MESSAGE, 8);
    INTS(msg, CLD_FORGET_PROGRAM_MESSAGE, 1);
}

/* Where values begin, of which the next bytes are a number. */
static size_t find_places(const struct cld_msg *msg, size_t *places) {
    size_t count = 0, bytes;
    struct cld_msg reader = {.data = msg->data, .size = msg->size};
    while (reader.at < reader.size && count < MOST_PLACES && !reader.failed) {
        uint8_t tag = reader.data[reader.at];
        if (tag != 'n')
            places[count++] = reader.at;
        if (tag == 'n')
            cld_get_none(&reader);
        else if (tag == 'i')
            cld_get_int(&reader);
        else if (tag == 'b')
            cld_get_bytes(&reader, &bytes);
        else
            cld_get_list(&reader);
    }
    CHECK(!reader.failed && reader.at == reader.size);
    return count;
}

static int64_t number(int64_t now) {
    static const int64_t numbers[] = {0,         1,       -1,        7,          8,         10,
                                      4096,      SIZE,    SIZE + 1,  INT32_MAX,  INT32_MIN, UINT32_MAX,
                                      1LL << 33, 1 << 22, 4 << 20,   1LL << 48,  1LL << 62, INT64_MAX,
                                      INT64_MIN, 1 << 30, 1LL << 36, -(1 << 20), 64,        3};
    switch (chance(4)) {
    case 0:
        return now + (int64_t)chance(5) - 2;
    case 1:
        return (int64_t)((uint64_t)now << chance(40));
    default:
        return numbers[chance(sizeof numbers / sizeof *numbers)];
    }
}

static void change(struct cld_msg *msg) {
    size_t places[MOST_PLACES], count = find_places(msg, places);
    for (uint64_t i = chance(5); i--;) {
        uint8_t *at = msg->data + places[chance(count)];
        int64_t value = 0;
        size_t size = *at == 'l' ? sizeof(uint32_t) : sizeof value;
        memcpy(&value, at + 1, size);
        value = *at == 'l' && chance(2) ? (int64_t)chance(12) : number(value);
        memcpy(at + 1, &value, size);
    }
    if (!chance(3))
        msg->data[chance(msg->size)] = (uint8_t)chance(256);
    if (!chance(8)) /* from one place on what is behind another */
        memmove(msg->data + places[chance(count)], msg->data + places[count - 1 - chance(count / 2)], 9);
    if (!chance(10))
        msg->size = 1 + chance(msg->size);
}

/* A batch in memory of its own, which ends where it does. */
static uint8_t *own(struct cld_msg *msg) {
    uint8_t *data = malloc(msg->size);
    CHECK(data);
    memcpy(data, msg->data, msg->size);
    return data;
}

static void free_answers(const struct cld_answers *answers) {
    free(answers->batch.at);
    free(answers->payload.at);
    free(answers->released);
    for (uint64_t i = 0; i < answers->departure_count; i++)
        free(answers->departures[i].contents.at);
    free(answers->departures);
}

/* Takes answers until all that was put is released, or nothing more comes: contents may be missing. */
static void take_all(struct cld_executor *executor, uint64_t put) {
    struct pollfd descriptor = {.fd = table->descriptor(executor), .events = POLLIN};
    uint64_t released = 0, one;
    while (released < put && !table->failed(executor) && poll(&descriptor, 1, QUIET_MS) == 1) {
        struct cld_answers answers;
        CHECK(read(descriptor.fd, &one, sizeof one) == sizeof one);
        table->take(executor, &answers);
        struct cld_msg told = {.data = answers.batch.at, .size = answers.batch.size};
        size_t places[MOST_PLACES];
        if (told.size)
            find_places(&told, places);
        released += answers.released_count;
        free_answers(&answers);
    }
}

static void put(struct cld_executor *executor, uint64_t token, uint8_t *data, size_t size, bool is_peer) {
    static uint8_t payload[SIZE];
    const struct cld_range batch = {data, size}, payloads[] = {{payload, SIZE}, {payload, 8}};
    CHECK(table->put(executor, token, &batch, payloads, is_peer ? 0 : 1 + chance(2), is_peer));
}

/* Whether the connection ended by that. */
static bool try(void) {
    int32_t status;
    struct cld_executor *executor = table->open(&status);
    uint8_t *batches[4];
    uint64_t count = 1 + chance(3);
    CHECK_IS(status, 0);
    for (uint64_t i = 0; i < count; i++) {
        struct cld_msg msg;
        bool is_peer = i && !chance(3);
        cld_msg_init(&msg);
        if (is_peer) {
            put_head(&msg, 3, CLD_ARRIVE_MESSAGE, 15);
            cld_put_bytes(&msg, "contents", 8);
        } else {
            put_batch(&msg);
        }
        change(&msg);
        batches[i] = own(&msg);
        put(executor, i, batches[i], msg.size, is_peer);
        cld_msg_free(&msg);
    }
    if (chance(10))
        take_all(executor, count);
    bool has_failed = table->failed(executor);
    table->close(executor);
    if (kernel)
        OK(clReleaseKernel(kernel));
    kernel = NULL;
    for (uint64_t i = 0; i < count; i++)
        free(batches[i]);
    return has_failed;
}

/* MiB, of this program: ru_maxrss is also that of the process which became it. */
static long most_resident(void) {
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    long kib = 0;
    CHECK(file);
    while (!kib && fgets(line, sizeof line, file))
        (void)sscanf(line, "VmHWM: %ld", &kib);
    CHECK(!fclose(file) && kib);
    return kib >> 10;
}

/* Emulators take a limit and do not keep it. */
static bool limit(void) {
    const struct rlimit bytes = {(rlim_t)LIMIT_MIB << 20, (rlim_t)LIMIT_MIB << 20};
    CHECK(!setrlimit(RLIMIT_AS, &bytes));
    void *more = mmap(NULL, bytes.rlim_cur, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return more == MAP_FAILED || munmap(more, bytes.rlim_cur);
}

int main(int argc, char **argv) {
    bool is_limited = false;
    long tries = argc > 2 ? atol(argv[2]) : TRIES, failed = 0;
    if (argc > 1)
        chance_state += strtoull(argv[1], NULL, 0);
    table = cld_executor_functions();
    ((struct cld_device *)test_device())->max_alloc_size = (uint64_t)1 << 30;
    if (IS_LIMITED)
        is_limited = limit();
    for (long i = 0; i < tries; i++)
        failed += try();
    CHECK(failed > tries / 20 && failed < tries);
    if (is_limited)
        CHECK(most_resident() < MOST_RESIDENT_MIB);
    return 0;
}
