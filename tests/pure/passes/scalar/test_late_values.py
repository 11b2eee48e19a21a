"""In long blocks, values are computed shortly before their first use, if that takes no more registers."""

from __future__ import annotations

import numpy as np
import pytest

from cl_driver.spirv.enums import Op

from ..support import compare, compile_cl, make_plan

STEPS = 32


def source(prepared: str, steps: int = STEPS, behind: str = "") -> str:
    """A kernel that prepares a value for each step, `prepared` of a load x and a counter, and then goes
    through the steps, each of which multiplies what the one before left."""
    values = "".join(f"uint x{k} = a[{k}]; uint y{k} = b[{k}]; " for k in range(steps))
    values += "".join(
        f"uint w{k} = {prepared.replace('x', f'x{k}').replace('y', f'y{k}')};" for k in range(steps)
    )
    chain = "".join(
        f"h = (h ^ (h >> 7)) * 33u + w{k}; h ^= h << 3; h += h >> 11; h ^= (h << 5) + {k};"
        for k in range(steps)
    )
    return f"""kernel void k(global uint *a, global const uint *b, uint n) {{
        size_t i = get_global_id(0); uint h = i; a += {steps} * i; {values} {chain} a[0] = h; {behind} }}"""


def early(text: str, width: int, of: Op = Op.BitwiseAnd) -> int:
    """How many of the values there are before the first step."""
    (region,) = make_plan(compile_cl(text), "k", width=width).regions
    block = max(region.function.blocks, key=lambda block: len(block.instructions))
    operations = [i.op for i in block.instructions]
    return operations[: operations.index(Op.IMul)].count(of)


def check(text: str, steps: int = STEPS) -> None:
    a = np.random.default_rng(3).integers(0, 1 << 32, 24 * steps, np.uint32)
    b = a[::-1].copy() | 1
    compare(compile_cl(text), "k", [a, b, 0xFF0F0FFF], (24,), (12,), widths=(1, 8, (4, 2, 0)))


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("prepared", ["x & n", "(x & n) + (x >> 3) ^ (x << 9)", "((x & n) ^ 5u) + n"])
def test_values_are_computed_at_their_uses(prepared, width):
    text = source(prepared)
    assert early(text, width) <= STEPS // 3
    check(text)


@pytest.mark.parametrize("width", [1, 8])
def test_what_others_need_at_the_end_takes_no_register(width):
    """Both operands of the value live on anyway."""
    kept = "".join(f"a[{k}] = x{k} + y{k};" for k in range(1, STEPS))
    text = source("x & y", behind=kept)
    assert early(text, width) <= STEPS // 3
    check(text)


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize(
    "prepared, op",
    [
        ("x & y", Op.BitwiseAnd),  # two values would live on in place of one
        ("(x & n) - (y >> 3)", Op.BitwiseAnd),
        ("n / (x | 1u)", Op.UDiv),  # takes long
    ],
)
def test_values_stay(prepared, op, width):
    text = source(prepared)
    assert early(text, width, op) == STEPS
    check(text)


def test_short_blocks_stay():
    text = source("x & n", 8)
    assert early(text, 1) == 8
    check(text, 8)
