// Errors of results of OpenCL C functions, against the C library's functions of a wider type. Compiled once
// per type, with T, SUFFIX, MANTISSA and LOWEST: see reference.py.
#define _GNU_SOURCE
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define PASTE3_(a, b, c) a##b##c
#define PASTE3(a, b, c) PASTE3_(a, b, c)
#define ERRORS(name) PASTE3(errors_##name, _, SUFFIX)

#ifdef QUAD // 113 bits of mantissa, slow
typedef _Float128 L;
#define C(name) name##f128
#define C_R(name) name##f128_r
static const L pi_ = 3.14159265358979323846264338327950288419716939937510F128;
#else // 64 bits on x86, 113 on Arm
typedef long double L;
#define C(name) name##l
#define C_R(name) name##l_r
static const L pi_ = 3.14159265358979323846264338327950288419716939937510L;
#endif

static bool is_negative(L x) {
    return signbit(x) != 0;
}

// Error in units of the last place; infinite where a special result is wrong, its sign included.
static double ulp_error(T got, L want) {
    if (isnan(want))
        return isnan(got) ? 0 : INFINITY;
    if (isnan(got))
        return INFINITY;
    if (want == 0 || isinf(want))
        return got == (T)want && is_negative(got) == is_negative(want) ? 0 : INFINITY;
    L edge = C(ldexp)(1, -LOWEST + 2); // beyond the largest finite value
    L value = isinf(got) ? C(copysign)(edge, got) : (L)got;
    if (C(fabs)(want) > edge)
        return isinf(got) && is_negative(got) == (want < 0) ? 0 : INFINITY;
    int e = C(ilogb)(want);
    e = e < LOWEST ? LOWEST : e;
    if (value == 0 && is_negative(got) != is_negative(want))
        return INFINITY;
    return (double)C(ldexp)(C(fabs)(value - want), MANTISSA - 1 - e);
}

static L reduced_pi(L x) {
    return C(remainder)(x, 2);
}
static L ref_sinpi(L x) {
    if (isinf(x))
        return NAN;
    if (x == C(trunc)(x))
        return C(copysign)(0, x);
    L r = reduced_pi(x); // sin(pi r), |r| <= 1
    L a = C(fabs)(r) > 0.5L ? 1 - C(fabs)(r) : C(fabs)(r);
    L s = a > 0.25L ? C(cos)(pi_ * (0.5L - a)) : C(sin)(pi_ * a);
    return C(copysign)(s, r);
}
static L ref_cospi(L x) {
    if (isinf(x))
        return NAN;
    L a = C(fabs)(reduced_pi(x));
    if (a == 0.5L)
        return 0;
    L r = a > 0.5L ? 1 - a : a;
    L c = r > 0.25L ? C(sin)(pi_ * (0.5L - r)) : C(cos)(pi_ * r);
    return a > 0.5L ? -c : c;
}
static L ref_tanpi(L x) {
    if (isinf(x))
        return NAN;
    L a = C(fabs)(reduced_pi(x)), flip = x < 0 || signbit(x) ? -1 : 1;
    a = C(copysign)(1, reduced_pi(x)) * flip < 0 ? 2 - a : a; // position of |x| in [0, 2)
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
    return C(acos)(x) / pi_;
}
static L ref_asinpi(L x) {
    return C(asin)(x) / pi_;
}
static L ref_atanpi(L x) {
    return C(atan)(x) / pi_;
}
static L ref_atan2pi(L y, L x) {
    return C(atan2)(y, x) / pi_;
}
static L ref_rsqrt(L x) {
    return 1 / C(sqrt)(x);
}
static L ref_lgamma(L x) {
    return x == -INFINITY ? INFINITY : C(lgamma)(x);
}
static L ref_tgamma(L x) {
    return x == -INFINITY ? NAN : C(tgamma)(x);
}
static L ref_logb(L x) {
    return C(logb)(x);
}
static L ref_maxmag(L x, L y) {
    return C(fabs)(x) > C(fabs)(y) ? x : C(fabs)(y) > C(fabs)(x) ? y : x > y || isnan(y) ? x : y;
}
static L ref_minmag(L x, L y) {
    return C(fabs)(x) < C(fabs)(y) ? x : C(fabs)(y) < C(fabs)(x) ? y : x < y || isnan(y) ? x : y;
}
static L ref_nextafter(L a, L b) {
    T x = (T)a, y = (T)b;
    if (isnan(x) || isnan(y) || x == y)
        return isnan(x) ? x : y;
    BITS bits;
    memcpy(&bits, &x, sizeof bits);
    bits = x == 0 ? 1 : (x < y) == (x > 0) ? bits + 1 : bits - 1;
    memcpy(&x, &bits, sizeof x);
    return a == 0 ? C(copysign)(x, b) : (L)x;
}
static L ref_fdim(L x, L y) {
    return sizeof(T) == 4   ? fdimf((float)x, (float)y)
           : sizeof(T) == 8 ? fdim((double)x, (double)y)
                            : C(fdim)(x, y);
}
static L ref_powr(L x, L y) {
    if (isnan(x) || isnan(y) || x < 0)
        return NAN;
    if ((x == 0 && y == 0) || (isinf(x) && y == 0) || (x == 1 && isinf(y)))
        return NAN;
    return C(pow)(C(fabs)(x), y);
}
static L ref_divide(L x, L y) {
    return x / y;
}
static L ref_pown(L x, int n) {
    return C(pow)(x, n);
}
static L ref_rootn(L x, int n) {
    if (n == 0 || isnan(x) || (x < 0 && n % 2 == 0))
        return NAN;
    L result;
    if (x == 0 || isinf(x)) {
        result = (x == 0) == (n > 0) ? 0 : INFINITY;
    } else { // one correction: 1/n is rounded
        L a = C(fabs)(x), y = 1 / (L)n, rest = C(fma)(-y, n, 1) / n;
        result = C(pow)(a, y) * (1 + rest * C(log)(a));
    }
    return n % 2 ? C(copysign)(result, x) : result;
}
static L ref_ldexp(L x, int n) {
    return (T)C(ldexp)(x, n);
}

static L ref_fract(L x) {
    if (isinf(x) || x == 0)
        return C(copysign)(0, x);
    L largest = 1 - C(ldexp)(1, -MANTISSA), part = (T)(x - C(floor)(x));
    return part > largest ? largest : part;
}
static L ref_modf(L x) {
    return C(copysign)(isinf(x) ? 0 : x - C(trunc)(x), x);
}
static L ref_frexp(L x) {
    int e;
    return isinf(x) || isnan(x) ? x : C(frexp)(x, &e);
}
static int ref_exponent(L x) {
    int e = 0;
    if (!isinf(x) && !isnan(x))
        C(frexp)(x, &e);
    return e;
}
static int ref_sign(L x) {
    if (x == 0 || (x < 0 && x == C(floor)(x)))
        return 0;
    int sign = 1;
    if (!isnan(x) && !isinf(x))
        C_R(lgamma)(x, &sign);
    return sign;
}
static int ref_ilogb(L x) {
    return isnan(x) || isinf(x) ? INT_MAX : x == 0 ? INT_MIN : C(ilogb)(x);
}
static L ref_fma(L x, L y, L z) {
    return sizeof(T) == 4   ? fmaf((float)x, (float)y, (float)z)
           : sizeof(T) == 8 ? fma((double)x, (double)y, (double)z)
                            : (T)C(fma)(x, y, z);
}
// Whether the quotient that remquo gives has the sign and the lower seven bits that it should have.
static bool quotient_is_right(L x, L y, int got) {
    int want;
    if (isnan(C(remquo)(x, y, &want)))
        want = 0;
    // the C library gives three bits; the specification asks for seven, which fmod of 128 y shows
    if ((got & 7) != (want & 7) || (got && want && (got < 0) != (want < 0)))
        return false;
    L wide = C(fabs)(C(fmod)(x, 128 * y)) / C(fabs)(y);
    return isnan(wide) || isinf(y) || wide - C(floor)(wide) == 0.5L ||
           ((int)C(rint)(wide) & 127) == ((got < 0 ? -got : got) & 127);
}

// The functions by their arguments: errors_NAME_TYPE(arguments..., results, second results, n, errors), in
// units of the last place; infinite where a special or second result is wrong.
#define EACH(name, error)                                                                                    \
    void ERRORS(name)(const void *xs, const void *ys, const void *zs, const void *gots, const void *seconds, \
                      long n, double *errors) {                                                              \
        (void)ys, (void)zs, (void)seconds;                                                                   \
        for (long i = 0; i < n; i++)                                                                         \
            errors[i] = error;                                                                               \
    }
#define X ((const T *)xs)[i]
#define Y ((const T *)ys)[i]
#define Z ((const T *)zs)[i]
#define N ((const int *)ys)[i]
#define GOT ((const T *)gots)[i]
#define UNARY(name, reference) EACH(name, ulp_error(GOT, reference((L)X)))
#define BINARY(name, reference) EACH(name, ulp_error(GOT, reference((L)X, (L)Y)))
#define TERNARY(name, reference) EACH(name, ulp_error(GOT, reference((L)X, (L)Y, (L)Z)))
#define WITH_INTEGER(name, reference) EACH(name, ulp_error(GOT, reference((L)X, N)))
#define TO_INTEGER(name, reference) EACH(name, ((const int *)gots)[i] == reference((L)X) ? 0 : INFINITY)
#define WITH_VALUE(name, reference, second)                                                                  \
    EACH(name, fmax(ulp_error(GOT, reference((L)X)), ulp_error(((const T *)seconds)[i], second((L)X))))
#define WITH_COUNT(name, reference, second)                                                                  \
    EACH(name,                                                                                               \
         isnan(X) || ((const int *)seconds)[i] == second((L)X) ? ulp_error(GOT, reference((L)X)) : INFINITY)
#define WITH_QUOTIENT(name, reference)                                                                       \
    EACH(name, quotient_is_right((L)X, (L)Y, ((const int *)seconds)[i])                                      \
                   ? ulp_error(GOT, reference((L)X, (L)Y))                                                   \
                   : INFINITY)
#include "functions.inc"

// How exact the reference is.
int reference_mantissa(void) {
    int bits = 0;
    for (L one = 1; one + C(ldexp)(1, -bits) != one; bits++)
        ;
    return bits;
}

// Core cycles in a nanosecond, by a chain of additions that take one each.
double cycles_per_nanosecond(void) {
    double best = 0;
    for (int attempt = 0; attempt < 20; attempt++) {
        struct timespec start, end;
        uint64_t sum = 0, step = 1;
        clock_gettime(CLOCK_MONOTONIC, &start);
        for (int i = 0; i < 20000; i++)
            for (int k = 0; k < 20; k++) {
                sum += step;
                __asm__ volatile("" : "+r"(sum), "+r"(step));
            }
        clock_gettime(CLOCK_MONOTONIC, &end);
        double time = (end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec);
        best = fmax(best, sum / time);
    }
    return best;
}
