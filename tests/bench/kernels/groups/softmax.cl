// A matrix row per group: maximum, sum of exponentials, quotient; two trees in local memory.
kernel void softmax(global float *to, global const float *from, int columns, local float *scratch) {
    int l = get_local_id(0), size = get_local_size(0);
    global const float *row = from + get_group_id(0) * columns;
    float top = -INFINITY;
    for (int i = l; i < columns; i += size)
        top = fmax(top, row[i]);
    scratch[l] = top;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = size / 2; s > 0; s /= 2) {
        if (l < s)
            scratch[l] = fmax(scratch[l], scratch[l + s]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    top = scratch[0];
    barrier(CLK_LOCAL_MEM_FENCE);

    float sum = 0.0f;
    for (int i = l; i < columns; i += size)
        sum += exp(row[i] - top);
    scratch[l] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = size / 2; s > 0; s /= 2) {
        if (l < s)
            scratch[l] += scratch[l + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    float scale = 1.0f / scratch[0];
    for (int i = l; i < columns; i += size)
        to[get_group_id(0) * columns + i] = exp(row[i] - top) * scale;
}
