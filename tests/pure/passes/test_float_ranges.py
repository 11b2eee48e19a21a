"""Groups in lockstep: comparisons of floating-point numbers that follow from local ids, and those that are
left open since roundings could decide them (cl_driver/passes/analysis/float_ranges.py)."""

import pytest

from cl_driver.passes.ir.ops import PassOp

from .support import compile_cl, make_plan

# Conditions of work-items 0 to 63 with local id l, and a number g that nobody knows.
DECIDED = {
    "large": "fabs(-1.5f * (l & 15) / 16) >= 65536.0f",
    "below": "!((float)l / 3.0f < 21.5f)",
    "negative": "-(float)(l + 1) * 0.25f > -0.2f",
    "wide": "(double)l * 1e10 > 1e12",
    "unsigned_number": "(float)(uint)(l - 64) < 4e9f",
}
OPEN = {
    "touches": "(float)l / 3.0f >= 21.0f",  # 63 / 3, however it is rounded
    "some": "l * 0.5f > 7.25f && g > 0",  # some are above, some are below
    "unknown": "l * g > 1e30f",
    "by_zero": "1.0f / (l - 3) > 1e30f",
    "by_small": "1.0f / (l * 1e-38f + g) > 1e30f",
    "sum": "(l * 1e8f + 1.0f) - l * 1e8f > 65536.0f",  # nothing may be left of 1
    "too_large": "l * 1e30f * 1e30f > 1e38f",
    "not_a_number": "!(l * 0.0f < NAN)",
    "half_a_float": "(half)l * (half)0.5f > (half)100.0f",
}


@pytest.fixture(scope="module")
def module():
    return compile_cl("#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n" + "\n".join(
        f"kernel void {name}(global int *out, float g, global const int *in) {{ "
        f"int l = get_local_id(0), x = in[l]; if ({condition}) {{ "
        "for (int i = 0; i < in[l + 64]; i++) x += in[x & 63]; } out[l] = x; }"
        for name, condition in (DECIDED | OPEN).items()
    ))  # fmt: skip


def asks(plan) -> bool:
    """Whether there is a branch on the condition: the loop asks once more."""
    blocks = [block for region in plan.regions for block in region.function.blocks]
    return any(i.op is PassOp.AnyLane for block in blocks for i in block.instructions)


@pytest.mark.parametrize("name", DECIDED | OPEN)
@pytest.mark.parametrize("width", (8, 16))
def test_what_is_decided(module, name, width):
    plan = make_plan(module, name, width=width, parts=64 // width, group=(64, 1, 1))
    assert asks(plan) == (name in OPEN)
    assert asks(make_plan(module, name, width=width))  # where nobody knows the ids
