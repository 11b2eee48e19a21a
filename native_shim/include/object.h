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
#include <CL/cl_ext.h>

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
 * check of an arbitrary pointer never faults. */
enum { CLD_SLOT_SIZE = 512 };

/* NULL when out of memory. The object is zeroed but for the header; refs = holds = 1. */
void *cld_object_new(enum cld_kind kind);

/* The live object of that kind behind a handle, or NULL. Never dereferences what is not a slot. */
void *cld_object_check(const void *handle, enum cld_kind kind);

/* Internal references: parents of live children, objects that queued commands use. */
void cld_object_hold(void *object);
void cld_object_drop(void *object); /* the last drop runs the kind's destructor and recycles the slot */

/* clRetain* and clRelease*: cld_object_release drops the hold of the API references with the last one. */
cl_int cld_object_retain(void *object, enum cld_kind kind, cl_int invalid);
cl_int cld_object_release(void *object, enum cld_kind kind, cl_int invalid);

/* Each kind registers what to do when its last hold goes; called once, from a constructor function. */
void cld_object_on_destroy(enum cld_kind kind, void (*destroy)(void *object));

/* cl_khr_icd 2.0: the loader's word is copied into every object, living and future. */
void cld_object_set_dispatch_data(void *data);

#endif
