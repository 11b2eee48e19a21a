/* sin, cos, tan, sincos and their forms in multiples of pi, single precision. All work on |x| and put signs
 * back at the end. r = |x| - k pi/2 in two parts, |r| <= pi/4, or of pi, if only one of sine and cosine is
 * wanted: then no two polynomials are to choose from (Cody and Waite with fma: the first step is exact). From
 * REDUCTION_LIMIT_F32 on by integer multiplication with the bits of 2/pi that matter (Payne and Hanek). */

#define REDUCTION_LIMIT_F32 0x1p16f
#define PI_2_1_F32 0x1.921fb6p0f
#define PI_2_2_F32 -0x1.777a5cp-25f
#define PI_2_3_F32 -0x1.ee59dap-50f

/* Bits of 2/pi after the binary point, preceded by 32 zero bits. */
__constant uint two_over_pi_f32[8] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                      0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};

/* 65536 <= x < 2^128. x = mantissa 2^e with a mantissa below 2^24. The 96 bits of 2/pi whose product with it
 * weighs between 2^2 and 2^-94 suffice: no float is closer to a multiple of pi/2 than about 2^-33. The
 * result's last two bits are the quadrant: 51 bits are more than enough for the rest. */
SLOW_PATH double __cld_slow_reduce_f32(float x) {
    uint bits = as_uint(x);
    uint mantissa = (bits & 0x7fffffu) | 0x800000u;
    uint e = (bits >> 23) - 150u + 30u; /* the window begins at bit e of the table */
    e = e > 136u ? 136u : e;            /* infinity */
    uint i = e >> 5, shift = 32u - (e & 31u);
    uint a = two_over_pi_f32[i], b = two_over_pi_f32[i + 1], c = two_over_pi_f32[i + 2],
         d = two_over_pi_f32[i + 3];
    ulong w0 = ((((ulong)a << 32) | b) >> shift) & 0xffffffffu;
    ulong w1 = ((((ulong)b << 32) | c) >> shift) & 0xffffffffu;
    ulong w2 = ((((ulong)c << 32) | d) >> shift) & 0xffffffffu;
    ulong product = ((w0 * mantissa) << 32) + w1 * mantissa + ((w2 * mantissa) >> 32);
    ulong k = (product + 0x2000000000000000UL) >> 62;
    double r = (double)(long)(product - (k << 62)) * 0x1.921fb54442d18p-62; /* pi/2 * 2^-62 */
    r = bits >= 0x7f800000u ? NAN_F64 : r;
    return as_double((as_ulong(r) & ~3UL) | k);
}

HELPER float sin_part_f32(float r, float low) {
    float z = r * r;
    return r + FMA(z * r, poly_sin_f32(z), low);
}

/* 1 - z/2 with the rounding error of z/2's subtraction added back. */
HELPER float cos_part_f32(float r, float low) {
    float z = r * r;
    float half_z = 0.5f * z;
    float u = 1.0f - half_z;
    float rest = (1.0f - u) - half_z;
    return u + (rest + FMA(z * z, poly_cos_f32(z), -r * low));
}

/* The same for r within REDUCTION_LIMIT_F32, where the rounding error of r may stay: 1.4 ulp in all. The third
 * part of pi/2 counts where r is nearly 0. */
HELPER float reduce_near_f32(float ax, __private float *low, __private int *quadrant) {
    float t = FMA(ax, 0x1.45f306p-1f, ROUND_F32);
    float k = t - ROUND_F32;
    *low = k * -PI_2_3_F32;
    *quadrant = as_int(t);
    return FMA(k, -PI_2_2_F32, FMA(k, -PI_2_1_F32, ax));
}

HELPER float cos_near_f32(float r) {
    float z = r * r;
    return FMA(z, FMA(z, poly_cos_f32(z), -0.5f), 1.0f);
}

/* The quadrants of sine and cosine: which of the two it is, and with which sign. */
HELPER float sin_of_quadrant_f32(float s, float c, int k, float x) {
    return flip_f32(k & 1 ? c : s, ((uint)k << 30) ^ as_uint(x));
}

HELPER float cos_of_quadrant_f32(float s, float c, int k) {
    return flip_f32(k & 1 ? s : c, (uint)(k + 1) << 30);
}

SLOW_PATH float __cld_slow_sin_f32(float x) {
    double both = __cld_slow_reduce_f32(ABS(x));
    float r = (float)both, low = (float)(both - (double)r);
    return sin_of_quadrant_f32(sin_part_f32(r, low), cos_part_f32(r, low), (int)(as_ulong(both) & 3UL), x);
}

SLOW_PATH float __cld_slow_cos_f32(float x) {
    double both = __cld_slow_reduce_f32(ABS(x));
    float r = (float)both, low = (float)(both - (double)r);
    return cos_of_quadrant_f32(sin_part_f32(r, low), cos_part_f32(r, low), (int)(as_ulong(both) & 3UL));
}

/* sin(ax - k pi) */
HELPER float sin_less_f32(float ax, float k) {
    float r = FMA(k, -2.0f * PI_2_2_F32, FMA(k, -2.0f * PI_2_1_F32, ax)), z = r * r;
    return r + FMA(z * r, poly_half_circle_f32(z), k * (-2.0f * PI_2_3_F32));
}

float __cld_sin_f32(float x) {
    float t = FMA(ABS(x), 0x1.45f306p-2f, ROUND_F32);
    float result = flip_f32(sin_less_f32(ABS(x), t - ROUND_F32), (as_uint(t) << 31) ^ as_uint(x));
    if (RARELY(ABS(x) >= REDUCTION_LIMIT_F32))
        result = __cld_slow_sin_f32(x);
    return result;
}

/* sin(|x| + pi/2), less an odd number of halves of pi. */
float __cld_cos_f32(float x) {
    float t = FMA(ABS(x), 0x1.45f306p-2f, 0.5f) + ROUND_F32;
    float result = flip_f32(sin_less_f32(ABS(x), (t - ROUND_F32) - 0.5f), as_uint(t) << 31);
    if (RARELY(ABS(x) >= REDUCTION_LIMIT_F32))
        result = __cld_slow_cos_f32(x);
    return result;
}

float __cld_sincos_f32(float x, __private float *cosval) {
    float low;
    int k;
    float r = reduce_near_f32(ABS(x), &low, &k);
    float s = sin_part_f32(r, low), c = cos_near_f32(r);
    float sine = sin_of_quadrant_f32(s, c, k, x), cosine = cos_of_quadrant_f32(s, c, k);
    if (RARELY(ABS(x) >= REDUCTION_LIMIT_F32)) {
        sine = __cld_slow_sin_f32(x);
        cosine = __cld_slow_cos_f32(x);
    }
    *cosval = cosine;
    return sine;
}

float __cld_tan_f32(float x) {
    float low;
    int k;
    float r = reduce_near_f32(ABS(x), &low, &k);
    if (RARELY(ABS(x) >= REDUCTION_LIMIT_F32)) {
        double both = __cld_slow_reduce_f32(ABS(x));
        r = (float)both;
        low = (float)(both - (double)r);
        k = (int)(as_ulong(both) & 3UL);
    }
    float z = r * r;
    float t = r + FMA(z * r, poly_tan_f32(z), low);
    return flip_f32(k & 1 ? -1.0f / t : t, as_uint(x));
}

/* r = |x| - quadrant / 2 exactly (but for a multiple of 4 in the quadrant), |r| <= 1/4; NaN for infinity. */
HELPER float reduce_pi_f32(float ax, __private int *quadrant) {
    float c = FMA(FLOOR(0.5f * ax), -2.0f, ax);
    float t = FMA(c, 2.0f, ROUND_F32);
    *quadrant = as_int(t);
    return FMA(t - ROUND_F32, -0.5f, c);
}

/* x = n + r, |r| <= 1/2, and n is odd where the low bit of |x| + 2^23 is set: for larger |x|, integers all of
 * them, r is 0. Adding +0 turns the -0 of an odd n into the +0 that section 7.5.1 asks for. */
float __cld_sinpi_f32(float x) {
    float ax = ABS(x), r = ax - RINT(ax);
    float result = FMA(r, 2.5f, r * poly_sinpi_f32(r * r));
    return flip_f32(flip_f32(result, as_uint(ax + 0x1p23f) << 31) + 0.0f, as_uint(x));
}

/* cos(pi r) is a multiple of 1 - c^2, c = 2 r, and so exactly 0 at 1/2. n / 2 less the nearest integer is 0
 * or, of an odd n, 1/2 or -1/2, and in their bits stands a 1 next but one to the sign. */
float __cld_cospi_f32(float x) {
    float n = RINT(x), r = x - n, h = 0.5f * n, c = r + r, z = c * c, u = FMA(-c, c, 1.0f);
    float result = FMA(u * z, poly_cospi_f32(z), u);
    return flip_f32(result, as_uint(h - RINT(h)) << 2) + 0.0f;
}

/* Zeros and poles alternate in sign: +0, +infinity, -0, -infinity at 0, 1/2, 1, 3/2. */
float __cld_tanpi_f32(float x) {
    int k;
    float r = reduce_pi_f32(ABS(x), &k);
    float tail = r * poly_tanpi_f32(r * r);
    float t = FMA(r, 0x1.921fb6p1f, tail);
    float exact = flip_f32(k & 1 ? INF_F32 : 0.0f, (uint)k << 30);
    float result = k & 1 ? -1.0f / t : t;
    return flip_f32(r == 0.0f ? exact : result, as_uint(x));
}
