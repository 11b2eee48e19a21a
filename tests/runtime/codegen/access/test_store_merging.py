"""Stores of several rows that are neighbours in memory, done together (codegen/access/store_merging.py)."""

import re

import numpy as np
import pytest

from tests.marks import few_rows
from tests.runtime.kernel_harness import Program, compile_c

SOURCE = """
#define ID int x = get_global_id(0), y = get_global_id(1)
#define ARGS global const uchar *from_, global const int *at, int w, int h
#define COLUMN(NAME, T, BODY) \\
    kernel void NAME(global T *to, ARGS) { global const T *from = (global const T *)from_; ID; BODY }
COLUMN(floats, float, to[x * h + y] = from[y * w + x];)
COLUMN(bytes, uchar, to[x * h + y] = from[y * w + x];)
COLUMN(shorts, ushort, to[x * h + y] = from[y * w + x] * 3;)
COLUMN(doubles, double, to[x * h + y] = from[y * w + x];)
COLUMN(vectors, float4, to[x * h + y] = from[y * w + x].wzyx;)
COLUMN(pairs, short2, to[(x + 1) * h + y] = from[y * w + x];)
COLUMN(bounded, float, if (x < w - 3 && y < h - 5) to[x * h + y] = from[y * w + x];)
COLUMN(holes, float, if ((x + 3 * y) % 5 != 2) to[x * h + y] = from[y * w + x];)
COLUMN(indexed, float, to[at[x] * h + y] = from[y * w + x];)
COLUMN(alike, float, to[x * h + y] = from[x];)
COLUMN(upwards, float, to[x * h + h - 1 - y] = from[y * w + x];)
COLUMN(rotated, uchar, if (x > 2 && y > 3) to[x * h + h - 1 - y] = from[y * w + x];)
COLUMN(wrapped, float, to[x * 256 + 128 + (char)(122 + y)] = from[y * w + x];)
COLUMN(apart, float, to[x * 2 * h + 2 * y] = from[y * w + x];)
COLUMN(kept, float, to[x * h + y] = from[y * w + x]; from = to; to[w * h + y * w + x] = from[x * h + y] + 1;)
kernel void tile(global float *to, global const float *from, global const int *at, int w, int h) {
    local float t[40][24];
    ID; int u = get_local_id(0), v = get_local_id(1);
    t[u][v] = from[y * w + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    to[y * w + x] = t[u][v] + t[u][0];
}
"""
NAMES = re.findall(r"COLUMN\((?!NAME)(\w+)", SOURCE) + ["tile"]
SIZES = {"bytes": 1, "rotated": 1, "shorts": 2, "doubles": 8, "vectors": 16, "pairs": 4}
STORED = {
    "bytes": "i32", "rotated": "i32", "shorts": "i64", "pairs": "<8 x i16>", "doubles": "<4 x double>",
    "vectors": "<16 x float>",
}  # fmt: skip
TOGETHER = [name for name in NAMES if name != "apart"]
W, H = 72, 20


@pytest.fixture(scope="module")
def compiled():
    return compile_c(SOURCE)


def run(program, name, local):
    """What a kernel leaves in memory that was full of 7s."""
    size = SIZES.get(name, 4)
    rng = np.random.default_rng(size)
    from_ = rng.integers(0, 100, W * H * size).astype(np.uint8)
    if name not in SIZES:
        from_ = rng.integers(0, 100, W * H).astype(np.float32).view(np.uint8)
    at = rng.permutation(W).astype(np.int32)
    to = np.full(max((2 * W + 4) * H * size, 4 * W * 256), 7, np.uint8)
    program.run(name, (W, H), local, to, from_, at, np.int32(W), np.int32(H))
    return to


@pytest.fixture(scope="module")
def one(compiled):
    """One work-item at a time."""
    return Program(compiled, width=1)


@pytest.mark.parametrize(("width", "parts"), few_rows([(4, 2), (16, 4), (8, 4), (16, 2), (4, 8)], 2))
def test_same_results(compiled, one, width, parts):
    """As at one work-item at a time, with rows that do not come out even, and others."""
    program = Program(compiled, width=width, parts=parts, part_axis=1)
    for name in NAMES:
        for local in ((36, 20), (24, 10), (9, 5)):
            want, got = run(one, name, local), run(program, name, local)
            assert np.array_equal(want, got), f"{name}, groups of {local}"
            assert np.count_nonzero(want != 7) > W * H // 2


@pytest.mark.parametrize("name", NAMES)
def test_which_are_together(compiled, name):
    """The test above tests something: a lane's stores of four rows are one of four times the size."""
    text = Program(compiled, width=8, parts=4, part_axis=1).code(name).text
    assert (f"store {STORED.get(name, '<4 x float>')} " in text) == (name in TOGETHER)
