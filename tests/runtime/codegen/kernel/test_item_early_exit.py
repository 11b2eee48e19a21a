"""Rows that are left early, one work-item at a time: results, and ids that wrap within a row."""

import numpy as np
import pytest

from tests.runtime.kernel_harness import Program, compile_c

SOURCE = compile_c("""
kernel void below(global int *out, int n) { int x = get_global_id(0); if (x < n) out[get_local_id(0)]++; }
kernel void below_unsigned(global int *out, int n) {
    uint x = get_global_id(0);
    if (x < (uint)n) out[get_local_id(0)]++;
}
kernel void moved(global int *out, int n) {
    uint x = get_global_id(0);
    if (x + 0xfffffff0u < (uint)n) out[get_local_id(0)]++;
}
kernel void moved_long(global int *out, int n) {
    ulong x = get_global_id(0);
    if (x - 16 < (ulong)n) out[get_local_id(0)]++;
}
kernel void widened(global int *out, int n) {
    long x = (int)get_global_id(0);
    if (x < n) out[get_local_id(0)]++;
}
kernel void of_plane(global int *out, int n) {
    size_t x = get_global_id(0), y = get_global_id(1);
    if (x < n && y < n) out[y * 64 + x]++;
}
kernel void rounds(global int *out, int n) {
    local int sums[64];
    size_t l = get_local_id(0);
    sums[l] = get_global_id(0);
    for (size_t step = get_local_size(0) / 2; step; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < step) sums[l] += sums[l + step];
    }
    if (l < n) out[get_group_id(0)] = sums[0];
}
""")


@pytest.fixture(scope="module")
def program():
    return Program(SOURCE, width=1)


def signed(x):
    return x.astype(np.int32).astype(np.int64)


@pytest.mark.parametrize("offset", [0, 100, 2**31 - 10, 2**32 - 10, 2**31 - 65536 - 5, 2**32 - 16])
@pytest.mark.parametrize("n", [0, 5, 107, -3])
def test_ids_that_wrap(program, offset, n):
    x = np.arange(offset, offset + 64, dtype=np.uint64)
    unsigned = n % 2**32
    works = {
        "below": signed(x) < n,
        "below_unsigned": x % 2**32 < unsigned,
        "moved": (x - 16) % 2**32 < unsigned,
        "moved_long": x - np.uint64(16) < np.uint64(n % 2**64),
        "widened": signed(x) < n,
    }
    for name, expected in works.items():
        out = np.zeros(64, np.int32)
        program.run(name, (64,), (64,), out, np.int32(n), offset=(offset,))
        np.testing.assert_array_equal(out, expected, name)


def test_rows_of_planes(program):
    for n in (0, 1, 5, 40, 64):
        out = np.zeros((64, 64), np.int32)
        program.run("of_plane", (64, 64), (16, 4), out, np.int32(n))
        y, x = np.indices((64, 64))
        np.testing.assert_array_equal(out, (x < n) & (y < n))


def test_between_barriers(program):
    out = np.zeros(4, np.int32)
    program.run("rounds", (256,), (64,), out, np.int32(1))
    np.testing.assert_array_equal(out, np.arange(256).reshape(4, 64).sum(axis=1))
