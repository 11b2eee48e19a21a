/* Exponentials, logarithms and powers in double precision for CPUs with AVX-512: as in cl/f32/scaled.cl.
 * Logarithms: x = 2^k m, m from 1 to 2, r = n/32 is 1/m rounded, f = r m - 1 exactly, |f| < 1/31; their
 * log(1/r) are looked up in two parts, the first with as many bits as its sum with k log(2) needs. For r =
 * 1/2, as for r = 1, that is 0, and k one more: so near 1 nothing but f is left. */

INSTRUCTION double __cld_op_exponent_f64(double x);
INSTRUCTION double __cld_op_significand_f64(double x);
INSTRUCTION double __cld_op_scale_f64(double x, double k);
INSTRUCTION double __cld_op_log_limit_f64(double result, double x);
INSTRUCTION double __cld_op_reciprocal14_f64(double x); /* 1/x to 14 bits */
/* The one of the 16 that the low four bits of the first argument tell. */
INSTRUCTION double __cld_op_lookup_f64(double, double, double, double, double, double, double, double, double,
                                       double, double, double, double, double, double, double, double);
#define LOOK_UP(index, ...) __cld_op_lookup_f64(index, __VA_ARGS__)

#include "tables.h"

double __cld_exp_f64_scaled(double x) {
    double c = x > 710.0 ? 710.0 : x;
    c = c < -746.0 ? -746.0 : c;
    double k = FMA(c, 0x1.71547652b82fep0, ROUND_F64) - ROUND_F64;
    double r = FMA(k, -LN2_LO_F64, FMA(k, -LN2_HI_F64, c));
    return __cld_op_scale_f64(1.0 + FMA(r * r, poly_exp_f64(r), r), k);
}

/* 2^(high + low) for |high| <= 2000 */
HELPER double exp2_scaled(double high, double low) {
    double k = (high + ROUND_F64) - ROUND_F64;
    double r = (high - k) + low;
    double p = FMA(r, 0x1.62e42fefa39efp-1, r * poly_exp2_f64(r));
    return __cld_op_scale_f64(1.0 + p, k);
}

double __cld_exp2_f64_scaled(double x) {
    double c = x > 1025.0 ? 1025.0 : x;
    return exp2_scaled(c < -1076.0 ? -1076.0 : c, 0.0);
}

double __cld_exp10_f64_scaled(double x) {
    double c = x > 309.0 ? 309.0 : x;
    c = c < -325.0 ? -325.0 : c;
    double k = FMA(c, 0x1.a934f0979a371p1, ROUND_F64) - ROUND_F64;
    double r = FMA(k, 0x1.80433b83b532ap-44, FMA(k, -0x1.34413509f8p-2, c));
    return __cld_op_scale_f64(1.0 + FMA(r, 0x1.26bb1bbb55516p1, r * poly_exp10_f64(r)), k);
}

double __cld_ldexp_f64_scaled(double x, int n) {
    return __cld_op_scale_f64(x, (double)n);
}

/* f, the number k and what leads to log(1/r) */
HELPER double split_scaled_f64(double x, __private double *k, __private double *index) {
    double e = __cld_op_exponent_f64(x), m = __cld_op_significand_f64(x);
    *index = __cld_op_reciprocal14_f64(m) + 0x1.8p47; /* 32 / m rounded is in the low bits */
    double r = *index - 0x1.8p47;
    *k = r == 0.5 ? e + 1.0 : e;
    return FMA(m, r, -1.0);
}

double __cld_log_f64_scaled(double x) {
    double k, index, f = split_scaled_f64(x, &k, &index);
    double head = FMA(k, LN2_HI_F64, LOOK_UP(index, LOGARITHMS_HIGH));
    double tail = FMA(k, LN2_LO_F64, LOOK_UP(index, LOGARITHMS_LOW));
    return __cld_op_log_limit_f64(head + (f + FMA(f * f, poly_log_near_f64(f), tail)), x);
}

double __cld_log2_f64_scaled(double x) {
    double k, index, f = split_scaled_f64(x, &k, &index);
    double rest, high = exact_product(f, 0x1.71547652b82fep0, &rest);
    double tail = FMA(f, 0x1.777d0ffda0d24p-56, LOOK_UP(index, BINARY_LOGARITHMS_LOW)) + rest;
    double head = k + LOOK_UP(index, BINARY_LOGARITHMS_HIGH);
    return __cld_op_log_limit_f64(head + (high + FMA(f * f, poly_log2_near_f64(f), tail)), x);
}

double __cld_log10_f64_scaled(double x) {
    double k, index, f = split_scaled_f64(x, &k, &index);
    double rest, high = exact_product(f, 0x1.bcb7b1526e50ep-2, &rest);
    double tail = FMA(k, -0x1.80433b83b532ap-44, LOOK_UP(index, DECIMAL_LOGARITHMS_LOW));
    tail = FMA(f, 0x1.95355baaafad3p-57, tail) + rest;
    double head = FMA(k, 0x1.34413509f8p-2, LOOK_UP(index, DECIMAL_LOGARITHMS_HIGH));
    return __cld_op_log_limit_f64(head + (high + FMA(f * f, poly_log10_near_f64(f), tail)), x);
}

/* log2(x) for positive finite x, relative error below 2^-63: log2(1 + f) = f (c1 + c2 f) + f^3 p(f), the
 * first of both in pairs. */
HELPER double log2_pair_scaled(double x, __private double *low) {
    double k, index, f = split_scaled_f64(x, &k, &index);
    double rest, product = exact_product(f, -0x1.71547652b82fep-1, &rest);
    double sum_low, sum = fast_sum(0x1.71547652b82fep0, product, &sum_low);
    sum_low += rest + FMA(f, -0x1.777d0ffda0d24p-57, 0x1.777d0ffda0d24p-56);
    double high = exact_product(sum, f, &rest);
    double tail = FMA(sum_low, f, rest) + LOOK_UP(index, BINARY_LOGARITHMS_LOW);
    tail = FMA(f * f * f, poly_log2_cubic_f64(f), tail);
    double head = fast_sum(k + LOOK_UP(index, BINARY_LOGARITHMS_HIGH), high, &rest); /* exact for 0, too */
    return fast_sum(head, rest + tail, low);
}

/* x^(y + y_low) for positive finite x and finite y */
HELPER double power_scaled_f64(double x, double y, double y_low) {
    double l_low, l = log2_pair_scaled(x, &l_low);
    double p_low, p = exact_product(l, y, &p_low);
    p_low += FMA(l, y_low, l_low * y);
    p_low = ABS(p) < 1100.0 ? p_low : 0.0;
    p = p > 1100.0 ? 1100.0 : p;
    return exp2_scaled(p < -1100.0 ? -1100.0 : p, p_low);
}

/* |x|^y for an x that is zero, infinite or no number, or such a y that is not 0: 0, infinity or NaN, and 1
 * for an x of 1 */
HELPER double power_limit_f64(double ax, double y) {
    double limit = (ax < 1.0) == (y > 0.0) ? 0.0 : INF_F64;
    limit = ax == 1.0 ? 1.0 : limit;
    return ax != ax || y != y ? ax + y : limit;
}

double __cld_pow_f64_scaled(double x, double y) {
    double ax = ABS(x), ay = ABS(y);
    double result = power_scaled_f64(ax, y, 0.0);
    if (RARELY(!((x > 0.0) & (x < INF_F64) & (ay < INF_F64)))) {
        bool integer = TRUNC(y) == y;
        bool odd = integer & (ay < 0x1p53) & (TRUNC(0.5 * y) != 0.5 * y);
        result = ((ax > 0.0) & (ax < INF_F64) & (ay < INF_F64)) ? result : power_limit_f64(ax, y);
        result = ((x < 0.0) & !integer & (ax < INF_F64)) ? NAN_F64 : result;
        result = flip_f64(result, odd ? as_ulong(x) : 0);
        result = ((x == 1.0) | (y == 0.0)) ? 1.0 : result;
    }
    return result;
}

double __cld_powr_f64_scaled(double x, double y) {
    double result = power_scaled_f64(x, y, 0.0);
    if (RARELY(!((x > 0.0) & (x < INF_F64) & (ABS(y) < INF_F64)))) {
        result = power_limit_f64(ABS(x), y);
        result = ((x < 0.0) | (x == 1.0) | (y == 0.0)) ? NAN_F64 : result;
    }
    return result;
}

double __cld_pown_f64_scaled(double x, int n) {
    double ax = ABS(x), result = power_scaled_f64(ax, (double)n, 0.0);
    if (RARELY(!((ax > 0.0) & (ax < INF_F64))))
        result = n == 0 ? 1.0 : power_limit_f64(ax, (double)n);
    return flip_f64(result, n & 1 ? as_ulong(x) : 0);
}

double __cld_rootn_f64_scaled(double x, int n) {
    double ax = ABS(x), d = (double)n, inverse = DIVIDE(1.0, n == 0 ? 1.0 : d);
    double y = FMA(inverse, FMA(-inverse, d, 1.0), inverse), y_low = FMA(-y, d, 1.0) * inverse;
    double result = power_scaled_f64(ax, y, y_low);
    if (RARELY(!((ax > 0.0) & (ax < INF_F64) & (n != 0))))
        result = n == 0 ? NAN_F64 : power_limit_f64(ax, d);
    result = flip_f64(result, n & 1 ? as_ulong(x) : 0);
    return x < 0.0 && !(n & 1) ? NAN_F64 : result;
}

/* 16 pieces around multiples of a step, 1 behind them. */
double __cld_erf_f64_scaled(double x) {
    double ax = ABS(x), c = ax > 5.96 ? 5.96 : ax;
    double index = FMA(c, 0x1.4cab88725af6ep1, ROUND_F64), k = index - ROUND_F64;
    return COPYSIGN(poly_erf_pieces(index, FMA(k, -0x1.8ap-2, c)), x);
}

/* exp(-x^2) p(|x|), x^2 as a pair, p of 16 pieces of x + 2: four in each octave. */
double __cld_erfc_f64_scaled(double x) {
    double ax = ABS(x), c = ax > 27.5 ? 27.5 : ax;
    ulong bits = as_ulong(c + 2.0);
    double middle = as_double((bits & ~0x3ffffffffffffUL) | 0x2000000000000UL);
    double p = poly_erfcx_pieces(as_double(bits >> 50), c - (middle - 2.0));
    double low, high = exact_product(c, c, &low);
    double k = FMA(high, -0x1.71547652b82fep0, ROUND_F64) - ROUND_F64;
    double r = FMA(k, -LN2_LO_F64, FMA(k, -LN2_HI_F64, -high)) - low;
    double e = 1.0 + FMA(r * r, poly_exp_f64(r), r);
    double result = __cld_op_scale_f64(e * p, k);
    return x < 0.0 ? 2.0 - result : result;
}
