/* sinh, cosh, tanh, asinh, acosh, atanh in double precision. */

/* exp(ax) / 2 for ax >= 0 as high + low with about 60 good bits: the exponent is one less, so that results
 * below overflow stay finite. */
HELPER double half_exp_f64(double ax, __private double *low) {
    double c = ax > 720.0 ? 720.0 : ax;
    double t = FMA(c, 0x1.71547652b82fep0, ROUND_F64);
    double kf = t - ROUND_F64;
    int k = (int)as_long(t);
    double r_low, r = fast_sum(FMA(kf, -LN2_HI_F64, c), kf * -LN2_LO_F64, &r_low);
    double part_low, part = fast_sum(1.0, r, &part_low);
    double tail = part_low + (r_low + FMA(r, r_low, r * r * poly_exp_f64(r)));
    double high = fast_sum(part, tail, low);
    double unit = pow2_f64((k - 1) >> 1), other = pow2_f64(k - 1 - ((k - 1) >> 1));
    *low = *low * unit * other;
    return high * unit * other;
}

/* r + low = ax - k log(2), r at most log(2) / 2 */
HELPER double reduce_hyperbolic(double ax, __private double *low, __private double *k) {
    double c = ax > 720.0 ? 720.0 : ax;
    *k = FMA(c, 0x1.71547652b82fep0, ROUND_F64) - ROUND_F64;
    double head = FMA(*k, -LN2_HI_F64, c), r = FMA(*k, -LN2_LO_F64, head);
    *low = FMA(*k, -LN2_LO_F64, head - r);
    return r;
}

/* sinh(x) and cosh(x), divided by 2^k: with h = 2^-2k / 2 they are (1/2 - h) cosh(r) + (1/2 + h) sinh(r), and
 * the same with h negated. 1, r and r_low of the series alone count for the last place. */
HELPER double sinh_sum(double r, double r_low, double h) {
    double z = r * r, more = 0.5 + h, less = 0.5 - h;
    double head = FMA(more, r, less), rest = FMA(more, r, (less - head) + ((0.5 - less) - h));
    double odd = FMA(z * r, poly_sinh_near_f64(z), r_low), even = z * poly_cosh_near_f64(z);
    return head + FMA(more, odd, FMA(less, even, rest));
}

HELPER double cosh_sum(double r, double r_low, double h) {
    double z = r * r, more = 0.5 + h, less = 0.5 - h;
    double head = FMA(less, r, more), rest = FMA(less, r, (0.5 - head) + h);
    double odd = FMA(z * r, poly_sinh_near_f64(z), r_low), even = z * poly_cosh_near_f64(z);
    return head + FMA(less, odd, FMA(more, even, rest));
}

/* 2^-2k / 2, or what is as good as 0 */
HELPER double inverse_square(int k) {
    return pow2_f64(-1 - 2 * (k > 100 ? 100 : k));
}

double __cld_sinh_f64(double x) {
    double kf, low, r = reduce_hyperbolic(ABS(x), &low, &kf);
    int k = (int)as_long(kf + ROUND_F64);
    return COPYSIGN(scale_f64(sinh_sum(r, low, inverse_square(k)), k), x);
}

double __cld_cosh_f64(double x) {
    double kf, low, r = reduce_hyperbolic(ABS(x), &low, &kf);
    int k = (int)as_long(kf + ROUND_F64);
    return scale_f64(cosh_sum(r, low, inverse_square(k)), k);
}

double __cld_tanh_f64(double x) {
    double ax = ABS(x), z = ax * ax;
    double low, e = half_exp_f64(ax > 20.0 ? 40.0 : 2.0 * ax, &low);
    double large = 1.0 - DIVIDE(1.0, e + 0.5);
    double small = FMA(ax * z, poly_tanh_f64(z), ax);
    return COPYSIGN(ax < 0.625 ? small : large, x);
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
