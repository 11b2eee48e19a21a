// An array of structures, read and written whole; each kind of particle moves differently.
typedef struct {
    float x, y, z;
    float vx, vy, vz;
    float mass;
    int kind;
} particle;

kernel void struct_array(global particle *to, global const particle *from, float step, float drag) {
    size_t i = get_global_id(0);
    particle p = from[i];
    if (p.kind == 0) {
        p.vy -= 9.81f * step;
    } else if (p.kind == 1) {
        float slow = 1.0f - drag * step / p.mass;
        p.vx *= slow;
        p.vy *= slow;
        p.vz *= slow;
    }
    p.x += p.vx * step;
    p.y += p.vy * step;
    p.z += p.vz * step;
    to[i] = p;
}
