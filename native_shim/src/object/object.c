/* Reference counts, and the dead slots that a thread keeps. */
#include "object/object.h"

#include <string.h>

#include "base/thread.h"
#include "object/slots.h"

static void (*destroy_functions[CLD_KIND_END - CLD_PLATFORM])(void *object);
static void (*release_functions[CLD_KIND_END - CLD_PLATFORM])(void *object);

/* Dead slots that nobody gets yet (cld_object_hold_back). Threads then count a batch that they do not have,
 * and keep nothing that they free: so it costs nothing where it is off. */
enum { HELD_BACK = 1 << 14 };
static bool holds_back;
static _Atomic(struct dead *) held_back[HELD_BACK];
static _Atomic uint32_t next_held_back;

void cld_object_hold_back(void) {
    holds_back = true;
}

static __attribute__((noinline)) void hold_back(struct dead *dead) {
    uint32_t at = atomic_fetch_add_explicit(&next_held_back, 1, memory_order_relaxed) % HELD_BACK;
    dead = atomic_exchange_explicit(&held_back[at], dead, memory_order_acq_rel);
    if (!dead)
        return;
    dead->next = NULL;
    cld_slots_put(dead);
}

/* What a thread keeps: up to two batches, so that one that alternates between making and dropping an object
 * at a batch's edge does not go to the lock each time. A thread's end gives back what it has, as a batch that
 * may be short. */
static struct dead *slot_new(void) {
    struct cld_self *self = cld_self();
    struct dead *dead = self->dead;
    if (!dead) {
        dead = self->dead_spare;
        self->dead_spare = NULL;
        if (!dead && !(dead = cld_slots_take()))
            return NULL;
        self->dead_count = holds_back ? CLD_SLOT_BATCH : 0;
        for (struct dead *at = dead; at; at = at->next)
            self->dead_count++;
    }
    self->dead = dead->next;
    self->dead_count--;
    return dead;
}

static void slot_free(struct dead *dead) {
    struct cld_self *self = cld_self();
    if (self->dead_count >= CLD_SLOT_BATCH) {
        if (holds_back) {
            hold_back(dead);
            return;
        }
        if (self->dead_spare)
            cld_slots_put(self->dead_spare);
        self->dead_spare = self->dead;
        self->dead = NULL;
        self->dead_count = 0;
    }
    dead->next = self->dead;
    self->dead = dead;
    self->dead_count++;
}

static void end_thread(struct cld_self *self) {
    if (self->dead)
        cld_slots_put(self->dead);
    if (self->dead_spare)
        cld_slots_put(self->dead_spare);
    self->dead = self->dead_spare = NULL;
    self->dead_count = 0;
}

__attribute__((constructor)) static void register_slots(void) {
    cld_on_thread_end(end_thread);
}

void *cld_object_new_raw(int32_t refs) {
    struct dead *dead = slot_new();
    if (!dead)
        return NULL;
    struct cld_object *object = &dead->obj;
    object->key = 0;
    atomic_store_explicit(&object->refs, refs, memory_order_relaxed);
    atomic_store_explicit(&object->holds, 1 + (refs > 0), memory_order_relaxed);
    return object;
}

void cld_object_publish(void *object, enum cld_kind kind) {
    atomic_store_explicit(&((struct cld_object *)object)->tag, kind, memory_order_release);
}

void *cld_object_new_zeroed(void) {
    struct cld_object *object = cld_object_new_raw(1);
    if (!object)
        return NULL;
    memset(object + 1, 0, CLD_SLOT_SIZE - sizeof *object);
    /* No store: who looks at all slots may hold it for a moment. */
    atomic_fetch_sub_explicit(&object->holds, 1, memory_order_relaxed);
    return object;
}

void *cld_object_new(enum cld_kind kind) {
    struct cld_object *object = cld_object_new_zeroed();
    if (object)
        cld_object_publish(object, kind);
    return object;
}

void cld_object_drop(void *pointer) {
    struct cld_object *object = pointer;
    if (atomic_fetch_sub_explicit(&object->holds, 1, memory_order_acq_rel) != 1)
        return;
    uint32_t kind = atomic_load_explicit(&object->tag, memory_order_relaxed);
    atomic_store_explicit(&object->tag, CLD_DEAD, memory_order_relaxed);
    if (kind >= CLD_PLATFORM && kind < CLD_KIND_END && destroy_functions[kind - CLD_PLATFORM])
        destroy_functions[kind - CLD_PLATFORM](object);
    slot_free(pointer);
}

bool cld_object_try_hold(void *pointer) {
    struct cld_object *object = pointer;
    int32_t holds = atomic_load_explicit(&object->holds, memory_order_relaxed);
    while (holds > 0)
        if (atomic_compare_exchange_weak_explicit(&object->holds, &holds, holds + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    return false;
}

cl_int cld_object_retain(void *handle, enum cld_kind kind, cl_int invalid) {
    struct cld_object *object = cld_object_check(handle, kind);
    if (!object)
        return invalid;
    int32_t refs = atomic_load_explicit(&object->refs, memory_order_relaxed);
    for (;;) {
        if (refs > 0) {
            if (atomic_compare_exchange_weak_explicit(&object->refs, &refs, refs + 1, memory_order_relaxed,
                                                      memory_order_relaxed))
                return CL_SUCCESS;
            continue;
        }
        /* Only its children keep it: the references get a hold of their own again. */
        if (!cld_object_try_hold(object))
            return invalid;
        if (atomic_compare_exchange_strong_explicit(&object->refs, &refs, 1, memory_order_relaxed,
                                                    memory_order_relaxed))
            return CL_SUCCESS;
        cld_object_drop(object);
    }
}

cl_int cld_object_release(void *handle, enum cld_kind kind, cl_int invalid) {
    struct cld_object *object = cld_object_check(handle, kind);
    if (!object)
        return invalid;
    int32_t refs = atomic_load_explicit(&object->refs, memory_order_relaxed);
    do {
        if (refs <= 0)
            return invalid;
    } while (!atomic_compare_exchange_weak_explicit(&object->refs, &refs, refs - 1, memory_order_acq_rel,
                                                    memory_order_relaxed));
    if (refs == 1) {
        if (release_functions[kind - CLD_PLATFORM])
            release_functions[kind - CLD_PLATFORM](object);
        cld_object_drop(object);
    }
    return CL_SUCCESS;
}

void cld_object_on_destroy(enum cld_kind kind, void (*destroy)(void *object)) {
    destroy_functions[kind - CLD_PLATFORM] = destroy;
}

void cld_object_on_release(enum cld_kind kind, void (*release)(void *object)) {
    release_functions[kind - CLD_PLATFORM] = release;
}

void cld_object_each(enum cld_kind kind, void (*visit)(void *object)) {
    size_t used = atomic_load_explicit(&cld_slots_used, memory_order_acquire);
    for (size_t at = 0; at < used; at += CLD_SLOT_SIZE) {
        struct cld_object *object = (struct cld_object *)(cld_slots + at);
        if (atomic_load_explicit(&object->tag, memory_order_acquire) == (uint32_t)kind)
            visit(object);
    }
}

void cld_object_each_held(enum cld_kind kind, void (*visit)(void *object, void *argument), void *argument) {
    size_t used = atomic_load_explicit(&cld_slots_used, memory_order_acquire);
    for (size_t at = 0; at < used; at += CLD_SLOT_SIZE) {
        struct cld_object *object = (struct cld_object *)(cld_slots + at);
        if (atomic_load_explicit(&object->tag, memory_order_acquire) != (uint32_t)kind ||
            !cld_object_try_hold(object))
            continue;
        /* Once more: it may have been recycled. */
        if (atomic_load_explicit(&object->tag, memory_order_acquire) == (uint32_t)kind)
            visit(object, argument);
        cld_object_drop(object);
    }
}
