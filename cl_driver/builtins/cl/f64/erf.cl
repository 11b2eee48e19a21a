/* erf and erfc in double precision. erf: polynomials around 128 multiples of a step, 1 behind them.
 * erfc(x) = exp(-x^2) p((x - 3.5) / (x + 3.5)) / (x + 3.5) with x^2 as a pair. */

#define ERF_STEP_F64 0x1.8p-5

double __cld_erf_f64(double x) {
    double ax = ABS(x), c = ax > 5.96875 ? 5.96875 : ax;
    double index = FMA(c, 1.0 / ERF_STEP_F64, ROUND_F64), k = index - ROUND_F64;
    double t = FMA(k, -ERF_STEP_F64, c), square = t * t;
    double8 row = erf_table[as_ulong(index) & 127];
    double high = FMA(FMA(row.s7, t, row.s6), square, FMA(row.s5, t, row.s4));
    double low = FMA(FMA(row.s3, t, row.s2), square, FMA(row.s1, t, row.s0));
    return flip_f64(FMA(high, square * square, low), as_ulong(x));
}

double __cld_erfc_f64(double x) {
    double ax = ABS(x), c = ax > 27.5 ? 27.5 : ax;
    double inverse = DIVIDE(1.0, c + 3.5), u = (c - 3.5) * inverse;
    double p = poly_erfcx_f64(u, u * u) * inverse;
    double low, high = exact_product(c, c, &low), t, e = exp_pair(-high, -low, -high, &t);
    /* p is between 1/60 and 1, and exp(-high) may be denormal: multiply before scaling */
    e *= p;
    double result = as_double(as_ulong(e) + (as_ulong(t) << 52));
    if (RARELY(!(c <= 26.5)))
        result = scale_f64(e, (int)as_long(t));
    return as_long(x) < 0 ? 2.0 - result : result;
}
