/* convert_doubleN_rtz, _rtp, _rtn of long and ulong, which clang leaves as calls (all other conversions
 * become instructions). The magnitude cut to 53 bits converts exactly; its neighbour away from zero is one
 * bit pattern on. */

#define OVERLOAD __attribute__((overloadable))

static __attribute__((noinline)) double directed_magnitude(ulong magnitude, bool away) {
    int zeros = magnitude ? (int)clz(magnitude) : 64;
    ulong mask = zeros < 11 ? ~(ulong)0 << (11 - zeros) : ~(ulong)0;
    double cut = (double)(magnitude & mask);
    return as_double(as_ulong(cut) + (away && (magnitude & ~mask) ? 1 : 0));
}

HELPER double directed_long(long x, bool up, bool down) {
    double magnitude = directed_magnitude(x < 0 ? 0 - (ulong)x : (ulong)x, x < 0 ? down : up);
    return x < 0 ? -magnitude : magnitude;
}

double OVERLOAD convert_double_rtz(long x) {
    return directed_long(x, false, false);
}
double OVERLOAD convert_double_rtp(long x) {
    return directed_long(x, true, false);
}
double OVERLOAD convert_double_rtn(long x) {
    return directed_long(x, false, true);
}
double OVERLOAD convert_double_rtz(ulong x) {
    return directed_magnitude(x, false);
}
double OVERLOAD convert_double_rtp(ulong x) {
    return directed_magnitude(x, true);
}
double OVERLOAD convert_double_rtn(ulong x) {
    return directed_magnitude(x, false);
}

#define CONVERT_2(T, mode)                                                                                   \
    double2 OVERLOAD convert_double2_##mode(T##2 x) {                                                        \
        return (double2)(convert_double_##mode(x.x), convert_double_##mode(x.y));                            \
    }
#define CONVERT_3(T, mode)                                                                                   \
    double3 OVERLOAD convert_double3_##mode(T##3 x) {                                                        \
        return (double3)(convert_double2_##mode(x.xy), convert_double_##mode(x.z));                          \
    }
#define CONVERT_HALVES(T, mode, n, half_n)                                                                   \
    double##n OVERLOAD convert_double##n##_##mode(T##n x) {                                                  \
        return (double##n)(convert_double##half_n##_##mode(x.lo), convert_double##half_n##_##mode(x.hi));    \
    }
#define CONVERT_ALL(T, mode)                                                                                 \
    CONVERT_2(T, mode)                                                                                       \
    CONVERT_3(T, mode)                                                                                       \
    CONVERT_HALVES(T, mode, 4, 2)                                                                            \
    CONVERT_HALVES(T, mode, 8, 4)                                                                            \
    CONVERT_HALVES(T, mode, 16, 8)

CONVERT_ALL(long, rtz)
CONVERT_ALL(long, rtp)
CONVERT_ALL(long, rtn)
CONVERT_ALL(ulong, rtz)
CONVERT_ALL(ulong, rtp)
CONVERT_ALL(ulong, rtn)
