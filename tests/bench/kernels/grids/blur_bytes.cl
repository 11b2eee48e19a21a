// 5 x 5 box blur of RGBA bytes in a buffer, in integers, edge clamped.
kernel void blur_bytes(global uchar4 *to, global const uchar4 *from, int width, int height) {
    int x = get_global_id(0), y = get_global_id(1);
    uint4 sum = (uint4)(12);
    for (int dy = -2; dy <= 2; dy++)
        for (int dx = -2; dx <= 2; dx++)
            sum += convert_uint4(from[clamp(y + dy, 0, height - 1) * width + clamp(x + dx, 0, width - 1)]);
    to[y * width + x] = convert_uchar4(sum / 25);
}
