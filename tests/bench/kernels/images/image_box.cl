// 5 x 5 box; the sampler clamps.
constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;

kernel void image_box(write_only image2d_t to, read_only image2d_t from) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    float4 sum = (float4)(0.0f);
    for (int dy = -2; dy <= 2; dy++)
        for (int dx = -2; dx <= 2; dx++)
            sum += read_imagef(from, nearest, at + (int2)(dx, dy));
    write_imagef(to, at, sum * 0.04f);
}
