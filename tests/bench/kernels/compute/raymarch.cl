// Marches a ray through a distance field of spheres over a floor; two ways out of the loop.
float field(float3 p, constant float4 *spheres, int count) {
    float d = p.y + 1.0f;
    for (int s = 0; s < count; s++)
        d = fmin(d, length(p - spheres[s].xyz) - spheres[s].w);
    return d;
}

kernel void raymarch(global float *to, constant float4 *spheres, int count, int width, int height,
                     int steps) {
    int px = get_global_id(0), py = get_global_id(1);
    float3 ray =
        normalize((float3)((px + 0.5f) * 2.0f / width - 1.0f, 1.0f - (py + 0.5f) * 2.0f / height, 1.5f));
    float3 eye = (float3)(0.0f, 0.3f, -4.0f);
    float along = 0.0f, colour = 0.0f;
    for (int s = 0; s < steps; s++) {
        float3 p = eye + along * ray;
        float d = field(p, spheres, count);
        if (d < 0.001f) {
            float up = field(p + (float3)(0.0f, 0.01f, 0.0f), spheres, count) - d;
            float side = field(p + (float3)(0.01f, 0.0f, 0.0f), spheres, count) - d;
            colour = 0.3f + 50.0f * fmax(up, 0.0f) + 20.0f * fmax(side, 0.0f);
            break;
        }
        along += d;
        if (along > 20.0f)
            break;
    }
    to[py * width + px] = colour + 0.01f * along;
}
