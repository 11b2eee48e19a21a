"""Loops that all work-items of a row leave together, and each row at another time, as machine code."""

import numpy as np
import pytest

from tests.runtime.kernel_harness import Program, compile_c

SOURCE = """
kernel void some(global int *a, global const int *count) {
    int x = get_global_id(0), y = get_global_id(1), at = y * get_global_size(0) + x;
    if (x % 3 == y % 2) {
        int k = count[y];
        do { a[at] += k; k -= 2; } while (k > 0);
    }
}
kernel void nested(global int *a, global const int *count) {
    int x = get_global_id(0), y = get_global_id(1), at = y * get_global_size(0) + x;
    for (int i = 0; i <= (x & 3); i++)
        if (a[at] & 1)
            for (int k = count[y]; ; k--) {
                if (k <= 1) break;
                a[at] += 2 * k + i;
            }
}
kernel void all_of_them(global int *a, global const int *count) {
    int at = get_global_id(1) * get_global_size(0) + get_global_id(0);
    for (int k = 0; k < count[get_global_id(1)]; k++) a[at] ^= a[at] + k;
}
"""
COUNTS = [5, 0, 1, 9, 2, 0, 3]
N, H = 37, len(COUNTS)


def expected(name: str, a: np.ndarray) -> np.ndarray:
    a = a.copy()
    for (y, x), value in np.ndenumerate(a):
        count = COUNTS[y]
        if name == "some" and x % 3 == y % 2:
            value += sum(range(count, 0, -2)) if count > 0 else count
        if name == "nested":
            for i in range((x & 3) + 1):
                if value & 1:
                    value += sum(2 * k + i for k in range(count, 1, -1))
        if name == "all_of_them":
            for k in range(count):
                value ^= np.int32(value + k)
        a[y, x] = value
    return a


@pytest.mark.parametrize("name", ["some", "nested", "all_of_them"])
@pytest.mark.parametrize("form", [(1, 1, 0), (4, 4, 1), (8, 2, 1), (16, 3, 1), (8, 2, 0)])
def test_rows_leave_at_different_times(name, form):
    """What is not in the loop stays as it is, whoever else goes on in it."""
    width, parts, axis = form
    more = {"parts": parts, "part_axis": axis} if width > 1 else {}
    program = Program(compile_c(SOURCE), width=width, **more)
    given = np.random.default_rng(4).integers(0, 1000, (H, N)).astype(np.int32)
    for local in ((N, H), (8, 4), (N, 1)):
        a = given.copy()
        program.run(name, (N, H), local, a, np.array(COUNTS, np.int32))
        assert np.array_equal(a, expected(name, given)), local
