/* tgamma, lgamma, lgamma_r in single precision, by way of double: x = k + t with |t| <= 1/2 exactly,
 * gamma(x) = gamma(1 + t) times (or over) the product of the exact factors between, 1/gamma(1 + t) = 1 + t
 * p(t). */

/* The factors x - 1, ..., x - (k - 1) for k > 1; x, ..., x - k for k < 1. The callers limit |k|. */
HELPER double gamma_product(double t, int k) {
    double product = 1.0;
    int end = k > 0 ? k : 1;
    for (int j = k > 0 ? 1 : k; j < end; j++)
        product *= t + (double)j;
    return product;
}

float __cld_tgamma_f32(float x) {
    float c = x > 40.0f ? 40.0f : x; /* gamma(40) overflows */
    c = c < -50.0f ? -50.0f + (c - TRUNC(c)) : c;
    double k = (double)RINT(c), t = (double)c - k;
    double reciprocal = FMA(t, poly_rgamma_mid(t), 1.0);
    int n = c == c ? (int)k : 1;
    double product = gamma_product(t, n);
    float result = (float)(n > 0 ? product / reciprocal : 1.0 / (product * reciprocal));
    /* below -50 only the sign is left of the result; it alternates with floor(x) */
    float below = FLOOR(x) * 0.5f == FLOOR(FLOOR(x) * 0.5f) ? 0.0f : -0.0f;
    result = x < -50.0f ? below : result;
    result = x == 0.0f ? COPYSIGN(INF_F32, x) : result;
    result = x < 0.0f && TRUNC(x) == x ? NAN_F32 : result;
    return x != x ? x : result;
}

/* log|gamma(x)| for x >= 8: Stirling's series. */
HELPER double stirling_mid(double x) {
    double y = 1.0 / x, z = y * y;
    double series =
        FMA(z, FMA(z, FMA(z, -0x1.38138138138138p-11, 0x1.a01a01a01a01ap-11), -0x1.6c16c16c16c17p-9),
            0x1.5555555555555p-4);
    return FMA(x - 0.5, log_mid(x), -x) + FMA(y, series, 0x1.d67f1c864beb5p-1); /* log(2 pi) / 2 */
}

float __cld_lgamma_r_f32(float x, __private int *sign) {
    double ax = ABS((double)x);
    bool large = ax >= 8.0;
    float c = large ? 1.0f : x;
    double k = (double)RINT(c), t = (double)c - k;
    int n = c == c ? (int)k : 1;
    double product = gamma_product(t, n);
    double log_product = log_mid(ABS(product));
    double result = -log_mid(FMA(t, poly_rgamma_mid(t), 1.0));
    result = n > 0 ? result + log_product : result - log_product;
    if (RARELY(large)) {
        double r = (double)x - (double)RINT(x);
        double sine = ABS((double)__cld_sinpi_f32((float)r));
        double reflected = 0x1.250d048e7a1bdp0 - log_mid(sine * ax) - stirling_mid(ax); /* log(pi) */
        result = x < 0.0f ? reflected : stirling_mid(ax);
    }
    bool pole = x == 0.0f || (x < 0.0f && TRUNC(x) == x) || ABS(x) == INF_F32;
    float floor_half = FLOOR(x) * 0.5f;
    bool negative = x < 0.0f && FLOOR(floor_half) != floor_half;
    *sign = pole && !(x > 0.0f) ? 0 : (negative ? -1 : 1);
    float rounded = pole ? INF_F32 : (float)result;
    return x != x ? x : rounded;
}

float __cld_lgamma_f32(float x) {
    int sign;
    return __cld_lgamma_r_f32(x, &sign);
}
