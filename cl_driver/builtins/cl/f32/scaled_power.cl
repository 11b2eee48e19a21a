/* pow, powr, pown and rootn in single precision for CPUs with AVX-512: as in cl/f64/scaled.cl, with r = n/64,
 * all in pairs of floats. */

INSTRUCTION float __cld_op_reciprocal14(float x);
/* The one of the 32 that the low five bits of the first argument tell. */
INSTRUCTION float __cld_op_lookup(float, float, float, float, float, float, float, float, float, float, float,
                                  float, float, float, float, float, float, float, float, float, float, float,
                                  float, float, float, float, float, float, float, float, float, float,
                                  float);
#define LOOK_UP_F32(index, ...) __cld_op_lookup(index, __VA_ARGS__)

/* a + b exactly, for |a| >= |b| or a = 0 */
HELPER float fast_sum_f32(float a, float b, __private float *low) {
    float high = a + b;
    *low = b - (high - a);
    return high;
}

/* x^(y + y_low) for positive finite x and finite y */
HELPER float power_scaled_f32(float x, float y, float y_low) {
    float m = __cld_op_significand(x), e = __cld_op_exponent(x);
    float index = __cld_op_reciprocal14(m) + 0x1.8p17f; /* 64 / m rounded is in the low bits */
    float n = index - 0x1.8p17f, k = n == 0.5f ? e + 1.0f : e;
    float f = FMA(m, n, -1.0f), product = f * -0x1.715476p-1f, sum_low, rest, low;
    float sum = fast_sum_f32(0x1.715476p0f, product, &sum_low);
    sum_low += FMA(f, -0x1.715476p-1f, -product) + FMA(f, -0x1.4ae0cp-27f, 0x1.4ae0cp-26f);
    float high = sum * f;
    float tail = FMA(sum_low, f, FMA(sum, f, -high)) + LOOK_UP_F32(index, FLOAT_LOGARITHMS_LOW);
    tail = FMA(f * f * f, poly_log2_cubic_f32(f), tail);
    float head = fast_sum_f32(k + LOOK_UP_F32(index, FLOAT_LOGARITHMS_HIGH), high, &rest);
    float l = fast_sum_f32(head, rest + tail, &low);
    float p = l * y, p_low = FMA(l, y, -p) + FMA(l, y_low, low * y);
    p_low = ABS(p) < 200.0f ? p_low : 0.0f;
    p = p > 200.0f ? 200.0f : p;
    p = p < -151.0f ? -1000.0f : p; /* see __cld_op_scale */
    k = (p + ROUND_F32) - ROUND_F32;
    f = (p - k) + p_low;
    return __cld_op_scale(FMA(f, poly_exp2_f32(f), 1.0f), k);
}

/* See power_limit_f64. */
HELPER float power_limit_f32(float ax, float y) {
    float limit = (ax < 1.0f) == (y > 0.0f) ? 0.0f : INF_F32;
    limit = ax == 1.0f ? 1.0f : limit;
    return ax != ax || y != y ? ax + y : limit;
}

float __cld_pow_f32_scaled(float x, float y) {
    float ax = ABS(x), ay = ABS(y);
    float result = power_scaled_f32(ax, y, 0.0f);
    if (RARELY(!((x > 0.0f) & (x < INF_F32) & (ay < INF_F32)))) {
        bool integer = TRUNC(y) == y;
        bool odd = integer & (ay < 0x1p24f) & (TRUNC(0.5f * y) != 0.5f * y);
        result = ((ax > 0.0f) & (ax < INF_F32) & (ay < INF_F32)) ? result : power_limit_f32(ax, y);
        result = ((x < 0.0f) & !integer & (ax < INF_F32)) ? NAN_F32 : result;
        result = flip_f32(result, odd ? as_uint(x) : 0);
        result = ((x == 1.0f) | (y == 0.0f)) ? 1.0f : result;
    }
    return result;
}

float __cld_powr_f32_scaled(float x, float y) {
    float result = power_scaled_f32(x, y, 0.0f);
    if (RARELY(!((x > 0.0f) & (x < INF_F32) & (ABS(y) < INF_F32)))) {
        result = power_limit_f32(ABS(x), y);
        result = ((x < 0.0f) | (x == 1.0f) | (y == 0.0f)) ? NAN_F32 : result;
    }
    return result;
}

/* Large exponents are no floats. */
float __cld_pown_f32_scaled(float x, int n) {
    float ax = ABS(x), y = (float)n;
    float result = power_scaled_f32(ax, y, 0.0f);
    if (RARELY(ABS(y) >= 0x1p24f))
        result = power_f32(ax, (double)n, false);
    if (RARELY(!((ax > 0.0f) & (ax < INF_F32))))
        result = n == 0 ? 1.0f : power_limit_f32(ax, y);
    return flip_f32(result, n & 1 ? as_uint(x) : 0);
}

float __cld_rootn_f32_scaled(float x, int n) {
    float ax = ABS(x), d = (float)n, inverse = DIVIDE_F32(1.0f, n == 0 ? 1.0f : d);
    float y = FMA(inverse, FMA(-inverse, d, 1.0f), inverse), y_low = FMA(-y, d, 1.0f) * inverse;
    float result = power_scaled_f32(ax, y, y_low);
    if (RARELY(!((ax > 0.0f) & (ax < INF_F32) & (n != 0))))
        result = n == 0 ? NAN_F32 : power_limit_f32(ax, d);
    result = flip_f32(result, n & 1 ? as_uint(x) : 0);
    return x < 0.0f && !(n & 1) ? NAN_F32 : result;
}
