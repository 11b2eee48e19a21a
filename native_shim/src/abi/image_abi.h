/* What compiled kernels see of an image. cl_driver/builtins/cl/image/image.h has the same layout in OpenCL
 * C. */
#ifndef CLD_IMAGE_ABI_H
#define CLD_IMAGE_ABI_H

#include <stdint.h>

struct cld_image_level {
    uint64_t offset;                 /* bytes from `data` */
    uint64_t row_pitch, slice_pitch; /* bytes; slice_pitch: of slices of 3-D images and of array layers */
    int32_t width, height, depth;    /* pixels; 1 where the dimension is absent */
    int32_t pad;
};

/* Made with the image, aligned to 64 bytes; constant as long as the image lives. */
struct cld_image_desc {
    uint8_t *data;
    uint64_t row_pitch, slice_pitch; /* of level 0 */
    int32_t width, height, depth;    /* of level 0 */
    int32_t array_size;              /* 1 if not an array */
    uint32_t channel_order, channel_data_type;
    uint32_t element_size; /* bytes of a pixel; 1 if pixels share bytes */
    uint32_t levels;       /* at least 1 */
    const struct cld_image_level *level;
};

_Static_assert(sizeof(struct cld_image_level) == 40 && sizeof(struct cld_image_desc) == 64,
               "as kernels were compiled");

/* A sampler argument: 8 bytes. The low 32 bits are CLK_* values of OpenCL C. The high ones are of
 * cl_khr_mipmap_image: the lowest and the highest level of detail, 16 bits each, in 1/2048, saturated, so
 * that 0xFFFF is no limit. */
enum cld_sampler_word {
    CLD_SAMPLER_NORMALIZED = 1,
    CLD_SAMPLER_ADDRESS_SHIFT = 1, /* 0 none, 1 clamp to edge, 2 clamp, 3 repeat, 4 mirrored repeat */
    CLD_SAMPLER_NEAREST = 0x10,
    CLD_SAMPLER_LINEAR = 0x20,
    CLD_SAMPLER_MIP_LINEAR = 0x40, /* between levels; nearest without it */
    CLD_SAMPLER_LOD_MIN_SHIFT = 32,
    CLD_SAMPLER_LOD_MAX_SHIFT = 48,
};

#endif
