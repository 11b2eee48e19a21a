/* Fused multiply-add for CPUs without the instruction. Nothing here may use FMA. */

/* The product is exact in double. The sum is rounded to odd (its last bit set when inexact), so that rounding
 * it again to single precision gives the right result (Boldo and Melquiond, 2008). */
float __cld_fma_f32(float a, float b, float c) {
    double product = (double)a * (double)b, addend = (double)c;
    double sum_low, sum = exact_sum(product, addend, &sum_low);
    ulong bits = as_ulong(sum);
    bool away = (sum_low > 0.0) == (sum > 0.0);
    ulong odd = away ? bits + 1 : bits - 1;
    bool adjust = ABS(sum_low) > 0.0 && !(bits & 1) && ABS(sum) < INF_F64;
    return (float)as_double(adjust ? odd : bits);
}

/* high:low shifted right by n >= 0, the bits lost noted in the last one. */
HELPER void shift_right_sticky(__private ulong *high, __private ulong *low, int n) {
    ulong h = *high, l = *low;
    bool far = n >= 64;
    ulong lost = far ? l : 0;
    l = far ? h : l;
    h = far ? 0 : h;
    n = far ? n - 64 : n;
    bool gone = n >= 64;
    lost |= gone ? l : (n ? l << (64 - n) : 0);
    ulong shifted = n ? (l >> (n & 63)) | (h << ((64 - n) & 63)) : l;
    *low = (gone ? 0 : shifted) | (lost ? 1 : 0);
    *high = gone ? 0 : h >> (n & 63);
}

/* mantissa 2^exponent with the mantissa's top bit at 52; zero stays zero with a low exponent. */
HELPER ulong unpack_f64(double x, __private int *exponent) {
    ulong bits = as_ulong(x) & 0x7fffffffffffffffUL;
    int e = (int)(bits >> 52);
    ulong fraction = bits & 0xfffffffffffffUL;
    int zeros = fraction ? (int)clz(fraction) - 11 : 0;
    *exponent = e ? e - 1075 : -1074 - zeros;
    return e ? fraction | 0x10000000000000UL : fraction << zeros;
}

/* Exact integer arithmetic in 128 bits, rounded once: to nearest even or toward zero. */
HELPER double rounded_fma_f64(double a, double b, double c, bool to_nearest) {
    int exponent_a, exponent_b, exponent_c;
    ulong mantissa_a = unpack_f64(a, &exponent_a), mantissa_b = unpack_f64(b, &exponent_b);
    ulong mantissa_c = unpack_f64(c, &exponent_c);
    ulong low = mantissa_a * mantissa_b, high = mul_hi(mantissa_a, mantissa_b);
    /* both with the top bit at 125 or 126 of 128 */
    high = (high << 21) | (low >> 43);
    low <<= 21;
    int exponent = exponent_a + exponent_b - 21;
    ulong c_high = mantissa_c << 10, c_low = 0;
    exponent_c -= 74;
    exponent_c = mantissa_c ? exponent_c : exponent;
    int difference = exponent_c - exponent;
    int shift = difference > 0 ? difference : -difference;
    shift = shift > 200 ? 200 : shift;
    if (difference > 0)
        shift_right_sticky(&high, &low, shift);
    else
        shift_right_sticky(&c_high, &c_low, shift);
    exponent = difference > 0 ? exponent_c : exponent;
    ulong sign = (as_ulong(a) ^ as_ulong(b)) >> 63, sign_c = as_ulong(c) >> 63;
    bool subtract = sign != sign_c;
    bool swap = subtract && (c_high > high || (c_high == high && c_low > low));
    ulong x_high = swap ? c_high : high, x_low = swap ? c_low : low;
    ulong y_high = swap ? high : c_high, y_low = swap ? low : c_low;
    sign = swap ? sign_c : sign;
    ulong sum_low = subtract ? x_low - y_low : x_low + y_low;
    ulong carry = subtract ? x_low < y_low : sum_low < x_low;
    ulong sum_high = subtract ? x_high - y_high - carry : x_high + y_high + carry;
    /* top bit to 127 */
    bool empty = sum_high == 0;
    sum_high = empty ? sum_low : sum_high;
    sum_low = empty ? 0 : sum_low;
    exponent -= empty ? 64 : 0;
    bool zero = sum_high == 0;
    int zeros = zero ? 0 : (int)clz(sum_high);
    sum_high = zeros ? (sum_high << zeros) | (sum_low >> (64 - zeros)) : sum_high;
    sum_low <<= zeros;
    exponent -= zeros;
    /* keep 53 bits, fewer where the result is denormal: shift out 11 of the upper word or more */
    int out = exponent + 75 < -1074 ? -1074 - exponent - 64 : 11;
    out = out > 65 ? 65 : out;
    ulong rest = sum_low ? 1 : 0;
    ulong kept = out >= 64 ? 0 : sum_high >> out;
    ulong half_bit = out > 64 ? 0 : (sum_high >> (out - 1)) & 1;
    ulong below = out > 64 ? 1 : (sum_high << (65 - out)) | rest;
    kept += to_nearest && half_bit && (below || (kept & 1)) ? 1 : 0;
    double result = __cld_ldexp_f64((double)kept, exponent + 64 + out);
    result = to_nearest || result < INF_F64 ? result : as_double(0x7fefffffffffffffL);
    result = zero ? 0.0 : flip_f64(result, sign << 63);
    bool finite = ABS(a) < INF_F64 && ABS(b) < INF_F64;
    result = ABS(c) < INF_F64 ? result : c; /* a finite product must not overflow against it */
    return finite && a != 0.0 && b != 0.0 ? result : a * b + c;
}

double __cld_fma_f64(double a, double b, double c) {
    return rounded_fma_f64(a, b, c, true);
}
