/* sinh, cosh, tanh, asinh, acosh, atanh in single precision. */

/* exp(ax) / 2 for ax >= 0: infinite where it overflows, not before. */
HELPER float half_exp_f32(float ax) {
    float t, r = reduce_exp_f32(ax > 89.5f ? 89.5f : ax, &t);
    float p = FMA(r * r, poly_exp_f32(r), r), scale = scale_near_f32(0.25f, t);
    float quarter = FMA(scale, p, scale);
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
    float k, f = split_near_f32(huge ? ax : h, &k) - 1.0f;
    float large = log_sum_low_f32(huge ? k + 1.0f : k, f, huge ? 0.0f : low);
    float result = ax < 0.5f ? small : large;
    return ax < INF_F32 ? COPYSIGN(result, x) : x;
}

/* sqrt(2 u) p(u) with u = x - 1 below 2, from there on log(x + sqrt(x^2 - 1)). */
float __cld_acosh_f32(float x) {
    float u = x - 1.0f, s = SQRT(x < 2.0f ? u + u : FMA(x, x, -1.0f));
    float k, f = split_near_f32(x + s, &k) - 1.0f;
    float result = x >= 2.0f ? log_sum_f32(k, f) : FMA(s * u, poly_acosh_f32(u), s);
    if (RARELY(x > 0x1p60f)) { /* log(2 x) */
        f = split_near_f32(x, &k) - 1.0f;
        result = x < INF_F32 ? log_sum_f32(k + 1.0f, f) : x;
    }
    return result;
}

/* A polynomial below 1/2, from there on log((1 + x) / (1 - x)) / 2. */
float __cld_atanh_f32(float x) {
    float ax = ABS(x), z = ax * ax;
    float small = FMA(ax * z, poly_atanh_f32(z), ax);
    float k, f = split_near_f32((1.0f + ax) / (1.0f - ax), &k) - 1.0f;
    float result = ax < 0.5f ? small : 0.5f * log_sum_f32(k, f);
    if (RARELY(!(ax < 1.0f)))
        result = ax == 1.0f ? INF_F32 : NAN_F32;
    return flip_f32(result, as_uint(x));
}
