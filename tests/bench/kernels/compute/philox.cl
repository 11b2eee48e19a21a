// Philox 4x32-10, a counter-based random generator: wide multiplications.
kernel void philox(global uint4 *to, uint key0, uint key1) {
    uint i = get_global_id(0);
    uint4 c = (uint4)(i, 0, 0, 0);
    for (int round = 0; round < 10; round++) {
        uint high0 = mul_hi(c.x, 0xD2511F53u), low0 = c.x * 0xD2511F53u;
        uint high1 = mul_hi(c.z, 0xCD9E8D57u), low1 = c.z * 0xCD9E8D57u;
        c = (uint4)(high1 ^ c.y ^ key0, low1, high0 ^ c.w ^ key1, low0);
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    to[i] = c;
}
