// Few work-items stride over all elements; each group ends with a tree in local memory.
kernel void reduce_stride(global float *sums, global const float *values, int count, local float *scratch) {
    int l = get_local_id(0), stride = get_global_size(0);
    float sum = 0.0f;
    for (int i = get_global_id(0); i < count; i += stride)
        sum += values[i];
    scratch[l] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = get_local_size(0) / 2; half_size > 0; half_size /= 2) {
        if (l < half_size)
            scratch[l] += scratch[l + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0)
        sums[get_group_id(0)] = scratch[0];
}
