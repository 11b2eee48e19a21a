"""What clang unrolls of loops before their SPIR-V is written."""

import pytest

from cl_driver.frontend import opencl_c
from cl_driver.frontend.options import parse
from cl_driver.spirv.enums import Op
from cl_driver.spirv.reading import reader

KERNEL = b"""
kernel void sums(global float *a, int n) {
    float sum = 0;
    %s
    for (int i = 0; i < %s; i++)
        sum = sum * 3.0f + a[i];
    a[0] = sum;
}
"""


def copies(pragma: bytes, runs: bytes) -> int:
    """How many loads there are."""
    result = opencl_c.compile(KERNEL % (pragma, runs), parse(""), is_whole=True)
    assert result.spirv, result.log
    module = reader.read(result.spirv)
    blocks = [block for function in module.functions for block in function.blocks]
    return sum(i.op is Op.Load for block in blocks for i in block.instructions)


@pytest.mark.parametrize(
    ("pragma", "runs", "expected"),
    [
        (b"", b"n", 1),
        (b"", b"4", 4),
        (b"#pragma unroll", b"16", 16),
        (b"#pragma unroll", b"n", 1),  # clang would make eight, and a loop for the rest
        (b"#pragma unroll 4", b"n", 4 + 1),
        (b"#pragma unroll 1", b"4", 1),
        (b"__attribute__((opencl_unroll_hint(2)))", b"n", 2 + 1),
    ],
)
def test_loops_are_unrolled_as_often_as_programs_say(pragma, runs, expected):
    assert copies(pragma, runs) == expected
