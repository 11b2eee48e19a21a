// Jacobi step on a square: the edge is copied.
kernel void stencil5(global float *to, global const float *from, int n) {
    int x = get_global_id(0), y = get_global_id(1), i = y * n + x;
    if (x == 0 || y == 0 || x == n - 1 || y == n - 1)
        to[i] = from[i];
    else
        to[i] = 0.5f * from[i] + 0.125f * (from[i - 1] + from[i + 1] + from[i - n] + from[i + n]);
}
