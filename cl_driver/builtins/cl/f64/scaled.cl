/* Exponentials, logarithms and powers in double precision for CPUs with AVX-512: as in cl/f32/scaled.cl.
 * Logarithms: x = 2^k m, m from 1 to 2, r = n/32 is 1/m rounded, f = r m - 1 exactly, |f| < 1/31; their
 * log(1/r) are looked up in two parts, the first with as many bits as its sum with k log(2) needs. For r =
 * 1/2, as for r = 1, that is 0, and k one more: so near 1 nothing but f is left. */

INSTRUCTION double __cld_op_exponent_f64(double x);
INSTRUCTION double __cld_op_significand_f64(double x);
INSTRUCTION double __cld_op_scale_f64(double x, double k); /* where the result is 0, k is far below: cl/f32 */
INSTRUCTION double __cld_op_rest_f64(double x); /* x less the nearest integer; 0 of infinity */
INSTRUCTION double __cld_op_log_limit_f64(double result, double x);
INSTRUCTION double __cld_op_reciprocal14_f64(double x); /* 1/x to 14 bits */
INSTRUCTION double __cld_op_reciprocal_root14_f64(double x); /* 1/sqrt(x) to 14 bits */
/* The one of the 16 that the low four bits of the first argument tell. */
INSTRUCTION double __cld_op_lookup_f64(double, double, double, double, double, double, double, double, double,
                                       double, double, double, double, double, double, double, double);
#define LOOK_UP(index, ...) __cld_op_lookup_f64(index, __VA_ARGS__)

#include "tables.h"

double __cld_exp_f64_scaled(double x) {
    double c = x > 710.0 ? 710.0 : x;
    c = c < -745.2 ? -7000.0 : c;
    double k = FMA(c, 0x1.71547652b82fep0, ROUND_F64) - ROUND_F64;
    double r = FMA(k, -LN2_LO_F64, FMA(k, -LN2_HI_F64, c));
    return __cld_op_scale_f64(exp_rest_f64(r), k);
}

double __cld_exp2_f64_scaled(double x) {
    double c = x < -1075.0 ? -10000.0 : x, r = __cld_op_rest_f64(c);
    return __cld_op_scale_f64(exp2_rest_f64(r), c - r);
}

double __cld_exp10_f64_scaled(double x) {
    double c = x > 309.0 ? 309.0 : x;
    c = c < -323.7 ? -3000.0 : c;
    double k = FMA(c, 0x1.a934f0979a371p1, ROUND_F64) - ROUND_F64;
    double r = FMA(k, 0x1.80433b83b532ap-44, FMA(k, -0x1.34413509f8p-2, c));
    return __cld_op_scale_f64(exp10_rest_f64(r), k);
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

/* As log_pair, with f so large that its square is needed exactly, too. NaN or infinite for 0 and infinity. */
HELPER double log_pair_scaled(double x, __private double *low) {
    double k, index, f = split_scaled_f64(x, &k, &index);
    double square_low, square = exact_product(f, f, &square_low);
    double rest, high = fast_sum(FMA(k, LN2_HI_F64, LOOK_UP(index, LOGARITHMS_HIGH)), f, &rest);
    double head = FMA(square, -0.5, high);
    rest += FMA(square, -0.5, high - head);
    rest = FMA(square_low, -0.5, rest) + FMA(k, LN2_LO_F64, LOOK_UP(index, LOGARITHMS_LOW));
    *low = FMA(f * square, poly_log_cubic_f64(f, square), rest);
    return head;
}

/* (y + y_low) log(x) */
HELPER double power_exponent_scaled(double x, double y, double y_low, bool has_low,
                                    __private double *low) {
    double l_low, l = log_pair_scaled(x, &l_low);
    double p_low, p = exact_product(l, y, &p_low);
    p_low = FMA(l_low, y, p_low);
    *low = has_low ? FMA(l, y_low, p_low) : p_low;
    return p;
}

/* exp(p + p_low) for a sum below 1100 */
HELPER double exp_pair_scaled(double p, double p_low, double sum) {
    double t, result = exp_pair(p, p_low, sum, &t);
    return __cld_op_scale_f64(result, sum < -746.0 ? -10000.0 : t - ROUND_F64);
}

/* Whether the power of |x| is out of range, as it is where x is 0 or infinite or where anything is NaN. */
HELPER bool is_unusual_sum(double sum) {
    return !(ABS(sum) < 1100.0);
}

double __cld_pow_f64_scaled(double x, double y) {
    double p_low, p = power_exponent_scaled(ABS(x), y, 0.0, false, &p_low);
    double sum = p + p_low, result = exp_pair_scaled(p, p_low, sum);
    if (RARELY((as_long(x) < 0) | is_unusual_sum(sum)))
        result = pow_any_f64(x, y, exp_pair_far(p, p_low));
    return result;
}

double __cld_powr_f64_scaled(double x, double y) {
    double p_low, p = power_exponent_scaled(x, y, 0.0, false, &p_low);
    double sum = p + p_low, result = exp_pair_scaled(p, p_low, sum);
    if (RARELY((as_long(x) < 0) | is_unusual_sum(sum)))
        result = powr_any_f64(x, y, exp_pair_far(p, p_low));
    return result;
}

double __cld_pown_f64_scaled(double x, int n) {
    double ax = ABS(x), p_low, p = power_exponent_scaled(ax, (double)n, 0.0, false, &p_low);
    double sum = p + p_low, result = exp_pair_scaled(p, p_low, sum);
    if (RARELY(is_unusual_sum(sum)))
        result = pown_any_f64(x, n, exp_pair_far(p, p_low));
    return flip_f64(result, n & 1 ? as_ulong(x) : 0);
}

double __cld_rootn_f64_scaled(double x, int n) {
    double ax = ABS(x), y_low, y = inverse_pair((double)n, &y_low);
    double p_low, p = power_exponent_scaled(ax, y, y_low, true, &p_low);
    double sum = p + p_low, result = exp_pair_scaled(p, p_low, sum);
    if (RARELY(is_unusual_sum(sum)))
        result = rootn_any_f64(x, n, exp_pair_far(p, p_low));
    return root_of_sign(x, n, result);
}

/* The root by two steps from an estimate: the divider takes longer, and has nothing to hide behind here. */
double __cld_hypot_f64_scaled(double x, double y) {
    double sum = FMA(x, x, y * y), estimate = __cld_op_reciprocal_root14_f64(sum);
    double root = sum * estimate, slope = 0.5 * estimate;
    double rest = FMA(-root, slope, 0.5);
    root = FMA(root, rest, root);
    slope = FMA(slope, rest, slope);
    double result = FMA(FMA(-root, root, sum), slope, root);
    if (RARELY(is_unusual_square(sum)))
        result = hypot_far_f64(x, y);
    return result;
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
    double result = __cld_op_scale_f64(exp_rest_f64(r) * p, c > 27.3 ? -10000.0 : k);
    return x < 0.0 ? 2.0 - result : result;
}
