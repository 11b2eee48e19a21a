// 256 bins of bytes: counted in local memory, added to the global bins at the end of the group.
kernel void histogram_local(global uint *bins, global const uchar *data, int count) {
    local uint counts[256];
    for (int i = get_local_id(0); i < 256; i += get_local_size(0))
        counts[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_global_id(0); i < count; i += get_global_size(0))
        atomic_inc(&counts[data[i]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_local_id(0); i < 256; i += get_local_size(0))
        atomic_add(&bins[i], counts[i]);
}
