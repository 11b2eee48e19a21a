/* Memory objects and samplers as the data plane keeps them. */
#ifndef CLD_MEM_H
#define CLD_MEM_H

#include "object/objects.h"

struct cld_copies; /* cluster/copies.c */
struct cld_image;  /* memory/image.h */
struct cld_map;    /* enqueue/map.c */

/* cl_ext_immutable_memory_objects: a flag of buffers and images, which headers of 2023 lack. */
#define CLD_MEM_IMMUTABLE ((cl_mem_flags)1 << 6)

struct cld_mem {
    struct cld_object obj;
    struct cld_context *context; /* held */
    cl_mem_object_type type;
    cl_mem_flags flags; /* effective ones: inherited and defaulted */
    size_t size;
    uint8_t *data;  /* where the bytes are; inside the parent's for sub-buffers */
    void *host_ptr; /* as given with CL_MEM_USE_HOST_PTR */
    bool owns_data;
    bool is_external;       /* mapped from a descriptor (memory/mem_properties.h) */
    bool svm;               /* host_ptr lies in an SVM allocation */
    bool has_address;       /* CL_MEM_DEVICE_ADDRESS_EXT may be asked for */
    struct cld_mem *parent; /* held, sub-buffers */
    size_t offset;
    _Atomic uint32_t map_count;
    size_t first_device; /* among the properties: external memory is for those alone; 0: for all */
    size_t property_count;
    cl_mem_properties *properties;
    struct cld_callback *destructors; /* runtime/callback.h */
    struct cld_map *maps;             /* what clEnqueueMap* gave out, enqueue/map.c */
    struct cld_image *image;          /* memory/image.h; NULL for buffers and pipes */
    struct cld_copies *copies;        /* on other machines; NULL: no device there has wanted it */
};

struct cld_sampler {
    struct cld_object obj;
    struct cld_context *context; /* held */
    cl_bool normalized;
    cl_addressing_mode addressing;
    cl_filter_mode filter, mip_filter;
    cl_float lod_min, lod_max;
    uint64_t word; /* what kernels get, abi/image_abi.h */
    size_t property_count;
    cl_sampler_properties *properties;
};

#endif
