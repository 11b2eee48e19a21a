/* exp, exp2, exp10, expm1 in single precision.
 * x = k ln2 + r (Cody and Waite), |r| <= ln2 / 2, polynomial in r, scaled by adding k to the exponent. What
 * is no normal number then takes a rare branch: scaled by 2^k in two exact steps, so that denormal results
 * are rounded once. What is too small goes to where scale_f32 takes 0 for a factor (ZERO_SCALE_F32): results
 * that underflow take Intel's CPUs much longer, even if they are 0 then.
 */

#define LN2_HI_F32 0x1.62e8p-1f /* 13 bits: k * LN2_HI is exact */
#define LN2_LO_F32 -0x1.e8082ep-16f

/* r = x - k ln2; t has k in its low bits. */
HELPER float reduce_exp_f32(float x, __private float *t) {
    *t = FMA(x, 0x1.715476p0f, ROUND_F32);
    float k = *t - ROUND_F32;
    return FMA(k, -LN2_LO_F32, FMA(k, -LN2_HI_F32, x));
}

/* exp(r) */
HELPER float exp_rest_f32(float r) {
    return FMA(r, FMA(r, poly_exp_f32(r), 1.0f), 1.0f);
}

/* 2^k p for normal results; k is in the low bits of t. */
HELPER float scale_near_f32(float p, float t) {
    return as_float(as_uint(p) + (as_uint(t) << 23));
}

/* The same for results that may be denormal, 0 or infinite: infinity above most, 0 below least. */
HELPER float scale_far_f32(float p, float t, float x, float most, float least) {
    float result = scale_f32(p, x < least ? (int)ZERO_SCALE_F32 : as_int(t) - as_int(ROUND_F32));
    result = x > most ? INF_F32 : result;
    return x < least ? 0.0f : result;
}

float __cld_exp_f32(float x) {
    float t, r = reduce_exp_f32(x, &t), p = exp_rest_f32(r);
    float result = scale_near_f32(p, t);
    if (RARELY(!(ABS(x) < 87.0f)))
        result = scale_far_f32(p, t, x, 89.0f, -104.5f);
    return result;
}

float __cld_exp2_f32(float x) {
    float t = x + ROUND_F32, r = x - (t - ROUND_F32);
    float p = FMA(r, poly_exp2_f32(r), 1.0f);
    float result = scale_near_f32(p, t);
    if (RARELY(!(ABS(x) < 126.0f)))
        result = scale_far_f32(p, t, x, 129.0f, -151.0f);
    return result;
}

float __cld_exp10_f32(float x) {
    float t = FMA(x, 0x1.a934fp1f, ROUND_F32), k = t - ROUND_F32;
    float r = FMA(k, -0x1.344p-2f, x); /* log10(2), its first 11 bits */
    r = FMA(k, -0x1.3509f8p-18f, r);
    float p = FMA(r, poly_exp10_f32(r), 1.0f);
    float result = scale_near_f32(p, t);
    if (RARELY(!(ABS(x) < 37.0f)))
        result = scale_far_f32(p, t, x, 39.0f, -46.0f);
    return result;
}

/* 2^k (1 + p) - 1 = 2 (2^(k-1) p + (2^(k-1) - 1/2)), halved so that k = 128 does not overflow early. */
float __cld_expm1_f32(float x) {
    float c = x > 89.0f ? 89.0f : x;
    c = c < -18.0f ? -18.0f : c;
    float t, r = reduce_exp_f32(c, &t);
    float p = FMA(r * r, poly_expm1_f32(r), r);
    float scale = scale_near_f32(0.5f, t);
    float result = 2.0f * FMA(scale, p, scale - 0.5f);
    return ABS(x) < 0x1p-30f ? x : result;
}
