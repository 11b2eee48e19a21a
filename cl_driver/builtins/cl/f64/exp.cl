/* exp, exp2, exp10, expm1 in double precision: as in cl/f32/exp.cl. */

#define LN2_HI_F64 0x1.62e42fefa4p-1 /* 41 bits: k * LN2_HI is exact */
#define LN2_LO_F64 -0x1.8432a1b0e2634p-43

/* Of exp(r), r what is left. */
HELPER double exp_rest_f64(double r) {
    double square = r * r;
    return 1.0 + FMA(square, poly_exp_f64(r, square), r);
}

/* 2^k p for normal results; k is in the low bits of t. */
HELPER double scale_near_f64(double p, double t) {
    return as_double(as_ulong(p) + (as_ulong(t) << 52));
}

/* The same for results that may be denormal, 0 or infinite: infinity above most, 0 below least. */
HELPER double scale_far_f64(double p, double t, double x, double most, double least) {
    double result = scale_f64(p, x < least ? (int)ZERO_SCALE_F64 : (int)as_long(t));
    result = x > most ? INF_F64 : result;
    return x < least ? 0.0 : result;
}

double __cld_exp_f64(double x) {
    double t = FMA(x, 0x1.71547652b82fep0, ROUND_F64), k = t - ROUND_F64;
    double p = exp_rest_f64(FMA(k, -LN2_LO_F64, FMA(k, -LN2_HI_F64, x)));
    double result = scale_near_f64(p, t);
    if (RARELY(!(ABS(x) < 708.0)))
        result = scale_far_f64(p, t, x, 710.0, -746.0);
    return result;
}

HELPER double exp2_rest_f64(double r) {
    double square = r * r;
    return FMA(0x1.62e42fefa39efp-1 + poly_exp2_f64(r, square), r, 1.0);
}

double __cld_exp2_f64(double x) {
    double t = x + ROUND_F64, p = exp2_rest_f64(x - (t - ROUND_F64));
    double result = scale_near_f64(p, t);
    if (RARELY(!(ABS(x) < 1022.0)))
        result = scale_far_f64(p, t, x, 1025.0, -1076.0);
    return result;
}

HELPER double exp10_rest_f64(double r) {
    double square = r * r;
    return 1.0 + FMA(r, 0x1.26bb1bbb55516p1, r * poly_exp10_f64(r, square));
}

double __cld_exp10_f64(double x) {
    double t = FMA(x, 0x1.a934f0979a371p1, ROUND_F64), k = t - ROUND_F64;
    double r = FMA(k, -0x1.34413509f8p-2, x); /* log10(2), its first 41 bits */
    double p = exp10_rest_f64(FMA(k, 0x1.80433b83b532ap-44, r));
    double result = scale_near_f64(p, t);
    if (RARELY(!(ABS(x) < 307.0)))
        result = scale_far_f64(p, t, x, 309.0, -325.0);
    return result;
}

/* expm1(x) = scale (1 + r + the result) - 1, scale a power of two, even 2^1024. */
HELPER double expm1_rest_f64(double x, __private double *r, __private double *scale) {
    double t = FMA(x, 0x1.71547652b82fep0, ROUND_F64), k = t - ROUND_F64;
    double head = FMA(k, -LN2_HI_F64, x);
    *r = FMA(k, -LN2_LO_F64, head);
    *scale = scale_near_f64(1.0, t);
    double low = FMA(k, -LN2_LO_F64, head - *r), square = *r * *r;
    return FMA(square, poly_expm1_f64(*r, square), low);
}

double __cld_expm1_f64(double x) {
    double c = x > 710.0 ? 710.0 : x, r, scale;
    double rest = expm1_rest_f64(c < -40.0 ? -40.0 : c, &r, &scale);
    double result = FMA(scale, rest, FMA(scale, r, scale - 1.0));
    if (RARELY(x > 709.0)) {
        double lower = as_double(as_ulong(scale) - 0x10000000000000UL);
        result = 2.0 * FMA(lower, rest, FMA(lower, r, lower));
    }
    return x == 0.0 ? x : result;
}
