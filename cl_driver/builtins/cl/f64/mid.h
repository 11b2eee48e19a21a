/* log, log2 and exp2 in double arithmetic with 34 to 45 correct bits: the inner steps of single-precision
 * functions whose intermediate results need more than single precision. */

#define SQRT_HALF_HIGH_F64 0x3fe6a09e /* upper word of sqrt(1/2) */

/* x = 2^k m with m in [sqrt(1/2), sqrt(2)) for normal positive x; returns s = (m - 1) / (m + 1). */
HELPER double mid_split(double x, __private double *k) {
    int e = ((int)(as_ulong(x) >> 32) - SQRT_HALF_HIGH_F64) >> 20;
    double m = as_double(as_ulong(x) - ((ulong)(uint)e << 52));
    *k = (double)e;
    return (m - 1.0) / (m + 1.0);
}

HELPER double log_mid(double x) {
    double k;
    double s = mid_split(x, &k);
    return FMA(k, 0x1.62e42fefa39efp-1, s * poly_log_mid(s * s));
}

HELPER double log2_mid(double x) {
    double k;
    double s = mid_split(x, &k);
    return k + s * poly_log2_mid(s * s);
}

/* |x| <= 1000 or NaN */
HELPER double exp2_mid(double x) {
    double t = x + ROUND_F64;
    double r = x - (t - ROUND_F64);
    double p = FMA(r, poly_exp2_mid(r), 1.0);
    return as_double(as_ulong(p) + (as_ulong(t) << 52));
}
