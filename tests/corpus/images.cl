constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
constant sampler_t linear = CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_REPEAT | CLK_FILTER_LINEAR;

kernel void sampled(read_only image2d_t a, read_only image3d_t b, read_only image1d_array_t c, sampler_t s,
                    global float4 *out, global int4 *numbers) {
    size_t k = get_global_id(0);
    float4 at = out[k];
    out[k] = read_imagef(a, s, at.xy) + read_imagef(b, linear, at) + read_imagef(c, nearest, numbers[k].xy);
    numbers[k] = read_imagei(a, nearest, numbers[k].zw);
}

kernel void plain(read_only image1d_buffer_t a, read_write image2d_array_t b, write_only image3d_t c,
                  global uint4 *out) {
    int k = get_global_id(0);
    uint4 colour = read_imageui(a, k);
    int4 at = (int4)(k, k / 2, k / 3, 0);
    write_imageui(b, at, read_imageui(b, at) + colour);
    write_imagef(c, at, convert_float4(colour));
    out[k] = colour;
}

kernel void depths(read_only image2d_depth_t a, write_only image2d_array_depth_t b, sampler_t s,
                   global float *out) {
    int k = get_global_id(0);
    float depth = read_imagef(a, s, (float2)(out[k], 0.5f));
    write_imagef(b, (int4)(k, 0, 1, 0), depth + read_imagef(a, (int2)(k, 0)));
    out[k] = depth;
}

kernel void queries(read_only image2d_array_t a, write_only image3d_t b, read_write image1d_t c, global int *out) {
    out[0] = get_image_width(a) + get_image_height(a) + (int)get_image_array_size(a);
    out[1] = get_image_dim(b).z + get_image_depth(b) + get_image_width(c);
    out[2] = get_image_channel_order(a) - get_image_channel_data_type(b);
}
