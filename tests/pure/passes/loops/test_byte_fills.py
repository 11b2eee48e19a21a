"""Loops that fill memory byte by byte fill word by word, where the size is a multiple of one."""

import numpy as np
import pytest

from cl_driver.codegen.layout.private_layout import PrivateLayout
from cl_driver.spirv.enums import Op

from ..support import compare, compile_cl, make_plan

HEAD = "kernel void k(global float *out, global uchar *bytes, global double *wide, int n, uint m, int at) { "


def filled(body, width=4):
    """Bits of the numbers that are stored in loops."""
    (region,) = make_plan(compile_cl(f"{HEAD} {body} }}"), "k", width=width).regions
    found = []
    for block in region.function.blocks:
        if block in block.successors():
            found += [i.operands[1].type.width for i in block.instructions if i.op is Op.Store]
    return found


PRIVATE = "float4 a[64]; for (int i = 0; i < n; i++) a[i] = 0; a[at].x += 1; out[0] = a[at + 1].y;"


@pytest.mark.parametrize(
    "body, bits",
    [
        ("for (int i = 0; i < n; i++) out[i] = 0;", [32]),
        ("for (int i = 0; i < n; i++) wide[i] = 0;", [32]),
        ("for (int i = 0; i < n; i++) ((global int *)out)[i] = -1;", [32]),
        ("for (uint i = 0; i < m * 4; i++) bytes[i] = 7;", [32]),
        (PRIVATE, [32]),
        (PRIVATE.replace("float4", "double2"), [64]),
        (PRIVATE.replace("float4", "short4"), [16]),
        # No multiple of a word.
        ("for (int i = 0; i < n; i++) bytes[i] = 0;", [8]),
        ("for (int i = 0; i < n; i++) ((global short *)out)[i] = 0;", [8]),
        (PRIVATE.replace("float4", "char4"), [8]),
        ("for (uint i = 0; i < m * 6; i++) bytes[i] = 7;", [8]),
        # No fill.
        ("for (int i = 0; i < n; i++) ((volatile global uchar *)bytes)[i] = 0;", [8]),
        ("int i = 0; do bytes[i] = 0; while (++i < n);", [8]),
        ("for (int i = 0; i < n; i++) bytes[i] = at;", [8]),
    ],
)
def test_words(body, bits):
    assert filled(body) == bits


def test_a_private_array_lies_in_pieces():
    (region,) = make_plan(compile_cl(f"{HEAD} {PRIVATE} }}"), "k", width=4).regions
    layout = PrivateLayout({})
    assert set(layout.of_variables(region.function).values()) == {4}


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize(
    "body",
    [
        "for (int i = 0; i < n; i++) out[i] = 0;",
        "for (int i = 0; i < n; i++) ((global int *)(bytes + 3))[i] = -1;",
        "for (uint i = 0; i < m * 4; i++) bytes[i + 1] = 7;",
        "for (uint i = 0; i < m * 4; i++) bytes[i + 1] = 0x87;",
        "float4 a[8]; for (int i = 0; i < 8; i++) a[i] = i; for (int i = 0; i < n; i++) a[i] = 0;"
        "int x = get_global_id(0); a[x & 7].y += 3;"
        "for (int i = 0; i < 32; i++) out[x * 32 + i] = a[i >> 2][i & 3];",
    ],
)
def test_results(body, n):
    floats = np.arange(8 * 32, dtype=np.float32) + 1
    args = [floats, np.arange(64, dtype=np.uint8) + 1, np.arange(8, dtype=np.float64), n, n, 2]
    size = (8 if "get_global_id" in body else 1, 1, 1)
    compare(compile_cl(f"{HEAD} {body} }}"), "k", args, size, size, (1, 4, 8, (4, 2, 0)))
