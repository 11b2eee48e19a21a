"""Indices made with mad24 and unsigned arithmetic (passes/lower/mul24.py, analysis/shape_integers.py)."""

import numpy as np
import pytest

from tests.runtime.kernel_harness import Program, compile_c

SOURCE = compile_c("""
kernel void pixels(global const uchar *in, int in_step, int in_offset, global uchar *out, int step,
                   int offset, int rows, int columns) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x < columns && y < rows) {
        global const int *from = (global const int *)(in + mad24(y, in_step, mad24(x, 12, in_offset)));
        global int *to = (global int *)(out + mad24(y, step, mad24(x, 4, offset)));
        *to = from[0] + from[1] * 2 + from[2] * 3;
    }
}
kernel void unsigned_sums(global const int *in, global int *out, uint a, uint b) {
    uint x = get_global_id(0);
    out[(int)(x + a)] = in[(int)(x * 3u + b)];
}
""")


@pytest.mark.parametrize("width", [1, 4, 8, 16])
def test_rows_of_pixels(width):
    rows, columns, step = 5, 37, 44
    memory = np.random.default_rng(width).integers(0, 1000, 3 + rows * 120).astype(np.int32)
    out = np.full(2 + rows * step, 7, np.int32)
    wanted = out.copy()
    pixels = memory[3:].reshape(rows, 40, 3)[:, :columns]
    wanted[2:].reshape(rows, step)[:, :columns] = pixels @ np.array([1, 2, 3], np.int32)
    numbers = [np.int32(n) for n in (480, 12, 4 * step, 8, rows, columns)]
    Program(SOURCE, width=width).run("pixels", (48, 8), (16, 2), memory, *numbers[:2], out, *numbers[2:])
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("a, b", [(0, 0), (5, 2), (1, 9)])
def test_unsigned_sums(width, a, b):
    memory, out = np.arange(200, dtype=np.int32) ** 2, np.zeros(60, np.int32)
    Program(SOURCE, width=width).run("unsigned_sums", 45, 15, memory, out, np.uint32(a), np.uint32(b))
    wanted = np.zeros(60, np.int32)
    wanted[a : a + 45] = memory[b : b + 3 * 45 : 3]
    np.testing.assert_array_equal(out, wanted)
