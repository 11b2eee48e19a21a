// A 3-D image in another size, trilinear, normalized coordinates.
#pragma OPENCL EXTENSION cl_khr_3d_image_writes : enable
constant sampler_t linear = CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR;

kernel void image_volume(write_only image3d_t to, read_only image3d_t from) {
    int4 at = (int4)(get_global_id(0), get_global_id(1), get_global_id(2), 0);
    float4 size = (float4)(get_global_size(0), get_global_size(1), get_global_size(2), 1.0f);
    write_imagef(to, at, read_imagef(from, linear, (convert_float4(at) + 0.5f) / size));
}
