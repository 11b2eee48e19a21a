// The length of the gradient by Sobel's 3 x 3 weights, a quarter of it.
constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;

kernel void image_sobel(write_only image2d_t to, read_only image2d_t from) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    float4 a = read_imagef(from, nearest, at + (int2)(-1, -1));
    float4 b = read_imagef(from, nearest, at + (int2)(0, -1));
    float4 c = read_imagef(from, nearest, at + (int2)(1, -1));
    float4 d = read_imagef(from, nearest, at + (int2)(-1, 0));
    float4 f = read_imagef(from, nearest, at + (int2)(1, 0));
    float4 g = read_imagef(from, nearest, at + (int2)(-1, 1));
    float4 h = read_imagef(from, nearest, at + (int2)(0, 1));
    float4 i = read_imagef(from, nearest, at + (int2)(1, 1));
    float4 x = c + 2.0f * f + i - a - 2.0f * d - g;
    float4 y = g + 2.0f * h + i - a - 2.0f * b - c;
    write_imagef(to, at, 0.25f * sqrt(x * x + y * y));
}
