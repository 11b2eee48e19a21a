/* half_* in single precision: up to 8192 ulp off, so 17 bits will do, with the special values and denormal
 * numbers of the functions proper. */

float __cld_half_exp2_f32(float x) {
    float t = x + ROUND_F32, r = x - (t - ROUND_F32);
    float p = FMA(r, poly_half_exp2_f32(r), 1.0f);
    float result = scale_near_f32(p, t);
    if (RARELY(!(ABS(x) < 126.0f)))
        result = scale_far_f32(p, t, x, 129.0f, -151.0f);
    return result;
}

float __cld_half_exp_f32(float x) {
    return __cld_half_exp2_f32(x * LOG2_E_F32);
}

float __cld_half_exp10_f32(float x) {
    return __cld_half_exp2_f32(x * LOG2_10_F32);
}

float __cld_half_log2_f32(float x) {
    float k, f = split_near_f32(x, &k) - 1.0f, result = FMA(f, poly_half_log2_f32(f), k);
    if (RARELY(is_abnormal_f32(x))) {
        f = split_f32(x, &k) - 1.0f;
        result = log_special_f32(x, FMA(f, poly_half_log2_f32(f), k));
    }
    return result;
}

float __cld_half_log_f32(float x) {
    return __cld_half_log2_f32(x) * LN2_F32;
}

float __cld_half_log10_f32(float x) {
    return __cld_half_log2_f32(x) * LOG10_2_F32;
}

/* Its logarithm takes more bits: seven are lost in the product. */
float __cld_half_powr_f32(float x, float y) {
    float k, f = split_near_f32(x, &k) - 1.0f, l = FMA(f, poly_native_powr_f32(f), k);
    if (RARELY(is_abnormal_f32(x))) {
        f = split_f32(x, &k) - 1.0f;
        l = log_special_f32(x, FMA(f, poly_native_powr_f32(f), k));
    }
    return __cld_half_exp2_f32(y * l);
}
