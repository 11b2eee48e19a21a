// McCalpin's triad: two streams in, one out.
kernel void triad(global float *a, global const float *b, global const float *c, float scale) {
    size_t i = get_global_id(0);
    a[i] = b[i] + scale * c[i];
}
