/* exp and log for CPUs that take numbers apart and put them together in single instructions (AVX-512): in the
 * place of the functions named without _scaled, at widths above 1. The same polynomials, without integers,
 * and with one instruction for what is zero, infinite, negative or no number. The code generator knows the
 * functions that stand for instructions, __cld_op_*: ../../../codegen/library/intrinsics.py. */

INSTRUCTION float __cld_op_exponent(float x);                /* floor(log2(|x|)) */
INSTRUCTION float __cld_op_significand(float x);             /* x / 2^exponent(x): 1 to 2 */
/* x 2^k, k an integer. Intel's CPUs take a hundred cycles or more where the exact result is just too small for a
 * normal number, none where k is far below that: so where the result is 0 anyway, k is about -1000. */
INSTRUCTION float __cld_op_scale(float x, float k);
INSTRUCTION float __cld_op_log_limit(float result, float x); /* result, or what log(x) is for a special x */
INSTRUCTION float __cld_op_rest(float x);                    /* x less the nearest integer: 0 of infinity */

float __cld_exp_f32_scaled(float x) {
    float c = x > 89.0f ? 89.0f : x;
    c = c < -104.0f ? -700.0f : c;
    float k = FMA(c, 0x1.715476p0f, ROUND_F32) - ROUND_F32;
    float r = FMA(k, -LN2_LO_F32, FMA(k, -LN2_HI_F32, c));
    return __cld_op_scale(exp_rest_f32(r), k);
}

float __cld_exp2_f32_scaled(float x) {
    float c = x > 129.0f ? 129.0f : x;
    c = c < -150.0f ? -1000.0f : c;
    float k = (c + ROUND_F32) - ROUND_F32, r = c - k;
    return __cld_op_scale(FMA(r, poly_exp2_f32(r), 1.0f), k);
}

float __cld_exp10_f32_scaled(float x) {
    float c = x > 39.0f ? 39.0f : x;
    c = c < -45.2f ? -300.0f : c;
    float k = FMA(c, 0x1.a934fp1f, ROUND_F32) - ROUND_F32;
    float r = FMA(k, -0x1.3509f8p-18f, FMA(k, -0x1.344p-2f, c));
    return __cld_op_scale(FMA(r, poly_exp10_f32(r), 1.0f), k);
}

/* x = 2^k (1 + f), 1 + f between sqrt(1/2) and sqrt(2). */
HELPER float split_scaled_f32(float x, __private float *k) {
    float e = __cld_op_exponent(x), m = __cld_op_significand(x);
    bool large = m > 0x1.6a09e6p0f;
    *k = large ? e + 1.0f : e;
    return (large ? 0.5f * m : m) - 1.0f;
}

float __cld_log_f32_scaled(float x) {
    float k, f = split_scaled_f32(x, &k);
    return __cld_op_log_limit(log_sum_f32(k, f), x);
}

float __cld_log2_f32_scaled(float x) {
    float k, f = split_scaled_f32(x, &k);
    return __cld_op_log_limit(log2_sum_f32(k, f), x);
}

float __cld_log10_f32_scaled(float x) {
    float k, f = split_scaled_f32(x, &k);
    return __cld_op_log_limit(log10_sum_f32(k, f), x);
}

float __cld_ldexp_f32_scaled(float x, int n) {
    return __cld_op_scale(x, (float)n); /* rounded or not, an n that large leaves 0 or infinity */
}

/* Zero, infinity and overflow are the instructions' business: half_* have all special values so. */
#define EXP2_OF_REST(name)                                                                                   \
    float __cld_##name##_exp2_f32_scaled(float x) {                                                          \
        float c = x < -150.0f ? -1000.0f : x, r = __cld_op_rest(c);                                          \
        return __cld_op_scale(FMA(r, poly_##name##_exp2_f32(r), 1.0f), c - r);                               \
    }                                                                                                        \
    float __cld_##name##_exp_f32_scaled(float x) {                                                           \
        return __cld_##name##_exp2_f32_scaled(x * LOG2_E_F32);                                               \
    }                                                                                                        \
    float __cld_##name##_exp10_f32_scaled(float x) {                                                         \
        return __cld_##name##_exp2_f32_scaled(x * LOG2_10_F32);                                              \
    }

#define SHORT_LOGARITHMS(name)                                                                               \
    float __cld_##name##_log2_f32_scaled(float x) {                                                          \
        float k, f = split_scaled_f32(x, &k);                                                                \
        return __cld_op_log_limit(FMA(f, poly_##name##_log2_f32(f), k), x);                                  \
    }                                                                                                        \
    float __cld_##name##_log_f32_scaled(float x) {                                                           \
        return __cld_##name##_log2_f32_scaled(x) * LN2_F32;                                                  \
    }                                                                                                        \
    float __cld_##name##_log10_f32_scaled(float x) {                                                         \
        return __cld_##name##_log2_f32_scaled(x) * LOG10_2_F32;                                              \
    }

EXP2_OF_REST(native)
SHORT_LOGARITHMS(native)
EXP2_OF_REST(half)
SHORT_LOGARITHMS(half)

/* Of native_powr and half_powr. */
HELPER float log2_powr_scaled(float x) {
    float k, f = split_scaled_f32(x, &k);
    return __cld_op_log_limit(FMA(f, poly_native_powr_f32(f), k), x);
}

float __cld_native_powr_f32_scaled(float x, float y) {
    return __cld_native_exp2_f32_scaled(y * log2_powr_scaled(x));
}

float __cld_half_powr_f32_scaled(float x, float y) {
    return __cld_half_exp2_f32_scaled(y * log2_powr_scaled(x));
}
