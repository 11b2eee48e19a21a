/* pow, pown, powr, rootn, cbrt, hypot, rsqrt in double precision: exp2(y log2|x|) with the logarithm and the
 * product in pairs of doubles. */

/* |x|^(y + y_low); zeros, infinities and NaN as in power_f32. */
HELPER double power_f64(double ax, double y, double y_low) {
    double l_low, l = log2_pair(ax, &l_low);
    bool ordinary = ax > 0.0 && ax < INF_F64;
    l = ax == 0.0 ? -INF_F64 : l;
    l = ax < INF_F64 ? l : ax;
    double p_low, p = exact_product(l, y, &p_low);
    p_low += FMA(l, y_low, l_low * y);
    bool in_range = ABS(p) < 1100.0 && ordinary;
    p = p > 1100.0 ? 1100.0 : p;
    p = p < -1100.0 ? -1100.0 : p;
    return exp2_pair(p, in_range ? p_low : 0.0);
}

double __cld_pow_f64(double x, double y) {
    double ax = ABS(x), ay = ABS(y);
    bool integer = TRUNC(y) == y;
    bool odd = integer & (ay < 0x1p53) & (TRUNC(0.5 * y) != 0.5 * y);
    double result = power_f64(ax, y, 0.0);
    result = ((x < 0.0) & !integer & (ax < INF_F64)) ? NAN_F64 : result;
    result = flip_f64(result, odd ? as_ulong(x) : 0);
    result = ((ax == 1.0) & (ay == INF_F64)) ? 1.0 : result;
    return ((x == 1.0) | (y == 0.0)) ? 1.0 : result;
}

double __cld_powr_f64(double x, double y) {
    double result = power_f64(x, y, 0.0);
    return x >= 0.0 ? result : NAN_F64;
}

double __cld_pown_f64(double x, int n) {
    double result = power_f64(ABS(x), (double)n, 0.0);
    result = flip_f64(result, n & 1 ? as_ulong(x) : 0);
    return n == 0 ? 1.0 : result;
}

double __cld_rootn_f64(double x, int n) {
    double d = (double)n;
    double y = 1.0 / d, y_low = FMA(-y, d, 1.0) / d;
    double result = power_f64(ABS(x), y, y_low);
    result = flip_f64(result, n & 1 ? as_ulong(x) : 0);
    return n == 0 || (x < 0.0 && !(n & 1)) ? NAN_F64 : result;
}

/* 1 / cbrt(a) from a third of the exponent, each step leaving the third power of the error: y (1 + e/3 + 2/9
 * e^2), e = 1 - a y^3. Then a y^2, and a step of Newton with an exact residual. */
double __cld_cbrt_f64(double x) {
    double ax = ABS(x);
    bool tiny = ax < 0x1p-900, big = ax > 0x1p900;
    double a = ax * (tiny ? 0x1p600 : (big ? 0x1p-600 : 1.0));
    double y = as_double((ulong)(0x553ee800u - (uint)(as_ulong(a) >> 32) / 3u) << 32);
    for (int step = 0; step < 2; step++) {
        double e = FMA(-a * y, y * y, 1.0);
        y = FMA(y * e, FMA(e, 0x1.c71c71c71c71cp-3, 0x1.5555555555555p-2), y);
    }
    double t = a * y * y;
    double low, square = exact_product(t, t, &low);
    double residual = FMA(-square, t, a) - low * t;
    t = FMA(residual * (1.0 / 3.0), y * y, t);
    t *= tiny ? 0x1p-200 : (big ? 0x1p200 : 1.0);
    return ax > 0.0 && ax < INF_F64 ? COPYSIGN(t, x) : x;
}

/* sqrt(a^2 + b^2) for a >= b that are neither huge nor tiny: the root of the rounded sum, then a step of
 * Newton that takes in what rounding took from the sum. Its 1 / (2 h) needs only some bits: the bits of h
 * negated are 1 / (sqrt(2) h) to 2 %, and a step leaves the square of that. */
HELPER double root_of_squares(double a, double b) {
    double aa = a * a, sum = FMA(b, b, aa);
    double low = FMA(b, b, aa - sum) + FMA(a, a, -aa);
    double h = ROOT(sum);
    double residual = FMA(-h, h, sum) + low;
    double y = as_double(0x7fd641b000000000UL - as_ulong(h));
    return FMA(residual * y, FMA(-h, y, 0x1.6a09e667f3bcdp0), h);
}

/* Powers of two scale what is not near 1. */
double __cld_hypot_f64(double x, double y) {
    double ax = ABS(x), ay = ABS(y);
    double big = ax > ay ? ax : ay, small = ax > ay ? ay : ax;
    double result = root_of_squares(big, small);
    if (RARELY(!((big > 0x1p-400) & (big < 0x1p500)))) {
        double scale = big > 1.0 ? 0x1p-600 : 0x1p600, unscale = big > 1.0 ? 0x1p600 : 0x1p-600;
        double scaled = root_of_squares(big * scale, small * scale) * unscale;
        result = ((big > 0x1p-400) & (big < 0x1p500)) ? result : scaled;
        result = big == 0.0 ? 0.0 : result;
        result = x != x || y != y ? x + y : result;
        result = ax == INF_F64 || ay == INF_F64 ? INF_F64 : result;
    }
    return result;
}

double __cld_rsqrt_f64(double x) {
    double y = 1.0 / SQRT(x);
    double low, high = exact_product(x, y, &low);
    double residual = FMA(-low, y, FMA(-high, y, 1.0));
    double better = FMA(0.5 * y, residual, y);
    return x > 0.0 && x < INF_F64 ? better : y;
}
