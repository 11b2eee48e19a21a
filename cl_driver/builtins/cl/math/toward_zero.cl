/* Arithmetic rounded toward zero, for kernels with RoundingModeRTZ (passes/lower/toward_zero.py), whatever
 * mode the CPU is in. That of float and half is done in these, too: truncated twice is truncated. */

#define SIGN_F64 0x8000000000000000UL

double __cld_rtz_fma_f64(double a, double b, double c) {
    return rounded_fma_f64(a, b, c, false);
}

double __cld_rtz_add_f64(double a, double b) {
    bool ordered = ABS(a) >= ABS(b);
    double x = ordered ? a : b, y = ordered ? b : a;
    double sum = x + y, error = y - (sum - x); /* exact; an overflow's is infinite */
    bool away = ABS(error) > 0.0 && (error > 0.0) != (sum > 0.0);
    return as_double(as_ulong(sum) - (away ? 1 : 0));
}

double __cld_rtz_mul_f64(double a, double b) {
    return rounded_fma_f64(a, b, as_double((as_ulong(a) ^ as_ulong(b)) & SIGN_F64), false);
}

/* The magnitude of a finite number other than 0 between 1 and 2, and its exponent. */
HELPER double significand_f64(double x, __private int *exponent) {
    ulong mantissa = unpack_f64(x, exponent);
    *exponent += 52;
    return as_double((mantissa & 0xfffffffffffffUL) | 0x3ff0000000000000UL);
}

/* x 2^n, x being normal and positive, truncated where that is subnormal or too large. */
HELPER double truncated_ldexp_f64(double x, int n) {
    ulong bits = as_ulong(x), mantissa = (bits & 0xfffffffffffffUL) | 0x10000000000000UL;
    int exponent = (int)(bits >> 52) + n;
    int shift = exponent > 0 ? 0 : exponent < -62 ? 63 : 1 - exponent;
    ulong normal = ((ulong)exponent << 52) | (bits & 0xfffffffffffffUL);
    ulong result = exponent > 0 ? normal : mantissa >> shift;
    return as_double(exponent > 2046 ? 0x7fefffffffffffffUL : result);
}

double __cld_rtz_div_f64(double a, double b) {
    double plain = a / b;
    int exponent_a, exponent_b;
    double x = significand_f64(a, &exponent_a), y = significand_f64(b, &exponent_b);
    double quotient = x / y, rest = FMA(-quotient, y, x);
    quotient = as_double(as_ulong(quotient) - (rest < 0.0 ? 1 : 0));
    double result = truncated_ldexp_f64(quotient, exponent_a - exponent_b);
    result = as_double(as_ulong(result) | ((as_ulong(a) ^ as_ulong(b)) & SIGN_F64));
    bool ordinary = ABS(a) < INF_F64 && ABS(b) < INF_F64 && a != 0.0 && b != 0.0;
    return ordinary ? result : plain;
}

double __cld_rtz_sqrt_f64(double a) {
    int exponent;
    double x = significand_f64(a, &exponent);
    x = exponent & 1 ? 2.0 * x : x;
    double root = SQRT(x), rest = FMA(-root, root, x);
    root = as_double(as_ulong(root) - (rest < 0.0 ? 1 : 0));
    double result = truncated_ldexp_f64(root, exponent >> 1);
    return a > 0.0 && a < INF_F64 ? result : SQRT(a);
}
