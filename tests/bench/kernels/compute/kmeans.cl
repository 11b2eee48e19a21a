// The nearest of a few centres for each point.
kernel void kmeans(global int *nearest, global float *distance2, global const float4 *points,
                   constant float4 *centres, int count) {
    size_t i = get_global_id(0);
    float4 p = points[i];
    float best = INFINITY;
    int which = -1;
    for (int c = 0; c < count; c++) {
        float4 d = p - centres[c];
        float r = dot(d, d);
        if (r < best) {
            best = r;
            which = c;
        }
    }
    nearest[i] = which;
    distance2[i] = best;
}
