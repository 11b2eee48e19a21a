// Sorts blocks of twice the group's size in local memory, ascending.
kernel void bitonic_local(global uint *data, local uint *block) {
    int l = get_local_id(0), half_size = get_local_size(0), base = get_group_id(0) * 2 * half_size;
    block[l] = data[base + l];
    block[l + half_size] = data[base + l + half_size];
    for (int run = 2; run <= 2 * half_size; run *= 2)
        for (int distance = run / 2; distance > 0; distance /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            int i = 2 * l - (l & (distance - 1)), j = i + distance;
            uint a = block[i], b = block[j];
            if ((a > b) == ((i & run) == 0)) {
                block[i] = b;
                block[j] = a;
            }
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    data[base + l] = block[l];
    data[base + l + half_size] = block[l + half_size];
}
