/* Image formats (API specification, 5.3.1.1 and 5.3.2). */
#include "memory/image_format.h"

static const struct cld_data_type data_types[] = {
    {CL_UNORM_INT8, 1, CLD_UNORM, {0}, 0},
    {CL_UNORM_INT16, 2, CLD_UNORM, {0}, 0},
    {CL_SNORM_INT8, 1, CLD_SNORM, {0}, 0},
    {CL_SNORM_INT16, 2, CLD_SNORM, {0}, 0},
    {CL_SIGNED_INT8, 1, CLD_SIGNED, {0}, 0},
    {CL_SIGNED_INT16, 2, CLD_SIGNED, {0}, 0},
    {CL_SIGNED_INT32, 4, CLD_SIGNED, {0}, 0},
    {CL_UNSIGNED_INT8, 1, CLD_UNSIGNED, {0}, 0},
    {CL_UNSIGNED_INT16, 2, CLD_UNSIGNED, {0}, 0},
    {CL_UNSIGNED_INT32, 4, CLD_UNSIGNED, {0}, 0},
    {CL_HALF_FLOAT, 2, CLD_HALF, {0}, 0},
    {CL_FLOAT, 4, CLD_FLOAT, {0}, 0},
    {CL_UNORM_SHORT_565, 2, CLD_UNORM, {5, 6, 5, 0}, 0},
    {CL_UNORM_SHORT_555, 2, CLD_UNORM, {5, 5, 5, 0}, 0},
    {CL_UNORM_INT_101010, 4, CLD_UNORM, {10, 10, 10, 0}, 0},
    {CL_UNORM_INT_101010_2, 4, CLD_UNORM, {10, 10, 10, 2}, 0},
    {CLD_UNORM_INT_2_101010, 4, CLD_UNORM, {2, 10, 10, 10}, 0},
    {CLD_UNORM_INT10X6, 2, CLD_UNORM, {0}, 6},
    {CLD_UNORM_INT12X4, 2, CLD_UNORM, {0}, 4},
    {CLD_UNORM_INT14X2, 2, CLD_UNORM, {0}, 2},
    {CLD_UNSIGNED_INT10X6, 2, CLD_UNSIGNED, {0}, 6},
    {CLD_UNSIGNED_INT12X4, 2, CLD_UNSIGNED, {0}, 4},
    {CLD_UNSIGNED_INT14X2, 2, CLD_UNSIGNED, {0}, 2},
    {CLD_UNSIGNED_INT_RAW10, 2, CLD_UNSIGNED, {0}, 6}, /* one alone; in memory they share bytes */
    {CLD_UNSIGNED_INT_RAW12, 2, CLD_UNSIGNED, {0}, 4},
};
enum { DATA_TYPES = sizeof data_types / sizeof *data_types };

/* Sets of data types. OpenCL 1.x restricts CL_LUMINANCE and CL_INTENSITY to REALS; nobody has ever had them
 * with others. */
#define BIT(type) (1u << ((type) - CL_SNORM_INT8))
#define REALS                                                                                                \
    (BIT(CL_UNORM_INT8) | BIT(CL_UNORM_INT16) | BIT(CL_SNORM_INT8) | BIT(CL_SNORM_INT16) |                   \
     BIT(CL_HALF_FLOAT) | BIT(CL_FLOAT))
#define INTEGERS                                                                                             \
    (BIT(CL_SIGNED_INT8) | BIT(CL_SIGNED_INT16) | BIT(CL_SIGNED_INT32) | BIT(CL_UNSIGNED_INT8) |             \
     BIT(CL_UNSIGNED_INT16) | BIT(CL_UNSIGNED_INT32))
#define UPPER_BITS                                                                                           \
    (BIT(CLD_UNORM_INT10X6) | BIT(CLD_UNORM_INT12X4) | BIT(CLD_UNORM_INT14X2) | BIT(CLD_UNSIGNED_INT10X6) |  \
     BIT(CLD_UNSIGNED_INT12X4) | BIT(CLD_UNSIGNED_INT14X2))
#define RAW (BIT(CLD_UNSIGNED_INT_RAW10) | BIT(CLD_UNSIGNED_INT_RAW12))
#define PACKED (BIT(CL_UNORM_SHORT_565) | BIT(CL_UNORM_SHORT_555) | BIT(CL_UNORM_INT_101010))

/* Not among them: CL_Rx, CL_RGx, CL_RGBx and CL_sRGBx, which devices need not have. Of the first two the
 * specification says that the last channel is there and ignored, while the CTS takes it for absent; of all
 * four it says that the border is transparent, and alpha 1 where it is read, while the CTS wants an opaque
 * border and, of some integers, an alpha of 0. CL_sRGB, whose pixels would be of three bytes;
 * CL_DEPTH_STENCIL, which only sharing with OpenGL makes. */
static const struct cld_channel_order channel_orders[] = {
    {CL_RGBA, 4, {0, 1, 2, 3}, false, REALS | INTEGERS | UPPER_BITS | BIT(CL_UNORM_INT_101010_2)},
    {CL_BGRA, 4, {2, 1, 0, 3}, false, REALS | INTEGERS},
    {CL_sRGBA, 4, {0, 1, 2, 3}, true, BIT(CL_UNORM_INT8)},
    {CL_sBGRA, 4, {2, 1, 0, 3}, true, BIT(CL_UNORM_INT8)},
    {CL_R, 1, {0}, false, REALS | INTEGERS | UPPER_BITS | RAW},
    {CL_RG, 2, {0, 1}, false, REALS | INTEGERS | UPPER_BITS},
    {CL_DEPTH, 1, {0}, false, BIT(CL_UNORM_INT16) | BIT(CL_FLOAT)},
    {CL_A, 1, {3}, false, REALS | INTEGERS},
    {CL_RA, 2, {0, 3}, false, REALS | INTEGERS},
    {CL_LUMINANCE, 1, {0}, false, REALS},
    {CL_INTENSITY, 1, {0}, false, REALS},
    {CL_ARGB, 4, {3, 0, 1, 2}, false, REALS | INTEGERS},
    {CL_ABGR, 4, {3, 2, 1, 0}, false, REALS | INTEGERS | BIT(CLD_UNORM_INT_2_101010)},
    {CL_RGB, 3, {0, 1, 2}, false, PACKED},
};
enum { CHANNEL_ORDERS = sizeof channel_orders / sizeof *channel_orders };

const struct cld_data_type *cld_data_type(cl_channel_type type) {
    for (int i = 0; i < DATA_TYPES; i++)
        if (data_types[i].type == type)
            return &data_types[i];
    return NULL;
}

const struct cld_channel_order *cld_channel_order(cl_channel_order order) {
    for (int i = 0; i < CHANNEL_ORDERS; i++)
        if (channel_orders[i].order == order)
            return &channel_orders[i];
    return NULL;
}

bool cld_image_format_is_valid(const cl_image_format *format) {
    cl_channel_order order = format->image_channel_order;
    cl_channel_type type = format->image_channel_data_type;
    if (order < CL_R || order > CL_ABGR || type < CL_SNORM_INT8 ||
        (type > CL_UNORM_INT_101010_2 && !cld_data_type(type)))
        return false;
    switch (type) {
    /* "The channel order must be CL_RGB or CL_RGBx." */
    case CL_UNORM_SHORT_565:
    case CL_UNORM_SHORT_555:
    case CL_UNORM_INT_101010:
        return order == CL_RGB || order == CL_RGBx;
    /* "The channel order must be CL_RGBA." */
    case CL_UNORM_INT_101010_2:
        return order == CL_RGBA;
    /* "The channel order must be CL_R." */
    case CLD_UNSIGNED_INT_RAW10:
    case CLD_UNSIGNED_INT_RAW12:
        return order == CL_R;
    /* "The channel order must be CL_ABGR." */
    case CLD_UNORM_INT_2_101010:
        return order == CL_ABGR;
    /* "The channel order must be CL_R, CL_RG, or CL_RGBA." */
    case CLD_UNORM_INT10X6:
    case CLD_UNORM_INT12X4:
    case CLD_UNORM_INT14X2:
    case CLD_UNSIGNED_INT10X6:
    case CLD_UNSIGNED_INT12X4:
    case CLD_UNSIGNED_INT14X2:
        return order == CL_R || order == CL_RG || order == CL_RGBA;
    }
    /* "This format can only be used if the image channel data type is CL_UNORM_INT24 or CL_FLOAT." */
    if (order == CL_DEPTH_STENCIL)
        return type == CL_UNORM_INT24 || type == CL_FLOAT;
    /* "The number of bits per element determined by the image_channel_data_type and image_channel_order must
     * be a power of two." */
    return order != CL_RGB && order != CL_RGx && order != CL_sRGB && type != CL_UNORM_INT24;
}

bool cld_image_format_is_supported(const cl_image_format *format, cl_mem_object_type type,
                                   cl_mem_flags flags) {
    const struct cld_channel_order *order = cld_channel_order(format->image_channel_order);
    if (!order || !cld_data_type(format->image_channel_data_type))
        return false;
    /* "Support for the CL_DEPTH image channel order is required only for 2D images and 2D image arrays":
     * OpenCL C has no others. */
    if (order->order == CL_DEPTH && type != CL_MEM_OBJECT_IMAGE2D && type != CL_MEM_OBJECT_IMAGE2D_ARRAY)
        return false;
    /* Work-items that write neighbours would write to the same byte. No sensor gives volumes, of whose pixels
     * the CTS takes each for two bytes (basic/arrayimagecopy3d). */
    bool is_written = !(flags & CL_MEM_READ_ONLY) || flags & CL_MEM_KERNEL_READ_AND_WRITE;
    uint32_t data_types = order->data_types & ~(is_written || type == CL_MEM_OBJECT_IMAGE3D ? RAW : 0);
    return data_types & BIT(format->image_channel_data_type);
}

struct cld_pixel_group cld_pixel_group(const cl_image_format *format) {
    switch (format->image_channel_data_type) {
    /* "each 4 consecutive pixels are packed into 5 bytes" */
    case CLD_UNSIGNED_INT_RAW10:
        return (struct cld_pixel_group){4, 5};
    /* "each 2 consecutive pixels are packed into 3 bytes" */
    case CLD_UNSIGNED_INT_RAW12:
        return (struct cld_pixel_group){2, 3};
    default:
        return (struct cld_pixel_group){1, cld_image_element_size(format)};
    }
}

uint32_t cld_image_element_size(const cl_image_format *format) {
    const struct cld_data_type *type = cld_data_type(format->image_channel_data_type);
    return type->bits[0] ? type->size
                         : type->size * (uint32_t)cld_channel_order(format->image_channel_order)->channels;
}

cl_uint cld_image_formats(cl_mem_object_type type, cl_mem_flags flags, cl_image_format *formats,
                          cl_uint room) {
    cl_uint count = 0;
    for (int i = 0; i < CHANNEL_ORDERS; i++)
        for (int k = 0; k < DATA_TYPES; k++) {
            cl_image_format format = {channel_orders[i].order, data_types[k].type};
            if (!cld_image_format_is_supported(&format, type, flags))
                continue;
            if (count < room)
                formats[count] = format;
            count++;
        }
    return count;
}

bool cld_channel_orders_are_compatible(cl_channel_order order, cl_channel_order of_parent) {
    static const cl_channel_order pairs[][2] = {
        {CL_sBGRA, CL_BGRA}, {CL_sRGBA, CL_RGBA}, {CL_sRGB, CL_RGB}, {CL_sRGBx, CL_RGBx}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if ((order == pairs[i][0] && of_parent == pairs[i][1]) ||
            (order == pairs[i][1] && of_parent == pairs[i][0]))
            return true;
    return order == CL_DEPTH && of_parent == CL_R;
}
