/* Lengths in single precision, for code of several work-items. Squares that may overflow or vanish go by way
 * of double precision, in the lanes that have them. */

SLOW_PATH float __cld_slow_length_f32(float x, float y, float z, float w) {
    double a = x, b = y, c = z, d = w;
    return (float)SQRT(a * a + b * b + c * c + d * d);
}

/* Of infinite components the signs are normalised, finite ones beside them count as 0 (OpenCL C 3.0, 7.5.1). */
SLOW_PATH float4 __cld_slow_normalize_f32(float4 v) {
    float4 size = ABS(v);
    if (size.x == INF_F32 || size.y == INF_F32 || size.z == INF_F32 || size.w == INF_F32) {
        float4 unit = (float4)(size.x == INF_F32, size.y == INF_F32, size.z == INF_F32, size.w == INF_F32);
        unit = COPYSIGN(unit, v);
        v = (float4)(v.x != v.x ? v.x : unit.x, v.y != v.y ? v.y : unit.y, v.z != v.z ? v.z : unit.z,
                     v.w != v.w ? v.w : unit.w);
    }
    double a = v.x, b = v.y, c = v.z, d = v.w;
    double root = SQRT(a * a + b * b + c * c + d * d);
    root = root == 0.0 ? 1.0 : root;
    return (float4)((float)(a / root), (float)(b / root), (float)(c / root), (float)(d / root));
}

float __cld_length_f32x1(float v) {
    return ABS(v);
}

float __cld_length_f32x2(float2 v) {
    float square = FMA(v.y, v.y, v.x * v.x), result = SQRT(square);
    if (RARELY(has_no_square_f32(square)))
        result = __cld_slow_length_f32(v.x, v.y, 0.0f, 0.0f);
    return result;
}

float __cld_length_f32x3(float3 v) {
    float square = FMA(v.z, v.z, FMA(v.y, v.y, v.x * v.x)), result = SQRT(square);
    if (RARELY(has_no_square_f32(square)))
        result = __cld_slow_length_f32(v.x, v.y, v.z, 0.0f);
    return result;
}

float __cld_length_f32x4(float4 v) {
    float square = FMA(v.w, v.w, FMA(v.z, v.z, FMA(v.y, v.y, v.x * v.x))), result = SQRT(square);
    if (RARELY(has_no_square_f32(square)))
        result = __cld_slow_length_f32(v.x, v.y, v.z, v.w);
    return result;
}

float __cld_normalize_f32x1(float v) {
    return v == 0.0f || v != v ? v : COPYSIGN(1.0f, v);
}

float2 __cld_normalize_f32x2(float2 v) {
    float square = FMA(v.y, v.y, v.x * v.x);
    float2 result = v * (1.0f / SQRT(square));
    if (RARELY(has_no_square_f32(square)))
        result = __cld_slow_normalize_f32((float4)(v, 0.0f, 0.0f)).xy;
    return result;
}

float3 __cld_normalize_f32x3(float3 v) {
    float square = FMA(v.z, v.z, FMA(v.y, v.y, v.x * v.x));
    float3 result = v * (1.0f / SQRT(square));
    if (RARELY(has_no_square_f32(square)))
        result = __cld_slow_normalize_f32((float4)(v, 0.0f)).xyz;
    return result;
}

float4 __cld_normalize_f32x4(float4 v) {
    float square = FMA(v.w, v.w, FMA(v.z, v.z, FMA(v.y, v.y, v.x * v.x)));
    float4 result = v * (1.0f / SQRT(square));
    if (RARELY(has_no_square_f32(square)))
        result = __cld_slow_normalize_f32(v);
    return result;
}

float __cld_distance_f32x1(float a, float b) {
    return __cld_length_f32x1(a - b);
}

float __cld_distance_f32x2(float2 a, float2 b) {
    return __cld_length_f32x2(a - b);
}

float __cld_distance_f32x3(float3 a, float3 b) {
    return __cld_length_f32x3(a - b);
}

float __cld_distance_f32x4(float4 a, float4 b) {
    return __cld_length_f32x4(a - b);
}
