/* The memory that a program has of a context by address: shared virtual memory (API specification, 5.6) and
 * unified shared memory (cl_intel_unified_shared_memory). The device is the host's CPU, so all of it is the
 * same memory; the table tells what was asked for. */
#ifndef CLD_ALLOCATIONS_H
#define CLD_ALLOCATIONS_H

#include "object/objects.h"
#include "object/svm_khr.h"

enum cld_allocation_kind {
    CLD_ALLOCATED_SHARED,
    CLD_ALLOCATED_HOST,
    CLD_ALLOCATED_DEVICE,
    CLD_ALLOCATED_SYSTEM
};

enum {
    CLD_ALLOCATION_ALIGN = 128,       /* of long16, the largest data type: the most that may be asked for */
    CLD_ALLOCATION_PROPERTY_WORDS = 7 /* of a list with each of cl_khr_unified_svm's properties, and its 0 */
};

struct cld_allocation {
    const uint8_t *start;
    size_t size;
    enum cld_allocation_kind kind;
    bool is_svm;                    /* by a function of shared virtual memory */
    struct cld_device *device;      /* the associated one, held; NULL if there is none */
    cl_mem_alloc_flags_intel flags; /* CL_MEM_ALLOC_FLAGS_INTEL as given */
    cld_svm_access_flags access;    /* CL_SVM_ALLOC_ACCESS_FLAGS_KHR as given */
    uint32_t property_words;        /* of the list of properties with its 0; 0: NULL was given */
    cld_svm_alloc_property properties[CLD_ALLOCATION_PROPERTY_WORDS];
};

/* Allocates what `wanted` tells but for its start, which is the result. NULL: no memory. */
void *cld_allocation_new(struct cld_context *context, const struct cld_allocation *wanted);

/* The allocation that a pointer lies in, in O(log n); false if in none. */
bool cld_allocation_find(struct cld_context *context, const void *pointer, struct cld_allocation *found);

/* Frees the allocation that begins at a pointer, if it is one of shared virtual memory (is_svm) or of unified
 * shared memory; false if there is none. */
bool cld_allocation_free(struct cld_context *context, const void *start, bool is_svm);

/* The context's destructor calls it: frees what the application has not. */
void cld_allocations_free_all(struct cld_context *context);

#endif
