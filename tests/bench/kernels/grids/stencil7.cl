// A step of heat conduction in a cube; work-items of the faces return early.
kernel void stencil7(global float *to, global const float *from, int n, float rate) {
    int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    if (x == 0 || y == 0 || z == 0 || x == n - 1 || y == n - 1 || z == n - 1)
        return;
    int i = (z * n + y) * n + x;
    float around = from[i - 1] + from[i + 1] + from[i - n] + from[i + n] + from[i - n * n] + from[i + n * n];
    to[i] = from[i] + rate * (around - 6.0f * from[i]);
}
