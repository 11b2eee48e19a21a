// One element of the product per work-item, operands straight from global memory.
kernel void matmul_naive(global float *c, global const float *a, global const float *b, int n) {
    int x = get_global_id(0), y = get_global_id(1);
    float sum = 0.0f;
    for (int k = 0; k < n; k++)
        sum += a[y * n + k] * b[k * n + x];
    c[y * n + x] = sum;
}
