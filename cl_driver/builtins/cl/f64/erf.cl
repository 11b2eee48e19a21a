/* erf and erfc in double precision: a polynomial up to 1, then
 * erfc(x) = exp(-x^2) p((x - 4) / (x + 4)) / (1 + 2 x) with x^2 as a pair. */

/* erfc(ax) for ax >= 1/2 */
HELPER double erfc_tail_f64(double ax) {
    double c = ax > 27.5 ? 27.5 : ax;
    double above = c + 4.0, scale = FMA(2.0, c, 1.0), inverse = DIVIDE(1.0, above * scale);
    double p = poly_erfcx_f64((c - 4.0) * scale * inverse) * (above * inverse);
    double low, high = exact_product(c, c, &low);
    /* p is between 1/60 and 1, and exp(-high) may be denormal: multiply before scaling */
    int k;
    double r = reduce_exp_f64(-high, &k) - low;
    double e = 1.0 + FMA(r * r, poly_exp_f64(r), r);
    return scale_f64(e * p, k);
}

HELPER double erf_small_f64(double ax) {
    return FMA(ax, poly_erf_f64(ax * ax), ax);
}

double __cld_erf_f64(double x) {
    double ax = ABS(x);
    return COPYSIGN(ax < 1.0 ? erf_small_f64(ax) : 1.0 - erfc_tail_f64(ax), x);
}

double __cld_erfc_f64(double x) {
    double ax = ABS(x);
    double tail = erfc_tail_f64(ax);
    double near = 1.0 - COPYSIGN(erf_small_f64(ax), x);
    return ax < 0.5 ? near : (x < 0.0 ? 2.0 - tail : tail);
}
