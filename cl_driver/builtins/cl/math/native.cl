/* native_*: fewer steps, an error of a few units in the last place where the result is large, and no care for
 * denormal numbers; circular functions are good for |x| up to 2^22, without a slow path. Also what half_sin,
 * half_cos and half_tan call, whose range is |x| <= 2^16. */

/* sin(x - k pi). Where x is too large, it stays within -1 and 1 all the same. */
HELPER float sin_native(float x, float k) {
    float r = FMA(k, -2.0f * PI_2_2_F32, FMA(k, -2.0f * PI_2_1_F32, x));
    r = FMA(k, -2.0f * PI_2_3_F32, r);
    float z = r * r;
    float y = FMA(z * r, poly_half_circle_f32(z), r);
    y = y > 1.0f ? 1.0f : y;
    return y < -1.0f ? -1.0f : y;
}

float __cld_native_sin_f32(float x) {
    float t = FMA(x, 0x1.45f306p-2f, ROUND_F32);
    return flip_f32(sin_native(x, t - ROUND_F32), as_uint(t) << 31);
}

float __cld_native_cos_f32(float x) {
    float t = FMA(x, 0x1.45f306p-2f, 0.5f) + ROUND_F32;
    return flip_f32(sin_native(x, (t - ROUND_F32) - 0.5f), as_uint(t) << 31);
}

float __cld_native_tan_f32(float x) {
    float t = FMA(x, 0x1.45f306p-1f, ROUND_F32), k = t - ROUND_F32;
    float r = FMA(k, -PI_2_3_F32, FMA(k, -PI_2_2_F32, FMA(k, -PI_2_1_F32, x)));
    r = ABS(r) > 1.0f ? 0.0f : r; /* x was too large */
    float z = r * r, y = FMA(z * r, poly_tan_f32(z), r);
    return as_int(t) & 1 ? -1.0f / y : y;
}

/* 2^y: 0 for results below about 2^-126, infinity where it overflows: the exponents before and after those of
 * numbers. */
float __cld_native_exp2_f32(float y) {
    float c = y > 128.0f ? 128.0f : y;
    c = c < -127.0f ? -127.0f : c;
    float t = c + ROUND_F32, r = c - (t - ROUND_F32);
    return scale_near_f32(FMA(r, poly_native_exp2_f32(r), 1.0f), t);
}

#define LOG2_E_F32 0x1.715476p0f
#define LOG2_10_F32 0x1.a934fp1f
#define LOG10_2_F32 0x1.344136p-2f

float __cld_native_exp_f32(float x) {
    return __cld_native_exp2_f32(x * LOG2_E_F32);
}

float __cld_native_exp10_f32(float x) {
    return __cld_native_exp2_f32(x * LOG2_10_F32);
}

/* What the approximation gives for normal x > 0; infinity and NaN as they are, -infinity for 0. */
HELPER float log_limit_native(float result, float x) {
    result = x < INF_F32 ? result : x;
    return x == 0.0f ? -INF_F32 : result;
}

float __cld_native_log2_f32(float x) {
    float k, f = split_near_f32(x, &k) - 1.0f;
    return log_limit_native(FMA(f, poly_native_log2_f32(f), k), x);
}

float __cld_native_log_f32(float x) {
    return __cld_native_log2_f32(x) * LN2_F32;
}

float __cld_native_log10_f32(float x) {
    return __cld_native_log2_f32(x) * LOG10_2_F32;
}

/* Its logarithm takes more bits: some are lost in the product. */
float __cld_native_powr_f32(float x, float y) {
    float k, f = split_near_f32(x, &k) - 1.0f;
    return __cld_native_exp2_f32(y * log_limit_native(FMA(f, poly_native_powr_f32(f), k), x));
}

/* In double precision there is nothing to gain that anybody has asked for. */
#define NATIVE_IS_EXACT(name)                                                                                \
    double __cld_native_##name##_f64(double x) {                                                             \
        return __cld_##name##_f64(x);                                                                        \
    }

NATIVE_IS_EXACT(sin)
NATIVE_IS_EXACT(cos)
NATIVE_IS_EXACT(tan)
NATIVE_IS_EXACT(exp)
NATIVE_IS_EXACT(exp2)
NATIVE_IS_EXACT(exp10)
NATIVE_IS_EXACT(log)
NATIVE_IS_EXACT(log2)
NATIVE_IS_EXACT(log10)

double __cld_native_powr_f64(double x, double y) {
    return __cld_powr_f64(x, y);
}
