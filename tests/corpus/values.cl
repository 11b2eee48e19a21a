/* Scalars and vectors of all widths, conversions, built-in functions, printf. */
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
kernel void numbers(global float4 *f, global double2 *d, global long3 *l, global char16 *c, global ushort8 *s) {
    size_t g = get_global_id(0);
    float4 x = f[g];
    x = fma(x, x.wzyx, sin(x)) + native_sqrt(fabs(x)) * (float4)(1, 2, 3, as_float(0x7f800000));
    int4 whole;
    x += fract(x, &x) + convert_float4(convert_int4_sat_rtp(x)) + ldexp(x, (int4)(1)) + frexp(x, &whole);
    f[g] = select(x, x + 1, isnan(x) | whole);
    d[g] = convert_double2(x.xy) * rsqrt(d[g]);
    l[g] = (l[g] << 3) / (l[g] | 1) - (long3)(popcount(l[g].x), clz(l[g].y), l[g].z % 7);
    c[g] = shuffle(c[g], convert_uchar16(c[g]) & (uchar16)(15)) + mad_sat(c[g], c[g], (char16)(3));
    s[g] = upsample(convert_uchar8(s[g]), convert_uchar8(s[g] >> (ushort8)(8))) ^ rotate(s[g], (ushort8)(5));
    if (any(isgreater(x, (float4)(3)))) printf("%v4f %d %s\n", x, whole.x, "text");
}

kernel void logic(global int *a, global uint *b, int n) {
    int g = get_global_id(0);
    bool odd = g & 1, large = g > n;
    a[g] = (odd && !large) ? mul24(g, n) : mad_hi(g, n, (int)b[g]);
    b[g] = (uint)as_int(convert_float(abs_diff(a[g], n))) + (odd ^ large) + hadd((uint)g, b[g]);
}
