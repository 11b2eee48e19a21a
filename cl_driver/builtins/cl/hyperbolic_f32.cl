/* sinh, cosh, tanh (single precision arithmetic) and asinh, acosh, atanh (by way of double). */

/* exp(ax) / 2 for ax >= 0: the exponent is one less, so that results below overflow stay finite. */
HELPER float half_exp_f32(float ax) {
    float c = ax > 91.0f ? 91.0f : ax;
    float t = FMA(c, 0x1.715476p0f, ROUND_F32);
    int k = as_int(t) - as_int(ROUND_F32);
    float kf = t - ROUND_F32;
    float r = FMA(kf, -LN2_HI_F32, c);
    r = FMA(kf, -LN2_LO_F32, r);
    float p = FMA(r * r, poly_exp_f32(r), r);
    return scale_f32(1.0f + p, k - 1);
}

float __cld_sinh_f32(float x) {
    float ax = ABS(x), z = ax * ax;
    float e = half_exp_f32(ax);
    float small = FMA(ax * z, poly_sinh_f32(z), ax);
    return COPYSIGN(ax < 1.0f ? small : e - 0.25f / e, x);
}

float __cld_cosh_f32(float x) {
    float e = half_exp_f32(ABS(x));
    return e + 0.25f / e;
}

float __cld_tanh_f32(float x) {
    float ax = ABS(x), z = ax * ax;
    float c = ax > 10.0f ? 10.0f : ax;
    float large = 1.0f - 1.0f / (half_exp_f32(2.0f * c) + 0.5f);
    float small = FMA(ax * z, poly_tanh_f32(z), ax);
    return COPYSIGN(ax < 0.625f ? small : large, x);
}

/* For |x| below 1/16 a polynomial (the logarithm would cancel), else log(|x| + sqrt(x^2 + 1)). */
float __cld_asinh_f32(float x) {
    double ax = ABS((double)x), z = ax * ax;
    float large = (float)log_mid(ax + SQRT(z + 1.0));
    float small = (float)FMA(ax * z, poly_asinh_mid(z), ax);
    float result = ax < 0.0625 ? small : large;
    return ax < (double)INF_F32 ? COPYSIGN(result, x) : x;
}

/* With u = x - 1 exact: log(1 + u + sqrt(u (x + 1))), at least 2^-12 away from log(1). */
float __cld_acosh_f32(float x) {
    double u = (double)x - 1.0;
    float result = (float)log_mid(1.0 + (u + SQRT(u * ((double)x + 1.0))));
    result = x == INF_F32 ? x : result;
    return x >= 1.0f ? result : NAN_F32;
}

float __cld_atanh_f32(float x) {
    double ax = ABS((double)x), z = ax * ax;
    float large = (float)(0.5 * log_mid((1.0 + ax) / (1.0 - ax)));
    float small = (float)FMA(ax * z, poly_atanh_mid(z), ax);
    float result = ax < 0.0625 ? small : large;
    result = ax == 1.0 ? INF_F32 : result;
    return ax <= 1.0 ? COPYSIGN(result, x) : NAN_F32;
}
