/* Work-group collectives, asynchronous copies, barriers in uniform control flow. */
kernel void collectives(global int *data, local int *tile, int n) {
    int l = get_local_id(0), g = get_global_id(0);
    event_t done = async_work_group_copy(tile, data + get_group_id(0) * get_local_size(0), get_local_size(0), 0);
    wait_group_events(1, &done);
    int value = tile[l];
    if (n > 3) {
        value += work_group_scan_inclusive_add(value);
        for (int i = 0; i < n; i++) {
            value ^= work_group_broadcast(value, i & 1);
            if (work_group_any(value == 5)) break;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    tile[l] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    data[g] = tile[(l + 1) % get_local_size(0)] + work_group_reduce_max(l);
}
