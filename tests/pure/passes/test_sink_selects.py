"""Selects are where lanes part, not where they meet again. That they stay out of loops that are left is tested
in test_divergent_loops.py."""

from cl_driver.passes.ir.ops import PassOp
from cl_driver.spirv.enums import Op
from tests.pure.passes.support import compile_cl, make_plan

RARE = """
kernel void k(global float *a, global float *b) {
    int i = get_global_id(0);
    float x = a[i], y = b[i];
    if (x > 100) for (int k = 0; k < 9; k++) { x = x * 0.5f + y; y = sqrt(y + x); }
    a[i] = x + y;
}
"""


def test_a_rare_case_costs_nothing_where_no_lane_has_it():
    (region,) = make_plan(compile_cl(RARE), "k", width=8).regions
    blocks = region.function.blocks
    (test,) = (b.terminator for b in blocks if b.terminator.op is Op.BranchConditional)
    assert test.operands[0].op is PassOp.AnyLane
    rare = test.operands[1]
    found = {b: sum(i.op is Op.Select for i in b.instructions) for b in blocks}
    assert found == {b: 2 if b is rare else 0 for b in blocks}
