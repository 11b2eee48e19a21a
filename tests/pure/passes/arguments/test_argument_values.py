"""Arguments whose values are known when code is made (passes/lower/argument_values.py): which it is worth
knowing, and that kernels do the same with them as constants."""

import numpy as np
import pytest

from cl_driver.spirv.enums import Op
from cl_driver.spirv.enums import OpenCLStd as Std
from tests.pure.passes.support import compare, compile_cl, make_plan
from tests.pure.random.kernels import LOCAL, Kernel

WIDTHS = (1, 8, (4, 2, 0), (4, 2, 1))


@pytest.mark.parametrize(
    "arguments, body, useful",
    [
        ("int n", "out[i] = i < n ? 1 : 2;", []),
        ("int n", "if (i >= n) return; out[i] = n;", []),
        ("int n, int m", "out[i] = i * n + m;", [1]),
        ("uint n, uint m", "out[i] = i % n + (i >> m);", [1, 2]),
        ("ushort n", "for (int k = 0; k < n; k++) out[i] += k ^ i;", [1]),
        ("float f, long n", "out[i] = f * i / n;", []),
        ("float f, long n", "out[i] = f + i / n;", [2]),
        ("int2 n, int4 m", "out[i] = i % n.y + (i >> m.x);", [1]),
        ("int mode", "if (mode == 3) out[i] = 7; else out[2 * i] = mode;", [1]),
        ("int mode", "switch (mode) { case 1: out[i] = 7; case 5: out[2 * i] = 9; }", [1]),
        ("int x, int y", "out[i * ((x & 3) + y)] = 1;", [1, 2]),
        ("int n", "out[n] = 5;", [1]),
        ("local int *p, int n", "p[i & 3] = n; out[i] = p[0] & n;", []),
    ],
)
def test_values_that_matter(arguments, body, useful):
    source = f"kernel void k(global int *out, {arguments}) {{ int i = get_global_id(0); {body} }}"
    module = compile_cl(source)
    for width in (1, 8):
        assert make_plan(module, "k", width=width).specialisable_args == useful


SOURCE = """
kernel void radius(global int *out, global const int *in, int r, int width) {
    int x = get_global_id(0), y = get_global_id(1), sum = 0;
    for (int dy = -r; dy <= r; dy++)
        for (int dx = -r; dx <= r; dx++)
            sum += (dx + 3 * dy) * in[clamp(y + dy, 0, 3) * width + clamp(x + dx, 0, width - 1)];
    out[y * width + x] = sum;
}
kernel void types(global long *out, char c, uchar uc, short s, ushort us, int i, uint u, long l, ulong ul) {
    long id = get_global_id(0) + get_global_size(0) * get_global_id(1);
    long sum = id * c + id / (uc | 1) + id % (s | 1) + id * us + (id << (i & 31)) + id * (int)u + id / l;
    for (ulong k = 0; k < ul; k++) sum ^= sum * (long)k + i;
    out[id] += sum;
}
kernel void vectors(global int *out, int2 two, char4 four, uchar3 three) {
    int id = get_global_id(0) + get_global_size(0) * get_global_id(1);
    out[id] += id * two.x + id % (two.y | 1) + four.w * id + (id >> (three.z & 7)) * four.x;
}
kernel void mode(global int *out, int mode, int count) {
    int id = get_global_id(0) + get_global_size(0) * get_global_id(1), v = id;
    for (int k = 0; k < count; k++) {
        if (mode == 0) v += k;
        else if (mode == 1 && (id & k)) v ^= 5 * k;
        else if (id % mode == 2) break;
        switch (mode) { case 1: v++; case 2: v *= 3; break; default: v -= id; }
    }
    out[id] += v;
}
"""


def scalars(*types_and_values):
    return [np.dtype(t).type(v) for t, v in types_and_values]


def check(name, buffers, values, numbers=None, source=SOURCE):
    """With all values known, or those of some arguments."""
    arguments = [*buffers, *values]
    numbers = range(len(buffers), len(arguments)) if numbers is None else numbers
    known = tuple((k, arguments[k].tobytes()) for k in numbers)
    compare(compile_cl(source), name, arguments, (10, 4, 1), (5, 2, 1), WIDTHS, argument_values=known)


@pytest.mark.parametrize("r", (0, 1, 2, 3))
def test_loops_that_become_short(r):
    image = np.arange(10 * 4, dtype=np.int32) * 7919 % 1000
    check("radius", [np.zeros_like(image), image], scalars(("i4", r), ("i4", 10)))
    check("radius", [np.zeros_like(image), image], scalars(("i4", r), ("i4", 10)), [2])


def test_what_is_the_same_in_all_iterations_is_computed_once():
    known = ((2, b"\2\0\0\0"), (3, b"\n\0\0\0"))
    (region,) = make_plan(compile_cl(SOURCE), "radius", width=8, argument_values=known).regions
    instructions = [i for block in region.function.blocks for i in block.instructions]
    assert sum(i.op is Op.ExtInst and i.operands[1] == Std.s_clamp for i in instructions) == 10
    assert len(region.function.blocks) == 1


@pytest.mark.parametrize(
    "values",
    [
        (1, 2, 3, 4, 5, 6, 7, 8),
        (-128, 255, -32768, 65535, -(1 << 31), (1 << 32) - 1, -(1 << 63), 3),
        (127, 128, 32767, 32768, (1 << 31) - 1, 1 << 31, (1 << 63) - 1, 0),
        (-1, 0, -1, 0, -1, 0, -1, 40),
    ],
)
def test_integers_of_all_sizes(values):
    types = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
    out = np.zeros(10 * 4, np.int64)
    check("types", [out], scalars(*zip(types, values, strict=True)))
    check("types", [out], scalars(*zip(types, values, strict=True)), [1, 4, 6])


def test_vectors():
    vectors = [np.array([-3, 1 << 30], np.int32), np.array([1, -2, 3, -128], np.int8),
               np.array([200, 100, 3, 0], np.uint8)]  # fmt: skip
    check("vectors", [np.zeros(10 * 4, np.int32)], vectors)


@pytest.mark.parametrize("mode", (0, 1, -5))
@pytest.mark.parametrize("count", (0, 5, 17))
def test_branches(mode, count):
    check("mode", [np.zeros(10 * 4, np.int32)], scalars(("i4", mode), ("i4", count)))


@pytest.mark.parametrize("seed", range(8))
def test_random_kernel(seed):
    source = Kernel(seed).source
    items, n = LOCAL * 3, np.int32(7)
    inputs = np.random.default_rng(seed).integers(-50, 50, 64).astype(np.int32)
    arguments = [np.zeros(items * 4, np.int32), inputs, n]
    module = compile_cl(source)
    compare(
        module, "k", arguments, (items,), (LOCAL,), (1, 4, (4, 2, 0)), argument_values=((2, n.tobytes()),)
    )
