/* Handles: what every OpenCL object starts with, how it is validated, counted and recycled. */
#ifndef CLD_OBJECT_H
#define CLD_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl.h>

#include "object/command_buffer_khr.h"

#ifndef cl_ext_buffer_device_address /* headers before 2025 */
#define CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT 0x5000
#define CL_MEM_DEVICE_ADDRESS_EXT 0x5001
#define CL_KERNEL_EXEC_INFO_DEVICE_PTRS_EXT 0x5002
typedef cl_ulong cl_mem_device_address_ext;
#endif

#ifndef CL_DEPTH_STENCIL /* which headers since 2024 have with OpenGL's */
#define CL_DEPTH_STENCIL 0x10BE
#define CL_UNORM_INT24 0x10DF
#endif

/* The tag of a live handle of each kind; a recycled slot has tag 0. */
enum cld_kind {
    CLD_DEAD = 0,
    CLD_PLATFORM = 0x434c4401,
    CLD_DEVICE,
    CLD_CONTEXT,
    CLD_QUEUE,
    CLD_MEM,
    CLD_SAMPLER,
    CLD_PROGRAM,
    CLD_KERNEL,
    CLD_EVENT,
    CLD_COMMAND_BUFFER,
    CLD_MUTABLE_COMMAND,
    CLD_SEMAPHORE,
    CLD_KIND_END,
};

/* First member of every handle. The first two words belong to ICD loaders (cl_khr_icd 1.0 and 2.0). */
struct cld_object {
    const void *dispatch;
    void *dispatch_data;
    _Atomic uint32_t tag;
    _Atomic int32_t refs;  /* what clRetain/clRelease count and CL_*_REFERENCE_COUNT reports */
    _Atomic int32_t holds; /* 1 while refs > 0, plus 1 per child or command that needs this object */
    uint64_t key;          /* of the Python peer, 0 if there is none */
};

/* All objects live in fixed-size slots of one reserved address range which is never unmapped, so that the
 * check of an arbitrary pointer never faults. A multiple of 128: slots are 128-byte aligned. */
enum { CLD_SLOT_SIZE = 768 };

/* NULL when out of memory. The object is zeroed but for the header; refs = holds = 1. */
void *cld_object_new(enum cld_kind kind);

/* The same for kinds that others look for among all objects (cld_object_each_held): it counts as live once it
 * is published, when its members are set. */
void *cld_object_new_zeroed(void);

/* The same, with nothing but the header set, for kinds that set every member themselves. refs is a parameter,
 * because commands whose event nobody asked for have none; holds = 1 + (refs > 0). The object counts as live
 * only when cld_object_publish has been called. */
void *cld_object_new_raw(int32_t refs);
void cld_object_publish(void *object, enum cld_kind kind);

extern _Atomic(uint8_t *) cld_slots;  /* the range */
extern _Atomic size_t cld_slots_used; /* bytes of it that are readable; published after the range */

/* The live object of that kind behind a handle, or NULL. Never dereferences what is not a slot. */
static inline void *cld_object_check(const void *handle, enum cld_kind kind) {
    size_t used = atomic_load_explicit(&cld_slots_used, memory_order_acquire);
    uint8_t *slots = atomic_load_explicit(&cld_slots, memory_order_relaxed);
    size_t offset = (size_t)((uintptr_t)handle - (uintptr_t)slots);
    if (offset >= used || offset % CLD_SLOT_SIZE)
        return NULL;
    struct cld_object *object = (struct cld_object *)(slots + offset);
    if (!object) /* callers need not look for NULL once more where the tag is right */
        __builtin_unreachable();
    return atomic_load_explicit(&object->tag, memory_order_acquire) == (uint32_t)kind ? object : NULL;
}

/* Internal references: parents of live children, objects that queued commands use. */
static inline void cld_object_hold(void *object) {
    atomic_fetch_add_explicit(&((struct cld_object *)object)->holds, 1, memory_order_relaxed);
}
void cld_object_drop(void *object); /* the last drop runs the kind's destructor and recycles the slot */

/* A hold on what may be dead or recycled by now: false if it is dead. The caller checks what it got. */
bool cld_object_try_hold(void *object);

/* clRetain* and clRelease*: cld_object_release drops the hold of the API references with the last one.
 * An object that lives on because of its children may be retained again by the handle that a query gave. */
cl_int cld_object_retain(void *object, enum cld_kind kind, cl_int invalid);
cl_int cld_object_release(void *object, enum cld_kind kind, cl_int invalid);

/* What CL_*_REFERENCE_COUNT reports. */
static inline cl_uint cld_object_refs(const void *object) {
    return (cl_uint)atomic_load_explicit(&((const struct cld_object *)object)->refs, memory_order_relaxed);
}

/* Each kind registers what to do when its last hold goes; called once, from a constructor function. The
 * destructor frees what the object owns and drops what it holds; the slot itself is recycled afterwards.
 * It may run on any thread, and at any time up to the end of the process. */
void cld_object_on_destroy(enum cld_kind kind, void (*destroy)(void *object));

/* Registers what to do when the last API reference goes, before the hold of the references is dropped. */
void cld_object_on_release(enum cld_kind kind, void (*release)(void *object));

/* What every handle starts with: the table of entry points. To be called by a constructor. */
void cld_object_set_dispatch(const void *table);

/* cl_khr_icd 2.0: the loader's word is copied into every object, living and future. */
void cld_object_set_dispatch_data(void *data);

/* What fork() calls around itself once there is an object. To be called by a constructor. */
void cld_object_around_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

/* The lock of the slots, which is taken around a fork. */
void cld_slots_fork_prepare(void);
void cld_slots_fork_done(void);

/* From now on slots are not used again before many others have died, so that a handle that was released stays
 * one. To be called by a constructor. */
void cld_object_hold_back(void);

/* Calls visit for every live object of that kind. Only where nothing is created or destroyed meanwhile. */
void cld_object_each(enum cld_kind kind, void (*visit)(void *object));

/* The same at any time, each object held meanwhile. Those that are created meanwhile may be left out. */
void cld_object_each_held(enum cld_kind kind, void (*visit)(void *object, void *argument), void *argument);

#endif
