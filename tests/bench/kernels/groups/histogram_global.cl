// Every element is an atomic increment of a global bin.
kernel void histogram_global(global uint *bins, global const uint *data, uint mask) {
    atomic_inc(&bins[data[get_global_id(0)] & mask]);
}
