// Looks an element up, then does one of three things, two of which look up again.
kernel void gather_branchy(global float *to, global const int *index, global const float *table, int mask) {
    int i = get_global_id(0), at = index[i];
    float v = table[at];
    if (v > 0.5f)
        v = table[(at * 3 + 1) & mask] * 2.0f - v;
    else if (v > -0.5f)
        v = v * v + 1.0f;
    else
        v = table[(at + i) & mask] - table[(at ^ 5) & mask];
    to[i] = v;
}
