"""Rows that several parts load, loaded once (passes/vectorize/coarsening_cse.py), as machine code."""

import numpy as np
import pytest

from tests.runtime.kernel_harness import Program, compile_c

SOURCE = """
#define AT(y) (clamp(y, 0, h - 1) * n + x)
kernel void bytes(global uchar4 *a, global const uchar4 *b, int n, int h) {
    int x = get_global_id(0), y = get_global_id(1);
    uint4 s = 12;
    for (int dy = -2; dy <= 2; dy++)
        for (int dx = -1; dx <= 1; dx++)
            s += convert_uint4(b[clamp(y + dy, 0, h - 1) * n + clamp(x + dx, 0, n - 1)]) * (uint4)(dy + 3);
    a[y * n + x] = convert_uchar4(s / (uint4)(45));
}
kernel void rows(global int *a, global const int *b, int n, int h) {
    int x = get_global_id(0), y = get_global_id(1);
    int s = b[AT(y - 1)] + 2 * b[AT(y)] + 3 * b[AT(y + 1)];
    a[y * n + x] = (x ^ y) & 1 ? s : b[AT(y)];
}
"""
N, H = 67, 9
VALUES = tuple((k, number.to_bytes(4, "little")) for k, number in ((2, N), (3, H)))


def expected(name: str, b: np.ndarray) -> np.ndarray:
    padded = np.pad(b.astype(np.int64), [(2, 2), (1, 1), (0, 0)], mode="edge")
    rows = [padded[k : k + H] for k in range(5)]
    if name == "bytes":
        total = sum(rows[k][:, d : d + N] * (k + 1) for k in range(5) for d in range(3))
        return ((total + 12) // 45).astype(b.dtype)
    middle = [row[:, 1:-1] for row in rows]
    odd = (np.arange(N)[None, :, None] ^ np.arange(H)[:, None, None]) & 1
    total = middle[1] + 2 * middle[2] + 3 * middle[3]
    return np.where(odd, total, middle[2]).astype(b.dtype)


@pytest.mark.parametrize("name", ["bytes", "rows"])
@pytest.mark.parametrize("form", [(1, 1, 0), (4, 4, 1), (16, 4, 1), (8, 3, 1), (4, 2, 0)])
def test_rows(name, form):
    """Whole tiles, tiles cut off at both edges, and groups that are no tiles; with known values, too."""
    width, parts, axis = form
    b = np.random.default_rng(3).integers(0, 256, (H, N, 4 if name == "bytes" else 1))
    b = b.astype(np.uint8 if name == "bytes" else np.int32)
    want = expected(name, b)
    more = {"parts": parts, "part_axis": axis} if width > 1 else {}
    for values in ((), VALUES) if width > 1 and name == "bytes" else ((),):
        program = Program(compile_c(SOURCE), width=width, argument_values=values, **more)
        for local in ((N, H), (16, 4)):
            a = np.zeros_like(b)
            program.run(name, (N, H), local, a, b, np.int32(N), np.int32(H))
            assert np.array_equal(a, want), (local, values)
