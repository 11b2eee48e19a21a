/* sin, cos, tan, sincos and their forms in multiples of pi, double precision: as in cl/f32/trig.cl. */

#define REDUCTION_LIMIT_F64 0x1p28
#define PI_2_1_F64 0x1.921fb54442d18p0
#define PI_2_2_F64 0x1.1a62633145c07p-54
#define PI_2_3_F64 -0x1.f1976b7ed8fbcp-110

/* Bits of 2/pi after the binary point. */
__constant ulong two_over_pi_f64[19] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
    0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
    0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab};

/* 64 bits of 2/pi from bit `start` on, which may be negative (zeros). */
HELPER ulong two_over_pi_bits(int start) {
    int i = start >> 6;
    uint shift = (uint)start & 63u;
    ulong a = i < 0 ? 0 : two_over_pi_f64[i < 0 ? 0 : i], b = two_over_pi_f64[i + 1];
    return shift ? (a << shift) | (b >> (64u - shift)) : a;
}

/* 2^28 <= x: the mantissa times the 192 bits of 2/pi that weigh from 2^1 down, of which the upper 128 bits of
 * the product are kept: two of quadrant, 126 of fraction, where 62 and then 53 bits are needed. Returns the
 * high and the low part; the last two bits of the latter are the quadrant. */
SLOW_PATH double2 __cld_slow_reduce_f64(double x) {
    ulong bits = as_ulong(x);
    ulong mantissa = (bits & 0xfffffffffffffUL) | 0x10000000000000UL;
    int e = (int)(bits >> 52) - 1075; /* x = mantissa 2^e */
    e = e > 971 ? 971 : e;            /* infinity */
    /* bit j of 2/pi (from 0) weighs 2^(e - 1 - j) times the mantissa; j = e - 2 weighs 2^1 */
    int start = e - 2;
    ulong w0 = two_over_pi_bits(start), w1 = two_over_pi_bits(start + 64), w2 = two_over_pi_bits(start + 128);
    ulong middle = mantissa * w1, carry = mul_hi(mantissa, w2);
    ulong fraction = middle + carry;
    ulong top = mantissa * w0 + mul_hi(mantissa, w1) + (fraction < middle ? 1 : 0);
    ulong k = (top + 0x2000000000000000UL) >> 62;
    top -= k << 62;
    bool negative = (long)top < 0;
    /* negate all 128 bits */
    ulong high = negative ? ~top + (fraction == 0 ? 1 : 0) : top;
    ulong rest = negative ? 0 - fraction : fraction;
    int zeros = high ? (int)clz(high) : 63;
    ulong first = zeros ? (high << zeros) | (rest >> (64 - zeros)) : high;
    ulong second = rest << zeros;
    /* 53 bits, then 53 of the 75 that follow */
    double a = (double)(first >> 11), b = (double)(((first & 0x7ff) << 42) | (second >> 22));
    double unit = pow2_f64(-51 - zeros); /* first >> 11 counts units of 2^(11 - zeros - 62) */
    a *= unit;
    b *= unit * 0x1p-53;
    double r_low, r = pair_product(a, b, PI_2_1_F64, PI_2_2_F64, &r_low);
    r = bits >= 0x7ff0000000000000UL ? NAN_F64 : r;
    r_low = negative ? -r_low : r_low;
    return (double2)(negative ? -r : r, as_double((as_ulong(r_low) & ~3UL) | k));
}

/* For ax < 2^28; the quadrant is in the low bits of *t. */
HELPER double reduce_near_f64(double ax, __private double *low, __private double *t) {
    *t = FMA(ax, 0x1.45f306dc9c883p-1, ROUND_F64);
    double k = *t - ROUND_F64;
    double r1 = FMA(k, -PI_2_1_F64, ax);
    double rest, high = exact_product(k, PI_2_2_F64, &rest);
    double r = r1 - high; /* its error below is exact: r1 is a multiple of the last place of high */
    *low = FMA(k, -PI_2_3_F64, ((r1 - r) - high) - rest);
    return r;
}

HELPER double reduce_f64(double ax, __private double *low, __private int *quadrant) {
    double t, r = reduce_near_f64(ax, low, &t);
    *quadrant = (int)as_long(t);
    if (RARELY(ax >= REDUCTION_LIMIT_F64)) {
        double2 both = __cld_slow_reduce_f64(ax);
        r = both.x;
        *low = both.y;
        *quadrant = (int)(as_ulong(both.y) & 3UL);
    }
    return r;
}

/* sin(r + low) = r + the result */
HELPER double sin_tail_f64(double r, double low) {
    double z = r * r;
    return FMA(z * r, poly_sin_f64(z), FMA(-0.5 * z, low, low));
}

/* cos(r + low) = *head + the result */
HELPER double cos_tail_f64(double r, double low, __private double *head) {
    double z = r * r, half_z = 0.5 * z;
    double u = 1.0 - half_z;
    *head = u;
    return ((1.0 - u) - half_z) + FMA(z * z, poly_cos_f64(z), -r * low);
}

HELPER double sin_part_f64(double r, double low) {
    return r + sin_tail_f64(r, low);
}

HELPER double cos_part_f64(double r, double low) {
    double head, tail = cos_tail_f64(r, low, &head);
    return head + tail;
}

/* sin(ax + quadrants pi/2) for large ax. */
SLOW_PATH double __cld_slow_sine_f64(double ax, int quadrants) {
    double2 both = __cld_slow_reduce_f64(ax);
    int k = (int)(as_ulong(both.y) & 3UL) + quadrants;
    double result = k & 1 ? cos_part_f64(both.x, both.y) : sin_part_f64(both.x, both.y);
    return flip_f64(result, (ulong)k << 62);
}

/* sin(ax - k pi), |ax - k pi| <= pi/2: what is taken off second is exact to the last place of what is left,
 * or that is near 0, where the third counts. */
HELPER double sine_f64(double ax, double k) {
    double r = FMA(k, -2.0 * PI_2_1_F64, ax);
    r = FMA(k, -2.0 * PI_2_2_F64, r);
    r = FMA(k, -2.0 * PI_2_3_F64, r);
    double z = r * r, s = FMA(r * z, poly_sine_f64(z), r);
    s = s > 1.0 ? 1.0 : s;
    return s < -1.0 ? -1.0 : s;
}

double __cld_sin_f64(double x) {
    double ax = ABS(x), t = FMA(ax, 0x1.45f306dc9c883p-2, ROUND_F64);
    double result = flip_f64(sine_f64(ax, t - ROUND_F64), as_ulong(t) << 63);
    if (RARELY(ax >= REDUCTION_LIMIT_F64))
        result = ax >= REDUCTION_LIMIT_F64 ? __cld_slow_sine_f64(ax, 0) : result;
    return flip_f64(result, as_ulong(x));
}

/* (-1)^n sin(x - (n - 1/2) pi) */
double __cld_cos_f64(double x) {
    double ax = ABS(x), t = FMA(ax, 0x1.45f306dc9c883p-2, 0.5) + ROUND_F64;
    double result = flip_f64(sine_f64(ax, (t - ROUND_F64) - 0.5), as_ulong(t) << 63);
    if (RARELY(ax >= REDUCTION_LIMIT_F64))
        result = ax >= REDUCTION_LIMIT_F64 ? __cld_slow_sine_f64(ax, 1) : result;
    return result;
}

double __cld_sincos_f64(double x, __private double *cosval) {
    double low;
    int k;
    double r = reduce_f64(ABS(x), &low, &k);
    double s = sin_part_f64(r, low), c = cos_part_f64(r, low);
    *cosval = flip_f64(k & 1 ? s : c, (ulong)(k + 1) << 62);
    return flip_f64(k & 1 ? c : s, ((ulong)k << 62) ^ as_ulong(x));
}

/* tan(r + low), or -1 / tan(r + low) for odd quadrants: a quotient of polynomials one way or the other. */
HELPER double tan_part_f64(double r, double low, bool has_low, ulong quadrant) {
    double z = r * r, cube = r * z, p = poly_tan_above_f64(z);
    double above = has_low ? r + FMA(cube, p, low) : FMA(cube, p, r), below = FMA(z, poly_tan_below_f64(z), 1.0);
    bool odd = (long)(quadrant << 63) < 0;
    return flip_f64(DIVIDE(odd ? below : above, odd ? above : below), quadrant << 63);
}

/* tan(ax) for large ax. */
SLOW_PATH double __cld_slow_tan_f64(double ax) {
    double2 both = __cld_slow_reduce_f64(ax);
    return tan_part_f64(both.x, both.y, true, as_ulong(both.y));
}

double __cld_tan_f64(double x) {
    double ax = ABS(x), low, t, r = reduce_near_f64(ax, &low, &t);
    double result = tan_part_f64(r, low, true, as_ulong(t));
    if (RARELY(ax >= REDUCTION_LIMIT_F64))
        result = ax >= REDUCTION_LIMIT_F64 ? __cld_slow_tan_f64(ax) : result;
    return flip_f64(result, as_ulong(x));
}

/* As of floats. */
double __cld_sinpi_f64(double x) {
    double ax = ABS(x), r = ax - RINT(ax);
    double result = FMA(r, 2.5, r * poly_sinpi_f64(r * r));
    return flip_f64(flip_f64(result, as_ulong(ax + 0x1p52) << 63) + 0.0, as_ulong(x));
}

double __cld_cospi_f64(double x) {
    double n = RINT(x), r = x - n, h = 0.5 * n, c = r + r, z = c * c, u = FMA(-c, c, 1.0);
    double result = FMA(u * z, poly_cospi_f64(z), u);
    return flip_f64(result, as_ulong(h - RINT(h)) << 2) + 0.0;
}

/* r = |x| - quadrant / 2 exactly (but for a multiple of 4 in the quadrant), |r| <= 1/4; NaN for infinity. */
double __cld_tanpi_f64(double x) {
    double ax = ABS(x), c = FMA(FLOOR(0.5 * ax), -2.0, ax), t = c + 0x1.8p51, r = c - (t - 0x1.8p51);
    ulong quadrant = as_ulong(t);
    double exact = flip_f64((long)(quadrant << 63) < 0 ? INF_F64 : 0.0, quadrant << 62);
    double result = tan_part_f64(FMA(r, 2.0 * PI_2_1_F64, r * (2.0 * PI_2_2_F64)), 0.0, false, quadrant);
    return flip_f64(r == 0.0 ? exact : result, as_ulong(x));
}
