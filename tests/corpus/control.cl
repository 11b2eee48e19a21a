/* Loops, switches, early returns, barriers, helper functions called from several places. */
int collatz(int n) {
    int steps = 0;
    while (n > 1 && steps < 100) {
        n = n & 1 ? 3 * n + 1 : n >> 1;
        steps++;
    }
    return steps;
}

int classify(int a, long b) {
    switch (a & 15) {
    case 1:
        return (int)b;
    case 2:
    case 3:
        a += 5;
    case 9:
        return a * 3;
    case 12:
        if (b > 7) break;
        return collatz(a);
    default:
        a ^= 99;
    }
    switch (b) {
    case 0x100000000L:
        return -1;
    case -5:
        return -2;
    }
    return a;
}

kernel void tree(global const int *in, global int *out, local int *shared, int n) {
    size_t g = get_global_id(0), l = get_local_id(0);
    shared[l] = g < n ? in[g] : 0;
    for (size_t step = get_local_size(0) / 2; step > 0; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < step) shared[l] += shared[l + step];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l == 0) out[get_group_id(0)] = shared[0];
}

kernel void paths(global int *out, int n) {
    int g = get_global_id(0), sum = 0;
    if (g > n) return;
    for (int i = 0; i < n; i++) {
        for (int j = i; j < n; j++) {
            if ((i ^ j) == g) continue;
            if (i * j > 90) goto out_of_both;
            sum += classify(i, j) + collatz(j);
        }
    }
out_of_both:
    out[g] = sum;
}
