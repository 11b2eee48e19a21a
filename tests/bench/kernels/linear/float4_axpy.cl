// A stream of float4: no component meets another.
kernel void float4_axpy(global float4 *y, global const float4 *x, global const float4 *z, float4 a) {
    size_t i = get_global_id(0);
    y[i] = a * x[i] + z[i];
}
