/* Two threads enqueue 100,000 commands each (or argv[1]) on queues that they share, in order and out of
 * order, with random wait lists across queues and threads, user events, markers, barriers, flushes and waits.
 * Each command takes a stamp when it starts and when it ends; whatever had to be before it must have ended
 * before it started. */
#include <pthread.h>
#include <stdatomic.h>

#include "harness.h"

enum { QUEUES = 4, RING = 48, MOST_WAITS = 5, SHARED = 16 };

struct record {
    uint32_t waits[MOST_WAITS]; /* indices of commands + 1 */
    uint32_t previous;          /* of the same in-order queue and thread, + 1 */
    _Atomic uint64_t start, end;
};

static struct record *records;
static uint32_t per_thread = 100000;
static _Atomic uint64_t stamps = 1;
static cl_context context;
static cl_command_queue queues[QUEUES];

/* Events that the other thread may wait for. */
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    cl_event event;
    uint32_t command;
} shared[SHARED];

static void stamp(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                  uint64_t first, uint64_t last) {
    int index;
    (void)launch, (void)thread, (void)last;
    memcpy(&index, args, sizeof index);
    if (first)
        return; /* of several groups the first counts */
    atomic_store(&records[index].start, atomic_fetch_add(&stamps, 1));
    for (volatile int i = 0; i < (index % 97 ? 10 : 3000); i++)
        ;
    atomic_store(&records[index].end, atomic_fetch_add(&stamps, 1));
}

static uint32_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void *enqueue_all(void *argument) {
    uint32_t thread = (uint32_t)(uintptr_t)argument;
    uint64_t random = 77 + thread;
    cl_kernel kernel = test_kernel(context, stamp, "i");
    cl_event ring[RING] = {NULL}, user = NULL;
    uint32_t ring_command[RING] = {0}, last[QUEUES] = {0}, user_at = 0;
    for (uint32_t i = 0; i < per_thread; i++) {
        int index = (int)(thread * per_thread + i);
        struct record *record = &records[index];
        cl_event waits[MOST_WAITS + 1], held = NULL;
        cl_uint count = 0, known = next_random(&random) % 3 ? 0 : next_random(&random) % (MOST_WAITS - 1);
        for (cl_uint k = 0; k < known; k++) {
            uint32_t at = next_random(&random) % RING;
            if (ring[at]) {
                record->waits[count] = ring_command[at] + 1;
                waits[count++] = ring[at];
            }
        }
        if (next_random(&random) % 16 == 0) {
            pthread_mutex_lock(&shared_lock);
            uint32_t at = next_random(&random) % SHARED;
            if (shared[at].event) {
                held = shared[at].event;
                clRetainEvent(held);
                record->waits[count] = shared[at].command + 1;
                waits[count++] = held;
            }
            pthread_mutex_unlock(&shared_lock);
        }
        if (!user && next_random(&random) % 500 == 0) {
            user = clCreateUserEvent(context, NULL);
            CHECK(user);
            user_at = i;
        }
        if (user && i == user_at)
            waits[count++] = user;
        uint32_t q = next_random(&random) % QUEUES;
        if (q < 2) {
            record->previous = last[q];
            last[q] = (uint32_t)index + 1;
        }
        uint32_t at = i % RING;
        cl_event old = ring[at];
        size_t global = next_random(&random) % 64 ? 1 : 256, local = 1;
        OK(clSetKernelArg(kernel, 0, sizeof index, &index));
        OK(clEnqueueNDRangeKernel(queues[q], kernel, 1, NULL, &global, &local, count, count ? waits : NULL,
                                  &ring[at]));
        ring_command[at] = (uint32_t)index;
        if (old)
            OK(clReleaseEvent(old));
        if (held)
            OK(clReleaseEvent(held));
        if (next_random(&random) % 8 == 0) {
            pthread_mutex_lock(&shared_lock);
            uint32_t to = next_random(&random) % SHARED;
            if (shared[to].event)
                clReleaseEvent(shared[to].event);
            shared[to].event = ring[at];
            shared[to].command = (uint32_t)index;
            clRetainEvent(ring[at]);
            pthread_mutex_unlock(&shared_lock);
        }
        /* A wait while a user event of one's own is not set would be for ever, on either thread: the other
         * one sets its own without waiting. */
        if (user && i - user_at > 20) {
            OK(clSetUserEventStatus(user, CL_COMPLETE));
            OK(clReleaseEvent(user));
            user = NULL;
        }
        uint32_t what = next_random(&random) % 2000;
        if (what < 20)
            OK(clFlush(queues[next_random(&random) % QUEUES]));
        else if (what < 24)
            OK(clEnqueueMarkerWithWaitList(queues[q], 0, NULL, NULL));
        else if (what < 26)
            OK(clEnqueueBarrierWithWaitList(queues[q], 0, NULL, NULL));
        else if (what < 30 && !user)
            OK(clWaitForEvents(1, &ring[at]));
        else if (what < 31 && !user)
            OK(clFinish(queues[q]));
    }
    if (user) {
        OK(clSetUserEventStatus(user, CL_COMPLETE));
        OK(clReleaseEvent(user));
    }
    for (int q = 0; q < QUEUES; q++)
        OK(clFinish(queues[q]));
    for (uint32_t at = 0; at < RING; at++)
        if (ring[at])
            OK(clReleaseEvent(ring[at]));
    OK(clReleaseKernel(kernel));
    return NULL;
}

static void check(uint32_t before, uint32_t after) {
    uint64_t end = atomic_load(&records[before].end), start = atomic_load(&records[after].start);
    if (end && start && end < start)
        return;
    fprintf(stderr, "command %u ended at %llu, %u started at %llu\n", before, (unsigned long long)end, after,
            (unsigned long long)start);
    exit(1);
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    if (argc > 1)
        per_thread = (uint32_t)atoi(argv[1]);
    records = calloc(2 * (size_t)per_thread, sizeof *records);
    context = test_context();
    for (int q = 0; q < QUEUES; q++)
        queues[q] = test_queue(context, q < 2 ? 0 : CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    for (uintptr_t t = 0; t < 2; t++)
        CHECK(!pthread_create(&threads[t], NULL, enqueue_all, (void *)t));
    for (int t = 0; t < 2; t++)
        pthread_join(threads[t], NULL);
    for (uint32_t i = 0; i < 2 * per_thread; i++) {
        CHECK(atomic_load(&records[i].end));
        for (int k = 0; k < MOST_WAITS; k++)
            if (records[i].waits[k])
                check(records[i].waits[k] - 1, i);
        if (records[i].previous)
            check(records[i].previous - 1, i);
    }
    for (int i = 0; i < SHARED; i++)
        if (shared[i].event)
            OK(clReleaseEvent(shared[i].event));
    for (int q = 0; q < QUEUES; q++)
        OK(clReleaseCommandQueue(queues[q]));
    OK(clReleaseContext(context));
    free(records);
    return 0;
}
