// A transform of 256 points per group of 64 work-items, four radix-4 passes in local memory.
float2 times(float2 a, float2 b) {
    return (float2)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

kernel void fft_local(global float2 *to, global const float2 *from) {
    local float2 points[256];
    int l = get_local_id(0), base = get_group_id(0) * 256;
    for (int m = 0; m < 4; m++)
        points[l + 64 * m] = from[base + l + 64 * m];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int span = 1; span < 256; span *= 4) {
        int k = l & (span - 1);
        float angle = -M_PI_F * 0.5f * k / span;
        float2 w = (float2)(cos(angle), sin(angle)), w2 = times(w, w);
        float2 x0 = points[l], x1 = times(points[l + 64], w);
        float2 x2 = times(points[l + 128], w2), x3 = times(points[l + 192], times(w, w2));
        float2 a = x0 + x2, b = x0 - x2, d = x1 + x3, e = (float2)(x1.y - x3.y, x3.x - x1.x);
        barrier(CLK_LOCAL_MEM_FENCE);
        int out = (l - k) * 4 + k;
        points[out] = a + d;
        points[out + span] = b + e;
        points[out + 2 * span] = a - d;
        points[out + 3 * span] = b - e;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int m = 0; m < 4; m++)
        to[base + l + 64 * m] = points[l + 64 * m];
}
