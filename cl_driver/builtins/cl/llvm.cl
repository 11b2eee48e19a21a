/* Intrinsics of LLVM that Khronos' translator leaves as calls in modules of DPC++: llvm.usub.sat.i32 is the
 * function __llvm_usub_sat_i32 here, llvm.usub.sat.v4i32 is __llvm_usub_sat_v4i32. */

#define SATURATED(function, name, type)                                                                      \
    type __llvm_##name##_sat_##function(type a, type b) {                                                    \
        return name##_SAT(a, b);                                                                             \
    }
#define uadd_SAT add_sat
#define sadd_SAT add_sat
#define usub_SAT sub_sat
#define ssub_SAT sub_sat

#define OF_WIDTH(bits, type, count, vector)                                                                  \
    SATURATED(vector##i##bits, uadd, u##type##count)                                                         \
    SATURATED(vector##i##bits, usub, u##type##count)                                                         \
    SATURATED(vector##i##bits, sadd, type##count)                                                            \
    SATURATED(vector##i##bits, ssub, type##count)

#define OF_TYPE(bits, type)                                                                                  \
    OF_WIDTH(bits, type, , )                                                                                 \
    OF_WIDTH(bits, type, 2, v2)                                                                              \
    OF_WIDTH(bits, type, 3, v3)                                                                              \
    OF_WIDTH(bits, type, 4, v4)                                                                              \
    OF_WIDTH(bits, type, 8, v8)                                                                              \
    OF_WIDTH(bits, type, 16, v16)

OF_TYPE(8, char)
OF_TYPE(16, short)
OF_TYPE(32, int)
OF_TYPE(64, long)
