// The product through 16 x 16 tiles of both operands in local memory, two barriers a tile.
#define TILE 16

kernel void matmul_tiled(global float *c, global const float *a, global const float *b, int n) {
    local float tile_a[TILE][TILE], tile_b[TILE][TILE];
    int lx = get_local_id(0), ly = get_local_id(1);
    int x = get_global_id(0), y = get_global_id(1);
    float sum = 0.0f;
    for (int start = 0; start < n; start += TILE) {
        tile_a[ly][lx] = a[y * n + start + lx];
        tile_b[ly][lx] = b[(start + ly) * n + x];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TILE; k++)
            sum += tile_a[ly][k] * tile_b[k][lx];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[y * n + x] = sum;
}
