/* tgamma, lgamma, lgamma_r in double precision: as in cl/f32/gamma.cl for small |x|, with the product in a
 * pair of doubles; Stirling's series in pairs from 16 on; reflection for large negative x. */

/* See gamma_product. */
HELPER double gamma_product_pair(double t, int k, __private double *low) {
    double product = 1.0, rest = 0.0;
    int end = k > 0 ? k : 1;
    for (int j = k > 0 ? 1 : k; j < end; j++) {
        double factor = t + (double)j, error;
        product = exact_product(product, factor, &error);
        rest = FMA(rest, factor, error);
    }
    *low = rest;
    return product;
}

/* 1/12 x^-1 - 1/360 x^-3 + ..., x >= 8 */
HELPER double stirling_series_f64(double x) {
    double y = 1.0 / x, z = y * y;
    double p = -0x1.e4286cb0f5398p-6;      /* -3617 / 122400 */
    p = FMA(p, z, 0x1.a41a41a41a41ap-8);   /* 1 / 156 */
    p = FMA(p, z, -0x1.f6ab0d9993c7dp-10); /* -691 / 360360 */
    p = FMA(p, z, 0x1.b951e2b18ff23p-11);  /* 1 / 1188 */
    p = FMA(p, z, -0x1.3813813813814p-11); /* -1 / 1680 */
    p = FMA(p, z, 0x1.a01a01a01a01ap-11);  /* 1 / 1260 */
    p = FMA(p, z, -0x1.6c16c16c16c17p-9);  /* -1 / 360 */
    p = FMA(p, z, 0x1.5555555555555p-4);   /* 1 / 12 */
    return y * p;
}

/* log2(gamma(x)) for x >= 16: (x - 1/2) log2(x) - x log2(e) + log2(2 pi) / 2 + series log2(e) */
HELPER double stirling_pair(double x, __private double *low) {
    double l_low, l = log2_pair(x, &l_low);
    double p_low, p = pair_product(l, l_low, x - 0.5, 0.0, &p_low);
    double e_low, e = pair_product(x, 0.0, 0x1.71547652b82fep0, 0x1.777d0ffda0d24p-56, &e_low);
    double d_low, d = exact_sum(p, -e, &d_low);
    d_low += (p_low - e_low) + (FMA(stirling_series_f64(x), 0x1.71547652b82fep0, -0x1.49e49a361efebp-54));
    double sum_low, sum = exact_sum(d, 0x1.536439a4c6efcp0, &sum_low);
    return fast_sum(sum, sum_low + d_low, low);
}

double __cld_tgamma_f64(double x) {
    double ax = ABS(x);
    bool large = ax >= 16.0;
    double c = large ? 1.0 : x;
    double k = RINT(c), t = c - k;
    int n = c == c ? (int)k : 1;
    double low, product = gamma_product_pair(t, n, &low);
    double reciprocal = FMA(t, poly_rgamma_f64(t), 1.0);
    /* product + low over reciprocal, or 1 over both */
    double above = n > 0 ? product : 1.0, above_low = n > 0 ? low : 0.0;
    double below = n > 0 ? reciprocal : product * reciprocal;
    double below_low = n > 0 ? 0.0 : FMA(product, reciprocal, -below) + low * reciprocal;
    double q = above / below;
    double result = q + (FMA(-q, below, above) + (above_low - q * below_low)) / below;
    result = ABS(q) < INF_F64 ? result : q;
    if (RARELY(large)) {
        double l_low, l = stirling_pair(ax > 200.0 ? 200.0 : ax, &l_low);
        double up = exp2_pair(l > 1100.0 ? 1100.0 : l, l_low);
        /* gamma(x) = -pi / (x sin(pi x) gamma(-x)), the last factor in two halves: it may overflow before the
         * result vanishes */
        double root = exp2_pair(-0.5 * l, -0.5 * l_low);
        double reflected = -3.141592653589793 / (x * __cld_sinpi_f64(x)) * root * root;
        result = x > 0.0 ? up : reflected;
        result = x < -190.0 ? COPYSIGN(0.0, reflected) : result;
    }
    result = x == 0.0 ? COPYSIGN(INF_F64, x) : result;
    result = x < 0.0 && TRUNC(x) == x ? NAN_F64 : result;
    result = x == INF_F64 ? x : result;
    return x != x ? x : result;
}

double __cld_lgamma_r_f64(double x, __private int *sign) {
    double ax = ABS(x);
    bool large = ax >= 16.0;
    double c = large ? 1.0 : x;
    double k = RINT(c), t = c - k;
    int n = c == c ? (int)k : 1;
    double low, product = gamma_product_pair(t, n, &low);
    double log_product = __cld_log_f64(ABS(product + low));
    double log_near = -log1p_pair(t * poly_rgamma_f64(t), 0.0);
    /* gamma(2 + t) = gamma(1 + t) (1 + t) */
    log_product = n == 2 ? log1p_pair(t, 0.0) : log_product;
    double result = n > 0 ? log_near + log_product : log_near - log_product;
    if (RARELY(large)) {
        double l = __cld_log_f64(ax);
        double stirling = FMA(ax - 0.5, l, -ax) + (0x1.d67f1c864beb5p-1 + stirling_series_f64(ax));
        stirling = ax > 0x1p60 ? ax * (l - 1.0) : stirling;
        double reflected = 0x1.250d048e7a1bdp0 - __cld_log_f64(ABS(__cld_sinpi_f64(x)) * ax) - stirling;
        result = x < 0.0 ? reflected : stirling;
    }
    bool pole = x == 0.0 || (x < 0.0 && TRUNC(x) == x) || ax == INF_F64;
    double floor_half = FLOOR(x) * 0.5;
    bool negative = x < 0.0 && FLOOR(floor_half) != floor_half;
    *sign = pole && !(x > 0.0) ? 0 : (negative ? -1 : 1);
    result = pole ? INF_F64 : result;
    return x != x ? x : result;
}

double __cld_lgamma_f64(double x) {
    int sign;
    return __cld_lgamma_r_f64(x, &sign);
}
