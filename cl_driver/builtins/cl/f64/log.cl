/* log, log2, log10, log1p in double precision: m - 1 = f, s = f / (2 + f), z = s^2,
 * log(1 + f) = 2 s + s z p(z) = f - s (f - z p(z)), so that the rounded quotient only enters a small
 * correction. */

HELPER double log_special_f64(double x, double result) {
    result = x == INF_F64 ? INF_F64 : result;
    result = x == 0.0 ? -INF_F64 : result;
    return x >= 0.0 ? result : NAN_F64;
}

/* s and what it is multiplied by: the product is f - log(1 + f). */
HELPER double log_correction(double f, __private double *s) {
    *s = DIVIDE(f, 2.0 + f);
    double z = *s * *s;
    return FMA(-z, poly_log_f64(z, z * z), f);
}

/* k ln2 + log(1 + f + f_low) with |f_low| a few last places of f */
HELPER double log_sum_f64(double k, double f, double f_low) {
    double s, factor = log_correction(f, &s);
    double tail = FMA(-s, factor, FMA(k, LN2_LO_F64, f_low));
    return FMA(k, LN2_HI_F64, f + tail);
}

double __cld_log_f64(double x) {
    double k, f = split_near_f64(x, &k) - 1.0, result = log_sum_f64(k, f, 0.0);
    if (RARELY(is_abnormal_f64(x))) {
        f = split_f64(x, &k) - 1.0;
        result = log_special_f64(x, log_sum_f64(k, f, 0.0));
    }
    return result;
}

/* log(1 + f) times scale, which is 1/log(base) in two parts: f scale is rounded only with all the rest. */
HELPER double log_in_base(double f, double scale, double scale_low, double low) {
    double s, factor = log_correction(f, &s);
    return FMA(f, scale, FMA(-scale * s, factor, FMA(f, scale_low, low)));
}

HELPER double log2_sum_f64(double k, double f) {
    return k + log_in_base(f, 0x1.71547652b82fep0, 0x1.777d0ffda0d24p-56, 0.0);
}

double __cld_log2_f64(double x) {
    double k, f = split_near_f64(x, &k) - 1.0, result = log2_sum_f64(k, f);
    if (RARELY(is_abnormal_f64(x))) {
        f = split_f64(x, &k) - 1.0;
        result = log_special_f64(x, log2_sum_f64(k, f));
    }
    return result;
}

HELPER double log10_sum_f64(double k, double f) {
    double low = k * -0x1.80433b83b532ap-44;
    return FMA(k, 0x1.34413509f8p-2, log_in_base(f, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57, low));
}

double __cld_log10_f64(double x) {
    double k, f = split_near_f64(x, &k) - 1.0, result = log10_sum_f64(k, f);
    if (RARELY(is_abnormal_f64(x))) {
        f = split_f64(x, &k) - 1.0;
        result = log_special_f64(x, log10_sum_f64(k, f));
    }
    return result;
}

/* See log1p_reduce_f32. */
HELPER double log1p_reduce_f64(double x, double low, __private double *k, __private double *f_low) {
    double m = split_f64(1.0 + x, k);
    double scale = pow2_f64(-(int)*k);
    double f = FMA(x, scale, scale - 1.0);
    f = x > 0x1p500 ? m - 1.0 : f;
    low = x > 0x1p500 ? 0.0 : low * scale;
    *f_low = FMA(low, FMA(f, f, -f), low); /* low / (1 + f) */
    return f;
}

/* log(1 + x + low) */
HELPER double log1p_pair(double x, double low) {
    double k, f_low, f = log1p_reduce_f64(x, low, &k, &f_low);
    return log_sum_f64(k, f, f_low);
}

double __cld_log1p_f64(double x) {
    double result = log1p_pair(x, 0.0);
    result = ABS(x) < 0x1p-60 ? x : result;
    result = x == INF_F64 ? INF_F64 : result;
    result = x == -1.0 ? -INF_F64 : result;
    return x >= -1.0 ? result : NAN_F64;
}
