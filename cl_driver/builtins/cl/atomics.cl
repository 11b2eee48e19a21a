/* Atomic functions and fences that clang leaves as calls of their mangled names. Those without an order are
 * relaxed (OpenCL C 1.2, section 6.12.11); those with an order run as sequentially consistent, which implies
 * every other. */

#define OVERLOAD __attribute__((overloadable))

#define OLD_ATOMICS(SPACE, T, prefix, A)                                                                     \
    T OVERLOAD prefix##_xchg(volatile SPACE T *p, T value) {                                                 \
        return __opencl_atomic_exchange((volatile SPACE A *)p, value, __ATOMIC_RELAXED,                      \
                                        memory_scope_device);                                                \
    }                                                                                                        \
    T OVERLOAD prefix##_inc(volatile SPACE T *p) {                                                           \
        return __opencl_atomic_fetch_add((volatile SPACE A *)p, 1, __ATOMIC_RELAXED, memory_scope_device);   \
    }                                                                                                        \
    T OVERLOAD prefix##_dec(volatile SPACE T *p) {                                                           \
        return __opencl_atomic_fetch_sub((volatile SPACE A *)p, 1, __ATOMIC_RELAXED, memory_scope_device);   \
    }                                                                                                        \
    T OVERLOAD prefix##_min(volatile SPACE T *p, T value) {                                                  \
        return __opencl_atomic_fetch_min((volatile SPACE A *)p, value, __ATOMIC_RELAXED,                     \
                                         memory_scope_device);                                               \
    }                                                                                                        \
    T OVERLOAD prefix##_max(volatile SPACE T *p, T value) {                                                  \
        return __opencl_atomic_fetch_max((volatile SPACE A *)p, value, __ATOMIC_RELAXED,                     \
                                         memory_scope_device);                                               \
    }

OLD_ATOMICS(__global, int, atomic, atomic_int)
OLD_ATOMICS(__global, uint, atomic, atomic_uint)
OLD_ATOMICS(__local, int, atomic, atomic_int)
OLD_ATOMICS(__local, uint, atomic, atomic_uint)
OLD_ATOMICS(__global, int, atom, atomic_int)
OLD_ATOMICS(__global, uint, atom, atomic_uint)
OLD_ATOMICS(__local, int, atom, atomic_int)
OLD_ATOMICS(__local, uint, atom, atomic_uint)
OLD_ATOMICS(__global, long, atom, atomic_long)
OLD_ATOMICS(__global, ulong, atom, atomic_ulong)
OLD_ATOMICS(__local, long, atom, atomic_long)
OLD_ATOMICS(__local, ulong, atom, atomic_ulong)

#define FLOAT_EXCHANGE(SPACE)                                                                                \
    float OVERLOAD atomic_xchg(volatile SPACE float *p, float value) {                                       \
        return as_float(__opencl_atomic_exchange((volatile SPACE atomic_int *)p, as_int(value),              \
                                                 __ATOMIC_RELAXED, memory_scope_device));                    \
    }

FLOAT_EXCHANGE(__global)
FLOAT_EXCHANGE(__local)

#define FETCH(SPACE, T, A, operation)                                                                        \
    T OVERLOAD atomic_fetch_##operation(volatile SPACE A *p, T value) {                                      \
        return __opencl_atomic_fetch_##operation(p, value, __ATOMIC_SEQ_CST, memory_scope_device);           \
    }                                                                                                        \
    T OVERLOAD atomic_fetch_##operation##_explicit(volatile SPACE A *p, T value, memory_order order) {       \
        (void)order;                                                                                         \
        return __opencl_atomic_fetch_##operation(p, value, __ATOMIC_SEQ_CST, memory_scope_device);           \
    }                                                                                                        \
    T OVERLOAD atomic_fetch_##operation##_explicit(volatile SPACE A *p, T value, memory_order order,         \
                                                   memory_scope scope) {                                     \
        (void)order;                                                                                         \
        (void)scope;                                                                                         \
        return __opencl_atomic_fetch_##operation(p, value, __ATOMIC_SEQ_CST, memory_scope_device);           \
    }
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define FETCH_TYPES(SPACE, operation)                                                                        \
    FETCH(SPACE, int, atomic_int, operation)                                                                 \
    FETCH(SPACE, uint, atomic_uint, operation)                                                               \
    FETCH(SPACE, long, atomic_long, operation)                                                               \
    FETCH(SPACE, ulong, atomic_ulong, operation)                                                             \
    FETCH(SPACE, float, atomic_float, operation)                                                             \
    FETCH(SPACE, double, atomic_double, operation)                                                           \
    FETCH(SPACE, half, atomic_half, operation)

FETCH_TYPES(__generic, min)
FETCH_TYPES(__generic, max)
FETCH_TYPES(__global, min)
FETCH_TYPES(__global, max)
FETCH_TYPES(__local, min)
FETCH_TYPES(__local, max)

/* The flags are seldom constant here, and SPIR-V wants constants: both kinds of memory are ordered. */
#define ALL_MEMORY (CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

void OVERLOAD mem_fence(cl_mem_fence_flags flags) {
    (void)flags;
    atomic_work_item_fence(ALL_MEMORY, memory_order_acq_rel, memory_scope_work_group);
}

void OVERLOAD read_mem_fence(cl_mem_fence_flags flags) {
    (void)flags;
    atomic_work_item_fence(ALL_MEMORY, memory_order_acquire, memory_scope_work_group);
}

void OVERLOAD write_mem_fence(cl_mem_fence_flags flags) {
    (void)flags;
    atomic_work_item_fence(ALL_MEMORY, memory_order_release, memory_scope_work_group);
}

#define SUB_GROUP 3          /* SPIR-V: Scope */
#define ACQ_REL_MEMORY 0x388 /* AcquireRelease | SubgroupMemory | WorkgroupMemory | CrossWorkgroupMemory */

void OVERLOAD __attribute__((convergent)) __spirv_ControlBarrier(int execution, int memory, int semantics);

void OVERLOAD __attribute__((convergent)) sub_group_barrier(cl_mem_fence_flags flags) {
    (void)flags;
    __spirv_ControlBarrier(SUB_GROUP, SUB_GROUP, ACQ_REL_MEMORY);
}

void OVERLOAD __attribute__((convergent)) sub_group_barrier(cl_mem_fence_flags flags, memory_scope scope) {
    (void)flags;
    (void)scope;
    __spirv_ControlBarrier(SUB_GROUP, SUB_GROUP, ACQ_REL_MEMORY);
}

/* The code generator knows what a generic pointer points to: it lowers to_local, and get_fence itself at width 1. */
cl_mem_fence_flags OVERLOAD get_fence(const __generic void *p) {
    return to_local((__generic void *)p) ? CLK_LOCAL_MEM_FENCE : CLK_GLOBAL_MEM_FENCE;
}

cl_mem_fence_flags OVERLOAD get_fence(__generic void *p) {
    return to_local(p) ? CLK_LOCAL_MEM_FENCE : CLK_GLOBAL_MEM_FENCE;
}
