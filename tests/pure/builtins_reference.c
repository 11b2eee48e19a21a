// Error of the builtin library, compiled natively, against the C library's long double functions.
// Compiled twice: T=float SUFFIX=f32 MANTISSA=24 LOWEST=-126, and T=double SUFFIX=f64 MANTISSA=53
// LOWEST=-1022.
#define _GNU_SOURCE
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define PASTE3_(a, b, c) a##b##c
#define PASTE3(a, b, c) PASTE3_(a, b, c)
#define LIBRARY(name) PASTE3(__cld_##name, _, SUFFIX)
#define CHECK(name) PASTE3(check_##name, _, SUFFIX)

// OpenCL C functions that the library calls and clang does not expand for a host target.
uint64_t mul_hi_ulong(uint64_t a, uint64_t b) __asm__("_Z6mul_himm");
uint64_t mul_hi_ulong(uint64_t a, uint64_t b) {
    return (uint64_t)(((unsigned __int128)a * b) >> 64);
}
uint64_t clz_ulong(uint64_t a) __asm__("_Z3clzm");
uint64_t clz_ulong(uint64_t a) {
    return a ? (uint64_t)__builtin_clzl(a) : 64;
}

typedef long double L;
static const L pi_ = 3.141592653589793238462643383279502884L;

// Error in units of the last place; infinite where a special result is wrong, its sign included.
static double ulp_error(T got, L want) {
    if (isnan(want))
        return isnan(got) ? 0 : INFINITY;
    if (isnan(got))
        return INFINITY;
    if (want == 0 || isinf(want))
        return got == (T)want && !signbit(got) == !signbit(want) ? 0 : INFINITY;
    L edge = ldexpl(1, -LOWEST + 2); // beyond the largest finite value
    L value = isinf(got) ? copysignl(edge, got) : (L)got;
    if (fabsl(want) > edge)
        return isinf(got) && signbit(got) == (want < 0) ? 0 : INFINITY;
    int e = ilogbl(want);
    e = e < LOWEST ? LOWEST : e;
    if (value == 0 && signbit(got) != signbit(want))
        return INFINITY;
    return (double)ldexpl(fabsl(value - want), MANTISSA - 1 - e);
}

static L reduced_pi(L x) {
    return remainderl(x, 2);
}
static L ref_sinpi(L x) {
    if (isinf(x))
        return NAN;
    if (x == truncl(x))
        return copysignl(0, x);
    L r = reduced_pi(x); // sin(pi r), |r| <= 1
    L a = fabsl(r) > 0.5L ? 1 - fabsl(r) : fabsl(r);
    L s = a > 0.25L ? cosl(pi_ * (0.5L - a)) : sinl(pi_ * a);
    return copysignl(s, r);
}
static L ref_cospi(L x) {
    if (isinf(x))
        return NAN;
    L a = fabsl(reduced_pi(x));
    if (a == 0.5L)
        return 0;
    L r = a > 0.5L ? 1 - a : a;
    L c = r > 0.25L ? sinl(pi_ * (0.5L - r)) : cosl(pi_ * r);
    return a > 0.5L ? -c : c;
}
static L ref_tanpi(L x) {
    if (isinf(x))
        return NAN;
    L a = fabsl(reduced_pi(x)), flip = x < 0 || signbit(x) ? -1 : 1;
    a = copysignl(1, reduced_pi(x)) * flip < 0 ? 2 - a : a; // position of |x| in [0, 2)
    if (a == 0 || a == 2)
        return flip * 0.0L;
    if (a == 1)
        return flip * -0.0L;
    if (a == 0.5L)
        return flip * INFINITY;
    if (a == 1.5L)
        return flip * -INFINITY;
    return ref_sinpi(x) / ref_cospi(x);
}
static L ref_acospi(L x) {
    return acosl(x) / pi_;
}
static L ref_asinpi(L x) {
    return asinl(x) / pi_;
}
static L ref_atanpi(L x) {
    return atanl(x) / pi_;
}
static L ref_atan2pi(L y, L x) {
    return atan2l(y, x) / pi_;
}
static L ref_rsqrt(L x) {
    return 1 / sqrtl(x);
}
static L ref_lgamma(L x) {
    return x == -INFINITY ? INFINITY : lgammal(x);
}
static L ref_tgamma(L x) {
    return x == -INFINITY ? NAN : tgammal(x);
}
static L ref_logb(L x) {
    return logbl(x);
}
static L ref_maxmag(L x, L y) {
    return fabsl(x) > fabsl(y) ? x : fabsl(y) > fabsl(x) ? y : x > y || isnan(y) ? x : y;
}
static L ref_minmag(L x, L y) {
    return fabsl(x) < fabsl(y) ? x : fabsl(y) < fabsl(x) ? y : x < y || isnan(y) ? x : y;
}
static L ref_nextafter(L x, L y) {
    return sizeof(T) == 4 ? nextafterf((float)x, (float)y) : nextafter((double)x, (double)y);
}
static L ref_fdim(L x, L y) {
    return sizeof(T) == 4 ? fdimf((float)x, (float)y) : fdim((double)x, (double)y);
}
static L ref_powr(L x, L y) {
    if (isnan(x) || isnan(y) || x < 0)
        return NAN;
    if ((x == 0 && y == 0) || (isinf(x) && y == 0) || (x == 1 && isinf(y)))
        return NAN;
    return powl(fabsl(x), y);
}
static L ref_pown(L x, int n) {
    return powl(x, n);
}
static L ref_rootn(L x, int n) {
    if (n == 0 || isnan(x) || (x < 0 && n % 2 == 0))
        return NAN;
    L result;
    if (x == 0 || isinf(x)) {
        result = (x == 0) == (n > 0) ? 0 : INFINITY;
    } else { // one correction: 1/n is rounded
        L a = fabsl(x), y = 1 / (L)n, rest = fmal(-y, n, 1) / n;
        result = powl(a, y) * (1 + rest * logl(a));
    }
    return n % 2 ? copysignl(result, x) : result;
}
static L ref_ldexp(L x, int n) {
    return sizeof(T) == 4 ? ldexpf((float)x, n) : ldexp((double)x, n);
}

#define UNARY(name, reference)                                                                               \
    T LIBRARY(name)(T);                                                                                      \
    double CHECK(name)(const T *x, const void *unused, long n, long *worst) {                                \
        double most = 0;                                                                                     \
        (void)unused;                                                                                        \
        for (long i = 0; i < n; i++) {                                                                       \
            double error = ulp_error(LIBRARY(name)(x[i]), reference((L)x[i]));                               \
            if (error > most) {                                                                              \
                most = error;                                                                                \
                *worst = i;                                                                                  \
            }                                                                                                \
        }                                                                                                    \
        return most;                                                                                         \
    }

#define BINARY(name, reference, U)                                                                           \
    T LIBRARY(name)(T, U);                                                                                   \
    double CHECK(name)(const T *x, const U *y, long n, long *worst) {                                        \
        double most = 0;                                                                                     \
        for (long i = 0; i < n; i++) {                                                                       \
            double error = ulp_error(LIBRARY(name)(x[i], y[i]), reference((L)x[i], y[i]));                   \
            if (error > most) {                                                                              \
                most = error;                                                                                \
                *worst = i;                                                                                  \
            }                                                                                                \
        }                                                                                                    \
        return most;                                                                                         \
    }

// One result returned, one through a pointer: both must be right.
#define WITH_RESULT(name, type, condition, reference)                                                        \
    T LIBRARY(name)(T, type *);                                                                              \
    double CHECK(name)(const T *x, const void *unused, long n, long *worst) {                                \
        double most = 0;                                                                                     \
        (void)unused;                                                                                        \
        for (long i = 0; i < n; i++) {                                                                       \
            type result;                                                                                     \
            L a = x[i];                                                                                      \
            double error = ulp_error(LIBRARY(name)(x[i], &result), reference);                               \
            double second = condition;                                                                       \
            error = error > second ? error : second;                                                         \
            if (error > most) {                                                                              \
                most = error;                                                                                \
                *worst = i;                                                                                  \
            }                                                                                                \
        }                                                                                                    \
        return most;                                                                                         \
    }

UNARY(acos, acosl)
UNARY(acosh, acoshl)
UNARY(acospi, ref_acospi)
UNARY(asin, asinl)
UNARY(asinh, asinhl)
UNARY(asinpi, ref_asinpi)
UNARY(atan, atanl)
UNARY(atanh, atanhl)
UNARY(atanpi, ref_atanpi)
UNARY(cbrt, cbrtl)
UNARY(cos, cosl)
UNARY(cosh, coshl)
UNARY(cospi, ref_cospi)
UNARY(erf, erfl)
UNARY(erfc, erfcl)
UNARY(exp, expl)
UNARY(exp2, exp2l)
UNARY(exp10, exp10l)
UNARY(expm1, expm1l)
UNARY(log, logl)
UNARY(log2, log2l)
UNARY(log10, log10l)
UNARY(log1p, log1pl)
UNARY(logb, ref_logb)
UNARY(rsqrt, ref_rsqrt)
UNARY(sin, sinl)
UNARY(sinh, sinhl)
UNARY(sinpi, ref_sinpi)
UNARY(tan, tanl)
UNARY(tanh, tanhl)
UNARY(tanpi, ref_tanpi)
UNARY(lgamma, ref_lgamma)
UNARY(tgamma, ref_tgamma)

BINARY(atan2, atan2l, T)
BINARY(atan2pi, ref_atan2pi, T)
BINARY(fdim, ref_fdim, T)
BINARY(fmod, fmodl, T)
BINARY(hypot, hypotl, T)
BINARY(maxmag, ref_maxmag, T)
BINARY(minmag, ref_minmag, T)
BINARY(nextafter, ref_nextafter, T)
BINARY(pow, powl, T)
BINARY(powr, ref_powr, T)
BINARY(remainder, remainderl, T)
BINARY(ldexp, ref_ldexp, int)
BINARY(pown, ref_pown, int)
BINARY(rootn, ref_rootn, int)

static L ref_fract(L x) {
    if (isinf(x) || x == 0)
        return copysignl(0, x);
    T largest = sizeof(T) == 4 ? 0x1.fffffep-1 : 0x1.fffffffffffffp-1, part = (T)x - (T)floorl(x);
    return part > largest ? largest : part;
}
static L ref_modf(L x) {
    return copysignl(isinf(x) ? 0 : x - truncl(x), x);
}
static L ref_frexp(L x) {
    int e;
    return isinf(x) || isnan(x) ? x : frexpl(x, &e);
}
static int ref_exponent(L x) {
    int e = 0;
    if (!isinf(x) && !isnan(x))
        frexpl(x, &e);
    return e;
}
static int ref_sign(L x) {
    if (x == 0 || (x < 0 && x == floorl(x)))
        return 0;
    int sign = 1;
    if (!isnan(x) && !isinf(x))
        lgammal_r(x, &sign);
    return sign;
}
WITH_RESULT(fract, T, ulp_error(result, floorl(a)), ref_fract(a))
WITH_RESULT(modf, T, ulp_error(result, truncl(a)), ref_modf(a))
WITH_RESULT(sincos, T, ulp_error(result, cosl(a)), sinl(a))
WITH_RESULT(frexp, int, (result == ref_exponent(a) ? 0 : INFINITY), ref_frexp(a))
WITH_RESULT(lgamma_r, int, (isnan(a) || result == ref_sign(a) ? 0 : INFINITY), ref_lgamma(a))

int LIBRARY(ilogb)(T);
double CHECK(ilogb)(const T *x, const void *unused, long n, long *worst) {
    (void)unused;
    for (long i = 0; i < n; i++) {
        int want = isnan(x[i]) || isinf(x[i]) ? INT_MAX : x[i] == 0 ? INT_MIN : ilogbl(x[i]);
        if (LIBRARY(ilogb)(x[i]) != want) {
            *worst = i;
            return INFINITY;
        }
    }
    return 0;
}

T LIBRARY(remquo)(T, T, int *);
double CHECK(remquo)(const T *x, const T *y, long n, long *worst) {
    double most = 0;
    for (long i = 0; i < n; i++) {
        int got, want;
        double error = ulp_error(LIBRARY(remquo)(x[i], y[i], &got), remainderl(x[i], y[i]));
        if (isnan(remquol(x[i], y[i], &want)))
            want = 0;
        // the C library gives three bits; the specification asks for seven, which fmod of 128 y shows
        if ((got & 7) != (want & 7) || (got && want && (got < 0) != (want < 0)))
            error = INFINITY;
        L wide = fabsl(fmodl(x[i], 128 * (L)y[i])) / fabsl((L)y[i]);
        if (!isnan(wide) && !isinf(y[i]) && wide - floorl(wide) != 0.5L &&
            ((int)rintl(wide) & 127) != ((got < 0 ? -got : got) & 127))
            error = INFINITY;
        if (error > most) {
            most = error;
            *worst = i;
        }
    }
    return most;
}

// The addend is made of the other arguments, so that cancellation and halfway cases are common.
T LIBRARY(fma)(T, T, T);
double CHECK(fma)(const T *x, const T *y, long n, long *worst) {
    for (long i = 0; i < n; i++) {
        T near = (T)(-(L)x[i] * (L)y[i]),
          addends[] = {near, near / 2, nextafterl(near, 0), x[n - 1 - i], y[i / 2], 0, -near, x[i]};
        for (int j = 0; j < 8; j++) {
            T want = sizeof(T) == 4 ? fmaf(x[i], y[i], addends[j]) : fma(x[i], y[i], addends[j]);
            if (ulp_error(LIBRARY(fma)(x[i], y[i], addends[j]), want) > 0) {
                *worst = i;
                return INFINITY;
            }
        }
    }
    return 0;
}
