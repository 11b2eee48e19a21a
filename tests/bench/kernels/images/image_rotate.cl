// Turned about the centre, bilinear; what comes from outside is the border's colour.
constant sampler_t linear = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_LINEAR;

kernel void image_rotate(write_only image2d_t to, read_only image2d_t from, float cosine, float sine) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    float2 centre = 0.5f * convert_float2(get_image_dim(from));
    float2 p = convert_float2(at) + 0.5f - centre;
    float2 turned = (float2)(cosine * p.x - sine * p.y, sine * p.x + cosine * p.y);
    write_imagef(to, at, read_imagef(from, linear, turned + centre));
}
