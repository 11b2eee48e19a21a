/* Programs and kernels as the data plane keeps them. */
#ifndef CLD_KERNEL_H
#define CLD_KERNEL_H

#include "abi/kernel_abi.h"
#include "kernel/prefetch_trial.h"
#include "object/objects.h"
#include "schedule/alone.h"

struct cld_code;             /* loader/load.h: a mapped object file */
struct cld_known;            /* cluster/internal.h */
struct cld_mem;              /* memory/mem.h */
struct cld_variant;          /* kernel/variant.h */
struct cld_works;            /* cluster/worth.h */
struct cld_program_variable; /* kernel/program_symbols.h */
struct cld_program_function; /* the same */

/* The executable of a built program: mapped code, program-scope variables. Shared by its kernels. */
struct cld_executable {
    _Atomic int32_t holds;
    _Atomic uint32_t code_count; /* of what is there: it grows, with the program's lock held */
    uint32_t code_room;
    struct cld_code **code;
    uint32_t name_count;
    char **names;                    /* CL_PROGRAM_KERNEL_NAMES, and of blocks that they enqueue */
    uint32_t block_count;            /* of the names: the last ones */
    struct cld_kernel_info **blocks; /* what there is of them, held */
    uint8_t *globals;                /* program-scope variables, initialised */
    uint8_t *globals_memory;         /* what they lie in: malloced */
    size_t globals_size;
    uint32_t variable_count; /* of those that hosts may ask for */
    struct cld_program_variable *variables;
    uint32_t function_count; /* likewise */
    struct cld_program_function *functions;
    uint32_t number;    /* among those of its program */
    void *options, *il; /* what a control plane that has lost the program makes more code of, or NULL */
    size_t options_size, il_size;
    struct cld_known *known; /* cluster/launch.c: who has it on other machines; NULL: nobody */
};

/* What a build of a program is to the data plane. Devices that were built in one call share theirs. */
struct cld_program_build {
    struct cld_executable *executable; /* held */
    struct cld_kernel_info **infos;    /* for each of its names, held; NULL: not compiled yet */
};

struct cld_program {
    struct cld_object obj;       /* key: the Python peer: source, IL, build state, logs, binaries */
    struct cld_context *context; /* held */
    uint32_t build_count;        /* loaded by the first clCreateKernel after a build; 0 before */
    struct cld_program_build *builds;
    int32_t *build_of;             /* of each of devices: an index, or -1 if it has no executable */
    uint64_t generation;           /* of builds: what was loaded before the last one began is stale */
    _Atomic uint32_t kernel_count; /* attached kernel objects: they forbid a rebuild */
    uint32_t device_count;
    struct cld_device **devices; /* CL_PROGRAM_DEVICES, each held */
};

enum cld_arg_kind {
    CLD_ARG_VALUE,  /* size bytes by value */
    CLD_ARG_GLOBAL, /* cl_mem or NULL or SVM pointer; constant too */
    CLD_ARG_LOCAL,  /* the block holds the byte offset into local memory (uint64) */
    CLD_ARG_SAMPLER,
    CLD_ARG_IMAGE,
    CLD_ARG_PIPE,
    CLD_ARG_QUEUE,
};

struct cld_arg_info {
    uint8_t kind;      /* enum cld_arg_kind */
    uint8_t constant;  /* address space qualifier is __constant */
    uint8_t access;    /* of images: enum cld_access */
    uint8_t depth;     /* of images: declared as one of depth */
    uint8_t written;   /* the kernel certainly writes to the buffer that it points to */
    uint8_t only_read; /* it certainly does not */
    uint32_t size;     /* what clSetKernelArg must be given: sizeof(cl_mem) for objects */
    uint32_t align;    /* of the value; of the pointee for local arguments */
    uint32_t offset;   /* in the argument block */
    cl_mem_object_type image_type;
};

enum cld_access { CLD_READ_ONLY = 1, CLD_WRITE_ONLY, CLD_READ_WRITE };

/* Arguments of a kernel that code may be made for the values of. */
enum { CLD_MOST_SPECIALISABLE = 8 };

enum cld_kernel_flags {
    /* Compiled for OpenCL C before 2.0 or with -cl-uniform-work-group-size: every work-group is full. */
    CLD_KERNEL_UNIFORM_GROUPS = 1,
    /* `entry` takes `width` work-items of dimension 0 at a time. */
    CLD_KERNEL_WIDE = 2,
    /* It can tell sub-groups apart, which are consecutive in the linear local id. `entry` is for rows that
     * consist of whole sub-groups. */
    CLD_KERNEL_SUB_GROUPS = 4,
    /* No work-item can tell how they are divided into groups. */
    CLD_KERNEL_FREE_GROUPS = 8,
    /* There are variants (kernel/variant.h) of the shapes ITEMS, REST and TILES: without NARROW and REST
     * `entry` is for all launches, with NARROW for those with global ids and sizes below 2^30 at most. Where
     * work-items can tell their groups, what REST says is for the shapes ANY and SHORT. */
    CLD_KERNEL_NARROW = 16,
    CLD_KERNEL_REST = 32,
    CLD_KERNEL_TILED = 64,
    /* The tiled code is so much faster that the first launch waits for it. */
    CLD_KERNEL_TILES_FIRST = 128,
    /* Hot code of the shape ANY is faster than `entry`, for all launches that this suits but those with
     * large ids. */
    CLD_KERNEL_HAS_MORE = 256,
    /* It fetches what it is about to read, if the launch says that it should (cld_launch.ahead_kib). */
    CLD_KERNEL_READS_AHEAD = 512,
    /* There may be code of the shape LINEAR. */
    CLD_KERNEL_HAS_LINEAR = 1024,
    /* Along dimension 0, 1, 2 one work-item of a group does it for all. */
    CLD_KERNEL_ONCE_ALONG = 2048, /* 4096, 8192 */
    /* NARROW code is also for launches whose offset in dimension 0 is no multiple of any width. */
    CLD_KERNEL_ALIGNED_GROUPS = 16384,
    /* The code of the shape ITEMS may be faster than all other: it depends on the data. */
    CLD_KERNEL_TRIES_ITEMS = 32768,
    /* Its code, but for that of the shape PLAIN, has dimensions 0 and 1 exchanged, and so must have launches.
     * Work-items cannot tell. */
    CLD_KERNEL_EXCHANGED = 65536,
    /* It writes or reads pipes, so that it may wait for another kernel. */
    CLD_KERNEL_PIPES = 131072,
    /* Local memory is zeros when a group begins. */
    CLD_KERNEL_ZEROES_LOCAL = 262144,
    /* It ends when its context is terminated. */
    CLD_KERNEL_TERMINABLE = 524288,
    /* It may enqueue blocks, or use their events. */
    CLD_KERNEL_ENQUEUES = 1048576,
    /* It is a block that kernels enqueue: the executable has it, and it does not hold the executable. */
    CLD_KERNEL_BLOCK = 2097152,
    /* Its sub-groups may wait for one another: each has a stack of its own. */
    CLD_KERNEL_TAKES_TURNS = 4194304,
};

/* What the data plane knows of one compiled kernel; immutable, shared by clones and by all cl_kernel of one
 * kernel function. */
struct cld_kernel_info {
    _Atomic int32_t holds;
    struct cld_executable *executable; /* held */
    char *name;
    cld_kernel_fn entry; /* NULL: each launch runs a variant */
    uint32_t arg_count;
    struct cld_arg_info *args;
    uint32_t block_size;    /* of the argument block */
    uint64_t local_static;  /* bytes of kernel-scope local variables */
    uint64_t scratch_fixed; /* bytes, see struct cld_thread */
    uint64_t scratch_per_item;
    uint64_t reqd_local_size[3];  /* zeros when the kernel has no reqd_work_group_size */
    uint64_t max_local_size[3];   /* zeros when the kernel has no largest size of each dimension */
    uint64_t max_group_size;      /* CL_KERNEL_WORK_GROUP_SIZE */
    uint64_t sub_group_size;      /* work-items per sub-group */
    uint64_t reqd_sub_group_size; /* as the source requires, or 0 */
    uint64_t reqd_sub_groups;     /* per work-group, likewise */
    uint32_t width;               /* work-items per vector, the preferred multiple */
    uint32_t tile_width;  /* work-items of a row that the tiled code, or else entry, takes at a time */
    uint32_t tile_height; /* rows, likewise */
    uint32_t repeated_dimensions; /* so many of the last ones: along them all groups do the same */
    uint32_t uses_printf;
    uint32_t
        counted; /* 1 + the argument of which threads may have copies (launch/privatised_histogram.h), or 0 */
    uint32_t counted_size;          /* bytes of its elements */
    _Atomic int32_t combining_rest; /* launches until sums are gathered in tables again, which did not pay */
    uint64_t flags;                 /* enum cld_kernel_flags */
    uint64_t apart; /* bits: arguments whose buffers no other argument's may overlap, but for code that
                     * assumes        nothing of them (cl_driver/passes/loops/promote_memory.py) */
    uint64_t most_group_items; /* of groups that there may be code for by their size, or 0 */
    _Atomic(struct cld_variant *) variants;
    uint32_t specialisable_count; /* of arguments that there may be code for the values of */
    uint32_t specialisable_args[CLD_MOST_SPECIALISABLE]; /* their numbers: images, samplers, small integers */
    uint32_t block_count;
    uint32_t *blocks; /* malloced: the numbers of those that it, or what it enqueues, enqueues */
    struct cld_specialisation_history
        *history;                    /* kernel/argument_specialisation.h; NULL without such arguments */
    _Atomic uint64_t busy_time;      /* ns that launches of such kernels were estimated to take, in all */
    _Atomic uint64_t item_time;      /* running estimate of ns per work-item, times 1024; 0 is unknown */
    struct cld_prefetch_trial ahead; /* whether it pays to do so, for READS_AHEAD */
    _Atomic uint32_t launches;       /* counts the short ones, of which only some are timed */
    struct cld_alone alone;          /* whether one thread executes them sooner than several */
    struct cld_works *works;         /* malloced: the same of workers of a cluster, or NULL */
    uint32_t account_count;          /* numbers of `account`, or 0 */
    int64_t *account;      /* malloced: bytes and operations of launches, for profiles (profile/traffic.h) */
    uint32_t extent_count; /* numbers of `extents`, or 0 */
    int64_t *extents; /* malloced: what work-groups read and write, to cut launches (cluster/extents.h) */
};

struct cld_kernel {
    struct cld_object obj;          /* key: the Python peer: argument names and types, work-group info */
    struct cld_program *program;    /* held */
    struct cld_kernel_info *info;   /* held; of the first device that has it */
    struct cld_kernel_info **infos; /* for each of the program's devices, held, or NULL; no list at all where
                                     * info is for every device of the context */
    uint8_t *block;                 /* argument values; local arguments hold their SIZE here until launch */
    struct cld_mem *
        *mems; /* per argument, NOT held (the specification: the caller's duty) but checked at enqueue */
    uint8_t *is_set;      /* per argument */
    bool svm_fine_system; /* CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM */
};

/* The kernel's code for a device; NULL if the program has no executable for it. "If a program binary has not
 * been built for a sub-device, the program binary associated with the parent device will be used." */
static inline struct cld_kernel_info *cld_kernel_info_for(const struct cld_kernel *kernel,
                                                          const struct cld_device *device) {
    if (!kernel->infos)
        return kernel->info;
    for (; device; device = device->parent)
        for (uint32_t i = 0; i < kernel->program->device_count; i++)
            if (kernel->program->devices[i] == device && kernel->infos[i])
                return kernel->infos[i];
    return NULL;
}

#endif
