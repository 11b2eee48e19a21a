/* pow, pown, powr, rootn, cbrt, hypot, rsqrt in double precision: exp(y log|x|) with the logarithm and the
 * product in pairs of doubles.
 * log(x): x = 2^k m, m from 0.705 to 1.41, c is 1/m to 8 bits, from a table with log(1/c), and f = c m - 1
 * exactly, |f| < 0.0071: so little that of log(1 + f) only f need be exact. */

#include "memory_tables.h"

#define LEAST_NORMAL_F64 0x1p-1022
#define BELOW_ONE_F64 0x0009700000000000UL /* from the bits of the least m to those of 1 */

/* log(2^k_less x) for positive normal x; low is up to 1/256 of the result. */
HELPER double log_pair(double x, double k_less, __private double *low) {
    ulong bits = as_ulong(x) + BELOW_ONE_F64;
    double k = as_double((bits >> 52) | 0x4330000000000000UL) - (0x1p52 + 1023.0) + k_less;
    double m = as_double((bits & 0xfffffffffffffUL) + (0x3ff0000000000000UL - BELOW_ONE_F64));
    double2 row = power_table[(bits >> 45) & 127];
    double c = (row.x + 0x1.8p44) - 0x1.8p44, scaled = row.x - c;
    double f = FMA(m, c, -1.0), square = f * f;
    double head = FMA(k, LN2_HI_F64, row.y);
    double rest, high = fast_sum(head, f, &rest); /* exact for 0, too */
    rest = FMA(scaled, 0x1p-33, FMA(k, LN2_LO_F64, rest));
    *low = FMA(square, poly_log_power_f64(f, square), rest);
    return high;
}

/* exp(p + p_low) = 2^t result, t in the low bits; sum is about p + p_low. */
HELPER double exp_pair(double p, double p_low, double sum, __private double *t) {
    *t = FMA(sum, 0x1.71547652b82fep0, ROUND_F64);
    double k = *t - ROUND_F64;
    double r = FMA(k, -LN2_HI_F64, p) + FMA(k, -LN2_LO_F64, p_low), square = r * r;
    return 1.0 + FMA(square, poly_exp_power_f64(r, square), r);
}

/* exp(p + p_low) where that may be no normal number */
HELPER double exp_pair_far(double p, double p_low) {
    p_low = ABS(p) < 1100.0 ? p_low : 0.0;
    p = p > 1100.0 ? 1100.0 : p;
    p = p < -1100.0 ? -1100.0 : p;
    double t, result = exp_pair(p, p_low, p + p_low, &t);
    return scale_f64(result, (int)as_long(t));
}

/* (y + y_low) log(x) */
HELPER double power_exponent(double x, double k_less, double y, double y_low, bool has_low,
                             __private double *low) {
    double l_low, l = log_pair(x, k_less, &l_low);
    double p_low, p = exact_product(l, y, &p_low);
    p_low = FMA(l_low, y, p_low);
    *low = has_low ? FMA(l, y_low, p_low) : p_low;
    return p;
}

/* exp(p + p_low) for a sum below 708 */
HELPER double exp_pair_near(double p, double p_low, double sum) {
    double t, result = exp_pair(p, p_low, sum, &t);
    return scale_near_f64(result, t);
}

/* Whether log_pair and exp_pair_near do not do. */
HELPER bool is_unusual_power(double x, double sum) {
    return is_abnormal_f64(x) | !(ABS(sum) < 708.0);
}

/* ax^(y + y_low) for any positive finite ax and finite y */
HELPER double power_far(double ax, double y, double y_low) {
    bool denormal = ax < LEAST_NORMAL_F64;
    double x = denormal ? ax * 0x1p54 : ax, k_less = denormal ? -54.0 : 0.0;
    double p_low, p = power_exponent(x, k_less, y, y_low, true, &p_low);
    return exp_pair_far(p, p_low);
}

/* |x|^y for an x that is zero, infinite or no number, or such a y that is not 0: 0, infinity or NaN, and 1
 * for an x of 1 */
HELPER double power_limit_f64(double ax, double y) {
    double limit = (ax < 1.0) == (y > 0.0) ? 0.0 : INF_F64;
    limit = ax == 1.0 ? 1.0 : limit;
    return ax != ax || y != y ? ax + y : limit;
}

/* pow(x, y) of any x and y, given |x|^y as far as both are finite and not 0 */
HELPER double pow_any_f64(double x, double y, double result) {
    double ax = ABS(x), ay = ABS(y);
    bool integer = TRUNC(y) == y;
    bool odd = integer & (ay < 0x1p53) & (TRUNC(0.5 * y) != 0.5 * y);
    result = ((ax > 0.0) & (ax < INF_F64) & (ay < INF_F64)) ? result : power_limit_f64(ax, y);
    result = ((x < 0.0) & !integer & (ax < INF_F64)) ? NAN_F64 : result;
    result = flip_f64(result, odd ? as_ulong(x) : 0);
    return ((x == 1.0) | (y == 0.0)) ? 1.0 : result;
}

HELPER double powr_any_f64(double x, double y, double result) {
    result = ((x > 0.0) & (x < INF_F64) & (ABS(y) < INF_F64)) ? result : power_limit_f64(ABS(x), y);
    return ((x < 0.0) | (((x == 0.0) | (x == INF_F64)) & (y == 0.0)) | ((x == 1.0) & (ABS(y) == INF_F64)))
               ? NAN_F64
               : result;
}

HELPER double pown_any_f64(double x, int n, double result) {
    double ax = ABS(x);
    result = ((ax > 0.0) & (ax < INF_F64)) ? result : power_limit_f64(ax, (double)n);
    return n == 0 ? 1.0 : result;
}

/* For n other than 0. */
HELPER double rootn_any_f64(double x, int n, double result) {
    double ax = ABS(x);
    return ((ax > 0.0) & (ax < INF_F64)) ? result : power_limit_f64(ax, (double)n);
}

/* 1/d as a pair; 1 for 0 */
HELPER double inverse_pair(double d, __private double *low) {
    d = d == 0.0 ? 1.0 : d;
    double inverse = DIVIDE(1.0, d), y = FMA(inverse, FMA(-inverse, d, 1.0), inverse);
    *low = FMA(-y, d, 1.0) * inverse;
    return y;
}

/* The n-th root of x, given that of |x|. */
HELPER double root_of_sign(double x, int n, double result) {
    result = flip_f64(result, n & 1 ? as_ulong(x) : 0);
    return n == 0 || (x < 0.0 && !(n & 1)) ? NAN_F64 : result;
}

double __cld_pow_f64(double x, double y) {
    double ax = ABS(x), p_low, p = power_exponent(ax, 0.0, y, 0.0, false, &p_low);
    double sum = p + p_low, result = exp_pair_near(p, p_low, sum);
    if (RARELY(is_unusual_power(x, sum)))
        result = pow_any_f64(x, y, power_far(ax, y, 0.0));
    return result;
}

double __cld_powr_f64(double x, double y) {
    double p_low, p = power_exponent(x, 0.0, y, 0.0, false, &p_low);
    double sum = p + p_low, result = exp_pair_near(p, p_low, sum);
    if (RARELY(is_unusual_power(x, sum)))
        result = powr_any_f64(x, y, power_far(ABS(x), y, 0.0));
    return result;
}

double __cld_pown_f64(double x, int n) {
    double ax = ABS(x), y = (double)n, p_low, p = power_exponent(ax, 0.0, y, 0.0, false, &p_low);
    double sum = p + p_low, result = exp_pair_near(p, p_low, sum);
    if (RARELY(is_unusual_power(ax, sum)))
        result = pown_any_f64(x, n, power_far(ax, y, 0.0));
    return flip_f64(result, n & 1 ? as_ulong(x) : 0);
}

double __cld_rootn_f64(double x, int n) {
    double ax = ABS(x), y_low, y = inverse_pair((double)n, &y_low);
    double p_low, p = power_exponent(ax, 0.0, y, y_low, true, &p_low);
    double sum = p + p_low, result = exp_pair_near(p, p_low, sum);
    if (RARELY(is_unusual_power(ax, sum)))
        result = rootn_any_f64(x, n, power_far(ax, y, y_low));
    return root_of_sign(x, n, result);
}

/* A better y for 1 / cbrt(a), which leaves the third power of the error: y (1 + e/3 + 2/9 e^2), e = 1 - a y^3. */
HELPER double inverse_cbrt_step(double a, double y) {
    double e = FMA(-a * y, y * y, 1.0);
    return FMA(y * e, FMA(e, 0x1.c71c71c71c71cp-3, 0x1.5555555555555p-2), y);
}

/* 1 / cbrt(a) from a third of the exponent; then a times its square, and a step of Newton. */
HELPER double cbrt_near_f64(double a) {
    double y = as_double(0x553ee80000000000UL - (as_ulong(a) >> 32) * 0x55555556UL);
    y = inverse_cbrt_step(a, inverse_cbrt_step(a, y));
    double square = y * y, t = a * square;
    return FMA(FMA(-t * t, t, a), square * (1.0 / 3.0), t);
}

double __cld_cbrt_f64(double x) {
    double ax = ABS(x), result = cbrt_near_f64(ax);
    if (RARELY(!((ax > 0x1p-900) & (ax < 0x1p900)))) {
        bool tiny = ax < 1.0;
        result = cbrt_near_f64(ax * (tiny ? 0x1p600 : 0x1p-600)) * (tiny ? 0x1p-200 : 0x1p200);
        result = ax > 0.0 && ax < INF_F64 ? result : ax;
    }
    return flip_f64(result, as_ulong(x));
}

/* Whether the root of a sum of squares is not right because of what has become of these. */
HELPER bool is_unusual_square(double sum) {
    return !((sum > 0x1p-900) & (sum < 0x1p1000));
}

/* What hypot is then: powers of two bring the arguments near 1. */
HELPER double hypot_far_f64(double x, double y) {
    double ax = ABS(x), ay = ABS(y), big = ax > ay ? ax : ay;
    double scale = big > 1.0 ? 0x1p-600 : 0x1p600, unscale = big > 1.0 ? 0x1p600 : 0x1p-600;
    double a = x * scale, b = y * scale, result = SQRT(FMA(a, a, b * b)) * unscale;
    result = x != x || y != y ? x + y : result;
    return ax == INF_F64 || ay == INF_F64 ? INF_F64 : result;
}

double __cld_hypot_f64(double x, double y) {
    double sum = FMA(x, x, y * y), result = SQRT(sum);
    if (RARELY(is_unusual_square(sum)))
        result = hypot_far_f64(x, y);
    return result;
}

double __cld_rsqrt_f64(double x) {
    double y = 1.0 / SQRT(x);
    double low, high = exact_product(x, y, &low);
    double residual = FMA(-low, y, FMA(-high, y, 1.0));
    double better = FMA(0.5 * y, residual, y);
    return x > 0.0 && x < INF_F64 ? better : y;
}
