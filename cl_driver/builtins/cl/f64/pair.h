/* Values as unevaluated sums high + low of two doubles, |low| <= ulp(high) / 2: Dekker's and Knuth's exact
 * sums and fma's exact products. */

/* a + b exactly, for |a| >= |b| or a a multiple of the last place of b. */
HELPER double fast_sum(double a, double b, __private double *low) {
    double high = a + b;
    *low = b - (high - a);
    return high;
}

HELPER double exact_sum(double a, double b, __private double *low) {
    double high = a + b, part = high - a;
    *low = (a - (high - part)) + (b - part);
    return high;
}

HELPER double exact_product(double a, double b, __private double *low) {
    double high = a * b;
    *low = FMA(a, b, -high);
    return high;
}

/* (a + a_low) (b + b_low), relative error about 2^-104 */
HELPER double pair_product(double a, double a_low, double b, double b_low, __private double *low) {
    double rest, high = exact_product(a, b, &rest);
    return fast_sum(high, rest + FMA(a, b_low, a_low * b), low);
}

/* x = 2^k m, m in [sqrt(1/2), sqrt(2)), for positive finite x; denormals are scaled up first. */
HELPER double split_f64(double x, __private double *k) {
    bool tiny = x < 0x1p-1022;
    ulong bits = as_ulong(tiny ? x * 0x1p54 : x);
    int e = ((int)(bits >> 32) - SQRT_HALF_HIGH_F64) >> 20;
    *k = (double)(e - (tiny ? 54 : 0));
    return as_double(bits - ((ulong)(uint)e << 52));
}

/* The same for normal x; by integers of 64 bits only. */
HELPER double split_near_f64(double x, __private double *k) {
    const ulong below_one = 0x3ff0000000000000UL - ((ulong)SQRT_HALF_HIGH_F64 << 32);
    ulong bits = as_ulong(x) + below_one;
    *k = as_double((bits >> 52) | 0x4330000000000000UL) - (0x1p52 + 1023.0);
    return as_double((bits & 0xfffffffffffffUL) + (0x3ff0000000000000UL - below_one));
}

/* Whether x is no positive normal number: the integers of those are from one on. Signed, for AVX2; clang would
 * make a classification of many steps of two comparisons of x. */
HELPER bool is_abnormal_f64(double x) {
    return (long)(as_ulong(x) + 0x7ff0000000000000UL) >= (long)0xffe0000000000000UL;
}

/* log2(x) for positive finite x, relative error below 2^-65: s = (m - 1) / (m + 1) as a pair and
 * log2(m) = s (c0 + z (c1 + z p(z))), z = s^2, the first two terms in pairs. */
HELPER double log2_pair(double x, __private double *low) {
    double k, m = split_f64(x, &k);
    double f = m - 1.0;
    double below_low, below = fast_sum(m > 1.0 ? m : 1.0, m > 1.0 ? 1.0 : m, &below_low);
    double inverse = 1.0 / below;
    double s = f * inverse;
    double s_low = (FMA(-s, below, f) - s * below_low) * inverse;
    s = fast_sum(s, s_low, &s_low);
    double z_low, z = pair_product(s, s_low, s, s_low, &z_low);
    double sum_low, sum = fast_sum(0x1.ec709dc3a03fdp-1, z * poly_log2_tail_f64(z), &sum_low);
    sum_low += 0x1.d27f05548af0cp-55;
    double t_low, t = pair_product(sum, sum_low, z, z_low, &t_low);
    sum = fast_sum(0x1.71547652b82fep1, t, &sum_low);
    sum_low += t_low + 0x1.777d0ffda0d24p-55;
    t = pair_product(sum, sum_low, s, s_low, &t_low);
    double rest, high = fast_sum(k, t, &rest); /* exact for k = 0, too */
    return fast_sum(high, rest + t_low, low);
}

/* 2^(high + low) for |high| <= 2000: low results are rounded once. */
HELPER double exp2_pair(double high, double low) {
    double t = high + ROUND_F64;
    int k = (int)as_long(t);
    double r = (high - (t - ROUND_F64)) + low;
    double square = r * r;
    double p = FMA(r, 0x1.62e42fefa39efp-1, r * poly_exp2_f64(r, square));
    return scale_f64(1.0 + p, k);
}
