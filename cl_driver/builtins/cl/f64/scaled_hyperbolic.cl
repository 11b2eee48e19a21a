/* log1p and hyperbolic functions in double precision for CPUs with AVX-512: as in scaled.cl. */

double __cld_sinh_f64_scaled(double x) {
    double k, low, r = reduce_hyperbolic(ABS(x), &low, &k);
    return COPYSIGN(__cld_op_scale_f64(sinh_sum(r, low, __cld_op_scale_f64(0.5, -2.0 * k)), k), x);
}

double __cld_cosh_f64_scaled(double x) {
    double k, low, r = reduce_hyperbolic(ABS(x), &low, &k);
    return __cld_op_scale_f64(cosh_sum(r, __cld_op_scale_f64(0.5, -2.0 * k)), k);
}

/* log(2^more (1 + y)) for 0 <= 1 + y < 2^1000, and where low has been added to y. r is 1 / (1 + y) to five
 * bits, not from 1/2 to 1 but of any power of two: f = r y + (r - 1) loses nothing of a small y, for which r
 * is 1. */
HELPER double log1p_scaled(double y, double low, bool has_low, double more) {
    double x = 1.0 + y;
    ulong bits = (as_ulong(__cld_op_reciprocal14_f64(x)) + 0x800000000000UL) & 0xffff000000000000UL;
    double r = as_double(bits), index = as_double(bits >> 48);
    double k = (more - 1.0) - __cld_op_exponent_f64(as_double(bits - 1)); /* of a power of two: one more */
    double f = FMA(y, r, r - 1.0);
    double head = FMA(k, LN2_HI_F64, LOOK_UP(index, LOGARITHMS_HIGH));
    double tail = FMA(k, LN2_LO_F64, LOOK_UP(index, LOGARITHMS_LOW));
    tail = has_low ? FMA(low, r, tail) : tail;
    return __cld_op_log_limit_f64(head + (f + FMA(f * f, poly_log_near_f64(f), tail)), x);
}

double __cld_log1p_f64_scaled(double x) {
    bool huge = x > 0x1p900;
    return COPYSIGN(log1p_scaled(huge ? x * 0x1p-100 : x, 0.0, false, huge ? 100.0 : 0.0), x);
}

/* log1p(x + x^2 / (1 + sqrt(x^2 + 1))), for huge x log(2 x) */
double __cld_asinh_f64_scaled(double x) {
    double ax = ABS(x);
    bool huge = ax > 0x1p500;
    double c = huge ? 1.0 : ax, z = c * c;
    double low, y = fast_sum(c, DIVIDE(z, 1.0 + ROOT(FMA(c, c, 1.0))), &low);
    low = huge ? 0.0 : low;
    return COPYSIGN(log1p_scaled(huge ? ax * 0x1p-100 : y, low, true, huge ? 101.0 : 0.0), x);
}

/* log1p(u + sqrt(u (u + 2))), u = x - 1; the root and what it is short of */
double __cld_acosh_f64_scaled(double x) {
    bool huge = x > 0x1p500;
    double c = huge ? 2.0 : x, u = c - 1.0;
    double v_low, v = fast_sum(2.0, u, &v_low);
    double w_low, w = exact_product(u, v, &w_low);
    double s = ROOT(w);
    double residual = FMA(-s, s, w) + FMA(u, v_low, w_low);
    double low, y = fast_sum(s, u, &low);
    low = huge ? 0.0 : FMA(residual, 0.5 * __cld_op_reciprocal14_f64(s), low);
    double result = log1p_scaled(huge ? x * 0x1p-100 : y, low, true, huge ? 101.0 : 0.0);
    result = x == 1.0 ? 0.0 : result;
    return x >= 1.0 ? result : NAN_F64;
}

/* log1p(2 x / (1 - x)) / 2, the quotient as a pair */
double __cld_atanh_f64_scaled(double x) {
    double ax = ABS(x);
    double d_low, d = fast_sum(1.0, -ax, &d_low);
    double inverse = __cld_op_reciprocal14_f64(d);
    inverse = FMA(FMA(-inverse, d, 1.0), inverse, inverse);
    double q = (ax + ax) * inverse;
    double residual = FMA(-q, d_low, FMA(-q, d, ax + ax));
    double low, y = fast_sum(q, residual * inverse, &low);
    double result = 0.5 * log1p_scaled(y, low, true, 0.0);
    return COPYSIGN(ax == 1.0 ? INF_F64 : result, x);
}
