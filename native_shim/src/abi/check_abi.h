/* What kernels that are compiled with checks hand to check/: cl_driver/codegen/layout/check_abi.py is the
 * same in Python, and a test compares the two. */
#ifndef CLD_CHECK_ABI_H
#define CLD_CHECK_ABI_H

#include <stdint.h>

enum cld_kcheck_kind {
    CLD_CHECK_LOAD,
    CLD_CHECK_STORE,
    CLD_CHECK_ATOMIC,
    CLD_CHECK_BARRIER,
    CLD_CHECK_FENCE,
    CLD_CHECK_SHIFT, /* operations that may have no result; size: bytes of an element */
    CLD_CHECK_DIVIDE,
    CLD_CHECK_REMAINDER,
    CLD_CHECK_CONVERT, /* floating point to an integer */
    CLD_CHECK_WAIT,    /* for copies of the group */
};

enum cld_kcheck_flags {
    CLD_CHECK_SPACE = 7,            /* enum cld_kcheck_space */
    CLD_CHECK_OF_ARGUMENT = 1 << 3, /* points into what an argument points to */
    CLD_CHECK_OF_VARIABLE = 1 << 4, /* or into a variable: offset and bytes say where it is */
    CLD_CHECK_ACQUIRE = 1 << 5,
    CLD_CHECK_RELEASE = 1 << 6,
    CLD_CHECK_HAS_VALUE = 1 << 7, /* a store hands over what it stores, or the address of more than 8 bytes */
    CLD_CHECK_ANY_CONTENT = 1 << 8, /* a load of what need not have been written */
    CLD_CHECK_ORDERS_LOCAL = 1 << 9,
    CLD_CHECK_ORDERS_GLOBAL = 1 << 10,
    CLD_CHECK_NO_READ = 1 << 11, /* atomics that store alone, or load alone */
    CLD_CHECK_NO_WRITE = 1 << 12,
    CLD_CHECK_SIGNED = 1 << 13, /* the result of an operation */
};

enum cld_kcheck_space {
    CLD_CHECK_GLOBAL,
    CLD_CHECK_LOCAL,
    CLD_CHECK_PRIVATE,
    CLD_CHECK_CONSTANT,
    CLD_CHECK_GENERIC,
};

/* Of an access to a pixel, site->bytes: the number of dimensions, and these. */
enum cld_kcheck_pixel {
    CLD_CHECK_LAYERS = 1 << 8,
    CLD_CHECK_SAMPLED = 1 << 9,
    CLD_CHECK_LEVEL = 1 << 10,   /* says which level */
    CLD_CHECK_PLACES = 1 << 11,  /* coordinates of floating point */
    CLD_CHECK_NUMBERS = 1 << 12, /* pixels of floating point */
};

/* A place in the source that accesses memory, or waits. */
struct cld_kcheck_site {
    uint32_t index;
    uint32_t line, column; /* 0: not known */
    uint32_t size;         /* bytes of the access */
    uint16_t kind;
    uint16_t flags;
    uint16_t argument; /* its number, where the address comes from one */
    uint16_t alignment;
    uint32_t offset; /* of a variable: from the start of local memory, or of the program's variables */
    uint32_t bytes;  /* its size */
    uint32_t file;   /* offsets of strings from the table's start; 0: none */
    uint32_t name;   /* of the argument or variable */
};

struct cld_kcheck_sites {
    uint32_t count;
    uint32_t unused;
    struct cld_kcheck_site sites[];
};

/* Of the event of a copy: cld_kcheck_copy. */
#define CLD_CHECK_UNNAMED (UINT64_C(1) << 63)

/* One per thread that executes a kernel with checks. Generated code knows the first word only. */
struct cld_kcheck_thread;

/* Functions that such kernels call:
 *   void cld_kcheck_group(struct cld_kcheck_thread *thread, const struct cld_kcheck_sites *sites, uint64_t x,
 *                        uint64_t y, uint64_t z);  a group begins
 *   void cld_kcheck_region(struct cld_kcheck_thread *thread);  its work-items have come past a barrier
 *   void cld_kcheck_barrier(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site);
 *                        a work-item has come to a barrier
 *   void cld_kcheck_fence(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site);
 *   uint8_t *cld_kcheck_access(struct cld_kcheck_thread *thread, uint8_t *address,
 *                             const struct cld_kcheck_site *site, uint64_t value);
 *                        gives the address that is to be accessed: the same, or one of no consequence
 *   uint8_t *cld_kcheck_range(struct cld_kcheck_thread *thread, uint8_t *address,
 *                            const struct cld_kcheck_site *site, uint64_t size);  the same of so many bytes
 *   uint8_t *cld_kcheck_outside(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site,
 *                              int64_t offset);  an access beyond a variable, by so many bytes from its start
 *   void cld_kcheck_unwritten(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site,
 *                            int64_t offset, uint64_t size);
 *                        a load from a private variable that nobody has written to
 *   void cld_kcheck_index(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site,
 *                        int64_t index);
 *                        an index of an array of site->bytes elements that is out of its bounds
 *   uint64_t cld_kcheck_copy(struct cld_kcheck_thread *thread, uint8_t *target, uint8_t *source,
 *                           uint64_t count, uint64_t stride, uint64_t event,
 *                           const struct cld_kcheck_site *site);
 *                        a work-item has come to a copy that the group makes, whose two sites these are: of
 *                        elements of site->size bytes, in global memory at a stride. Gives the count, or 0
 *                        where the copy is not to be made. event: that it is to go with, 0 for a new one;
 *                        with the highest bit if nobody asks for the copy's own
 *   uint64_t cld_kcheck_event(struct cld_kcheck_thread *thread);  that of the last copy, never 0
 *   void cld_kcheck_wait(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site,
 *                       uint64_t count, const uint64_t *events);  a work-item waits for such copies
 *   void cld_kcheck_unknown(struct cld_kcheck_thread *thread, uint8_t *address);
 *                        what nobody looks at may write there
 *   void cld_kcheck_operation(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site,
 *                            uint64_t a, uint64_t b);
 *                        an operation has no result; of a conversion a is the value, as a double
 *   uint8_t *cld_kcheck_fault(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site);
 *                        an atomic on memory that may have none, or a write to constant memory; gives an
 *                        address of no consequence
 *   void cld_kcheck_image(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site,
 *                        const struct cld_image_desc *image, double x, double y, double z,
 *                        uint64_t more);
 *                        a pixel is read or written; more: the sampler, or else the level */

#endif
