// The builtin library's functions, compiled as host code: results_NAME_TYPE(arguments..., results, second
// results, n).
#include <stdint.h>

#define PASTE3_(a, b, c) a##b##c
#define PASTE3(a, b, c) PASTE3_(a, b, c)
#define LIBRARY(name) PASTE3(__cld_##name, _, SUFFIX)
#define RESULTS(name) PASTE3(results_##name, _, SUFFIX)

// OpenCL C functions that the library calls and clang does not expand for a host target.
uint64_t mul_hi_ulong(uint64_t a, uint64_t b) __asm__("_Z6mul_himm");
uint64_t mul_hi_ulong(uint64_t a, uint64_t b) {
    return (uint64_t)(((unsigned __int128)a * b) >> 64);
}
uint64_t clz_ulong(uint64_t a) __asm__("_Z3clzm");
uint64_t clz_ulong(uint64_t a) {
    return a ? (uint64_t)__builtin_clzl(a) : 64;
}

#define EACH(name, type, parameters, ...)                                                                    \
    type LIBRARY(name) parameters;                                                                           \
    void RESULTS(name)(const T *xs, const void *ys, const T *zs, type *gots, void *seconds, long n) {        \
        (void)ys, (void)zs, (void)seconds;                                                                   \
        for (long i = 0; i < n; i++)                                                                         \
            gots[i] = LIBRARY(name)(__VA_ARGS__);                                                            \
    }
#define X xs[i]
#define Y ((const T *)ys)[i]
#define Z zs[i]
#define UNARY(name, reference) EACH(name, T, (T), X)
#define BINARY(name, reference) EACH(name, T, (T, T), X, Y)
#define TERNARY(name, reference) EACH(name, T, (T, T, T), X, Y, Z)
#define WITH_INTEGER(name, reference) EACH(name, T, (T, int), X, ((const int *)ys)[i])
#define TO_INTEGER(name, reference) EACH(name, int, (T), X)
#define WITH_VALUE(name, reference, second) EACH(name, T, (T, T *), X, (T *)seconds + i)
#define WITH_COUNT(name, reference, second) EACH(name, T, (T, int *), X, (int *)seconds + i)
#define WITH_QUOTIENT(name, reference) EACH(name, T, (T, T, int *), X, Y, (int *)seconds + i)
#define LIBRARY_ONLY
#include "functions.inc"
