"""What work-items keep across barriers is stored where it changes (passes/groups/slot_stores.py)."""

from __future__ import annotations

import numpy as np
import pytest

from cl_driver.passes.groups import regions
from cl_driver.passes.ir.ops import PassOp

from ..support import Local, compare, compile_cl, make_plan

MANY = 12  # float4s that are kept
SOURCE = f"""
kernel void guarded(global int *out, global const int *in, local int *t, int n) {{
    int l = get_local_id(0), g = get_global_id(0), a = in[g], b = in[g] * 3;
    for (int k = 0; k < n; k++) {{
        t[l] = b + k;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (in[(g * 5 + k) & 15] & 1) {{ a += t[l ^ 1]; if (a & 2) b ^= a; }}
        barrier(CLK_LOCAL_MEM_FENCE);
    }}
    out[2 * g] = a;
    out[2 * g + 1] = b;
}}

kernel void swapped(global int *out, global const int *in, local int *t, int n) {{
    int l = get_local_id(0), g = get_global_id(0), a = in[g], b = in[g] * 3;
    for (int k = 0; k < n; k++) {{
        t[l] = a ^ b;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t[l ^ 1] & 1) {{ int c = a; a = b; b = c + 1; }}
        else if (t[l ^ 1] & 2) b = a;
        barrier(CLK_LOCAL_MEM_FENCE);
    }}
    out[2 * g] = a;
    out[2 * g + 1] = b;
}}

kernel void many(global float *out, global const float *in, local float *t, int n, int limit) {{
    int l = get_local_id(0), g = get_global_id(0);
    float4 v[{MANY}], w[{MANY}];
    for (int j = 0; j < {MANY}; j++) {{ v[j] = in[g] + j; w[j] = in[g] * j; }}
    for (int k = 0; k < n; k++) {{
        t[l] = in[g] + k;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (g < limit)
            for (int m = 0; m < limit >> 2; m++) {{
                #pragma unroll
                for (int j = 0; j < {MANY}; j++) v[j] += w[j] * t[(l + m) & 7];
            }}
        barrier(CLK_LOCAL_MEM_FENCE);
    }}
    for (int j = 0; j < {MANY}; j++) out[{MANY} * g + j] = dot(v[j], (float4)(1, 2, 3, 4));
}}
"""
INTS = np.arange(16, dtype=np.int32) * 7 % 11


def slots(region, op):
    """The instructions of a region that access slots with a value for each work-item, by block."""
    found = {
        block: [i for i in block.instructions if i.op is op and not i.operands[0].uniform
                and i.operands[0].stride is None]
        for block in region.function.blocks
    }  # fmt: skip
    return {block: accesses for block, accesses in found.items() if accesses}


@pytest.mark.parametrize("kernel", ["guarded", "swapped"])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_what_a_branch_changes(kernel, n):
    args = [np.zeros(32, np.int32), INTS, Local(32), n]
    compare(compile_cl(SOURCE), kernel, args, (16, 1, 1), (8, 1, 1), (1, 4, 8))


@pytest.mark.parametrize("limit", [0, 3, 13, 16])
def test_many_values(limit):
    args = [np.zeros(16 * MANY, np.float32), INTS.astype(np.float32), Local(32), 3, limit]
    compare(compile_cl(SOURCE), "many", args, (16, 1, 1), (8, 1, 1), (1, 4, 8))


def test_what_does_not_change_is_not_stored(monkeypatch):
    """Regions that a value only passes store nothing; without the pass they do."""

    def unchanged():
        plan = make_plan(compile_cl(SOURCE), "many", width=4)
        return [
            i
            for region in plan.regions
            for stores in slots(region, PassOp.SlotStore).values()
            for i in stores
            if getattr(i.operands[1], "op", None) is PassOp.SlotLoad
            and i.operands[1].operands == i.operands[:1]
        ]

    assert not unchanged()
    monkeypatch.setattr(regions, "reduce_slot_stores", lambda function: False)
    assert unchanged()


def test_lanes_that_skip_a_branch_store_nothing():
    region = make_plan(compile_cl(SOURCE), "many", width=4).regions[1]
    (stores,) = slots(region, PassOp.SlotStore).values()
    assert len(stores) == MANY and region.function.blocks[0] not in {i.block for i in stores}
