// Steps to one: a long loop whose trip count differs from work-item to work-item, a branch in it.
kernel void collatz(global uint *steps, uint first) {
    uint i = get_global_id(0), n = 0;
    ulong v = first + i;
    while (v != 1) {
        if (v & 1)
            v = 3 * v + 1;
        else
            v >>= 1;
        n++;
    }
    steps[i] = n;
}
