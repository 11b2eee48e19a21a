/* Whether groups consist of tiles: {work-items per vector, those of a row, rows}. */
#ifndef CLD_TILES_H
#define CLD_TILES_H

#include <stdbool.h>

#include "abi/kernel_abi.h"

static inline bool cld_has_tiles(const uint32_t *tile, const uint64_t *size) {
    return size[0] % tile[1] == 0 && size[1] % tile[2] == 0;
}

/* Whether groups, or those at the edges, do not. */
static inline bool cld_has_rest(const uint32_t *tile, const struct cld_launch *launch) {
    const uint64_t *size = launch->local_size, *global = launch->global_size;
    uint64_t edge[2] = {global[0] % size[0], global[1] % size[1]};
    return !cld_has_tiles(tile, size) || !cld_has_tiles(tile, edge);
}

/* Whether some global id or size is above what code for several work-items at a time takes for granted:
 * SMALL_ID of passes/analysis/shape_lattice.py. */
static inline bool cld_has_large_ids(const struct cld_launch *launch) {
    for (int i = 0; i < 3; i++) /* the sums do not overflow: cld_ndrange_check() has looked */
        if (launch->global_offset[i] + launch->global_size[i] >= UINT64_C(1) << 29)
            return true;
    return false;
}

#endif
