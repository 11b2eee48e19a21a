/* erf and erfc in single precision. */

/* x + x p(x^2) up to 0.9, then 1 - exp(-p(x)), where an error of the small exponential counts little. */
float __cld_erf_f32(float x) {
    float ax = ABS(x);
    float c = ax > 4.0f ? 4.0f : ax;
    float small = FMA(ax, poly_erf_f32(ax * ax), ax);
    float t = -poly_erf_tail_f32(c);
    float n = FMA(t, 0x1.715476p0f, ROUND_F32);
    int k = as_int(n) - as_int(ROUND_F32);
    n = n - ROUND_F32;
    float r = FMA(n, -LN2_LO_F32, FMA(n, -LN2_HI_F32, t));
    float e = (1.0f + FMA(r * r, poly_exp_f32(r), r)) * pow2_f32(k);
    return COPYSIGN(ax < 0.9f ? small : 1.0f - e, x);
}

/* exp(-x^2) p((|x| - 2) / (|x| + 2)) in double arithmetic, 2 - that for negative x. */
float __cld_erfc_f32(float x) {
    double ax = ABS((double)x);
    ax = ax > 10.1 ? 10.1 : ax;
    double p = poly_erfcx_f32((ax - 2.0) / (ax + 2.0));
    double e = exp2_mid(ax * ax * -0x1.71547652b82fep0) * p;
    return (float)(x < 0.0f ? 2.0 - e : e);
}
