// A matrix row per work-item: neighbouring work-items read a whole row apart.
kernel void matvec(global float *y, global const float *a, global const float *x, int columns) {
    int row = get_global_id(0);
    float sum = 0.0f;
    for (int k = 0; k < columns; k++)
        sum += a[row * columns + k] * x[k];
    y[row] = sum;
}
