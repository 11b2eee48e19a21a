// Work-items that meet a condition increment one and the same counter.
kernel void atomic_count(global uint *counter, global const float *data, float bound) {
    if (data[get_global_id(0)] > bound)
        atomic_inc(counter);
}
