// Lambert and Blinn terms of normals held as float4: components mix within a work-item.
kernel void float4_light(global float4 *colour, global const float4 *normal, float4 light, float4 halfway) {
    size_t i = get_global_id(0);
    float4 n = normalize(normal[i]);
    float lambert = fmax(dot(n, light), 0.0f);
    float gloss = fmax(dot(n, halfway), 0.0f);
    gloss *= gloss;
    gloss *= gloss;
    colour[i] = (float4)(0.1f) + lambert * (float4)(0.8f, 0.5f, 0.3f, 0.0f) + gloss * n.wzyx;
}
