/* log, log2, log10, log1p in single precision: x = 2^k m with m in [sqrt(1/2), sqrt(2)), f = m - 1 exactly,
 * polynomial in f. Where k = 0 the terms with k vanish exactly, so results near 0 keep their relative
 * accuracy. */

#define SQRT_HALF_BITS_F32 0x3f3504f3
#define LN2_F32 0x1.62e43p-1f

/* Splits a positive finite x; denormals are scaled up first. */
HELPER float split_f32(float x, __private float *k) {
    bool tiny = x < 0x1p-126f;
    int bits = as_int(tiny ? x * 0x1p24f : x);
    int e = (bits - SQRT_HALF_BITS_F32) >> 23;
    *k = (float)(e - (tiny ? 24 : 0));
    return as_float(bits - (e << 23));
}

/* The same for normal x. */
HELPER float split_near_f32(float x, __private float *k) {
    int bits = as_int(x) - SQRT_HALF_BITS_F32;
    *k = (float)(bits >> 23);
    return as_float((bits & 0x7fffff) + SQRT_HALF_BITS_F32);
}

/* See is_abnormal_f64. */
HELPER bool is_abnormal_f32(float x) {
    return (int)(as_uint(x) + 0x7f800000u) >= (int)0xff000000u;
}

/* The results that no polynomial gives: x < 0, 0, infinity, NaN. */
HELPER float log_special_f32(float x, float result) {
    result = x == INF_F32 ? INF_F32 : result;
    result = x == 0.0f ? -INF_F32 : result;
    return x >= 0.0f ? result : NAN_F32;
}

/* k ln2 + log(1 + f). ln2 is a float but for 2^-29 of it. */
HELPER float log_sum_f32(float k, float f) {
    return FMA(k, LN2_F32, FMA(f * f, FMA(f, poly_log_f32(f), -0.5f), f));
}

/* The same + low, for functions with smaller bounds. */
HELPER float log_sum_low_f32(float k, float f, float low) {
    return FMA(k, LN2_F32, f + FMA(f * f, FMA(f, poly_log1p_f32(f), -0.5f), low));
}

HELPER float log2_sum_f32(float k, float f) {
    return k + FMA(f, 0x1.715476p0f, f * poly_log2_f32(f));
}

HELPER float log10_sum_f32(float k, float f) {
    float t = FMA(k, 0x1.3509f8p-18f, f * poly_log10_f32(f));
    return FMA(k, 0x1.344p-2f, FMA(f, 0x1.bcb7b2p-2f, t));
}

float __cld_log_f32(float x) {
    float k, f = split_near_f32(x, &k) - 1.0f, result = log_sum_f32(k, f);
    if (RARELY(is_abnormal_f32(x))) {
        f = split_f32(x, &k) - 1.0f;
        result = log_special_f32(x, log_sum_f32(k, f));
    }
    return result;
}

float __cld_log2_f32(float x) {
    float k, f = split_near_f32(x, &k) - 1.0f, result = log2_sum_f32(k, f);
    if (RARELY(is_abnormal_f32(x))) {
        f = split_f32(x, &k) - 1.0f;
        result = log_special_f32(x, log2_sum_f32(k, f));
    }
    return result;
}

float __cld_log10_f32(float x) {
    float k, f = split_near_f32(x, &k) - 1.0f, result = log10_sum_f32(k, f);
    if (RARELY(is_abnormal_f32(x))) {
        f = split_f32(x, &k) - 1.0f;
        result = log_special_f32(x, log10_sum_f32(k, f));
    }
    return result;
}

/* 1 + x + low = 2^k (1 + f + f_low) with x > -1 and low a few last places of x. 1 + x is rounded only to find
 * k; f = 2^-k x + (2^-k - 1) is rounded once, or not at all for k = 0. */
HELPER float log1p_reduce_f32(float x, float low, __private float *k, __private float *f_low) {
    float m = split_near_f32(1.0f + x, k);
    float scale = pow2_f32(-(int)*k);
    float f = FMA(x, scale, scale - 1.0f);
    f = x > 0x1p60f ? m - 1.0f : f; /* from there scale may be denormal */
    low = x > 0x1p60f ? 0.0f : low * scale;
    *f_low = FMA(low, FMA(f, f, -f), low); /* low / (1 + f) */
    return f;
}

/* log(1 + x + low) */
HELPER float log1p_pair_f32(float x, float low) {
    float k, f_low, f = log1p_reduce_f32(x, low, &k, &f_low);
    return log_sum_low_f32(k, f, f_low);
}

float __cld_log1p_f32(float x) {
    float result = log1p_pair_f32(x, 0.0f);
    result = ABS(x) < 0x1p-30f ? x : result;
    result = x == INF_F32 ? INF_F32 : result;
    result = x == -1.0f ? -INF_F32 : result;
    return x >= -1.0f ? result : NAN_F32;
}
