// Another size by cubic convolution (Keys, a = -1/2): 16 pixels each.
constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;

float4 weights(float t) {
    float u = 1.0f - t;
    float4 w;
    w.x = -0.5f * t * u * u;
    w.y = 1.0f + t * t * (1.5f * t - 2.5f);
    w.z = 1.0f + u * u * (1.5f * u - 2.5f);
    w.w = -0.5f * u * t * t;
    return w;
}

kernel void image_bicubic(write_only image2d_t to, read_only image2d_t from, float scale) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    float2 place = (convert_float2(at) + 0.5f) * scale - 0.5f;
    float2 first = floor(place);
    float4 across = weights(place.x - first.x), down = weights(place.y - first.y);
    int2 corner = convert_int2(first) - 1;
    float4 sum = (float4)(0.0f);
    for (int y = 0; y < 4; y++) {
        float4 row = across.x * read_imagef(from, nearest, corner + (int2)(0, y));
        row += across.y * read_imagef(from, nearest, corner + (int2)(1, y));
        row += across.z * read_imagef(from, nearest, corner + (int2)(2, y));
        row += across.w * read_imagef(from, nearest, corner + (int2)(3, y));
        sum += (y == 0 ? down.x : y == 1 ? down.y : y == 2 ? down.z : down.w) * row;
    }
    write_imagef(to, at, sum);
}
