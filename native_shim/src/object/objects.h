/* Devices, contexts and command-queues as the data plane keeps them; memory/mem.h and kernel/kernel.h have
 * the other objects of the OpenCL API. */
#ifndef CLD_OBJECTS_H
#define CLD_OBJECTS_H

#include <pthread.h>

#include "object/call.h"
#include "object/object.h"

struct cld_event;  /* runtime/command.h */
struct cld_pool;   /* runtime/worker.h */
struct cld_worker; /* cluster/internal.h */

/* The threads of a device for commands of most queues, and those for queues of low priority. */
enum { CLD_FOREGROUND, CLD_BACKGROUND, CLD_POOLS };

struct cld_device {
    struct cld_object obj;     /* key: the Python peer that answers the queries */
    struct cld_device *parent; /* NULL for the root device, which is never freed */
    uint32_t compute_units;    /* threads that may execute a command of this device at once */
    uint32_t *cpus;            /* their CPU numbers, compute_units of them */
    uint64_t max_group_size;   /* CL_DEVICE_MAX_WORK_GROUP_SIZE */
    uint64_t max_item_sizes[3];
    uint64_t local_memory_size; /* CL_DEVICE_LOCAL_MEM_SIZE */
    uint64_t max_alloc_size;    /* CL_DEVICE_MAX_MEM_ALLOC_SIZE */
    uint32_t base_align;        /* CL_DEVICE_MEM_BASE_ADDR_ALIGN in bytes */
    _Atomic bool complete;      /* the five limits above are there (cld_device_complete, api/common.h) */
    _Atomic(struct cld_pool *) pools[CLD_POOLS]; /* runtime/worker.c's, made at first need */
    struct cld_worker *worker; /* that it is on another machine (cluster/); NULL: it is on this one */
    struct cld_device *local;  /* then this machine's */
};

struct cld_callback { /* destructor callbacks of contexts and memory objects, called in reverse order */
    void (*function)(void *handle, void *user_data);
    void *user_data;
    struct cld_callback *next;
};

struct cld_context {
    struct cld_object obj;
    uint32_t device_count;
    struct cld_device **devices;                 /* held */
    _Atomic(struct cld_queue *) *default_queues; /* of these; not held, but taken out when released */
    size_t property_count; /* words in properties with the final 0; 0 when created with NULL */
    cl_context_properties *properties;
    bool is_terminable;           /* CL_CONTEXT_TERMINATE_KHR */
    bool is_spread, is_elsewhere; /* some of its devices are on other machines; all of them are */
    _Atomic uint32_t terminated;  /* 1: by clTerminateContextKHR; kernels look at it */
    bool is_ending;               /* with the lock: clTerminateContextKHR has begun */
    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *);
    void *notify_data;
    struct cld_callback *destructors; /* runtime/callback.h */
    void *allocations;                /* a tree (tsearch) of what has an address, memory/allocations.c */
    struct cld_queue *queues;         /* those that live, in any order; under the context's lock */
    void (*print)(void *, const char *, size_t); /* what kernels print; NULL: to stdout */
    void *print_data;
};

/* "All other APIs that use a context as an argument will return CL_CONTEXT_TERMINATED_KHR." "All OpenCL API
 * calls that create objects or enqueue commands will return CL_CONTEXT_TERMINATED_KHR." */
#define CLD_REQUIRE_LIVE(context)                                                                            \
    CLD_REQUIRE(!atomic_load_explicit(&(context)->terminated, memory_order_relaxed),                         \
                CL_CONTEXT_TERMINATED_KHR, "the context was terminated")
#define CLD_REQUIRE_LIVE_OR_NULL(context)                                                                    \
    CLD_REQUIRE_OR_NULL(!atomic_load_explicit(&(context)->terminated, memory_order_relaxed),                 \
                        CL_CONTEXT_TERMINATED_KHR, "the context was terminated")

struct cld_queue {
    struct cld_object obj;
    struct cld_context *context; /* held */
    struct cld_device *device;   /* held */
    cl_command_queue_properties properties;
    /* What each enqueue looks at, in one line of the caches. */
    _Atomic bool is_terminated; /* with its context */
    _Atomic bool refuses;       /* hosts: it is on the device, or is terminated */
    uint8_t pool;               /* CLD_BACKGROUND where its priority is low */
    bool is_urgent;             /* its priority is high: its commands are begun before others of the pool */
    uint32_t threads;           /* that may work on one of its commands: few where its throttle is low */
    pthread_mutex_t lock;       /* what follows, down to barrier, but for last */
    _Atomic(struct cld_event *) last; /* in-order: the newest command, held, until it is complete */
    struct cld_event *unfinished;     /* out-of-order: every command that is not complete, newest first */
    struct cld_event *pending, *pending_end; /* commands that were not submitted yet, oldest first; held */
    uint32_t pending_count;
    uint64_t pending_time;     /* estimated duration of those in ns */
    struct cld_event *barrier; /* out-of-order: the newest barrier that is not complete */
    _Atomic uint32_t waiters;  /* threads of the host that wait for one of its commands */
    _Atomic uint32_t helpers;  /* of these, awake and looking for something to do (runtime/worker.c) */
    struct cld_queue *next, *previous; /* in the list of the context */
    size_t property_count;             /* as in cld_context, of clCreateCommandQueueWithProperties */
    cl_queue_properties *property_list;
    struct cld_device *local; /* whose threads execute what is done here: the device, or this machine's */
    uint64_t size;            /* of one on the device: bytes that what kernels have enqueued may take */
    _Atomic uint64_t used;    /* and that it takes */
    /* In order, of the device that is all workers: launches that were sent, oldest first (cluster/whole.c).
     */
    struct cld_parts *first_parts, *last_parts;
};

/* AArch64's lock is larger by the size of one of these members. */
_Static_assert(offsetof(struct cld_queue, is_terminated) / 64 == offsetof(struct cld_queue, last) / 64 &&
                   (sizeof(pthread_mutex_t) > 40 || offsetof(struct cld_queue, is_terminated) / 64 ==
                                                        offsetof(struct cld_queue, unfinished) / 64),
               "one line, as slots are aligned");

/* True if the device is one of the context's. */
static inline bool cld_context_has_device(const struct cld_context *context,
                                          const struct cld_device *device) {
    for (uint32_t i = 0; i < context->device_count; i++)
        if (context->devices[i] == device)
            return true;
    return false;
}

/* The queue on a device that kernels have as the default one, or NULL. */
static inline struct cld_queue *cld_context_default_queue(const struct cld_context *context,
                                                          const struct cld_device *device) {
    for (uint32_t i = 0; i < context->device_count; i++)
        if (context->devices[i] == device)
            return atomic_load_explicit(&context->default_queues[i], memory_order_acquire);
    return NULL;
}

#endif
