/* Handles: any pointer may be asked for, counts, recycling, parents that live as long as their children. */
#include <pthread.h>

#include "harness.h"
#include "object/slots.h"

static void wild_pointers(cl_context context) {
    cl_uint count;
    cl_mem buffer = test_buffer(context, 64);
    uint8_t *base = (uint8_t *)buffer;
    for (intptr_t offset = -4096; offset <= 4096; offset += 8)
        if (offset % CLD_SLOT_SIZE)
            CHECK_IS(clRetainMemObject((cl_mem)(base + offset)), CL_INVALID_MEM_OBJECT);
    uint64_t random = 1;
    for (int i = 0; i < 100000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        CHECK_IS(clRetainEvent((cl_event)(uintptr_t)random), CL_INVALID_EVENT);
        uintptr_t near = (uintptr_t)base + (random >> 33) % ((size_t)1 << 33);
        near -= near % CLD_SLOT_SIZE - (uintptr_t)base % CLD_SLOT_SIZE;
        if (near != (uintptr_t)base)
            clRetainSampler((cl_sampler)near); /* must not fault; there is no sampler */
    }
    CHECK_IS(clRetainEvent(NULL), CL_INVALID_EVENT);
    CHECK_IS(clRetainKernel((cl_kernel)buffer), CL_INVALID_KERNEL);
    OK(clRetainMemObject(buffer));
    OK(clGetMemObjectInfo(buffer, CL_MEM_REFERENCE_COUNT, sizeof count, &count, NULL));
    CHECK_IS(count, 2);
    OK(clReleaseMemObject(buffer));
    OK(clReleaseMemObject(buffer));
    CHECK_IS(clReleaseMemObject(buffer), CL_INVALID_MEM_OBJECT);
    CHECK_IS(clRetainMemObject(buffer), CL_INVALID_MEM_OBJECT);
}

/* A context lives as long as what was made of it; by a handle from a query it may be retained again. */
static void parents(void) {
    cl_context context = test_context(), same;
    cl_event event = clCreateUserEvent(context, NULL);
    CHECK(event);
    OK(clReleaseContext(context));
    CHECK_IS(clReleaseContext(context), CL_INVALID_CONTEXT);
    OK(clGetEventInfo(event, CL_EVENT_CONTEXT, sizeof same, &same, NULL));
    CHECK(same == context);
    OK(clRetainContext(same));
    OK(clReleaseEvent(event));
    event = clCreateUserEvent(same, NULL);
    CHECK(event);
    OK(clReleaseContext(same));
    OK(clReleaseEvent(event));
    CHECK_IS(clRetainContext(same), CL_INVALID_CONTEXT);
}

static void devices(void) {
    cl_device_id root = test_device(), part = test_sub_device(1);
    cl_uint count;
    for (int i = 0; i < 3; i++)
        OK(clReleaseDevice(root));
    OK(clRetainDevice(root));
    OK(clRetainDevice(part));
    OK(clGetDeviceInfo(part, CL_DEVICE_REFERENCE_COUNT, sizeof count, &count, NULL));
    CHECK_IS(count, 2);
    OK(clReleaseDevice(part));
    cl_context context = test_context_of(1, &part);
    OK(clReleaseDevice(part));
    CHECK_IS(clReleaseDevice(part), CL_INVALID_DEVICE); /* the context holds it, the application does not */
    OK(clReleaseContext(context));
    CHECK_IS(clRetainDevice(part), CL_INVALID_DEVICE);
}

static cl_context shared_context;

static void *make_and_drop(void *nothing) {
    cl_event events[300];
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < 300; i++) {
            events[i] = clCreateUserEvent(shared_context, NULL);
            CHECK(events[i]);
            CHECK((uintptr_t)events[i] % 128 == 0);
        }
        for (int i = 0; i < 300; i++)
            OK(clReleaseEvent(events[i]));
    }
    return nothing;
}

static void threads(void) {
    pthread_t ids[4];
    shared_context = test_context();
    size_t before = atomic_load(&cld_slots_used);
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < 4; i++)
            CHECK(!pthread_create(&ids[i], NULL, make_and_drop, NULL));
        for (int i = 0; i < 4; i++)
            pthread_join(ids[i], NULL);
    }
    /* Slots come back, also those of threads that ended: all that was ever needed at once is 300 a thread,
     * and what each holds in reserve. */
    CHECK(atomic_load(&cld_slots_used) <= before + 4 * (300 + 3 * CLD_SLOT_BATCH) * CLD_SLOT_SIZE);
    OK(clReleaseContext(shared_context));
}

enum { MANY = 30000 };

static cl_event of_threads[4][MANY];
static _Atomic int ended;

static void *make_and_drop_many(void *row) {
    cl_event *events = row;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            cl_event event = clCreateUserEvent(shared_context, NULL);
            CHECK(event);
            __atomic_store_n(&events[i], event, __ATOMIC_RELEASE);
        }
        for (int i = 0; i < MANY; i++)
            OK(clReleaseEvent(events[(size_t)i * 7919 % MANY]));
    }
    ended++;
    return NULL;
}

/* The pages of slots that are all dead go back and come again while others read what handles begin with. */
static void many_of_threads(void) {
    pthread_t ids[4];
    shared_context = test_context();
    const void *dispatch = ((struct cld_object *)shared_context)->dispatch;
    ended = 0;
    for (int i = 0; i < 4; i++)
        CHECK(!pthread_create(&ids[i], NULL, make_and_drop_many, of_threads[i]));
    while (ended < 4)
        for (int i = 0; i < 4 * MANY; i += 61) {
            cl_event event = __atomic_load_n(&of_threads[i / MANY][i % MANY], __ATOMIC_ACQUIRE);
            if (!event)
                continue;
            CHECK(((struct cld_object *)event)->dispatch == dispatch);
            cld_object_check(event, CLD_EVENT);
        }
    for (int i = 0; i < 4; i++)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < 4 * MANY; i++)
        CHECK_IS(clRetainEvent(of_threads[i / MANY][i % MANY]), CL_INVALID_EVENT);
    OK(clReleaseContext(shared_context));
}

/* cl_khr_icd 2.0: the loader's word is in every object, before and after it is set. */
static void loader_words(cl_context context) {
    static int word;
    cl_event event = clCreateUserEvent(context, NULL);
    cld_object_set_dispatch_data(&word);
    CHECK(((struct cld_object *)event)->dispatch_data == &word);
    for (int i = 0; i < 4 * MANY; i++) { /* those without a live neighbour as well */
        struct cld_object *object = (struct cld_object *)of_threads[i / MANY][i % MANY];
        CHECK(object->dispatch_data == &word && object->dispatch == ((struct cld_object *)event)->dispatch);
    }
    cl_event many[200];
    for (int i = 0; i < 200; i++) {
        many[i] = clCreateUserEvent(context, NULL);
        CHECK(((struct cld_object *)many[i])->dispatch_data == &word);
        CHECK(((struct cld_object *)many[i])->dispatch == ((struct cld_object *)event)->dispatch);
    }
    for (int i = 0; i < 200; i++)
        OK(clReleaseEvent(many[i]));
    OK(clReleaseEvent(event));
}

int main(void) {
    cl_context context = test_context();
    wild_pointers(context);
    parents();
    devices();
    threads();
    many_of_threads();
    loader_words(context);
    OK(clReleaseContext(context));
}
