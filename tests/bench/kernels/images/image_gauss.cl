// 5 x 5 binomial weights; the sampler clamps.
constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
constant float weights[5] = {0.0625f, 0.25f, 0.375f, 0.25f, 0.0625f};

kernel void image_gauss(write_only image2d_t to, read_only image2d_t from) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    float4 sum = (float4)(0.0f);
    for (int dy = -2; dy <= 2; dy++)
        for (int dx = -2; dx <= 2; dx++)
            sum += weights[dy + 2] * weights[dx + 2] * read_imagef(from, nearest, at + (int2)(dx, dy));
    write_imagef(to, at, sum);
}
