/* pow, pown, powr, rootn, cbrt, hypot, rsqrt in single precision. |x|^y = exp2(y log2|x|) with the product
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

/* A guess by a third of the exponent (3.4 %), one step of Halley, one of Newton with an exact residual. */
float __cld_cbrt_f32(float x) {
    float ax = ABS(x);
    bool tiny = ax<0x1p-100f, big = ax> 0x1p100f;
    float a = ax * (tiny ? 0x1p48f : (big ? 0x1p-48f : 1.0f));
    float t = as_float((int)((float)as_int(a) * 0x1.555556p-2f) + 0x2a5119f2);
    float cube = t * t * t;
    t = t * (FMA(2.0f, a, cube) / FMA(2.0f, cube, a));
    float square = t * t, low = FMA(t, t, -square);
    float residual = FMA(-square, t, a) - low * t;
    t = FMA(residual, 1.0f / (3.0f * square), t);
    t *= tiny ? 0x1p-16f : (big ? 0x1p16f : 1.0f);
    return ((ax > 0.0f) & (ax < INF_F32)) ? COPYSIGN(t, x) : x;
}

#define TINY_SQUARE 0x1p-90f
#define HUGE_SQUARE 0x1p+126f

/* Whether a sum of squares may have lost bits; also true of NaN. */
HELPER bool has_no_square_f32(float square) {
    return !(square > TINY_SQUARE && square < HUGE_SQUARE);
}

/* Scaled by a power of two near the larger argument. */
HELPER float hypot_far_f32(float ax, float ay) {
    float larger = ax > ay ? ax : ay;
    bool big = larger > 0x1p60f, tiny = larger < 0x1p-50f;
    float scale = tiny ? 0x1p90f : (big ? 0x1p-80f : 1.0f),
          unscale = tiny ? 0x1p-90f : (big ? 0x1p80f : 1.0f);
    float a = ax * scale, b = ay * scale;
    float result = SQRT(FMA(a, a, b * b)) * unscale;
    return ((ax == INF_F32) | (ay == INF_F32)) ? INF_F32 : result;
}

float __cld_hypot_f32(float x, float y) {
    float square = FMA(x, x, y * y), result = SQRT(square);
    if (RARELY(has_no_square_f32(square)))
        result = hypot_far_f32(ABS(x), ABS(y));
    return result;
}

/* 1 / sqrt(x) and one Newton step on the residual 1 - x y^2, x y being taken in two parts. */
float __cld_rsqrt_f32(float x) {
    float y = 1.0f / SQRT(x);
    float high = x * y, low = FMA(x, y, -high);
    float residual = FMA(-low, y, FMA(-high, y, 1.0f));
    float better = FMA(0.5f * y, residual, y);
    return x > 0.0f && x < INF_F32 ? better : y;
}
