/* Images: formats, addressing, filtering, by OpenCL's SPIR-V environment specification, chapter 7. */

#pragma OPENCL EXTENSION cl_khr_fp16 : enable

#include "image.h"
#include "table_srgb.h"

#define BYTE(k) (int)(w.x >> 8 * k & 0xff)
#define SHORT_0 (int)(w.x & 0xffff)
#define SHORT_1 (int)(w.x >> 16)
#define SHORT_2 (int)(w.y & 0xffff)
#define SHORT_3 (int)(w.y >> 16)
#define SHORT(k) SHORT_##k
#define WORD(k) (int)w.s##k
#define SIGNED_BYTE(k) (int)(char)BYTE(k)
#define SIGNED_SHORT(k) (int)(short)SHORT(k)
#define HALF(k) (float)as_half((ushort)SHORT(k))
#define UPPER_10(k) (SHORT(k) >> 6)
#define UPPER_12(k) (SHORT(k) >> 4)
#define UPPER_14(k) (SHORT(k) >> 2)
#define FOUR(f) f(0), f(1), f(2), f(3)

HELPER float4 number(int4 channels) {
    return __builtin_convertvector(channels, float4);
}
HELPER float4 signed_number(int4 channels, float lowest) {
    float4 x = number(channels);
    return x > lowest ? x : lowest;
}

/* The channels of a pixel, as they follow one another, before they are normalized. w: its bytes. */
PART float4 __cld_image_numbers_f32(uint4 w, uint type) {
    switch (type) {
    case SNORM_8:
        return signed_number((int4)(FOUR(SIGNED_BYTE)), -127.0f);
    case SNORM_16:
        return signed_number((int4)(FOUR(SIGNED_SHORT)), -32767.0f);
    case UNORM_8:
        return number((int4)(FOUR(BYTE)));
    case UNORM_16:
        return number((int4)(FOUR(SHORT)));
    case UNORM_24:
        return (float4)((float)(w.x & 0xffffff), 0, 0, 0);
    case UNORM_565:
        return number((int4)(w.x >> 11, w.x >> 5 & 63, w.x & 31, 0));
    case UNORM_555:
        return number((int4)(w.x >> 10 & 31, w.x >> 5 & 31, w.x & 31, 0));
    case UNORM_101010:
        return number((int4)(w.x >> 20 & 1023, w.x >> 10 & 1023, w.x & 1023, 0));
    case UNORM_101010_2:
        return number((int4)(w.x >> 22, w.x >> 12 & 1023, w.x >> 2 & 1023, w.x & 3));
    case UNORM_2_101010:
        return number((int4)(w.x >> 30, w.x >> 20 & 1023, w.x >> 10 & 1023, w.x & 1023));
    case UNORM_10X6:
        return number((int4)(FOUR(UPPER_10)));
    case UNORM_12X4:
        return number((int4)(FOUR(UPPER_12)));
    case UNORM_14X2:
        return number((int4)(FOUR(UPPER_14)));
    case HALF_FLOAT:
        return (float4)(FOUR(HALF));
    case FLOAT:
        return as_float4(w);
    default:
        return 0;
    }
}

/* Numbers of up to 16 bits: the product is within an ulp of the quotient, and exact at the ends. */
PART float4 __cld_image_scaled_f32(float4 channels, uint type) {
    switch (type) {
    case SNORM_8:
        return channels * (1 / 127.0f);
    case SNORM_16:
        return channels * (1 / 32767.0f);
    case UNORM_8:
        return channels * (1 / 255.0f);
    case UNORM_16:
        return channels * (1 / 65535.0f);
    case UNORM_24:
        return channels * (1 / 16777215.0f);
    case UNORM_565:
        return channels * (float4)(1 / 31.0f, 1 / 63.0f, 1 / 31.0f, 0);
    case UNORM_555:
        return channels * (1 / 31.0f);
    case UNORM_101010:
    case UNORM_10X6:
        return channels * (1 / 1023.0f);
    case UNORM_12X4:
        return channels * (1 / 4095.0f);
    case UNORM_14X2:
        return channels * (1 / 16383.0f);
    case UNORM_101010_2:
        return channels * (float4)(1 / 1023.0f, 1 / 1023.0f, 1 / 1023.0f, 1 / 3.0f);
    case UNORM_2_101010:
        return channels * (float4)(1 / 3.0f, 1 / 1023.0f, 1 / 1023.0f, 1 / 1023.0f);
    default:
        return channels;
    }
}

PART uint4 __cld_image_channels_i32(uint4 w, uint type) {
    switch (type) {
    case SIGNED_8:
        return (uint4)(FOUR(SIGNED_BYTE));
    case SIGNED_16:
        return (uint4)(FOUR(SIGNED_SHORT));
    case UNSIGNED_8:
        return (uint4)(FOUR(BYTE));
    case UNSIGNED_16:
        return (uint4)(FOUR(SHORT));
    case UNSIGNED_10X6:
        return (uint4)(FOUR(UPPER_10));
    case UNSIGNED_12X4:
        return (uint4)(FOUR(UPPER_12));
    case UNSIGNED_14X2:
        return (uint4)(FOUR(UPPER_14));
    case SIGNED_32:
    case UNSIGNED_32:
    case RAW_10: /* numbers already: read.inc */
    case RAW_12:
        return w;
    default:
        return 0;
    }
}

/* Where red, green, blue and alpha are among the channels. `one` is alpha where there is none. */
#define DEFINE_COLOUR(T4, name, one)                                                                         \
    PART T4 name(T4 c, uint order) {                                                                         \
        switch (order) {                                                                                     \
        case ORDER_A:                                                                                        \
            return (T4)(0, 0, 0, c.x);                                                                       \
        case ORDER_RG:                                                                                       \
        case ORDER_RGX:                                                                                      \
            return (T4)(c.xy, 0, one);                                                                       \
        case ORDER_RA:                                                                                       \
            return (T4)(c.x, 0, 0, c.y);                                                                     \
        case ORDER_RGB:                                                                                      \
        case ORDER_RGBX:                                                                                     \
        case ORDER_SRGB:                                                                                     \
        case ORDER_SRGBX:                                                                                    \
            return (T4)(c.xyz, one);                                                                         \
        case ORDER_RGBA:                                                                                     \
        case ORDER_SRGBA:                                                                                    \
            return c;                                                                                        \
        case ORDER_BGRA:                                                                                     \
        case ORDER_SBGRA:                                                                                    \
            return c.zyxw;                                                                                   \
        case ORDER_ARGB:                                                                                     \
            return c.yzwx;                                                                                   \
        case ORDER_ABGR:                                                                                     \
            return c.wzyx;                                                                                   \
        case ORDER_INTENSITY:                                                                                \
            return c.xxxx;                                                                                   \
        case ORDER_LUMINANCE:                                                                                \
            return (T4)(c.xxx, one);                                                                         \
        default:                                                                                             \
            return (T4)(c.x, 0, 0, one);                                                                     \
        }                                                                                                    \
    }                                                                                                        \
    /* What lies outside of an image with ADDRESS_CLAMP. */                                                  \
    PART T4 name##_outside(uint order) {                                                                     \
        switch (order) {                                                                                     \
        case ORDER_R:                                                                                        \
        case ORDER_RG:                                                                                       \
        case ORDER_RGB:                                                                                      \
        case ORDER_LUMINANCE:                                                                                \
        case ORDER_DEPTH:                                                                                    \
        case ORDER_SRGB:                                                                                     \
            return (T4)(0, 0, 0, one);                                                                       \
        default:                                                                                             \
            return 0;                                                                                        \
        }                                                                                                    \
    }

DEFINE_COLOUR(float4, __cld_image_colour_f32, 1.0f)
DEFINE_COLOUR(uint4, __cld_image_colour_i32, 1)

HELPER bool is_srgb(uint order) {
    return order == ORDER_SRGB || order == ORDER_SRGBX || order == ORDER_SRGBA || order == ORDER_SBGRA;
}

PART float4 __cld_image_decode_f32(uint4 w, uint order, uint type) {
    float4 c = __cld_image_scaled_f32(__cld_image_numbers_f32(w, type), type);
    if (is_srgb(order)) {
        c.xyz = (float3)(linear_of_srgb[BYTE(0)], linear_of_srgb[BYTE(1)], linear_of_srgb[BYTE(2)]);
    }
    return __cld_image_colour_f32(c, order);
}
PART uint4 __cld_image_decode_i32(uint4 w, uint order, uint type) {
    return __cld_image_colour_i32(__cld_image_channels_i32(w, type), order);
}

/* Channels from colours: what DEFINE_COLOUR does, the other way round. */
#define DEFINE_ORDERED(T4, name)                                                                             \
    PART T4 name(T4 c, uint order) {                                                                         \
        switch (order) {                                                                                     \
        case ORDER_A:                                                                                        \
            return c.wxyz;                                                                                   \
        case ORDER_RA:                                                                                       \
            return c.xwyz;                                                                                   \
        case ORDER_BGRA:                                                                                     \
        case ORDER_SBGRA:                                                                                    \
            return c.zyxw;                                                                                   \
        case ORDER_ARGB:                                                                                     \
            return c.wxyz;                                                                                   \
        case ORDER_ABGR:                                                                                     \
            return c.wzyx;                                                                                   \
        default:                                                                                             \
            return c;                                                                                        \
        }                                                                                                    \
    }
DEFINE_ORDERED(float4, __cld_image_ordered_f32)
DEFINE_ORDERED(uint4, __cld_image_ordered_i32)

/* The nearest integers of x * high, between low and high; 0 for NaN. */
HELPER int4 quantized(float4 x, float4 low, float4 high) {
    x *= high;
    x = x == x ? x : 0.0f;
    x = x > low ? x : low;
    x = x < high ? x : high;
    return __builtin_convertvector(RINT(x), int4);
}

HELPER uint bytes_of(int4 c) {
    return (c.x & 0xff) | (c.y & 0xff) << 8 | (c.z & 0xff) << 16 | (uint)c.w << 24;
}
HELPER uint4 shorts_of(int4 c) {
    return (uint4)((c.x & 0xffff) | (uint)c.y << 16, (c.z & 0xffff) | (uint)c.w << 16, 0, 0);
}
HELPER int half_bits(float x) {
    return as_ushort((half)x);
}

/* The bytes of a pixel with these channels. */
PART uint4 __cld_image_bytes_f32(float4 c, uint type) {
    int4 n;
    switch (type) {
    case SNORM_8:
        return (uint4)(bytes_of(quantized(c, -127.0f, 127.0f)), 0, 0, 0);
    case SNORM_16:
        return shorts_of(quantized(c, -32767.0f, 32767.0f));
    case UNORM_8:
        return (uint4)(bytes_of(quantized(c, 0.0f, 255.0f)), 0, 0, 0);
    case UNORM_16:
        return shorts_of(quantized(c, 0.0f, 65535.0f));
    case UNORM_24:
        return (uint4)(quantized(c, 0.0f, 16777215.0f).x, 0, 0, 0);
    case UNORM_565:
        n = quantized(c, 0.0f, (float4)(31, 63, 31, 0));
        return (uint4)(n.x << 11 | n.y << 5 | n.z, 0, 0, 0);
    case UNORM_555:
        n = quantized(c, 0.0f, 31.0f);
        return (uint4)(n.x << 10 | n.y << 5 | n.z, 0, 0, 0);
    case UNORM_101010:
        n = quantized(c, 0.0f, 1023.0f);
        return (uint4)(n.x << 20 | n.y << 10 | n.z, 0, 0, 0);
    case UNORM_101010_2:
        n = quantized(c, 0.0f, (float4)(1023, 1023, 1023, 3));
        return (uint4)((uint)n.x << 22 | n.y << 12 | n.z << 2 | n.w, 0, 0, 0);
    case UNORM_2_101010:
        n = quantized(c, 0.0f, (float4)(3, 1023, 1023, 1023));
        return (uint4)((uint)n.x << 30 | n.y << 20 | n.z << 10 | n.w, 0, 0, 0);
    case UNORM_10X6:
        return shorts_of(quantized(c, 0.0f, 1023.0f) << 6);
    case UNORM_12X4:
        return shorts_of(quantized(c, 0.0f, 4095.0f) << 4);
    case UNORM_14X2:
        return shorts_of(quantized(c, 0.0f, 16383.0f) << 2);
    case HALF_FLOAT:
        return shorts_of((int4)(half_bits(c.x), half_bits(c.y), half_bits(c.z), half_bits(c.w)));
    default:
        return as_uint4(c);
    }
}

HELPER int4 within(uint4 c, int low, int high) {
    int4 x = as_int4(c);
    x = x > low ? x : low;
    return x < high ? x : high;
}
HELPER int4 at_most(uint4 c, uint high) {
    return as_int4(c < high ? c : high);
}

PART uint4 __cld_image_bytes_i32(uint4 c, uint type) {
    switch (type) {
    case SIGNED_8:
        return (uint4)(bytes_of(within(c, -128, 127)), 0, 0, 0);
    case SIGNED_16:
        return shorts_of(within(c, -32768, 32767));
    case UNSIGNED_8:
        return (uint4)(bytes_of(at_most(c, 255)), 0, 0, 0);
    case UNSIGNED_16:
        return shorts_of(at_most(c, 65535));
    case UNSIGNED_10X6:
        return shorts_of(at_most(c, 1023) << 6);
    case UNSIGNED_12X4:
        return shorts_of(at_most(c, 4095) << 4);
    case UNSIGNED_14X2:
        return shorts_of(at_most(c, 16383) << 2);
    default:
        return c;
    }
}

/* Within a tenth of a level: the logarithm and the power are a few ulp off. NaN is 0. */
HELPER float srgb_of_linear(float y) {
    float power = __cld_native_exp2_f32(__cld_native_log2_f32(y > 0.003f ? y : 0.003f) * (1 / 2.4f));
    float r = y < 0.0031308f ? 12.92f * y : 1.055f * power - 0.055f;
    return y > 0.0f ? y < 1.0f ? r : 1.0f : 0.0f;
}

PART uint4 __cld_image_encode_f32(float4 c, uint order, uint type) {
    if (is_srgb(order)) {
        c = (float4)(srgb_of_linear(c.x), srgb_of_linear(c.y), srgb_of_linear(c.z), c.w);
    }
    return __cld_image_bytes_f32(__cld_image_ordered_f32(c, order), type);
}
PART uint4 __cld_image_encode_i32(uint4 c, uint order, uint type) {
    return __cld_image_bytes_i32(__cld_image_ordered_i32(c, order), type);
}

/* Stores the bytes of a pixel. */
PART void __cld_image_put(global uchar *p, uint4 w, uint element) {
    switch (element) {
    case 1:
        *p = w.x;
        break;
    case 2:
        *(global ushort *)p = w.x;
        break;
    case 3:
        p[0] = w.x;
        p[1] = w.x >> 8;
        p[2] = w.x >> 16;
        break;
    case 4:
        *(global uint *)p = w.x;
        break;
    case 8:
        vstore2(w.xy, 0, (global uint *)p);
        break;
    default:
        vstore4(w, 0, (global uint *)p);
    }
}

/* Bytes before a row. z: of 3-D images; layer: of arrays. */
HELPER long row_offset(int y, int z, int row_pitch, long slice_pitch, int dims) {
    long offset = (long)z * slice_pitch;
    return dims > 1 ? offset + (long)y * row_pitch : offset;
}

HELPER bool is_inside(int4 at, int4 size, int dims) {
    return ((uint)at.x < (uint)size.x) & (dims < 2 || (uint)at.y < (uint)size.y) &
           (dims < 3 || (uint)at.z < (uint)size.z);
}

/* Component by component, not as a vector: codegen/access/runtime_contiguity.py looks through clamps of
 * scalars. */
HELPER int inside(int x, int size) {
    int highest = size - 1;
    x = x > 0 ? x : 0;
    return x < highest ? x : highest;
}
HELPER int4 all_inside(int4 at, int4 size, int dims) {
    at.x = inside(at.x, size.x);
    at.y = dims > 1 ? inside(at.y, size.y) : 0;
    at.z = dims > 2 ? inside(at.z, size.z) : at.z;
    return at;
}

/* The third of an array's or 3-D image's coordinates, which counts slices. */
HELPER int slice_of(int4 at, int dims, int arrayed) {
    return dims == 3 || (arrayed && dims == 2) ? at.z : arrayed ? at.y : 0;
}

/* Writes: what is outside of the image is left alone. */
#define DEFINE_WRITE(KIND, T4)                                                                               \
    void __cld_image_write_##KIND(PIXELS(global), int dims, int arrayed, int4 at, T4 colour) {               \
        int slice = slice_of(at, dims, arrayed);                                                             \
        bool inside = is_inside(at, size, dims) & (!arrayed || (uint)slice < (uint)size.w);                  \
        if (inside) {                                                                                        \
            data += row_offset(at.y, slice, row_pitch, slice_pitch, dims) + (long)at.x * (int)element;       \
            __cld_image_put(data, __cld_image_encode_##KIND(colour, order, type), element);                  \
        }                                                                                                    \
    }                                                                                                        \
    void __cld_image_write_lod_##KIND(constant struct cld_image_desc *image, uint order, uint type,          \
                                      uint element, int dims, int arrayed, int4 at, int lod, T4 colour) {    \
        constant struct cld_image_level *level = image->level + lod;                                         \
        if ((uint)lod < image->levels) {                                                                     \
            int4 size = (int4)(level->width, level->height, level->depth, image->array_size);                \
            __cld_image_write_##KIND(image->data + level->offset, level->row_pitch, level->slice_pitch,      \
                                     size, order, type, element, dims, arrayed, at, colour);                 \
        }                                                                                                    \
    }
DEFINE_WRITE(f32, float4)
DEFINE_WRITE(i32, uint4)

/* The pixel along one axis that is nearest to a coordinate; with ADDRESS_CLAMP -1 or `size` outside. */
HELPER int nearest(float s, int size, uint sampler) {
    float n = size, highest = n - 1.0f, lowest = 0.0f, u;
    switch (ADDRESSING(sampler)) {
    case ADDRESS_REPEAT:
        u = FLOOR((s - FLOOR(s)) * n);
        u = u > highest ? u - n : u;
        break;
    case ADDRESS_MIRRORED_REPEAT:
        u = FLOOR(ABS(s - 2.0f * RINT(0.5f * s)) * n);
        break;
    case ADDRESS_CLAMP:
        lowest = -1.0f;
        highest = n;
    default:
        u = FLOOR(sampler & NORMALIZED ? s * n : s);
    }
    /* NaN is `lowest`: no coordinate leads to memory of others. */
    u = u > lowest ? u : lowest;
    u = u < highest ? u : highest;
    return (int)u;
}

/* The two pixels along one axis that linear filtering mixes, and how much there is of the second. */
HELPER float neighbours(float s, int size, uint sampler, __private int *first, __private int *second) {
    float n = size, u;
    uint mode = ADDRESSING(sampler);
    switch (mode) {
    case ADDRESS_REPEAT:
        u = (s - FLOOR(s)) * n;
        break;
    case ADDRESS_MIRRORED_REPEAT:
        u = ABS(s - 2.0f * RINT(0.5f * s)) * n;
        break;
    default:
        u = sampler & NORMALIZED ? s * n : s;
    }
    u -= 0.5f;
    float floored = FLOOR(u), share = u - floored;
    /* Far outside all is the same. */
    floored = floored > -2.0f ? floored : -2.0f;
    floored = floored < n ? floored : n;
    int a = (int)floored, b = a + 1, last = size - 1;
    if (mode == ADDRESS_REPEAT) {
        a = a < 0 ? a + size : a;
        b = b > last ? b - size : b;
    }
    if (mode != ADDRESS_CLAMP) {
        a = a > 0 ? a : 0;
        a = a < last ? a : last;
        b = b > 0 ? b : 0;
        b = b < last ? b : last;
    }
    *first = a;
    *second = b;
    return share;
}

/* Pixels that kernels may not write are constant memory; those of read_write images are not. */
#define SPACE constant
#define IN_SPACE(name) __cld_image_##name
#include "read.inc"
#undef SPACE
#undef IN_SPACE
#define SPACE global
#define IN_SPACE(name) __cld_image_global_##name
#include "read.inc"
#undef SPACE
#undef IN_SPACE

#define DEFINE_NEAREST(KIND, T4)                                                                             \
    PART T4 __cld_image_nearest_##KIND(PIXELS(constant), uint sampler, int dims, int arrayed, float4 at) {   \
        float layer = RINT(dims == 1 ? at.y : at.z), highest = size.w - 1;                                   \
        layer = layer > 0.0f ? layer : 0.0f;                                                                 \
        layer = layer < highest ? layer : highest;                                                           \
        int x = nearest(at.x, size.x, sampler);                                                              \
        int y = dims > 1 ? nearest(at.y, size.y, sampler) : 0;                                               \
        int z = dims > 2 ? nearest(at.z, size.z, sampler) : 0;                                               \
        return __cld_image_texel_##KIND(SAME_PIXELS, sampler, dims, x, y, z, arrayed ? (int)layer : 0);      \
    }
DEFINE_NEAREST(f32, float4)
DEFINE_NEAREST(i32, uint4)

/* The numbers of a pixel, those of a border being 0. */
PART float4 __cld_image_texel_numbers(PIXELS(constant), uint sampler, int dims, int x, int y, int z,
                                      int layer) {
    int4 at = (int4)(x, y, z, 0);
    bool may_miss = ADDRESSING(sampler) == ADDRESS_CLAMP;
    if (may_miss) {
        at = all_inside(at, size, dims);
    }
    data += row_offset(at.y, dims == 3 ? at.z : layer, row_pitch, slice_pitch, dims);
    float4 numbers = __cld_image_numbers_f32(__cld_image_get(data, at.x, type, element), type);
    if (may_miss) {
        numbers = is_inside((int4)(x, y, z, 0), size, dims) ? numbers : 0;
    }
    return numbers;
}

/* Whether numbers can be mixed before they are colours: alpha, where it is not among them, is the same in a
 * border, and the numbers are proportional to the colours. */
HELPER bool is_mixed_first(uint sampler, uint order) {
    bool has_own_border = order == ORDER_RX || order == ORDER_RGX || order == ORDER_RGBX;
    return !is_srgb(order) && !(has_own_border && ADDRESSING(sampler) == ADDRESS_CLAMP);
}

HELPER float4 linear(PIXELS(constant), uint sampler, int dims, int arrayed, float4 at, bool of_numbers) {
    float rounded = RINT(dims == 1 ? at.y : at.z), highest = size.w - 1, b = 0.0f, c = 0.0f;
    rounded = rounded > 0.0f ? rounded : 0.0f;
    int layer = arrayed ? (int)(rounded < highest ? rounded : highest) : 0;
    int x0, x1, y0 = 0, y1, z0 = 0, z1;
    float a = neighbours(at.x, size.x, sampler, &x0, &x1);
    if (dims > 1) {
        b = neighbours(at.y, size.y, sampler, &y0, &y1);
    }
    if (dims > 2) {
        c = neighbours(at.z, size.z, sampler, &z0, &z1);
    }
    float4 sum;
#define TEXEL(x, y, z)                                                                                       \
    (of_numbers ? __cld_image_texel_numbers(SAME_PIXELS, sampler, dims, x, y, z, layer)                      \
                : __cld_image_texel_f32(SAME_PIXELS, sampler, dims, x, y, z, layer))
#define ADD(y, z, share)                                                                                     \
    sum = FMA(TEXEL(x0, y, z), (float4)((1.0f - a) * (share)), sum);                                         \
    sum = FMA(TEXEL(x1, y, z), (float4)(a * (share)), sum)
    float share = (1.0f - b) * (1.0f - c);
    sum = TEXEL(x0, y0, z0) * ((1.0f - a) * share);
    sum = FMA(TEXEL(x1, y0, z0), (float4)(a * share), sum);
    if (dims > 1) {
        ADD(y1, z0, b * (1.0f - c));
    }
    if (dims > 2) {
        ADD(y0, z1, (1.0f - b) * c);
        ADD(y1, z1, b * c);
    }
#undef ADD
#undef TEXEL
    return sum;
}

PART float4 __cld_image_linear_f32(PIXELS(constant), uint sampler, int dims, int arrayed, float4 at) {
    if (is_mixed_first(sampler, order)) {
        float4 sum = linear(SAME_PIXELS, sampler, dims, arrayed, at, true);
        return __cld_image_colour_f32(__cld_image_scaled_f32(sum, type), order);
    }
    return linear(SAME_PIXELS, sampler, dims, arrayed, at, false);
}

float4 __cld_image_sample_f32(PIXELS(constant), uint sampler, int dims, int arrayed, float4 at) {
    return sampler & LINEAR ? __cld_image_linear_f32(SAME_PIXELS, sampler, dims, arrayed, at)
                            : __cld_image_nearest_f32(SAME_PIXELS, sampler, dims, arrayed, at);
}
/* Integers are not filtered. */
uint4 __cld_image_sample_i32(PIXELS(constant), uint sampler, int dims, int arrayed, float4 at) {
    return __cld_image_nearest_i32(SAME_PIXELS, sampler, dims, arrayed, at);
}

/* Mipmaps. The upper half of the sampler: the smallest and the largest level of detail in steps of 1/2048. */
HELPER float limited(float lod, ulong sampler, uint levels) {
    uint bits = sampler >> 32, largest = bits >> 16;
    float low = (float)(int)(bits & 0xffff) * (1 / 2048.0f);
    float high = largest == 0xffff ? INFINITY : (float)(int)largest * (1 / 2048.0f), last = (int)levels - 1;
    lod = lod > low ? lod : low;
    lod = lod < high ? lod : high;
    lod = lod > 0.0f ? lod : 0.0f;
    return lod < last ? lod : last;
}

#define DEFINE_LEVEL(KIND, T4)                                                                               \
    PART T4 __cld_image_level_##KIND(constant struct cld_image_desc *image, uint order, uint type,           \
                                     uint element, uint sampler, int dims, int arrayed, float4 at, int k) {  \
        constant struct cld_image_level *level = image->level + k;                                           \
        int4 size = (int4)(level->width, level->height, level->depth, image->array_size);                    \
        constant uchar *data = (constant uchar *)(ulong)(image->data + level->offset);                       \
        return __cld_image_sample_##KIND(data, level->row_pitch, level->slice_pitch, size, order, type,      \
                                         element, sampler, dims, arrayed, at);                               \
    }
#define LEVEL(KIND, k) __cld_image_level_##KIND(image, order, type, element, sampler, dims, arrayed, at, k)
#define DEFINE_LOD(KIND, T4, MIXED)                                                                          \
    DEFINE_LEVEL(KIND, T4)                                                                                   \
    T4 __cld_image_lod_##KIND(constant struct cld_image_desc *image, uint order, uint type, uint element,    \
                              ulong sampler, int dims, int arrayed, float4 at, float lod) {                  \
        lod = limited(lod, sampler, image->levels);                                                          \
        MIXED                                                                                                \
        return LEVEL(KIND, (int)__builtin_elementwise_ceil(lod + 0.5f) - 1);                                 \
    }
DEFINE_LOD(i32, uint4, )
DEFINE_LOD(
    f32, float4, if (sampler & MIP_LINEAR) {
        int k = (int)lod;
        float share = lod - (float)k;
        int next = k + 1 < (int)image->levels ? k + 1 : k;
        float4 coarse = LEVEL(f32, next);
        return FMA(coarse, (float4)share, LEVEL(f32, k) * (1.0f - share));
    })

/* The level of detail that derivatives of normalized coordinates ask for: a step of a pixel is level 0. */
float __cld_image_gradient(constant struct cld_image_desc *image, int dims, float4 dx, float4 dy) {
    float4 size = (float4)(image->width, dims > 1 ? image->height : 0, dims > 2 ? image->depth : 0, 0);
    dx *= size;
    dy *= size;
    float x = dx.x * dx.x + dx.y * dx.y + dx.z * dx.z, y = dy.x * dy.x + dy.y * dy.y + dy.z * dy.z;
    return 0.5f * __cld_native_log2_f32(x > y ? x : y);
}
