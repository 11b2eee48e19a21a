// Iterations until escape, as a pixel per work-item.
kernel void mandelbrot(global int *to, int width, float left, float top, float step, int limit) {
    int px = get_global_id(0), py = get_global_id(1);
    float cx = left + px * step, cy = top + py * step;
    float x = 0.0f, y = 0.0f;
    int n = 0;
    while (n < limit && x * x + y * y < 4.0f) {
        float t = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = t;
        n++;
    }
    to[py * width + px] = n;
}
