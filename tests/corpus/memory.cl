/* Structures, private arrays, address spaces, atomics, program-scope variables, vectors in memory. */
typedef struct {
    char tag;
    float4 position;
    struct {
        short s[3];
        ulong wide;
    } inner[2];
} Particle;

constant float weights[5] = {0.1f, 0.2f, 0.4f, 0.2f, 0.1f};
constant int *constant rows[2] = {0, 0};
global int counter = 7;

float smooth(const float *values, int at) {
    float sum = 0;
    for (int i = 0; i < 5; i++) sum += values[(at + i) & 7] * weights[i];
    return sum;
}

kernel void particles(global Particle *p, Particle by_value, global uchar *raw) {
    size_t g = get_global_id(0);
    Particle mine = p[g];
    float values[8];
    for (int i = 0; i < 8; i++) values[i] = mine.position.s0 * i + by_value.inner[i & 1].s[i % 3];
    mine.position.yz = (float2)(smooth(values, g & 7), smooth(values, 2));
    mine.inner[g & 1].wide ^= as_ulong(mine.position.xy);
    p[g] = mine;
    vstore3(vload3(g, raw), g + 1, raw);
    vstore_half(vload_half(g, (global half *)raw), g, (global half *)raw);
}

kernel void atomics(global int *a, global atomic_int *c11, local uint *l) {
    local long total;
    int id = get_local_id(0);
    if (id == 0) total = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_inc(&a[0]);
    atomic_max(&a[1], id);
    int expected = id;
    atomic_compare_exchange_strong_explicit(
        c11, &expected, 3, memory_order_acq_rel, memory_order_relaxed, memory_scope_device
    );
    a[2 + id] = atomic_cmpxchg(&l[id & 3], 1, 2) + expected + atomic_fetch_add((global atomic_int *)&counter, 1);
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    int *either = id & 1 ? (int *)a : (int *)l;
    *either += total;
}
