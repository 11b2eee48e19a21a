"""Switches whose default LLVM made of OpUnreachable."""

from __future__ import annotations

import numpy as np
import pytest

from cl_driver.passes.ir.dominance import LoopNest, dominators
from cl_driver.passes.ir.instructions import predecessors
from cl_driver.spirv.enums import Op
from cl_driver.spirv.module import Kind

from ..support import compare, compile_cl, make_plan

KERNEL = """kernel void k(global const uint *in, global uint *out, int n) {
    uint i = get_global_id(0), x = in[i], y = x * 3;
    for (int j = 0; j < n; j++) {
        switch ((x ^ j) & 3) { CASES }
        x += y >> 3;
    }
    out[i] = x;
}"""
FOUR = "case 0: x += 7; break; case 1: x ^= 9; break; case 2: x *= 3; break;"


def masked_loops(module) -> int:
    """Loops that lanes leave one by one."""
    plan = make_plan(module, "k", width=8)
    (region,) = plan.regions
    function = region.function
    assert not any(i.op in (Op.Unreachable, Op.Switch) for b in function.blocks for i in b.instructions)
    before = predecessors(function)
    nest = LoopNest(function, dominators(function, before), before)
    return sum(any(phi.type.kind is Kind.BOOL for phi in loop.header.phis()) for loop in nest.loops)


@pytest.mark.parametrize(
    ("cases", "loops"),
    [
        (f"{FOUR} case 3: x -= y;", 0),
        (f"{FOUR} default: x -= y;", 0),
        (f"{FOUR} case 3: x -= y; y += 5; break; default: return;", 0),
        ("case 0: x += 7; break; case 1: case 2: case 3: y *= 3; break;", 0),
        ("case 0: x += 7; case 1: y ^= x; case 2: y *= 3; default: x = ~x;", 0),
        (f"{FOUR} case 3: return;", 1),
        ("case 0: x += 7; break; case 1: x ^= 9; break; default: return;", 1),
    ],
)
def test_only_lanes_that_leave_make_a_loop_one_with_a_mask(cases, loops):
    module = compile_cl(KERNEL.replace("CASES", cases))
    assert masked_loops(module) == loops
    values = np.arange(32, dtype=np.uint32) * np.uint32(0x9E3779B9)
    compare(module, "k", [values, np.zeros(32, np.uint32), 9], (32,), (16,), widths=(1, 4, 8, (4, 2, 0)))


def test_clang_makes_such_defaults():
    module = compile_cl(KERNEL.replace("CASES", f"{FOUR} default: x -= y;"))
    blocks = [b for f in module.functions for b in f.blocks]
    switches = [b.terminator for b in blocks if b.terminator.op is Op.Switch]
    assert {s.operands[1].instructions[0].op for s in switches} == {Op.Unreachable}
