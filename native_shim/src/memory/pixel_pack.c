/* Colours as pixels, for clEnqueueFillImage. The same conversions as OpenCL C's write_image functions have.
 */
#include <math.h>
#include <string.h>

#include "base/thread.h"
#include "memory/image_format.h"

/* "convert_uchar_sat_rte(f * 255.0f)", and so on; NaN becomes 0. */
static uint32_t unorm(float value, uint32_t most) {
    float limited = value > 0 ? (value < 1 ? value : 1) : 0;
    return (uint32_t)rintf(limited * (float)most);
}

/* -128, which stands for -1 as -127 does, is never made. */
static int32_t snorm(float value, int32_t most) {
    float limited = value > -1 ? (value < 1 ? value : 1) : value <= -1 ? -1 : 0;
    return (int32_t)rintf(limited * (float)most);
}

static uint32_t srgb(float value) {
    double c = value > 0 ? (value < 1 ? value : 1) : 0;
    c = c < 0.0031308 ? 12.92 * c : 1.055 * pow(c, 5.0 / 12.0) - 0.055;
    return (uint32_t)(c * 255 + 0.5);
}

/* To the nearest, ties to even. */
static uint16_t half(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7FFFFFFF;
    if (bits > 0x7F800000) /* NaN: quiet, with what fits of its payload */
        return (uint16_t)(sign | 0x7E00 | (bits >> 13 & 0x1FF));
    if (bits >= 0x477FF000) /* from the middle between the largest half and the next power of two */
        return sign | 0x7C00;
    if (bits < 0x38800000) { /* subnormal: in units of 2^-24, by the rounding of an addition */
        float magnitude;
        memcpy(&magnitude, &bits, sizeof magnitude);
        return (uint16_t)(sign | (uint16_t)rintf(magnitude * 0x1p24f));
    }
    bits += 0xFFF + (bits >> 13 & 1);
    return (uint16_t)(sign | ((bits - 0x38000000) >> 13));
}

static int32_t saturate(int32_t value, unsigned size) {
    int32_t most = size == 1 ? INT8_MAX : size == 2 ? INT16_MAX : INT32_MAX;
    return value > most ? most : value < -most - 1 ? -most - 1 : value;
}

/* One channel that is not packed; red, green and blue of sRGB orders are encoded. */
static void put_channel(const struct cld_data_type *type, bool encoded, const void *component, void *to) {
    float real;
    uint32_t word;
    memcpy(&real, component, sizeof real);
    memcpy(&word, component, sizeof word);
    uint32_t most = UINT32_MAX >> (32 - 8 * type->size + type->unused);
    switch (type->kind) {
    case CLD_UNORM:
        word = encoded ? srgb(real) : unorm(real, most);
        break;
    case CLD_SNORM:
        word = (uint32_t)snorm(real, (int32_t)most / 2);
        break;
    case CLD_SIGNED:
        word = (uint32_t)saturate((int32_t)word, type->size);
        break;
    case CLD_UNSIGNED:
        word = word < most ? word : most;
        break;
    case CLD_HALF:
        word = half(real);
        break;
    }
    word <<= type->unused;
    memcpy(to, &word, type->size); /* the low bytes: little-endian, as CL_DEVICE_ENDIAN_LITTLE says */
}

static uint32_t pack(const struct cld_data_type *type, const struct cld_channel_order *order,
                     const float *color) {
    uint32_t word = 0;
    for (int i = 0; i < 4; i++)
        if (type->bits[i])
            word = word << type->bits[i] | unorm(color[order->component[i]], (1u << type->bits[i]) - 1);
    return word;
}

/* A group of pixels with one value: "Each one of the first 4 bytes contains the top 8 bits of each pixel, the
 * fifth byte contains the 2 least significant bits of the 4 pixels", and likewise of 12 bits. */
static void share_bytes(const struct cld_data_type *type, struct cld_pixel_group group, uint8_t *pixel) {
    uint16_t word;
    memcpy(&word, pixel, sizeof word);
    unsigned bits = 8 / group.pixels, low = (word >> type->unused) & ((1u << bits) - 1);
    memset(pixel, word >> 8, group.pixels);
    pixel[group.pixels] = 0;
    for (uint32_t i = 0; i < group.pixels; i++)
        pixel[group.pixels] |= (uint8_t)(low << i * bits);
}

void cld_pixel_pack(const cl_image_format *format, const void *color, uint8_t pixel[CLD_LARGEST_PIXEL]) {
    const struct cld_data_type *type = cld_data_type(format->image_channel_data_type);
    const struct cld_channel_order *order = cld_channel_order(format->image_channel_order);
    uint64_t saved = cld_float_enter();
    if (type->bits[0]) {
        float components[4];
        memcpy(components, color, sizeof components);
        uint32_t word = pack(type, order, components);
        memcpy(pixel, &word, type->size);
    } else {
        for (int i = 0; i < order->channels; i++) {
            int component = order->component[i];
            put_channel(type, order->srgb && component < 3, (const uint8_t *)color + 4 * component,
                        pixel + i * type->size);
        }
    }
    cld_float_leave(saved);
    struct cld_pixel_group group = cld_pixel_group(format);
    if (group.pixels > 1)
        share_bytes(type, group, pixel);
}
