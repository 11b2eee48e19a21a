// Half as a storage format only: conversions in and out of float.
kernel void half_storage(global half *to, global const half *from, float scale, float offset) {
    size_t i = get_global_id(0);
    vstore_half(vload_half(i, from) * scale + offset, i, to);
}
