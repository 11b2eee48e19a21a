// What device code of HIP takes from its runtime's headers, over the built-in functions of OpenCL C.
typedef unsigned int uint;
typedef unsigned long ulong;
#define __global__ extern "C" __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
// What chipStar's passes make of `extern __shared__`: an argument in local memory.
#define LOCAL __attribute__((address_space(3)))

#define BUILTIN(type, name, mangled, ...) extern "C" __device__ type name(__VA_ARGS__) __asm(mangled)
BUILTIN(ulong, ocl_global_id, "_Z13get_global_idj", uint);
BUILTIN(ulong, ocl_global_size, "_Z15get_global_sizej", uint);
BUILTIN(ulong, ocl_local_id, "_Z12get_local_idj", uint);
BUILTIN(ulong, ocl_local_size, "_Z14get_local_sizej", uint);
BUILTIN(ulong, ocl_group_id, "_Z12get_group_idj", uint);
BUILTIN(uint, ocl_lane, "_Z22get_sub_group_local_idv", );
BUILTIN(uint, ocl_warp_size, "_Z22get_max_sub_group_sizev", );
BUILTIN(void, ocl_barrier, "_Z7barrierj", uint);
BUILTIN(int, ocl_shuffle, "_Z17sub_group_shuffleij", int, uint);
BUILTIN(int, ocl_shuffle_up, "_Z20sub_group_shuffle_upij", int, uint);
BUILTIN(int, ocl_shuffle_down, "_Z22sub_group_shuffle_downij", int, uint);
BUILTIN(int, ocl_shuffle_xor, "_Z21sub_group_shuffle_xorij", int, uint);
BUILTIN(int, ocl_any, "_Z13sub_group_anyi", int);
BUILTIN(int, ocl_all, "_Z13sub_group_alli", int);
BUILTIN(float, ocl_pow, "_Z3powff", float, float);
BUILTIN(float, ocl_sin, "_Z3sinf", float);
BUILTIN(float, ocl_exp, "_Z3expf", float);
BUILTIN(double, ocl_log1p, "_Z5log1pd", double);
BUILTIN(float, ocl_erf, "_Z3erff", float);
BUILTIN(ulong, ocl_mul_hi, "_Z6mul_himm", ulong, ulong);
BUILTIN(int, printf, "printf", const char *, ...);

#define SYNC() ocl_barrier(1)
#define GLOBAL_ID() ((int)ocl_global_id(0))
#define LOCAL_ID() ((int)ocl_local_id(0))
#define AGENT __HIP_MEMORY_SCOPE_AGENT
#define ADD(pointer, value) __hip_atomic_fetch_add(pointer, value, __ATOMIC_RELAXED, AGENT)
