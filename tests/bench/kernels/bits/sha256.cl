// SHA-256 of an eight-byte message per work-item; the digest's words are folded into one.
constant uint K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#define RIGHT(x, n) rotate(x, 32u - n)
#define STEP(a, b, c, d, e, f, g, h, t)                                                                      \
    h += (RIGHT(e, 6u) ^ RIGHT(e, 11u) ^ RIGHT(e, 25u)) + bitselect(g, f, e) + K[base + t] + w[t];           \
    d += h;                                                                                                  \
    h += (RIGHT(a, 2u) ^ RIGHT(a, 13u) ^ RIGHT(a, 22u)) + bitselect(a, b, c ^ a);
#define NEXT(t)                                                                                              \
    w[t] += w[(t + 9) & 15] +                                                                                \
            (RIGHT(w[(t + 1) & 15], 7u) ^ RIGHT(w[(t + 1) & 15], 18u) ^ (w[(t + 1) & 15] >> 3)) +            \
            (RIGHT(w[(t + 14) & 15], 17u) ^ RIGHT(w[(t + 14) & 15], 19u) ^ (w[(t + 14) & 15] >> 10));
#define EIGHT(t)                                                                                             \
    STEP(a, b, c, d, e, f, g, h, t)                                                                          \
    STEP(h, a, b, c, d, e, f, g, t + 1)                                                                      \
    STEP(g, h, a, b, c, d, e, f, t + 2)                                                                      \
    STEP(f, g, h, a, b, c, d, e, t + 3)                                                                      \
    STEP(e, f, g, h, a, b, c, d, t + 4)                                                                      \
    STEP(d, e, f, g, h, a, b, c, t + 5)                                                                      \
    STEP(c, d, e, f, g, h, a, b, t + 6)                                                                      \
    STEP(b, c, d, e, f, g, h, a, t + 7)
#define SCHEDULE                                                                                             \
    NEXT(0) NEXT(1) NEXT(2) NEXT(3) NEXT(4) NEXT(5) NEXT(6) NEXT(7);                                         \
    NEXT(8) NEXT(9) NEXT(10) NEXT(11) NEXT(12) NEXT(13) NEXT(14) NEXT(15)

kernel void sha256(global uint *to, global const uint2 *message) {
    size_t i = get_global_id(0);
    uint w[16] = {message[i].x, message[i].y, 0x80000000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64};
    uint a = 0x6a09e667, b = 0xbb67ae85, c = 0x3c6ef372, d = 0xa54ff53a;
    uint e = 0x510e527f, f = 0x9b05688c, g = 0x1f83d9ab, h = 0x5be0cd19;
    int base = 0;
    EIGHT(0) EIGHT(8);
    base = 16;
    SCHEDULE EIGHT(0) EIGHT(8);
    base = 32;
    SCHEDULE EIGHT(0) EIGHT(8);
    base = 48;
    SCHEDULE EIGHT(0) EIGHT(8);
    to[i] = (a + 0x6a09e667) ^ (b + 0xbb67ae85) ^ (c + 0x3c6ef372) ^ (d + 0xa54ff53a) ^ (e + 0x510e527f) ^
            (f + 0x9b05688c) ^ (g + 0x1f83d9ab) ^ (h + 0x5be0cd19);
}
