/* exp, exp2, exp10, expm1 in double precision: as in cl/f32/exp.cl. */

#define LN2_HI_F64 0x1.62e42fefa4p-1 /* 41 bits: k * LN2_HI is exact */
#define LN2_LO_F64 -0x1.8432a1b0e2634p-43

/* r = x - k ln2 */
HELPER double reduce_exp_f64(double x, __private int *k) {
    double t = FMA(x, 0x1.71547652b82fep0, ROUND_F64);
    double kf = t - ROUND_F64;
    *k = (int)as_long(t);
    return FMA(kf, -LN2_LO_F64, FMA(kf, -LN2_HI_F64, x));
}

double __cld_exp_f64(double x) {
    double c = x > 710.0 ? 710.0 : x;
    c = c < -746.0 ? ZERO_SCALE_F64 * 0x1.62e42fefa39efp-1 : c;
    int k;
    double r = reduce_exp_f64(c, &k);
    return scale_f64(1.0 + FMA(r * r, poly_exp_f64(r), r), k);
}

double __cld_exp2_f64(double x) {
    double c = x > 1025.0 ? 1025.0 : x;
    return exp2_pair(c < -1076.0 ? ZERO_SCALE_F64 : c, 0.0);
}

double __cld_exp10_f64(double x) {
    double c = x > 309.0 ? 309.0 : x;
    c = c < -325.0 ? ZERO_SCALE_F64 * 0x1.34413509f79ffp-2 : c;
    double t = FMA(c, 0x1.a934f0979a371p1, ROUND_F64);
    int k = (int)as_long(t);
    double kf = t - ROUND_F64;
    double r = FMA(kf, -0x1.34413509f8p-2, c); /* log10(2), its first 41 bits */
    r = FMA(kf, 0x1.80433b83b532ap-44, r);
    return scale_f64(1.0 + FMA(r, 0x1.26bb1bbb55516p1, r * poly_exp10_f64(r)), k);
}

double __cld_expm1_f64(double x) {
    double c = x > 710.0 ? 710.0 : x;
    c = c < -40.0 ? -40.0 : c;
    int k;
    double r = reduce_exp_f64(c, &k);
    double p = FMA(r * r, poly_expm1_f64(r), r);
    double scale = pow2_f64(k - 1);
    double result = 2.0 * FMA(scale, p, scale - 0.5);
    result = k == 0 ? p : result;
    return x == 0.0 ? x : result;
}
