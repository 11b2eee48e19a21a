/* What kernels know of an image: the same structures as in native_shim/src/abi/image_abi.h. */
#ifndef CLD_BUILTINS_IMAGE_H
#define CLD_BUILTINS_IMAGE_H

struct cld_image_level {
    ulong offset; /* bytes from `data` */
    ulong row_pitch, slice_pitch;
    int width, height, depth, pad;
};

struct cld_image_desc {
    global uchar *data;
    ulong row_pitch, slice_pitch; /* of level 0; slices of 3-D images, and layers */
    int width, height, depth, array_size;
    uint channel_order, channel_data_type;
    uint element_size; /* bytes of a pixel; 1 if pixels share bytes */
    uint levels;
    constant struct cld_image_level *level;
};

/* Channel orders and data types as the API numbers them; OpenCL C's CLK_R... are not in every clang. */
enum {
    ORDER_R = 0x10B0,
    ORDER_A,
    ORDER_RG,
    ORDER_RA,
    ORDER_RGB,
    ORDER_RGBA,
    ORDER_BGRA,
    ORDER_ARGB,
    ORDER_INTENSITY,
    ORDER_LUMINANCE,
    ORDER_RX,
    ORDER_RGX,
    ORDER_RGBX,
    ORDER_DEPTH,
    ORDER_DEPTH_STENCIL,
    ORDER_SRGB,
    ORDER_SRGBX,
    ORDER_SRGBA,
    ORDER_SBGRA,
    ORDER_ABGR
};

enum {
    SNORM_8 = 0x10D0,
    SNORM_16,
    UNORM_8,
    UNORM_16,
    UNORM_565,
    UNORM_555,
    UNORM_101010,
    SIGNED_8,
    SIGNED_16,
    SIGNED_32,
    UNSIGNED_8,
    UNSIGNED_16,
    UNSIGNED_32,
    HALF_FLOAT,
    FLOAT,
    UNORM_24,
    UNORM_101010_2,
    UNORM_10X6,
    RAW_10 = 0x10E3,
    RAW_12,
    UNORM_2_101010,
    UNSIGNED_10X6,
    UNSIGNED_12X4,
    UNSIGNED_14X2,
    UNORM_12X4,
    UNORM_14X2
};

/* A sampler: the bits of OpenCL C's literals, 64 for linear filtering between mipmap levels. */
#define NORMALIZED 1
#define ADDRESS_NONE 0
#define ADDRESS_CLAMP_TO_EDGE 2
#define ADDRESS_CLAMP 4
#define ADDRESS_REPEAT 6
#define ADDRESS_MIRRORED_REPEAT 8
#define ADDRESSING(sampler) ((sampler) & 14)
#define LINEAR 32
#define MIP_LINEAR 64

/* Every function below is called with numbers for most of its arguments: ../../../passes/lower/images.py
 * makes copies of them in which the switches are decided. They stay calls until then. */
#define PART __attribute__((noinline))

/* Pixels of 8 and 16 bytes, which are aligned as their channels. Loads and not vloadn: rows share those
 * (../../../passes/vectorize/coarsening_cse.py). */
typedef uint2 __attribute__((aligned(2))) two_words;
typedef uint4 __attribute__((aligned(4))) four_words;

/* One level of an image. row_pitch fits 31 bits but for images without rows. */
#define PIXELS(SPACE)                                                                                        \
    SPACE uchar *data, int row_pitch, long slice_pitch, int4 size, uint order, uint type, uint element
#define SAME_PIXELS data, row_pitch, slice_pitch, size, order, type, element

#endif
