/* asin, acos, atan, atan2 and their forms in multiples of pi, single precision.
 * asin: polynomial up to 1/2, above it asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)).
 * atan: polynomial on [0, 1], above it atan(x) = pi/2 - atan(1/x). */

#define PI_2_HI_F32 0x1.921fb6p0f
#define PI_2_LO_F32 -0x1.777a5cp-25f
#define ONE_OVER_PI_F32                                                                                      \
    0x1.45f306p-2f /* its low part is the first coefficient of poly_asinpi, poly_atanpi                      \
                    */

/* asin(t) = t + *tail with t = |x| up to 1/2, else sqrt((1 - |x|) / 2); NaN where |x| > 1. */
HELPER float asin_core_f32(float ax, __private float *tail) {
    float z = ax > 0.5f ? FMA(ax, -0.5f, 0.5f) : ax * ax;
    float t = ax > 0.5f ? SQRT(z) : ax;
    *tail = t * z * poly_asin_f32(z);
    return t;
}

/* The same over pi: asin(t) / pi = t ONE_OVER_PI + *tail. */
HELPER float asinpi_core_f32(float ax, __private float *tail) {
    float z = ax > 0.5f ? FMA(ax, -0.5f, 0.5f) : ax * ax;
    float t = ax > 0.5f ? SQRT(z) : ax;
    *tail = t * poly_asinpi_f32(z);
    return t;
}

/* pi/2 - 2 t in two parts: rounded only once, it would cost up to another ulp. */
float __cld_asin_f32(float x) {
    float tail, ax = ABS(x), t = asin_core_f32(ax, &tail);
    float high = FMA(t, -2.0f, PI_2_HI_F32), low = FMA(t, -2.0f, PI_2_HI_F32 - high);
    float outer = high + (low - FMA(tail, 2.0f, -PI_2_LO_F32));
    return COPYSIGN(ax > 0.5f ? outer : t + tail, x);
}

float __cld_acos_f32(float x) {
    float tail, ax = ABS(x), t = asin_core_f32(ax, &tail);
    float middle = PI_2_HI_F32 - (COPYSIGN(t, x) + (COPYSIGN(tail, x) - PI_2_LO_F32));
    float left = 2.0f * PI_2_HI_F32 - 2.0f * (t + (tail - PI_2_LO_F32));
    float outer = x < 0.0f ? left : 2.0f * (t + tail);
    return ax > 0.5f ? outer : middle;
}

float __cld_asinpi_f32(float x) {
    float tail, ax = ABS(x), t = asinpi_core_f32(ax, &tail);
    float product = t * (2.0f * ONE_OVER_PI_F32), rest = FMA(t, 2.0f * ONE_OVER_PI_F32, -product);
    float high = 0.5f - product, low = ((0.5f - high) - product) - rest;
    float outer = high + FMA(tail, -2.0f, low);
    return COPYSIGN(ax > 0.5f ? outer : FMA(t, ONE_OVER_PI_F32, tail), x);
}

float __cld_acospi_f32(float x) {
    float tail, ax = ABS(x), t = asinpi_core_f32(ax, &tail);
    float core = FMA(t, ONE_OVER_PI_F32, tail);
    float outer = x < 0.0f ? FMA(core, -2.0f, 1.0f) : 2.0f * core;
    return ax > 0.5f ? outer : 0.5f - COPYSIGN(core, x);
}

/* atan(t) for 0 <= t <= 1 */
HELPER float atan_core_f32(float t) {
    float z = t * t;
    return FMA(t * z, poly_atan_f32(z), t);
}

HELPER float atanpi_core_f32(float t) {
    return FMA(t, ONE_OVER_PI_F32, t * poly_atanpi_f32(t * t));
}

float __cld_atan_f32(float x) {
    float ax = ABS(x);
    float core = atan_core_f32(ax > 1.0f ? 1.0f / ax : ax);
    return COPYSIGN(ax > 1.0f ? PI_2_HI_F32 - (core - PI_2_LO_F32) : core, x);
}

float __cld_atanpi_f32(float x) {
    float ax = ABS(x);
    float core = atanpi_core_f32(ax > 1.0f ? 1.0f / ax : ax);
    return COPYSIGN(ax > 1.0f ? 0.5f - core : core, x);
}

/* The smaller of |y| and |x| over the larger: 0/0 counts as 0, infinity/infinity as 1, a NaN stays. */
HELPER float ratio_f32(float ay, float ax, __private bool *swap) {
    *swap = ay > ax;
    float above = *swap ? ax : ay;
    float below = *swap ? ay : ax;
    float t = above / below;
    return above == below ? (below == 0.0f ? 0.0f : 1.0f) : t;
}

float __cld_atan2_f32(float y, float x) {
    bool swap;
    float core = atan_core_f32(ratio_f32(ABS(y), ABS(x), &swap));
    core = swap ? PI_2_HI_F32 - (core - PI_2_LO_F32) : core;
    core = as_int(x) < 0 ? 2.0f * PI_2_HI_F32 - (core - 2.0f * PI_2_LO_F32) : core;
    return COPYSIGN(core, y);
}

float __cld_atan2pi_f32(float y, float x) {
    bool swap;
    float core = atanpi_core_f32(ratio_f32(ABS(y), ABS(x), &swap));
    core = swap ? 0.5f - core : core;
    core = as_int(x) < 0 ? 1.0f - core : core;
    return COPYSIGN(core, y);
}
