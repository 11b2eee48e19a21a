/* What compiled kernels see. cl_driver/codegen/layout/abi.py holds the same layouts; a test compares the
 * two. */
#ifndef CLD_KERNEL_ABI_H
#define CLD_KERNEL_ABI_H

#include <stdint.h>

/* One per NDRange command, constant while it runs. Unused dimensions hold size 1, offset 0. */
struct cld_launch {
    uint16_t work_dim;
    uint16_t ahead_kib;    /* of reads of so many KiB the next ones are fetched ahead; 0: never */
    uint32_t stream_bytes; /* output of so many bytes is stored past the caches; 0: never */
    uint64_t global_size[3];
    uint64_t global_offset[3];
    uint64_t local_size[3]; /* enqueued; groups at the upper edges may be smaller (non-uniform work-groups) */
    uint64_t num_groups[3];
    void *globals;       /* the program's program-scope variables; NULL if it has none */
    void *printf_buffer; /* opaque; handed to cld_printf */
};

/* One per thread that executes work-groups. */
struct cld_thread {
    uint8_t *local_memory; /* 128-byte aligned; kernel-scope variables first, then local arguments */
    uint8_t *scratch;      /* 128-byte aligned; scratch_fixed + scratch_per_item * items of a full group */
    uint64_t local_memory_size; /* bytes of it that this launch uses: tells generic pointers apart */
    uint8_t *counts;            /* where the kernel adds in place of what an argument points to
                                   (launch/privatised_histogram.h); or a cld_combining_table */
    uint64_t counted;           /* 1 + the number of that argument; 0: none */
    uint64_t combined;          /* the same where counts is a table in which sums are gathered */
    void *check;                /* struct cld_check_thread, of kernels with checks (check_abi.h) */
};

/* Sums that have not come to memory yet (cl_driver/codegen/atomic/combining_table.py). No address: no entry;
 * a sum has the size of the words that it is added to. */
enum { CLD_COMBINING_ENTRIES = 1024, CLD_SPARE_ENTRIES = 16 };
struct cld_combining_table {
    struct {
        void *address;
        uint64_t sum;
    } entries[CLD_COMBINING_ENTRIES], spare[CLD_SPARE_ENTRIES]; /* no address: lanes that add nothing */
    uint64_t evictions;                                         /* entries that another address took over */
};

/* OpBuildNDRange (SPIR-V), ndrange_t (OpenCL C): builtins/cl/ndrange.cl makes them. */
struct cld_ndrange {
    uint32_t dimensions;
    uint64_t offset[3], size[3], local[3]; /* local: zeros where it is the driver's to choose */
};

/* Runs the groups [first, last) in linear order: x fastest. args is the packed argument block. */
typedef void (*cld_kernel_fn)(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                              uint64_t first, uint64_t last);

/* Of kernels whose sub-groups may wait for one another: each sub-group runs on a stack of its own. */
struct cld_sub_groups_layout {
    uint64_t size;       /* work-items of a sub-group */
    uint64_t stack_size; /* bytes of each stack */
};

/* Runs a sub-group of one group, from beginning to end. */
struct cld_sub_group;
typedef void (*cld_sub_group_fn)(const struct cld_launch *launch, const uint8_t *args,
                                 struct cld_thread *thread, uint64_t group, uint64_t end,
                                 struct cld_sub_group *self, uint64_t index);

/* As OpNamedBarrierInitialize makes them: the number of the instruction, and of the sub-groups that wait. */
enum { CLD_NAMED_BARRIERS = 64, CLD_NAMED_BARRIER_SHIFT = 8 };

/* Symbols that kernel code may call; the code loader knows these names and no others:
 * memcpy memmove memset, the functions of code_symbols.def, and
 *   int32_t cld_printf(void *printf_buffer, const char *format, const uint8_t *args, uint32_t args_size);
 *   int32_t cld_assert_fail(void *printf_buffer, const char *expression, const uint8_t *args,
 *                           uint32_t args_size);
 *   void cld_yield(void);  found nothing to do, and may ask again at once
 *   void cld_sub_groups_run(cld_sub_group_fn run, const struct cld_sub_groups_layout *layout,
 *                           const struct cld_launch *launch, const uint8_t *args,
 *                           struct cld_thread *thread, uint64_t first, uint64_t last);
 *                           the groups [first, last)
 *   void cld_sub_group_yield(struct cld_sub_group *self);  lets the group's other sub-groups go on
 *   int32_t cld_sub_group_join(struct cld_sub_group *self, int32_t next);
 *                           waits until all have come here; gives the greatest `next`
 *   void cld_sub_group_meet(struct cld_sub_group *self, uint32_t barrier);  waits at a named barrier
 *   those of launch/device_enqueue.h
 * args: each argument in order of the call, at the next multiple of 8 bytes: one tag word
 * (uint32 element size in bytes | uint32 element count << 8 | kind << 16; kind 0 integer, 1 float, 2 pointer
 * or string), 4 bytes of padding, then the elements, tightly packed (a 3-vector has 3). Those of
 * cld_assert_fail, which does not return: file, line, function, global id (3), local id (3). */

#endif
