// tanh by a rational function, eight values per work-item and one work-item per group.
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void poly_float8(global float8 *to,
                                                                       global const float8 *from) {
    size_t i = get_global_id(0);
    float8 x = clamp(from[i], -4.0f, 4.0f), s = x * x;
    float8 p = x * (135135.0f + s * (17325.0f + s * (378.0f + s)));
    float8 q = 135135.0f + s * (62370.0f + s * (3150.0f + s * 28.0f));
    to[i] = p / q;
}
