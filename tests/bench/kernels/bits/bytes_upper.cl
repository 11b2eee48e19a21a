// A byte per work-item: letters become capitals, control characters spaces.
kernel void bytes_upper(global uchar *to, global const uchar *from) {
    size_t i = get_global_id(0);
    uchar c = from[i];
    if (c >= 'a' && c <= 'z')
        c -= 32;
    else if (c < 32)
        c = ' ';
    to[i] = c;
}
