/* exp, exp2, exp10, expm1 in single precision.
 * x = k ln2 + r (Cody and Waite), |r| <= ln2 / 2, polynomial in r, scaled by 2^k in two exact steps so that
 * denormal results are rounded once. Clamping keeps k in range and leaves overflow and NaN to the arithmetic.
 * What is too small goes to where scale_f32 takes 0 for a factor (ZERO_SCALE_F32): results that underflow take
 * Intel's CPUs much longer, even if they are 0 then.
 */

#define LN2_HI_F32 0x1.62e8p-1f /* 13 bits: k * LN2_HI is exact */
#define LN2_LO_F32 -0x1.e8082ep-16f

float __cld_exp_f32(float x) {
    float c = x > 89.0f ? 89.0f : x;
    c = c < -104.5f ? ZERO_SCALE_F32 * 0x1.62e43p-1f : c;
    float t = FMA(c, 0x1.715476p0f, ROUND_F32);
    int k = as_int(t) - as_int(ROUND_F32);
    float kf = t - ROUND_F32;
    float r = FMA(kf, -LN2_HI_F32, c);
    r = FMA(kf, -LN2_LO_F32, r);
    float p = FMA(r * r, poly_exp_f32(r), r);
    return scale_f32(1.0f + p, k);
}

/* For 2^x = 2^k 2^r: r, |r| <= 1/2. */
HELPER float split_exp2_f32(float x, __private int *k) {
    float c = x > 129.0f ? 129.0f : x;
    c = c < -151.0f ? ZERO_SCALE_F32 : c;
    float t = c + ROUND_F32;
    *k = as_int(t) - as_int(ROUND_F32);
    return c - (t - ROUND_F32);
}

float __cld_exp2_f32(float x) {
    int k;
    float r = split_exp2_f32(x, &k);
    return scale_f32(FMA(r, poly_exp2_f32(r), 1.0f), k);
}

float __cld_exp10_f32(float x) {
    float c = x > 39.0f ? 39.0f : x;
    c = c < -46.0f ? ZERO_SCALE_F32 * 0x1.344136p-2f : c;
    float t = FMA(c, 0x1.a934fp1f, ROUND_F32);
    int k = as_int(t) - as_int(ROUND_F32);
    float kf = t - ROUND_F32;
    float r = FMA(kf, -0x1.344p-2f, c); /* log10(2), its first 11 bits */
    r = FMA(kf, -0x1.3509f8p-18f, r);
    return scale_f32(FMA(r, poly_exp10_f32(r), 1.0f), k);
}

/* 2^k (1 + p) - 1 = 2 (2^(k-1) p + (2^(k-1) - 1/2)), halved so that k = 128 does not overflow early. */
float __cld_expm1_f32(float x) {
    float c = x > 89.0f ? 89.0f : x;
    c = c < -18.0f ? -18.0f : c;
    float t = FMA(c, 0x1.715476p0f, ROUND_F32);
    int k = as_int(t) - as_int(ROUND_F32);
    float kf = t - ROUND_F32;
    float r = FMA(kf, -LN2_HI_F32, c);
    r = FMA(kf, -LN2_LO_F32, r);
    float p = FMA(r * r, poly_expm1_f32(r), r);
    float scale = pow2_f32(k - 1);
    float result = 2.0f * FMA(scale, p, scale - 0.5f);
    result = k == 0 ? p : result;
    return x == 0.0f ? x : result;
}
