// Accelerations of all bodies by all: (x, y, z, mass) in, softened gravity out.
kernel void nbody(global float4 *acceleration, global const float4 *body, int count, float softening) {
    int i = get_global_id(0);
    float3 here = body[i].xyz, sum = (float3)(0.0f);
    for (int j = 0; j < count; j++) {
        float4 other = body[j];
        float3 d = other.xyz - here;
        float r = rsqrt(dot(d, d) + softening);
        sum += d * (other.w * r * r * r);
    }
    acceleration[i] = (float4)(sum, 0.0f);
}
