// Three bytes in, four characters out, through a table.
constant uchar TABLE[64] = {'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J', 'K', 'L', 'M', 'N', 'O', 'P',
                            'Q', 'R', 'S', 'T', 'U', 'V', 'W', 'X', 'Y', 'Z', 'a', 'b', 'c', 'd', 'e', 'f',
                            'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v',
                            'w', 'x', 'y', 'z', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '+', '/'};

kernel void base64(global uchar4 *to, global const uchar *from) {
    size_t i = get_global_id(0);
    uchar3 in = vload3(i, from);
    uint bits = in.x << 16 | in.y << 8 | in.z;
    to[i] = (uchar4)(TABLE[bits >> 18], TABLE[bits >> 12 & 63], TABLE[bits >> 6 & 63], TABLE[bits & 63]);
}
