// Coordinates by division and remainder with divisors that are known at launch only.
kernel void remap_modulo(global uint *to, global const uint *from, uint width, uint height, uint shift) {
    uint i = get_global_id(0), x = i % width, y = i / width;
    uint sx = (x + shift * y) % width, sy = (y + shift) % height;
    to[i] = from[sy * width + sx] + x / shift;
}
