// black_scholes by hand. See kernels.c. Chains of instructions are long, so several vectors of options are
// computed side by side: values are of that many vectors, of which the compiler makes an instruction each.
#include "pool.h"
#if BYTES == 64
#include <immintrin.h>
#endif

enum { VECTORS = 4 };

typedef float many __attribute__((vector_size(VECTORS * BYTES)));
typedef int32_t many_ints __attribute__((vector_size(VECTORS * BYTES)));
typedef float many_anywhere __attribute__((vector_size(VECTORS * BYTES), aligned(4), may_alias));

typedef union {
    many all;
    floats each[VECTORS];
} pieces;

// Applies an instruction that has no operator to each vector of x.
#define EACH_VECTOR(x, y, function)                                                                          \
    ({                                                                                                       \
        pieces to, from = {.all = (x)}, other = {.all = (y)};                                                \
        (void)other;                                                                                         \
        EACH(v, VECTORS) to.each[v] = function;                                                              \
        to.all;                                                                                              \
    })
#define EACH_REGISTER (__m512) from.each[v]

#define LN2_HIGH 0x1.62e8p-1f // 13 bits: products with exponents are exact
#define LN2_LOW -0x1.e8082ep-16f
#define TO_INTEGER 0x1.8p23f

INLINE many of(float x) {
    return x - (many){};
}

INLINE many fma_many(many a, many b, many c) {
    return __builtin_elementwise_fma(a, b, c);
}

INLINE many select_many(many_ints mask, many if_set, many otherwise) {
    return (many)((mask & (many_ints)if_set) | (~mask & (many_ints)otherwise));
}

INLINE many exp_of(many x) {
    x = __builtin_elementwise_max(__builtin_elementwise_min(of(89.0f), x), of(-104.5f));
    many shifted = fma_many(x, of(0x1.715476p0f), of(TO_INTEGER)), power = shifted - TO_INTEGER;
    many r = fma_many(power, of(-LN2_LOW), fma_many(power, of(-LN2_HIGH), x));
    many p = of(0x1.694c8ep-10f);
    p = fma_many(p, r, of(0x1.12397ep-7f));
    p = fma_many(p, r, of(0x1.555a26p-5f));
    p = fma_many(p, r, of(0x1.555492p-3f));
    p = fma_many(p, r, of(0x1.fffffap-2f));
    p = fma_many(p, r, of(1.0f));
    p = fma_many(p, r, of(1.0f));
#if BYTES == 64
    return EACH_VECTOR(p, power, (floats)_mm512_scalef_ps(EACH_REGISTER, (__m512)other.each[v]));
#else
    many_ints k = (many_ints)shifted - (many_ints)of(TO_INTEGER), half = k >> 1;
    return p * (many)((half + 127) << 23) * (many)((k - half + 127) << 23);
#endif
}

// log(x) = k log(2) + log(1 + f) with 1 + f between sqrt(1/2) and sqrt(2).
INLINE many log_of(many x) {
    many_ints tiny = x < 0x1p-126f;
    many_ints bits = (many_ints)select_many(tiny, x * 0x1p24f, x);
    many_ints e = (bits - 0x3f3504f3) >> 23;
    many k = __builtin_convertvector(e - (tiny & 24), many);
    many f = (many)(bits - (e << 23)) - 1.0f, s = f * f;
    many p = of(0x1.13bb06p-4f);
    p = fma_many(p, f, of(-0x1.dd9dfcp-4f));
    p = fma_many(p, f, of(0x1.e6e092p-4f));
    p = fma_many(p, f, of(-0x1.fc3da6p-4f));
    p = fma_many(p, f, of(0x1.233abcp-3f));
    p = fma_many(p, f, of(-0x1.555b8ep-3f));
    p = fma_many(p, f, of(0x1.99a47ap-3f));
    p = fma_many(p, f, of(-0x1.000008p-2f));
    p = fma_many(p, f, of(0x1.555548p-2f));
    p = fma_many(s * f, p, fma_many(s, of(-0.5f), k * LN2_LOW));
    p = fma_many(k, of(LN2_HIGH), f + p);
#if BYTES == 64
    return EACH_VECTOR(
        p, x,
        (floats)_mm512_fixupimm_ps(EACH_REGISTER, (__m512)other.each[v], _mm512_set1_epi32(0x03530422), 0));
#else
    p = select_many(x == __builtin_inff(), x, p);
    p = select_many(x == 0.0f, of(-__builtin_inff()), p);
    return select_many(x >= 0.0f, p, of(__builtin_nanf("")));
#endif
}

// 1 / x for an x that is neither 0 nor infinite, within an ulp: better than division, which is slow.
INLINE many reciprocal(many x) {
#if BYTES == 64
    many estimate = EACH_VECTOR(x, x, (floats)_mm512_rcp14_ps(EACH_REGISTER));
    return fma_many(fma_many(-x, estimate, of(1.0f)), estimate, estimate);
#else
    return 1.0f / x;
#endif
}

// sqrt(x) for an x that is neither subnormal nor infinite, within an ulp.
INLINE many root(many x) {
#if BYTES == 64
    many estimate =
        EACH_VECTOR(x, x,
                    (floats)_mm512_maskz_rsqrt14_ps(
                        _mm512_test_epi32_mask((__m512i)from.each[v], (__m512i)from.each[v]), EACH_REGISTER));
    many result = x * estimate;
    return fma_many(fma_many(-result, result, x), estimate * 0.5f, result);
#else
    return __builtin_elementwise_sqrt(x);
#endif
}

// a / b of numbers of medium size, within an ulp.
INLINE many quotient(many a, many b) {
#if BYTES == 64
    many inverse = reciprocal(b), result = a * inverse;
    return fma_many(fma_many(-b, result, a), inverse, result);
#else
    return a / b;
#endif
}

INLINE many normal(many d) {
    many k = reciprocal(fma_many(of(0.2316419f), __builtin_elementwise_abs(d), of(1.0f)));
    many p = fma_many(k, of(1.330274429f), of(-1.821255978f));
    p = fma_many(k, p, of(1.781477937f));
    p = fma_many(k, p, of(-0.356563782f));
    p = fma_many(k, p, of(0.31938153f));
    many tail = 0.39894228f * exp_of(-0.5f * d * d) * (k * p);
    return select_many(d > 0.0f, 1.0f - tail, tail);
}

struct black_scholes {
    float *call, *put;
    const float *price, *strike, *years;
    float rate, volatility;
};

INLINE many load_many(const float *from) {
    return *(const many_anywhere *)from;
}

static void black_scholes_part(const void *context, size_t first, size_t last) {
    struct black_scholes o = *(const struct black_scholes *)context;
    float drift = o.rate + 0.5f * o.volatility * o.volatility;
    for (size_t i = first; i < last; i += VECTORS * LANES) {
        many s = load_many(o.price + i), x = load_many(o.strike + i), t = load_many(o.years + i);
        many spread = o.volatility * root(t);
        many d1 = quotient(fma_many(of(drift), t, log_of(s / x)), spread);
        many n1 = normal(d1), n2 = normal(d1 - spread);
        many discounted = x * exp_of(-o.rate * t);
        *(many_anywhere *)(o.call + i) = s * n1 - discounted * n2;
        *(many_anywhere *)(o.put + i) = discounted * (1.0f - n2) - s * (1.0f - n1);
    }
}

KERNEL(black_scholes) {
    struct black_scholes o = {.call = ARGUMENT(float *, 0),
                              .put = ARGUMENT(float *, 1),
                              .price = ARGUMENT(float *, 2),
                              .strike = ARGUMENT(float *, 3),
                              .years = ARGUMENT(float *, 4),
                              .rate = ARGUMENT(float, 5),
                              .volatility = ARGUMENT(float, 6)};
    run(black_scholes_part, &o, global_size[0], 8192);
}
