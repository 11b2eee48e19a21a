/* sinh, cosh, tanh, asinh, acosh, atanh in double precision. */

/* r + low = ax - k log(2), r at most log(2) / 2 */
HELPER double reduce_hyperbolic(double ax, __private double *low, __private double *k) {
    double c = ax > 720.0 ? 720.0 : ax;
    *k = FMA(c, 0x1.71547652b82fep0, ROUND_F64) - ROUND_F64;
    double head = FMA(*k, -LN2_HI_F64, c), r = FMA(*k, -LN2_LO_F64, head);
    *low = FMA(*k, -LN2_LO_F64, head - r);
    return r;
}

/* sinh(x) and cosh(x), divided by 2^k: with h = 2^-2k / 2 they are (1/2 - h) cosh(r) + (1/2 + h) sinh(r), and
 * the same with h negated. For sinh 1, r and r_low of the series alone count for the last place. */
HELPER double sinh_sum(double r, double r_low, double h) {
    double z = r * r, more = 0.5 + h, less = 0.5 - h;
    double head = FMA(more, r, less), rest = FMA(more, r, (less - head) + ((0.5 - less) - h));
    double odd = FMA(z * r, poly_sinh_near_f64(z), r_low), even = z * poly_cosh_near_f64(z);
    return head + FMA(more, odd, FMA(less, even, rest));
}

HELPER double cosh_sum(double r, double h) {
    double z = r * r, more = 0.5 + h, less = 0.5 - h;
    double odd = FMA(z * r, poly_sinh_near_f64(z), r), even = z * poly_cosh_near_f64(z);
    return more + FMA(less, odd, more * even);
}

/* 2^-2k / 2 for a k of double type that is not negative, up to 500. */
HELPER double inverse_square(double k) {
    return as_double(as_ulong(0.5) - (as_ulong(k + ROUND_F64) << 53));
}

double __cld_sinh_f64(double x) {
    double ax = ABS(x), k, low, r = reduce_hyperbolic(ax, &low, &k);
    double result = sinh_sum(r, low, inverse_square(k)) * scale_near_f64(1.0, k + ROUND_F64);
    if (RARELY(!(ax < 340.0)))
        result = scale_f64(sinh_sum(r, low, 0.0), (int)as_long(k + ROUND_F64));
    return flip_f64(result, as_ulong(x));
}

double __cld_cosh_f64(double x) {
    double ax = ABS(x), k, low, r = reduce_hyperbolic(ax, &low, &k);
    double result = cosh_sum(r, inverse_square(k)) * scale_near_f64(1.0, k + ROUND_F64);
    if (RARELY(!(ax < 340.0)))
        result = scale_f64(cosh_sum(r, 0.0), (int)as_long(k + ROUND_F64));
    return result;
}

/* m / (m + 2) with m = expm1(2 |x|), whose relative error is not more than a few ulp anywhere. */
double __cld_tanh_f64(double x) {
    double ax = ABS(x), c = ax > 20.0 ? 40.0 : ax + ax;
    double r, scale, rest = expm1_rest_f64(c, &r, &scale);
    double m = FMA(scale, rest, FMA(scale, r, scale - 1.0));
    return flip_f64(DIVIDE(m, m + 2.0), as_ulong(x));
}

/* A polynomial up to 1/2, then log(h + l) with h + l = sqrt(x^2 + 1) + x. */
double __cld_asinh_f64(double x) {
    double ax = ABS(x), z = ax * ax;
    double small = FMA(ax * z, poly_asinh_f64(z), ax);
    bool huge = ax > 0x1p30;
    double c = huge ? 1.0 : ax; /* there log(2 x) does */
    double z_low, w_low;
    z = exact_product(c, c, &z_low);
    double w = exact_sum(z, 1.0, &w_low);
    double s = SQRT(w);
    double s_low = (FMA(-s, s, w) + (w_low + z_low)) * 0.5 / s;
    double low, high = fast_sum(s, c, &low);
    double k, f = split_f64(huge ? ax : high, &k) - 1.0;
    low = huge ? 0.0 : (low + s_low) / high;
    double large = log_sum_f64(huge ? k + 1.0 : k, f, low);
    double result = ax < 0.5 ? small : large;
    return ax < INF_F64 ? COPYSIGN(result, x) : x;
}

/* log1p(u + sqrt(u (u + 2))), u = x - 1 */
double __cld_acosh_f64(double x) {
    bool huge = x > 0x1p30;
    double u = (huge ? 2.0 : x) - 1.0;
    double v_low, v = exact_sum(u, 2.0, &v_low);
    double w_low, w = exact_product(u, v, &w_low);
    double s = SQRT(w);
    double s_low = (FMA(-s, s, w) + FMA(u, v_low, w_low)) * 0.5 / s;
    double low, high = fast_sum(s, u, &low);
    double k, f_low, f = log1p_reduce_f64(high, low + s_low, &k, &f_low);
    double k_huge, f_huge = split_f64(x, &k_huge) - 1.0; /* log(2 x) */
    double result = log_sum_f64(huge ? k_huge + 1.0 : k, huge ? f_huge : f, huge ? 0.0 : f_low);
    result = x == 1.0 ? 0.0 : result;
    result = x == INF_F64 ? x : result;
    return x >= 1.0 ? result : NAN_F64;
}

/* log1p(2 x / (1 - x)) / 2 */
double __cld_atanh_f64(double x) {
    double ax = ABS(x);
    double d_low, d = fast_sum(1.0, -ax, &d_low);
    double q = 2.0 * ax / d;
    double q_low = (FMA(-q, d, 2.0 * ax) - q * d_low) / d;
    double result = 0.5 * log1p_pair(q, q_low);
    result = ax < 0x1p-30 ? ax : result;
    result = ax == 1.0 ? INF_F64 : result;
    return ax <= 1.0 ? COPYSIGN(result, x) : NAN_F64;
}
