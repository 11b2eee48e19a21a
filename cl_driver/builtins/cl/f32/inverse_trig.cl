/* asin, acos, atan, atan2 and their forms in multiples of pi, single precision.
 * asin: polynomial up to 1/2, above it asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)).
 * atan: polynomial on [0, 1], above it atan(x) = pi/2 - atan(1/x). */

#define PI_F32 0x1.921fb6p1f
#define PI_2_HI_F32 0x1.921fb6p0f
#define PI_2_RATIO_F32 -0x1.de12cap-26f /* what is left of pi/2, over that */
#define ONE_OVER_PI_F32                                                                                      \
    0x1.45f306p-2f /* its low part is the first coefficient of poly_asinpi, poly_atanpi                      \
                    */

/* The square of what asin is taken of, t: |x| up to 1/2, else sqrt((1 - |x|) / 2), the smaller of the two. */
HELPER float asin_square_f32(float ax) {
    float square = ax * ax, half_rest = FMA(ax, -0.5f, 0.5f);
    return half_rest < square ? half_rest : square;
}

/* t up to 1/2; from there on -2 times what it is, and the result pi/2 more. */
float __cld_asin_f32(float x) {
    float ax = ABS(x), z = asin_square_f32(ax), t = ax > 0.5f ? -2.0f * SQRT(z) : ax;
    float base = ax > 0.5f ? PI_2_HI_F32 : 0.0f, head = base + t;
    float low = FMA(base, PI_2_RATIO_F32, (base - head) + t);
    return flip_f32(head + FMA(t * z, poly_asin_f32(z), low), as_uint(x));
}

/* pi/2 - asin up to 1/2, from there on what is left from 0 or pi. */
float __cld_acos_f32(float x) {
    float ax = ABS(x), z = asin_square_f32(ax), t = ax > 0.5f ? -2.0f * SQRT(z) : ax;
    float core = flip_f32(FMA(t * z, poly_asin_f32(z), t), as_uint(x));
    float base = as_int(x) < 0 ? PI_F32 : 0.0f;
    base = ax > 0.5f ? base : PI_2_HI_F32;
    return base + FMA(base, PI_2_RATIO_F32, -core);
}

/* asin over pi */
HELPER float asinpi_core_f32(float t, float z) {
    return FMA(t, ONE_OVER_PI_F32, t * poly_asinpi_f32(z));
}

float __cld_asinpi_f32(float x) {
    float ax = ABS(x), z = asin_square_f32(ax), t = ax > 0.5f ? -2.0f * SQRT(z) : ax;
    return flip_f32((ax > 0.5f ? 0.5f : 0.0f) + asinpi_core_f32(t, z), as_uint(x));
}

float __cld_acospi_f32(float x) {
    float ax = ABS(x), z = asin_square_f32(ax), t = ax > 0.5f ? -2.0f * SQRT(z) : ax;
    float core = flip_f32(asinpi_core_f32(t, z), as_uint(x));
    float base = as_int(x) < 0 ? 1.0f : 0.0f;
    return (ax > 0.5f ? base : 0.5f) - core;
}

/* atan(t) for -1 <= t <= 1 */
HELPER float atan_core_f32(float t) {
    float z = t * t;
    return FMA(t * z, poly_atan_f32(z), t);
}

HELPER float atanpi_core_f32(float t) {
    return FMA(t, ONE_OVER_PI_F32, t * poly_atanpi_f32(t * t));
}

/* pi/2 - atan(1/x) from 1 on. */
float __cld_atan_f32(float x) {
    float ax = ABS(x), core = atan_core_f32(ax > 1.0f ? -1.0f / ax : ax);
    return flip_f32((ax > 1.0f ? PI_2_HI_F32 : 0.0f) + core, as_uint(x));
}

float __cld_atanpi_f32(float x) {
    float ax = ABS(x), core = atanpi_core_f32(ax > 1.0f ? -1.0f / ax : ax);
    return flip_f32((ax > 1.0f ? 0.5f : 0.0f) + core, as_uint(x));
}

/* The smaller of |y| and |x| over the larger: 0/0 counts as 0, infinity/infinity as 1, a NaN stays. */
HELPER float ratio_f32(float ay, float ax, __private bool *swap) {
    *swap = ay > ax;
    float above = *swap ? ax : ay;
    float below = *swap ? ay : ax;
    float t = above / below;
    return above == below ? (below == 0.0f ? 0.0f : 1.0f) : t;
}

/* From core, for the ratio: y over x, or x over y from half of pi on; pi less what it is for -x. */
HELPER float atan2_of_core_f32(float core, float y, float x, bool swap, float half_pi, float pi) {
    float base = as_int(x) < 0 ? pi : 0.0f;
    core = flip_f32(core, as_uint(x) ^ (swap ? 0x80000000u : 0u));
    return flip_f32((swap ? half_pi : base) + core, as_uint(y));
}

float __cld_atan2_f32(float y, float x) {
    bool swap;
    float core = atan_core_f32(ratio_f32(ABS(y), ABS(x), &swap));
    return atan2_of_core_f32(core, y, x, swap, PI_2_HI_F32, PI_F32);
}

float __cld_atan2pi_f32(float y, float x) {
    bool swap;
    float core = atanpi_core_f32(ratio_f32(ABS(y), ABS(x), &swap));
    return atan2_of_core_f32(core, y, x, swap, 0.5f, 1.0f);
}
