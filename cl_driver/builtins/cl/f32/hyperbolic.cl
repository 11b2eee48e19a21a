/* sinh, cosh, tanh, asinh, acosh, atanh in single precision. */

/* exp(ax) / 2 for ax >= 0: infinite where it overflows, not before. */
HELPER float half_exp_f32(float ax) {
    float t, r = reduce_exp_f32(ax > 89.5f ? 89.5f : ax, &t);
    float quarter = exp_rest_f32(r) * scale_near_f32(0.25f, t);
    return quarter + quarter;
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
    float large = 1.0f - DIVIDE_F32(1.0f, half_exp_f32(2.0f * c) + 0.5f);
    float small = FMA(ax * z, poly_tanh_f32(z), ax);
    return COPYSIGN(ax < 0.625f ? small : large, x);
}

/* A polynomial up to 1/2, then log(h + l) with h + l = sqrt(x^2 + 1) + x. */
float __cld_asinh_f32(float x) {
    float ax = ABS(x), z = ax * ax;
    float small = FMA(ax * z, poly_asinh_f32(z), ax);
    bool huge = ax > 0x1p15f;
    float c = huge ? 1.0f : ax; /* there log(2 x) does */
    z = c * c;
    float z_low = FMA(c, c, -z);
    float w = z + 1.0f, part = w - z;
    float w_low = (z - (w - part)) + (1.0f - part);
    float s = SQRT(w), h = s + c;
    float residual = FMA(-s, s, w) + (w_low + z_low);
    /* (c - (h - s) + residual / (2 s)) / h */
    float low = FMA(c - (h - s), 2.0f * s, residual) / (2.0f * s * h);
    float k, f = split_f32(huge ? ax : h, &k) - 1.0f;
    float large = log_sum_f32(huge ? k + 1.0f : k, f, huge ? 0.0f : low);
    float result = ax < 0.5f ? small : large;
    return ax < INF_F32 ? COPYSIGN(result, x) : x;
}

/* log1p(u + s) with u = x - 1 and s = sqrt(u (u + 2)) in two parts. */
float __cld_acosh_f32(float x) {
    bool huge = x > 0x1p15f;
    float u = (huge ? 2.0f : x) - 1.0f;
    float v = u + 2.0f, v_low = u - (v - 2.0f);
    float w = u * v, w_low = FMA(u, v, -w);
    float s = SQRT(w), h = s + u;
    float s_low = (FMA(-s, s, w) + FMA(u, v_low, w_low)) / (2.0f * s);
    float low = (u - (h - s)) + s_low;
    float k, f_low, f = log1p_reduce_f32(h, low, &k, &f_low);
    float k_huge, f_huge = split_f32(x, &k_huge) - 1.0f; /* log(2 x) */
    float result = log_sum_f32(huge ? k_huge + 1.0f : k, huge ? f_huge : f, huge ? 0.0f : f_low);
    result = x == 1.0f ? 0.0f : result;
    result = x == INF_F32 ? x : result;
    return x >= 1.0f ? result : NAN_F32;
}

/* log1p(2 x / (1 - x)) / 2 with the quotient in two parts */
float __cld_atanh_f32(float x) {
    float ax = ABS(x);
    float d = 1.0f - ax, d_low = (1.0f - d) - ax;
    float inverse = 1.0f / d, twice = 2.0f * ax;
    float q = twice * inverse;
    float low = (FMA(-q, d, twice) - q * d_low) * inverse;
    float result = 0.5f * log1p_pair_f32(q, low);
    result = ax < 0x1p-13f ? ax : result;
    result = ax == 1.0f ? INF_F32 : result;
    return ax <= 1.0f ? COPYSIGN(result, x) : NAN_F32;
}
