/* What every source of the builtin library relies on. */
#ifndef CLD_BUILTINS_COMMON_H
#define CLD_BUILTINS_COMMON_H

/* Every rounding below is counted on: fma only where it is written. */
#pragma OPENCL FP_CONTRACT OFF

/* The element-wise builtins of clang become instructions of OpenCL.std (fma, floor, trunc, rint, fabs, ...)
 * that the code generator lowers itself. */
#define FMA __builtin_elementwise_fma
#define FLOOR __builtin_elementwise_floor
#define TRUNC __builtin_elementwise_trunc
#define RINT __builtin_elementwise_rint
#define ABS __builtin_elementwise_abs
#define SQRT __builtin_elementwise_sqrt
#define COPYSIGN __builtin_elementwise_copysign

/* A branch that all lanes of a vector hardly ever take. */
#define RARELY(condition) __builtin_expect(!!(condition), 0)

/* Helpers are always inlined, so that a function is one straight line. Slow paths never are: __cld_slow_*
 * stay calls, made for the lanes that need them; they return all they have to say, and take no pointers. */
#define HELPER static inline __attribute__((always_inline))
#define SLOW_PATH __attribute__((noinline))

/* Host targets have neither address spaces nor the instructions that the code generator knows by name,
 * ../../codegen/library/intrinsics.py; the tests do without. */
#ifdef __SPIR__
#define CLD_DEVICE
#endif
#ifdef __SPIRV__
#define CLD_DEVICE
#endif

/* Quotients and roots that may be an ulp off, where neither they nor b or x are near overflow, subnormal or 0
 * (but a and x may be 0): DIVIDE(a, b) is NaN for an infinite b. */
#ifdef CLD_DEVICE
#define INSTRUCTION __attribute__((const))
INSTRUCTION float __cld_op_divide(float a, float b);
INSTRUCTION double __cld_op_divide_f64(double a, double b);
INSTRUCTION double __cld_op_root_f64(double x);
#define DIVIDE_F32 __cld_op_divide
#define DIVIDE __cld_op_divide_f64
#define ROOT __cld_op_root_f64
#else
#define DIVIDE_F32(a, b) ((a) / (b))
#define DIVIDE(a, b) ((a) / (b))
#define ROOT SQRT
#endif

#define INF_F32 as_float(0x7f800000)
#define NAN_F32 as_float(0x7fc00000)
#define INF_F64 as_double(0x7ff0000000000000L)
#define NAN_F64 as_double(0x7ff8000000000000L)

/* Adding it rounds a value below 2^22 (2^51) to the nearest integer and leaves that in the low bits: a
 * conversion that is defined for every argument, NaN included. */
#define ROUND_F32 0x1.8p23f
#define ROUND_F64 0x1.8p52

/* 2^k for normal results: -126 <= k <= 127 (-1022 to 1023); 0 for one less */
HELPER float pow2_f32(int k) {
    return as_float((k + 127) << 23);
}
HELPER double pow2_f64(int k) {
    return as_double((ulong)(uint)(k + 1023) << 52);
}

/* The k for which both factors below are 0: the result is 0, and nothing underflows on the way to it. */
#define ZERO_SCALE_F32 -254.0f
#define ZERO_SCALE_F64 -2046.0

/* p * 2^k with one rounding, for p near 1 and |k| <= 252 (2040): the first product is exact. */
HELPER float scale_f32(float p, int k) {
    int half_k = k >> 1;
    return p * pow2_f32(half_k) * pow2_f32(k - half_k);
}

HELPER double scale_f64(double p, int k) {
    int half_k = k >> 1;
    return p * pow2_f64(half_k) * pow2_f64(k - half_k);
}

/* x with its sign bit flipped where that of `bits` is set. */
HELPER float flip_f32(float x, uint bits) {
    return as_float(as_uint(x) ^ (bits & 0x80000000u));
}
HELPER double flip_f64(double x, ulong bits) {
    return as_double(as_ulong(x) ^ (bits & 0x8000000000000000UL));
}

#endif
