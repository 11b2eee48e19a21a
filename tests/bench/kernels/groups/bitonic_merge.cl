// One step of a bitonic network over global memory: each element looks at its partner, the lower one swaps.
kernel void bitonic_merge(global uint *data, uint distance, uint run) {
    uint i = get_global_id(0), j = i ^ distance;
    if (j > i) {
        uint a = data[i], b = data[j];
        if ((a > b) == ((i & run) == 0)) {
            data[i] = b;
            data[j] = a;
        }
    }
}
