/* Images: what struct cld_mem has besides, and the limits that the device reports of them. */
#ifndef CLD_IMAGE_H
#define CLD_IMAGE_H

#include "abi/image_abi.h"
#include "memory/image_format.h"
#include "memory/mem.h"

/* The same numbers are in cl_driver/device/limits.py. */
enum cld_image_limits {
    CLD_IMAGE2D_MOST = 16384,        /* CL_DEVICE_IMAGE2D_MAX_WIDTH and HEIGHT, also of 1D images */
    CLD_IMAGE3D_MOST = 2048,         /* CL_DEVICE_IMAGE3D_MAX_WIDTH, HEIGHT and DEPTH */
    CLD_IMAGE_LAYERS = 2048,         /* CL_DEVICE_IMAGE_MAX_ARRAY_SIZE */
    CLD_IMAGE_BUFFER = 1 << 27,      /* CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, pixels */
    CLD_IMAGE_PITCH_ALIGN = 1,       /* CL_DEVICE_IMAGE_PITCH_ALIGNMENT, pixels */
    CLD_IMAGE_ADDRESS_ALIGN = 1,     /* CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT, pixels */
    CLD_IMAGE_ROW_PITCH = INT32_MAX, /* bytes, of images with rows: kernels multiply in 32 bits */
    CLD_IMAGE_LEVELS = 15,           /* of mipmaps: down to one pixel of the longest side */
};

struct cld_image {
    struct cld_image_desc desc; /* what kernels see */
    cl_image_format format;
    struct cld_pixel_group group;
    size_t row_pitch, slice_pitch; /* as CL_IMAGE_ROW_PITCH and SLICE_PITCH tell */
    cl_uint num_mip_levels;        /* as given */
    struct cld_image_level levels[CLD_IMAGE_LEVELS];
    struct cld_known *known; /* cluster/images.c: who has made it on other machines; NULL: nobody */
};

/* Number of dimensions that an origin has: the layers of arrays are one. */
static inline int cld_image_dimensions(cl_mem_object_type type) {
    switch (type) {
    case CL_MEM_OBJECT_IMAGE1D:
    case CL_MEM_OBJECT_IMAGE1D_BUFFER:
        return 1;
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
    case CL_MEM_OBJECT_IMAGE2D:
        return 2;
    default:
        return 3;
    }
}

static inline bool cld_image_is_array(cl_mem_object_type type) {
    return type == CL_MEM_OBJECT_IMAGE1D_ARRAY || type == CL_MEM_OBJECT_IMAGE2D_ARRAY;
}

/* Whether the image has slices or layers, and so a slice pitch. */
static inline bool cld_image_has_slices(cl_mem_object_type type) {
    return type == CL_MEM_OBJECT_IMAGE3D || cld_image_is_array(type);
}

#endif
