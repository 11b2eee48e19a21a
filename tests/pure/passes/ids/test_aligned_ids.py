"""Vectors begin where the local id is a multiple of their width: bits below that differ between lanes, those
above do not (analysis/shape_integers.py)."""

import numpy as np
import pytest

from cl_driver.spirv.enums import Op

from ..support import compare, compile_cl, make_plan

HEAD = "kernel void k(global int *out, int n) { int x = get_local_id(0), g = get_global_id(0); uint u = x;"


def stride(index, width=8, **options):
    """Of the address of the only store."""
    module = compile_cl(f"{HEAD} out[{index}] = 1; }}")
    (region,) = make_plan(module, "k", width=width, **options).regions
    (store,) = (i for b in region.function.blocks for i in b.instructions if i.op is Op.Store)
    return region.shapes.stride(store.operands[0])


@pytest.mark.parametrize(
    "index, expected",
    [
        ("x & 31", 4),
        ("x & 7", 4),
        ("x & 3", None),
        ("x & 8", 0),
        ("x & ~7", 0),
        ("x & ~3", None),
        ("x & 24 | 1", 0),
        ("x & 28", None),
        ("x >> 3", 0),
        ("u >> 5", 0),
        ("x >> 2", None),
        ("x / 8", 0),
        ("x / 4", None),
        ("x / 12", None),
        ("x % 16", 4),
        ("x % 4", None),
        ("u % 12", None),
        ("(x + 8) & 31", 4),
        ("(x + 8 * n) & 31", 4),
        ("(x + 4) & 31", None),
        ("(x + n) & 31", None),
        ("(8 - x) & 31", None),
        ("(x << 1) & 31", 8),
        ("(x << 1) & 15", 8),
        ("(x << 1) & 7", None),
        ("(x * 4) >> 5", 0),
        ("(x * 4) >> 4", None),
        ("(x * 3) & 31", None),
        ("g & 31", None),  # the global offset may be anything
        ("get_local_id(1) & 3", 0),
        ("get_local_linear_id() & 31", None),  # rows may have any length
    ],
)
def test_strides(index, expected):
    assert stride(index) == expected


def test_other_widths():
    assert stride("x & 31", 4) == stride("x & 7", 4) == stride("x & 3", 4) == 4
    assert stride("x >> 3", 16) is None and stride("x >> 4", 16) == 0


def test_lanes_across_rows():
    """They follow the linear local id, which begins at a multiple of the width."""
    assert stride("get_local_linear_id() & 31", linear_lanes=True) == 4
    assert stride("x & 31", linear_lanes=True) is None


BODY = """
    int y = get_local_id(1), s = 0;
    for (int i = x >> 3; i < 20; i += 1 + (x & 15) / 8) s += i * (x & 7) ^ (x / 16 + x % 8);
    s ^= (x & ~7) + ((x << 2) & 127) + (((u + 16) & 63) >> 3) + y * (x % 32);
    out[(get_global_id(1) * 2 + y) * 64 + g + (x >> 5)] += s + n; }"""


@pytest.mark.parametrize("size", [(40, 2, 1), (16, 1, 1), (13, 2, 1)])
def test_results(size):
    """The interpreter looks whether lanes differ as the shapes say."""
    total = (size[0], 2, 1)
    out = np.arange(1000, dtype=np.int32)
    module = compile_cl(HEAD + BODY)
    compare(module, "k", [out, 3], total, size, (1, 4, 8, (8, 2, 0), (4, 2, 1), 16))


@pytest.mark.parametrize(
    "index, expected",
    [
        ("g & 31", 4),
        ("g & 3", None),
        ("g >> 3", 0),
        ("g / 16", 0),
        ("g / 4", None),
        ("(g + n) & 31", None),
        ("(g + 16) % 32", 4),
        ("get_global_id(1) & 3", 0),
    ],
)
def test_global_ids(index, expected):
    """Of launches that were asked for their offset."""
    assert stride(index, aligned_groups=True) == expected
    assert stride("g & 31", aligned_groups=True, linear_lanes=True) is None


@pytest.mark.parametrize("width", [4, (8, 2, 0), 16])
def test_results_of_global_ids(width):
    body = """
        int s = 0;
        for (int i = g >> 4; i < 9; i += 1 + (g & 31) / 16) s += i * (g & 15) ^ (g / 32 + g % 16);
        out[get_global_id(1) * get_global_size(0) + g - get_global_offset(0)] = s;"""
    arguments = [np.zeros(128, np.int32), 3]
    compare(
        compile_cl(f"{HEAD} {body} }}"), "k", arguments, (64, 2, 1), (32, 1, 1), (width,), (128, 0, 0),
        aligned_groups=True,
    )  # fmt: skip
