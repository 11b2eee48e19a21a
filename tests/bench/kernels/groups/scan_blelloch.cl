// Exclusive sums within each group, two elements a work-item: up the tree, and down again.
kernel void scan_blelloch(global uint *to, global const uint *from, local uint *tree) {
    int l = get_local_id(0), size = 2 * get_local_size(0), base = get_group_id(0) * size, stride = 1;
    tree[2 * l] = from[base + 2 * l];
    tree[2 * l + 1] = from[base + 2 * l + 1];
    for (int active = size / 2; active > 0; active /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < active)
            tree[stride * (2 * l + 2) - 1] += tree[stride * (2 * l + 1) - 1];
        stride *= 2;
    }
    if (l == 0)
        tree[size - 1] = 0;
    for (int active = 1; active < size; active *= 2) {
        stride /= 2;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < active) {
            int left = stride * (2 * l + 1) - 1, right = stride * (2 * l + 2) - 1;
            uint kept = tree[left];
            tree[left] = tree[right];
            tree[right] += kept;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    to[base + 2 * l] = tree[2 * l];
    to[base + 2 * l + 1] = tree[2 * l + 1];
}
