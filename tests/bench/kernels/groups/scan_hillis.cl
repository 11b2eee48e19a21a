// Inclusive sums within each group: log2(size) steps between two halves of local memory.
kernel void scan_hillis(global float *to, global const float *from, local float *scratch) {
    int l = get_local_id(0), size = get_local_size(0), now = 0;
    scratch[l] = from[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = 1; step < size; step *= 2) {
        int next = size - now;
        float sum = scratch[now + l];
        if (l >= step)
            sum += scratch[now + l - step];
        scratch[next + l] = sum;
        now = next;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    to[get_global_id(0)] = scratch[now + l];
}
