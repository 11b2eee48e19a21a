// One radix-4 pass of Stockham's transform; span is the length of the transforms already made.
float2 times(float2 a, float2 b) {
    return (float2)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

kernel void fft_pass(global float2 *to, global const float2 *from, int span) {
    int i = get_global_id(0), quarter = get_global_size(0), k = i & (span - 1);
    float c, s = sincos(-M_PI_F * 0.5f * k / span, &c);
    float2 w = (float2)(c, s), w2 = times(w, w);
    float2 x0 = from[i], x1 = times(from[i + quarter], w);
    float2 x2 = times(from[i + 2 * quarter], w2), x3 = times(from[i + 3 * quarter], times(w, w2));
    float2 a = x0 + x2, b = x0 - x2, d = x1 + x3, e = (float2)(x1.y - x3.y, x3.x - x1.x);
    global float2 *out = to + (i - k) * 4 + k;
    out[0] = a + d;
    out[span] = b + e;
    out[2 * span] = a - d;
    out[3 * span] = b - e;
}
