// A loop on all CPUs, and vectors of the size that the compiler's target has.
#pragma once
#include <stddef.h>
#include <stdint.h>

#if defined(__AVX512BW__) && defined(__AVX512DQ__)
#define BYTES 64
#elif defined(__AVX2__)
#define BYTES 32
#else
#define BYTES 16
#endif
#define LANES (BYTES / 4)

typedef float floats __attribute__((vector_size(BYTES)));
typedef int32_t ints __attribute__((vector_size(BYTES)));
typedef uint32_t uints __attribute__((vector_size(BYTES)));
typedef uint16_t shorts __attribute__((vector_size(BYTES)));
typedef float floats_anywhere __attribute__((vector_size(BYTES), aligned(4), may_alias));
typedef int32_t ints_anywhere __attribute__((vector_size(BYTES), aligned(4), may_alias));
typedef uint32_t uints_anywhere __attribute__((vector_size(BYTES), aligned(4), may_alias));
typedef uint16_t shorts_anywhere __attribute__((vector_size(BYTES), aligned(1), may_alias));

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("clang loop unroll(full)")

INLINE floats load(const float *from) {
    return *(const floats_anywhere *)from;
}

INLINE void store(float *to, floats value) {
    *(floats_anywhere *)to = value;
}

INLINE floats splat(float value) {
    return value - (floats){};
}

INLINE floats fma_of(floats a, floats b, floats c) {
    return __builtin_elementwise_fma(a, b, c);
}

INLINE floats choose(ints mask, floats if_set, floats otherwise) {
    return (floats)((mask & (ints)if_set) | (~mask & (ints)otherwise));
}

// The lanes' numbers.
INLINE ints numbers(void) {
    ints result;
    for (int k = 0; k < LANES; k++)
        result[k] = k;
    return result;
}

typedef void part_of_loop(const void *context, size_t first, size_t last);

// Calls `part` for ranges of at most `grain` of 0..count-1, on all CPUs; returns when all have been done.
void run(part_of_loop *part, const void *context, size_t count, size_t grain);

// A kernel's arguments are what clSetKernelArg would get: the address of each.
#define ARGUMENT(type, index) (*(type const *)arguments[index])
#define KERNEL(name) void name(const void *const *arguments, const size_t *global_size)
#define EACH(k, count) UNROLL for (int k = 0; k < (count); k++)
