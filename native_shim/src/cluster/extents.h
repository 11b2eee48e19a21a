/* Which bytes of its arguments a part of a launch reads and writes, as the compiler has said
 * (cl_driver/passes/extents/extents.py). */
#ifndef CLD_EXTENTS_H
#define CLD_EXTENTS_H

#include "abi/image_abi.h"
#include "runtime/command.h"

enum { CLD_EXTENT_READS = 1, CLD_EXTENT_WRITES = 2, CLD_EXTENT_COMBINES = 4 };

/* How atomics combine a number with what is there (COMBINED in extents.py). */
enum cld_combination {
    CLD_COMBINE_ADD,
    CLD_COMBINE_AND,
    CLD_COMBINE_OR,
    CLD_COMBINE_XOR,
    CLD_COMBINE_SMIN,
    CLD_COMBINE_SMAX,
    CLD_COMBINE_UMIN,
    CLD_COMBINE_UMAX,
    CLD_COMBINATIONS,
};

/* The memory object that an argument is, if it is one. */
struct cld_extent_memory {
    size_t size;                        /* bytes; 0: it is none */
    const struct cld_image_desc *image; /* of an image of which each pixel has bytes of its own, or NULL */
};

struct cld_bytes_range {
    size_t begin, end; /* of an argument; begin == end: none */
};

struct cld_argument_extent {
    struct cld_bytes_range read, written, combined;
    int64_t combination; /* of all that is combined: enum cld_combination, and 16 * bytes of a number */
    bool is_mixed;       /* it is combined in several ways */
};

/* Of a launch with sizes and arguments, whose kernel has extents. memories, extents: of each argument. False:
 * the numbers make no sense, or not for these images. */
bool cld_extents_of(const struct cld_event *launch, const struct cld_group_range *groups,
                    const struct cld_extent_memory *memories, struct cld_argument_extent *extents);

#endif
