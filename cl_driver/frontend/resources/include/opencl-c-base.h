/* What OpenCL C has beside its keywords and its functions: types, constants, macros. Clang includes a file of
 * this name before every program; this is for one that brings none. The functions it declares by itself; two
 * macros here tell it which.
 *
 * Constants have the values of the specification, or of the API's that have the same name with CL_ for CLK_.
 * Samplers are the words of SPIR 1.2, which clang and its back end read; null handles are what the back end
 * takes. tests/pure/frontend/test_ziglang.py compares all of it with a clang's own. */
#ifndef CLD_OPENCL_C_BASE_H
#define CLD_OPENCL_C_BASE_H

/* Pointers of functions: to the generic address space, or to each of the others. */
#ifndef __opencl_c_generic_address_space
#define __opencl_c_named_address_space_builtins 1
#endif

/* Sub-groups are an extension, a feature, or a part of OpenCL C 2.0. */
#if defined(cl_khr_subgroups) || defined(__opencl_c_subgroups) || defined(cl_intel_subgroups)
#define __opencl_subgroup_builtins 1
#endif

/* Scalar types. */
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;

/* Vector types. */
#define CLD_VECTORS(type)                                                                                    \
    typedef type type##2 __attribute__((ext_vector_type(2)));                                                \
    typedef type type##3 __attribute__((ext_vector_type(3)));                                                \
    typedef type type##4 __attribute__((ext_vector_type(4)));                                                \
    typedef type type##8 __attribute__((ext_vector_type(8)));                                                \
    typedef type type##16 __attribute__((ext_vector_type(16)))
CLD_VECTORS(char);
CLD_VECTORS(uchar);
CLD_VECTORS(short);
CLD_VECTORS(ushort);
CLD_VECTORS(int);
CLD_VECTORS(uint);
CLD_VECTORS(long);
CLD_VECTORS(ulong);
CLD_VECTORS(float);
#ifdef cl_khr_fp16
CLD_VECTORS(half);
#endif
#ifdef cl_khr_fp64
CLD_VECTORS(double);
#endif
#undef CLD_VECTORS

/* Reinterpretation: a macro for each type, since clang's operator wants its name. */
#define as_char(x) __builtin_astype((x), char)
#define as_char2(x) __builtin_astype((x), char2)
#define as_char3(x) __builtin_astype((x), char3)
#define as_char4(x) __builtin_astype((x), char4)
#define as_char8(x) __builtin_astype((x), char8)
#define as_char16(x) __builtin_astype((x), char16)
#define as_uchar(x) __builtin_astype((x), uchar)
#define as_uchar2(x) __builtin_astype((x), uchar2)
#define as_uchar3(x) __builtin_astype((x), uchar3)
#define as_uchar4(x) __builtin_astype((x), uchar4)
#define as_uchar8(x) __builtin_astype((x), uchar8)
#define as_uchar16(x) __builtin_astype((x), uchar16)
#define as_short(x) __builtin_astype((x), short)
#define as_short2(x) __builtin_astype((x), short2)
#define as_short3(x) __builtin_astype((x), short3)
#define as_short4(x) __builtin_astype((x), short4)
#define as_short8(x) __builtin_astype((x), short8)
#define as_short16(x) __builtin_astype((x), short16)
#define as_ushort(x) __builtin_astype((x), ushort)
#define as_ushort2(x) __builtin_astype((x), ushort2)
#define as_ushort3(x) __builtin_astype((x), ushort3)
#define as_ushort4(x) __builtin_astype((x), ushort4)
#define as_ushort8(x) __builtin_astype((x), ushort8)
#define as_ushort16(x) __builtin_astype((x), ushort16)
#define as_int(x) __builtin_astype((x), int)
#define as_int2(x) __builtin_astype((x), int2)
#define as_int3(x) __builtin_astype((x), int3)
#define as_int4(x) __builtin_astype((x), int4)
#define as_int8(x) __builtin_astype((x), int8)
#define as_int16(x) __builtin_astype((x), int16)
#define as_uint(x) __builtin_astype((x), uint)
#define as_uint2(x) __builtin_astype((x), uint2)
#define as_uint3(x) __builtin_astype((x), uint3)
#define as_uint4(x) __builtin_astype((x), uint4)
#define as_uint8(x) __builtin_astype((x), uint8)
#define as_uint16(x) __builtin_astype((x), uint16)
#define as_long(x) __builtin_astype((x), long)
#define as_long2(x) __builtin_astype((x), long2)
#define as_long3(x) __builtin_astype((x), long3)
#define as_long4(x) __builtin_astype((x), long4)
#define as_long8(x) __builtin_astype((x), long8)
#define as_long16(x) __builtin_astype((x), long16)
#define as_ulong(x) __builtin_astype((x), ulong)
#define as_ulong2(x) __builtin_astype((x), ulong2)
#define as_ulong3(x) __builtin_astype((x), ulong3)
#define as_ulong4(x) __builtin_astype((x), ulong4)
#define as_ulong8(x) __builtin_astype((x), ulong8)
#define as_ulong16(x) __builtin_astype((x), ulong16)
#define as_float(x) __builtin_astype((x), float)
#define as_float2(x) __builtin_astype((x), float2)
#define as_float3(x) __builtin_astype((x), float3)
#define as_float4(x) __builtin_astype((x), float4)
#define as_float8(x) __builtin_astype((x), float8)
#define as_float16(x) __builtin_astype((x), float16)
#ifdef cl_khr_fp16
#define as_half(x) __builtin_astype((x), half)
#define as_half2(x) __builtin_astype((x), half2)
#define as_half3(x) __builtin_astype((x), half3)
#define as_half4(x) __builtin_astype((x), half4)
#define as_half8(x) __builtin_astype((x), half8)
#define as_half16(x) __builtin_astype((x), half16)
#endif
#ifdef cl_khr_fp64
#define as_double(x) __builtin_astype((x), double)
#define as_double2(x) __builtin_astype((x), double2)
#define as_double3(x) __builtin_astype((x), double3)
#define as_double4(x) __builtin_astype((x), double4)
#define as_double8(x) __builtin_astype((x), double8)
#define as_double16(x) __builtin_astype((x), double16)
#endif
#define as_size_t(x) __builtin_astype((x), size_t)
#define as_ptrdiff_t(x) __builtin_astype((x), ptrdiff_t)
#define as_intptr_t(x) __builtin_astype((x), intptr_t)
#define as_uintptr_t(x) __builtin_astype((x), uintptr_t)

/* Sizes of integers. */
#define CHAR_BIT __CHAR_BIT__
#define SCHAR_MAX __SCHAR_MAX__
#define SCHAR_MIN (-SCHAR_MAX - 1)
#define UCHAR_MAX (2 * SCHAR_MAX + 1)
#define CHAR_MAX SCHAR_MAX
#define CHAR_MIN SCHAR_MIN
#define SHRT_MAX __SHRT_MAX__
#define SHRT_MIN (-SHRT_MAX - 1)
#define USHRT_MAX (2 * SHRT_MAX + 1)
#define INT_MAX __INT_MAX__
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX (2U * INT_MAX + 1U)
#define LONG_MAX __LONG_MAX__
#define LONG_MIN (-LONG_MAX - 1L)
#define ULONG_MAX (2UL * LONG_MAX + 1UL)

/* Properties of floating-point types; those of the extensions' types have their prefix. */

#define FLT_RADIX 2
#define FLT_DIG __FLT_DIG__
#define FLT_MANT_DIG __FLT_MANT_DIG__
#define FLT_MAX_10_EXP __FLT_MAX_10_EXP__
#define FLT_MAX_EXP __FLT_MAX_EXP__
#define FLT_MIN_10_EXP __FLT_MIN_10_EXP__
#define FLT_MIN_EXP __FLT_MIN_EXP__
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#ifdef cl_khr_fp64
#define DBL_RADIX 2
#define DBL_DIG __DBL_DIG__
#define DBL_MANT_DIG __DBL_MANT_DIG__
#define DBL_MAX_10_EXP __DBL_MAX_10_EXP__
#define DBL_MAX_EXP __DBL_MAX_EXP__
#define DBL_MIN_10_EXP __DBL_MIN_10_EXP__
#define DBL_MIN_EXP __DBL_MIN_EXP__
#define DBL_MAX __DBL_MAX__
#define DBL_MIN __DBL_MIN__
#define DBL_EPSILON __DBL_EPSILON__
#endif
#ifdef cl_khr_fp16
#define HALF_RADIX 2
#define HALF_DIG __FLT16_DIG__
#define HALF_MANT_DIG __FLT16_MANT_DIG__
#define HALF_MAX_10_EXP __FLT16_MAX_10_EXP__
#define HALF_MAX_EXP __FLT16_MAX_EXP__
#define HALF_MIN_10_EXP __FLT16_MIN_10_EXP__
#define HALF_MIN_EXP __FLT16_MIN_EXP__
#define HALF_MAX 0x1.ffcp15h
#define HALF_MIN 0x1.0p-14h
#define HALF_EPSILON 0x1.0p-10h
#endif
#define MAXFLOAT FLT_MAX
#define HUGE_VALF __builtin_huge_valf()
#define HUGE_VAL __builtin_huge_val()
#define INFINITY __builtin_inff()
#define NAN as_float(INT_MAX)
#define FP_ILOGB0 INT_MIN
#define FP_ILOGBNAN INT_MAX

/* Constants (6.15.2.2), each to more digits than a double has. */
#define M_E_F 2.718281828459045235360287f
#define M_LOG2E_F 1.442695040888963407359925f
#define M_LOG10E_F 0.4342944819032518276511289f
#define M_LN2_F 0.6931471805599453094172321f
#define M_LN10_F 2.302585092994045684017991f
#define M_PI_F 3.141592653589793238462643f
#define M_PI_2_F 1.570796326794896619231322f
#define M_PI_4_F 0.7853981633974483096156608f
#define M_1_PI_F 0.3183098861837906715377675f
#define M_2_PI_F 0.6366197723675813430755351f
#define M_2_SQRTPI_F 1.128379167095512573896159f
#define M_SQRT2_F 1.414213562373095048801689f
#define M_SQRT1_2_F 0.7071067811865475244008444f
#ifdef cl_khr_fp64
#define M_E 2.718281828459045235360287
#define M_LOG2E 1.442695040888963407359925
#define M_LOG10E 0.4342944819032518276511289
#define M_LN2 0.6931471805599453094172321
#define M_LN10 2.302585092994045684017991
#define M_PI 3.141592653589793238462643
#define M_PI_2 1.570796326794896619231322
#define M_PI_4 0.7853981633974483096156608
#define M_1_PI 0.3183098861837906715377675
#define M_2_PI 0.6366197723675813430755351
#define M_2_SQRTPI 1.128379167095512573896159
#define M_SQRT2 1.414213562373095048801689
#define M_SQRT1_2 0.7071067811865475244008444
#endif
#ifdef cl_khr_fp16
#define M_E_H 2.718281828459045235360287h
#define M_LOG2E_H 1.442695040888963407359925h
#define M_LOG10E_H 0.4342944819032518276511289h
#define M_LN2_H 0.6931471805599453094172321h
#define M_LN10_H 2.302585092994045684017991h
#define M_PI_H 3.141592653589793238462643h
#define M_PI_2_H 1.570796326794896619231322h
#define M_PI_4_H 0.7853981633974483096156608h
#define M_1_PI_H 0.3183098861837906715377675h
#define M_2_PI_H 0.6366197723675813430755351h
#define M_2_SQRTPI_H 1.128379167095512573896159h
#define M_SQRT2_H 1.414213562373095048801689h
#define M_SQRT1_2_H 0.7071067811865475244008444h
#endif

#define NULL ((void *)0)

/* Attributes of kernels as one macro, of OpenCL C 1.0. */
#define kernel_exec(X, typen)                                                                                \
    __kernel __attribute__((work_group_size_hint(X, 1, 1))) __attribute__((vec_type_hint(typen)))
#define __kernel_exec(X, typen) kernel_exec(X, typen)

/* Fences. */
typedef uint cl_mem_fence_flags;
#define CLK_LOCAL_MEM_FENCE 0x01
#define CLK_GLOBAL_MEM_FENCE 0x02
#if __OPENCL_C_VERSION__ >= CL_VERSION_2_0
#define CLK_IMAGE_MEM_FENCE 0x04
#endif

/* Samplers: the fields of their words. */
#define CLK_NORMALIZED_COORDS_FALSE 0
#define CLK_NORMALIZED_COORDS_TRUE 1
#define CLK_ADDRESS_NONE 0
#define CLK_ADDRESS_CLAMP_TO_EDGE 2
#define CLK_ADDRESS_CLAMP 4
#define CLK_ADDRESS_REPEAT 6
#define CLK_ADDRESS_MIRRORED_REPEAT 8
#define CLK_FILTER_NEAREST 0x10
#define CLK_FILTER_LINEAR 0x20

/* What get_image_channel_order and get_image_channel_data_type return. */
#define CLK_R 0x10B0
#define CLK_A 0x10B1
#define CLK_RG 0x10B2
#define CLK_RA 0x10B3
#define CLK_RGB 0x10B4
#define CLK_RGBA 0x10B5
#define CLK_BGRA 0x10B6
#define CLK_ARGB 0x10B7
#define CLK_INTENSITY 0x10B8
#define CLK_LUMINANCE 0x10B9
#define CLK_Rx 0x10BA
#define CLK_RGx 0x10BB
#define CLK_RGBx 0x10BC
#define CLK_DEPTH 0x10BD
#define CLK_DEPTH_STENCIL 0x10BE
#define CLK_SNORM_INT8 0x10D0
#define CLK_SNORM_INT16 0x10D1
#define CLK_UNORM_INT8 0x10D2
#define CLK_UNORM_INT16 0x10D3
#define CLK_UNORM_SHORT_565 0x10D4
#define CLK_UNORM_SHORT_555 0x10D5
#define CLK_UNORM_INT_101010 0x10D6
#define CLK_SIGNED_INT8 0x10D7
#define CLK_SIGNED_INT16 0x10D8
#define CLK_SIGNED_INT32 0x10D9
#define CLK_UNSIGNED_INT8 0x10DA
#define CLK_UNSIGNED_INT16 0x10DB
#define CLK_UNSIGNED_INT32 0x10DC
#define CLK_HALF_FLOAT 0x10DD
#define CLK_FLOAT 0x10DE
#define CLK_UNORM_INT24 0x10DF
#if __OPENCL_C_VERSION__ >= CL_VERSION_2_0
#define CLK_sRGB 0x10BF
#define CLK_sRGBx 0x10C0
#define CLK_sRGBA 0x10C1
#define CLK_sBGRA 0x10C2
#define CLK_ABGR 0x10C3
#endif
#if __OPENCL_C_VERSION__ >= CL_VERSION_3_0
#define CLK_UNORM_INT_101010_2 0x10E0
#endif

/* printf takes what it is given, and vectors. */
#if __OPENCL_C_VERSION__ >= CL_VERSION_1_2
int printf(__constant const char *format, ...) __attribute__((format(printf, 1, 2)));
#endif

#if __OPENCL_C_VERSION__ >= CL_VERSION_2_0
/* Atomics. */
#define ATOMIC_VAR_INIT(value) (value)
#define ATOMIC_FLAG_INIT 0
typedef enum memory_scope {
    memory_scope_work_item = __OPENCL_MEMORY_SCOPE_WORK_ITEM,
    memory_scope_work_group = __OPENCL_MEMORY_SCOPE_WORK_GROUP,
    memory_scope_device = __OPENCL_MEMORY_SCOPE_DEVICE,
#if defined(__opencl_c_atomic_scope_all_devices) || __OPENCL_C_VERSION__ < CL_VERSION_3_0
    memory_scope_all_svm_devices = __OPENCL_MEMORY_SCOPE_ALL_SVM_DEVICES,
#if __OPENCL_C_VERSION__ >= CL_VERSION_3_0
    memory_scope_all_devices = memory_scope_all_svm_devices,
#endif
#endif
#ifdef __opencl_subgroup_builtins
    memory_scope_sub_group = __OPENCL_MEMORY_SCOPE_SUB_GROUP
#endif
} memory_scope;
typedef enum memory_order {
    memory_order_relaxed = __ATOMIC_RELAXED,
    memory_order_acquire = __ATOMIC_ACQUIRE,
    memory_order_release = __ATOMIC_RELEASE,
    memory_order_acq_rel = __ATOMIC_ACQ_REL,
#if defined(__opencl_c_atomic_order_seq_cst) || __OPENCL_C_VERSION__ < CL_VERSION_3_0
    memory_order_seq_cst = __ATOMIC_SEQ_CST
#endif
} memory_order;

/* Pipes. */
#define CLK_NULL_RESERVE_ID __builtin_astype((void *)__SIZE_MAX__, reserve_id_t)

/* Kernels that enqueue kernels. */
#define CLK_NULL_QUEUE 0
#define CLK_NULL_EVENT __builtin_astype(__SIZE_MAX__, clk_event_t)
#define CLK_SUCCESS 0
#define CLK_OUT_OF_RESOURCES (-5)
#define CLK_INVALID_ARG_SIZE (-51)
#define CLK_INVALID_EVENT_WAIT_LIST (-57)
#define CLK_EVENT_ALLOCATION_FAILURE (-100)
#define CLK_ENQUEUE_FAILURE (-101)
#define CLK_INVALID_QUEUE (-102)
#define CLK_INVALID_NDRANGE (-160)
#define CLK_DEVICE_QUEUE_FULL (-161)
#define CL_COMPLETE 0
#define CL_RUNNING 1
#define CL_SUBMITTED 2
#define CL_QUEUED 3
typedef int kernel_enqueue_flags_t;
#define CLK_ENQUEUE_FLAGS_NO_WAIT 0
#define CLK_ENQUEUE_FLAGS_WAIT_KERNEL 1
#define CLK_ENQUEUE_FLAGS_WAIT_WORK_GROUP 2
typedef int clk_profiling_info;
#define CLK_PROFILING_COMMAND_EXEC_TIME 1
#define MAX_WORK_DIM 3
typedef struct {
    unsigned int workDimension;
    size_t globalWorkOffset[MAX_WORK_DIM];
    size_t globalWorkSize[MAX_WORK_DIM];
    size_t localWorkSize[MAX_WORK_DIM];
} ndrange_t;
#endif

#endif
