// ChaCha20 blocks, sixteen at a time in uint16 registers: vectorised by hand, one work-item per group.
#define ROUND(a, b, c, d)                                                                                    \
    a += b, d = rotate(d ^ a, (uint16)(16));                                                                 \
    c += d, b = rotate(b ^ c, (uint16)(12));                                                                 \
    a += b, d = rotate(d ^ a, (uint16)(8));                                                                  \
    c += d, b = rotate(b ^ c, (uint16)(7));

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void chacha_uint16(global uint16 *to,
                                                                         constant uint *key) {
    uint i = get_global_id(0);
    uint16 start[16], x[16];
    start[0] = 0x61707865;
    start[1] = 0x3320646e;
    start[2] = 0x79622d32;
    start[3] = 0x6b206574;
    for (int k = 0; k < 8; k++)
        start[4 + k] = key[k];
    start[12] = i * 16 + (uint16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    start[13] = key[8];
    start[14] = key[9];
    start[15] = key[10];
    for (int k = 0; k < 16; k++)
        x[k] = start[k];
    for (int round = 0; round < 10; round++) {
        ROUND(x[0], x[4], x[8], x[12])
        ROUND(x[1], x[5], x[9], x[13])
        ROUND(x[2], x[6], x[10], x[14])
        ROUND(x[3], x[7], x[11], x[15])
        ROUND(x[0], x[5], x[10], x[15])
        ROUND(x[1], x[6], x[11], x[12])
        ROUND(x[2], x[7], x[8], x[13])
        ROUND(x[3], x[4], x[9], x[14])
    }
    for (int k = 0; k < 16; k++)
        to[i * 16 + k] = x[k] + start[k];
}
