/* The names that the type-generic sources (*.inc) use; included after defining FLOAT_BITS as 32 or 64. */
#undef T
#undef I
#undef U
#undef AS_T
#undef AS_I
#undef AS_U
#undef NAME
#undef MANTISSA_BITS
#undef BIAS
#undef INF
#undef NAN_T
#undef LOCAL
#undef PACKED
#undef PACK
#undef PACKED_VALUE
#undef PACKED_BITS
#undef QUOTIENT

#if FLOAT_BITS == 32
#define T float
#define I int
#define U uint
#define AS_T as_float
#define AS_I as_int
#define AS_U as_uint
#define NAME(function) __cld_##function##_f32
#define LOCAL(function) function##_f32
#define PACKED ulong /* a float and 32 bits in one value */
#define PACK(value, bits) (((ulong)as_uint(value) << 32) | (bits))
#define PACKED_VALUE(packed) as_float((uint)((packed) >> 32))
#define PACKED_BITS(packed) (uint)(packed)
#define MANTISSA_BITS 23
#define BIAS 127
#define QUOTIENT DIVIDE_F32
#define INF INF_F32
#define NAN_T NAN_F32
#else
#define T double
#define I long
#define U ulong
#define AS_T as_double
#define AS_I as_long
#define AS_U as_ulong
#define NAME(function) __cld_##function##_f64
#define LOCAL(function) function##_f64
#define PACKED ulong2
#define PACK(value, bits) (ulong2)(as_ulong(value), bits)
#define PACKED_VALUE(packed) as_double((packed).x)
#define PACKED_BITS(packed) (packed).y
#define MANTISSA_BITS 52
#define BIAS 1023
#define QUOTIENT DIVIDE
#define INF INF_F64
#define NAN_T NAN_F64
#endif

#define SIGN_BIT ((U)1 << (FLOAT_BITS - 1))
#define MANTISSA_MASK (((U)1 << MANTISSA_BITS) - 1)
#define EXPONENT_MASK (~(SIGN_BIT | MANTISSA_MASK))
