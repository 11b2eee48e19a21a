// Mean payoff of an option over random paths: xorshift numbers, Box and Muller's normals.
uint shift(uint x) {
    x ^= x << 13;
    x ^= x >> 17;
    return x ^ (x << 5);
}

kernel void monte_carlo(global float *mean, global const uint *seed, int paths, float drift, float spread,
                        float strike) {
    size_t i = get_global_id(0);
    uint x = seed[i];
    float sum = 0.0f;
    for (int p = 0; p < paths; p++) {
        x = shift(x);
        float u = ((x >> 8) + 0.5f) * 0x1p-24f;
        x = shift(x);
        float v = (x >> 8) * 0x1p-24f;
        float radius = sqrt(-2.0f * log(u)), angle = 2.0f * M_PI_F * v;
        sum += fmax(exp(drift + spread * radius * cos(angle)) - strike, 0.0f);
        sum += fmax(exp(drift + spread * radius * sin(angle)) - strike, 0.0f);
    }
    mean[i] = sum / (2 * paths);
}
