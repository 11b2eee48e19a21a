// A 16 x 16 tile through local memory, padded by a column against bank conflicts as GPU programs do.
#define TILE 16

kernel void transpose_local(global float *to, global const float *from, int n) {
    local float tile[TILE][TILE + 1];
    int lx = get_local_id(0), ly = get_local_id(1);
    int left = get_group_id(0) * TILE, top = get_group_id(1) * TILE;
    tile[ly][lx] = from[(top + ly) * n + left + lx];
    barrier(CLK_LOCAL_MEM_FENCE);
    to[(left + ly) * n + top + lx] = tile[lx][ly];
}
