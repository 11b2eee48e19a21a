// 5 x 5 filter with coordinates clamped to the edge.
kernel void convolution(global float *to, global const float *from, constant float *weights, int width,
                        int height) {
    int x = get_global_id(0), y = get_global_id(1);
    float sum = 0.0f;
    for (int dy = -2; dy <= 2; dy++)
        for (int dx = -2; dx <= 2; dx++) {
            int sx = clamp(x + dx, 0, width - 1), sy = clamp(y + dy, 0, height - 1);
            sum += weights[(dy + 2) * 5 + dx + 2] * from[sy * width + sx];
        }
    to[y * width + x] = sum;
}
