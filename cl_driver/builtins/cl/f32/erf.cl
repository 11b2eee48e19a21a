/* erf and erfc in single precision. */

/* x p(x^2) / (1 + x^2 q(x^2)) up to where it is 1, which roundings must not pass. */
float __cld_erf_f32(float x) {
    float c = x > 3.95f ? 3.95f : x;
    c = c < -3.95f ? -3.95f : c;
    float z = c * c;
    float y = c * poly_erf_above_f32(z) / FMA(poly_erf_below_f32(z), z, 1.0f);
    y = y > 1.0f ? 1.0f : y;
    return y < -1.0f ? -1.0f : y;
}

/* exp(-x^2) p((|x| - 2) / (|x| + 2)) in double arithmetic, 2 - that for negative x. */
float __cld_erfc_f32(float x) {
    double ax = ABS((double)x);
    ax = ax > 10.1 ? 10.1 : ax;
    double p = poly_erfcx_f32((ax - 2.0) / (ax + 2.0));
    double e = exp2_mid(ax * ax * -0x1.71547652b82fep0) * p;
    return (float)(x < 0.0f ? 2.0 - e : e);
}
