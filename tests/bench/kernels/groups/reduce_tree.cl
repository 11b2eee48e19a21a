// Sum of each group's elements, one per work-item, by halves in local memory.
kernel void reduce_tree(global float *sums, global const float *values, local float *scratch) {
    int l = get_local_id(0);
    scratch[l] = values[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = get_local_size(0) / 2; half_size > 0; half_size /= 2) {
        if (l < half_size)
            scratch[l] += scratch[l + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0)
        sums[get_group_id(0)] = scratch[0];
}
