// Euclid's algorithm: remainders by varying divisors, trip counts differ.
kernel void gcd(global uint *to, global const uint *left, global const uint *right) {
    size_t i = get_global_id(0);
    uint a = left[i], b = right[i];
    while (b != 0) {
        uint rest = a % b;
        a = b;
        b = rest;
    }
    to[i] = a;
}
