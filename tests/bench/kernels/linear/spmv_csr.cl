// A sparse row per work-item: trip counts differ, the vector is gathered from.
kernel void spmv_csr(global float *y, global const int *start, global const int *column,
                     global const float *value, global const float *x) {
    int row = get_global_id(0);
    float sum = 0.0f;
    for (int k = start[row]; k < start[row + 1]; k++)
        sum += value[k] * x[column[k]];
    y[row] = sum;
}
