"""Vectors of int that become vectors of short: up to the last number that fits 16 bits, and none beyond."""

from __future__ import annotations

import pytest

from cl_driver.frontend import opencl_c
from cl_driver.frontend.options import parse
from cl_driver.passes.loops.narrow_integers import narrow
from cl_driver.spirv.reading.reader import read

from ..support import entry

KERNEL = """
kernel void k{number}(global uchar4 *out, global const uchar4 *in, global const ushort4 *wide) {{
  int x = get_global_id(0);
  uint4 a = convert_uint4(in[x]), b = convert_uint4(in[x + 1]), w = convert_uint4(wide[x]), s = {start};
  uint4 p = a * 5u + b * 7u;
  {loop}
  out[x] = convert_uchar4({value}); }}
"""
# Two of each kind: with numbers of 16 bits, and with larger ones.
VALUES = [
    ("(a * 241u + 4080u) >> 8u", "(a * 241u + 4081u) >> 8u"),
    ("(a * 251u + b * 6u) >> 8u", "(a * 251u + b * 7u) >> 8u"),
    ("(a * b) >> 8u", "(a * w) >> 8u"),
    ("((p & 251u) * 253u) >> 8u", "((p & 261u) * 253u) >> 8u"),
    ("((p & a) * 253u) >> 8u", "((p & w) * 253u) >> 8u"),
    ("((p | 5000u) * 7u) >> 8u", "((p | 5000u) * 9u) >> 8u"),
    ("((5000u ^ p) * 7u) >> 8u", "((p ^ 9000u) * 7u) >> 8u"),
    ("((p >> 4u) * 253u) >> 8u", "((p >> 3u) * 253u) >> 8u"),
    ("((p >> (uint4)(5, 4, 6, 7)) * 253u) >> 8u", "((p >> (uint4)(5, 3, 6, 7)) * 253u) >> 8u"),
    ("((p >> 2u) * 3u) >> 2u", "((p >> (b & 7u)) * 3u) >> 2u"),
]
# What a sum begins with, how often what is added to it, and whether it fits.
SUMS = [
    ("510u", 51, "c * 5u", True), ("511u", 51, "c * 5u", False), ("0u", 51, "c * 5u", True),
    ("0u", 52, "c * 5u", False), ("4335u", 60, "c * 3u + d", True), ("4336u", 60, "c * 3u + d", False),
    ("a", 2, "c", True), ("w", 2, "c", False),
]  # fmt: skip


@pytest.fixture(scope="module")
def module():
    kernels = [{"value": value, "loop": "", "start": "0"} for pair in VALUES for value in pair]
    for start, count, added, _ in SUMS:
        loads = "uint4 c = convert_uint4(in[i]), d = convert_uint4(in[i * 3]);"
        loop = f"for (int i = 0; i < {count}; i++) {{ {loads} s += {added}; }}"
        kernels.append({"value": "s >> 8u", "loop": loop, "start": start})
    source = "".join(KERNEL.format(number=k, **kernel) for k, kernel in enumerate(kernels))
    result = opencl_c.compile(source.encode(), parse("-cl-std=CL3.0"))
    assert result.spirv is not None, result.log
    return read(result.spirv)


def is_narrowed(module, number: int) -> bool:
    """Whether all of a kernel's vectors of 32 bits become ones of 16."""
    function = entry(module, f"k{number}").function
    wide = module.types.vector(module.types.int(32), 4)
    found = [i for block in function.blocks for i in block.instructions if i.type is wide]
    assert found
    narrow(function, module.types)
    left = [i for i in found if i.type is wide]
    return not left


@pytest.mark.parametrize("number", range(len(VALUES)), ids=[fits for fits, _ in VALUES])
def test_the_last_number_that_fits(module, number):
    assert is_narrowed(module, 2 * number)
    assert not is_narrowed(module, 2 * number + 1)


@pytest.mark.parametrize("number", range(len(SUMS)), ids=[f"{s} + {n} * ({b})" for s, n, b, _ in SUMS])
def test_sums_in_loops(module, number):
    assert is_narrowed(module, 2 * len(VALUES) + number) == SUMS[number][3]
