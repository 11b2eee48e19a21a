/* pow, pown, powr, rootn, cbrt, hypot, rsqrt in single precision: |x|^y = exp2(y log2|x|) with the product
 * and both functions in double arithmetic, which leaves little but the final rounding. */

/* |x|^y, also for zeros and infinities: log2 is then -infinity or infinity, and clamping gives 0 or infinity.
 * NaN for NaN arguments, 0 * infinity and 1^infinity: the callers know what those are. */
HELPER float power_f32(float ax, double y, bool reciprocal) {
    double l = log2_mid((double)ax);
    l = ax == 0.0f ? -INF_F64 : l;
    l = ax < INF_F32 ? l : (double)ax;
    double p = reciprocal ? l / y : l * y;
    p = p > 200.0 ? 200.0 : p;
    p = p < -200.0 ? -200.0 : p;
    return (float)exp2_mid(p);
}

float __cld_pow_f32(float x, float y) {
    float ax = ABS(x), ay = ABS(y);
    bool integer = TRUNC(y) == y;
    bool odd = integer & (ay < 0x1p24f) & (TRUNC(0.5f * y) != 0.5f * y);
    float result = power_f32(ax, (double)y, false);
    result = ((x < 0.0f) & !integer & (ax < INF_F32)) ? NAN_F32 : result;
    result = flip_f32(result, odd ? as_uint(x) : 0);
    result = ((ax == 1.0f) & (ay == INF_F32)) ? 1.0f : result;
    return ((x == 1.0f) | (y == 0.0f)) ? 1.0f : result;
}

float __cld_powr_f32(float x, float y) {
    float result = power_f32(x, (double)y, false);
    return x >= 0.0f ? result : NAN_F32;
}

float __cld_pown_f32(float x, int n) {
    float result = power_f32(ABS(x), (double)n, false);
    result = flip_f32(result, n & 1 ? as_uint(x) : 0);
    return n == 0 ? 1.0f : result;
}

float __cld_rootn_f32(float x, int n) {
    float result = power_f32(ABS(x), (double)n, true);
    result = flip_f32(result, n & 1 ? as_uint(x) : 0);
    return n == 0 || (x < 0.0f && !(n & 1)) ? NAN_F32 : result;
}

/* A guess by a third of the exponent (3.4 %), one step of Halley in single and one of Newton in double
 * precision. */
float __cld_cbrt_f32(float x) {
    float ax = ABS(x);
    float scale = ax < 0x1p-100f ? 0x1p24f : (ax > 0x1p100f ? 0x1p-24f : 1.0f);
    double unscale = ax < 0x1p-100f ? 0x1p-8 : (ax > 0x1p100f ? 0x1p8 : 1.0);
    float a = ax * scale;
    float t = as_float(as_uint(a) / 3u + 0x2a5119f2u);
    float cube = t * t * t;
    t = t * (FMA(2.0f, a, cube) / FMA(2.0f, cube, a));
    double d = (double)t, square = d * d;
    d = d - FMA(square, d, -(double)a) / (3.0 * square);
    float result = (float)(d * unscale);
    return ax > 0.0f && ax < INF_F32 ? COPYSIGN(result, x) : x;
}

float __cld_hypot_f32(float x, float y) {
    double a = (double)x, b = (double)y;
    float result = (float)SQRT(FMA(a, a, b * b));
    return ABS(x) == INF_F32 || ABS(y) == INF_F32 ? INF_F32 : result;
}

/* 1 / sqrt(x) and one Newton step on the residual 1 - x y^2, x y being taken in two parts. */
float __cld_rsqrt_f32(float x) {
    float y = 1.0f / SQRT(x);
    float high = x * y, low = FMA(x, y, -high);
    float residual = FMA(-low, y, FMA(-high, y, 1.0f));
    float better = FMA(0.5f * y, residual, y);
    return x > 0.0f && x < INF_F32 ? better : y;
}
