/* The formats of images: one table, from which lists, checks, sizes and the packing of colours follow. */
#ifndef CLD_IMAGE_FORMAT_H
#define CLD_IMAGE_FORMAT_H

#include "object/object.h"

enum { CLD_LARGEST_PIXEL = 16 };

/* What headers of 2023 lack. */
enum {
    CLD_UNORM_INT10X6 = 0x10E1,
    CLD_UNSIGNED_INT_RAW10 = 0x10E3,
    CLD_UNSIGNED_INT_RAW12,
    CLD_UNORM_INT_2_101010,
    CLD_UNSIGNED_INT10X6,
    CLD_UNSIGNED_INT12X4,
    CLD_UNSIGNED_INT14X2,
    CLD_UNORM_INT12X4,
    CLD_UNORM_INT14X2,
};

enum cld_data_kind { CLD_UNORM, CLD_SNORM, CLD_SIGNED, CLD_UNSIGNED, CLD_HALF, CLD_FLOAT };

struct cld_data_type {
    cl_channel_type type;
    uint8_t size;    /* bytes: of a channel; of the pixel where channels are packed */
    uint8_t kind;    /* enum cld_data_kind */
    uint8_t bits[4]; /* of packed channels, the first one most significant; zeros otherwise */
    uint8_t unused;  /* lowest bits of a channel that is not packed */
};

struct cld_channel_order {
    cl_channel_order order;
    uint8_t channels;
    uint8_t component[4]; /* of RGBA, that each channel in memory holds */
    bool srgb;
    uint32_t data_types; /* that are supported with it */
};

/* The rows of the table, NULL for what no supported format has. */
const struct cld_data_type *cld_data_type(cl_channel_type type);
const struct cld_channel_order *cld_channel_order(cl_channel_order order);

/* What the specification's tables allow: CL_INVALID_IMAGE_FORMAT_DESCRIPTOR otherwise. */
bool cld_image_format_is_valid(const cl_image_format *format);

/* Whether images of that type and with these flags may have the format: CL_IMAGE_FORMAT_NOT_SUPPORTED
 * otherwise. */
bool cld_image_format_is_supported(const cl_image_format *format, cl_mem_object_type type,
                                   cl_mem_flags flags);

/* Bytes of a pixel of a supported format; a power of two. Of pixels that share bytes: of one alone. */
uint32_t cld_image_element_size(const cl_image_format *format);

/* Pixels of a row that begin and end with a byte: one, but of formats whose pixels share bytes. Images of
 * these have whole groups only, and so have the regions of commands. */
struct cld_pixel_group {
    uint32_t pixels, bytes;
};

struct cld_pixel_group cld_pixel_group(const cl_image_format *format);

/* Bytes of so many pixels of a row. */
static inline size_t cld_pixel_bytes(struct cld_pixel_group group, size_t pixels) {
    return group.pixels == 1 ? pixels * group.bytes : pixels / group.pixels * group.bytes;
}

/* What pitches and addresses are a multiple of, in bytes: pixels that share bytes are read by bytes. */
static inline uint32_t cld_pixel_unit(struct cld_pixel_group group) {
    return group.pixels == 1 ? group.bytes : 1;
}

/* The formats of images of that type and with these flags: fills up to room of them, returns how many there
 * are. */
cl_uint cld_image_formats(cl_mem_object_type type, cl_mem_flags flags, cl_image_format *formats,
                          cl_uint room);

/* Whether a 2D image may be a view of another with that channel order (Compatible Image Channel Orders). */
bool cld_channel_orders_are_compatible(cl_channel_order order, cl_channel_order of_parent);

/* A colour as clEnqueueFillImage takes it, RGBA of cl_float, cl_int or cl_uint (one cl_float for CL_DEPTH),
 * as a group of such pixels. */
void cld_pixel_pack(const cl_image_format *format, const void *color, uint8_t pixel[CLD_LARGEST_PIXEL]);

#endif
