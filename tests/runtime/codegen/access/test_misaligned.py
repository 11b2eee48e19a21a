"""Vectors at addresses that are not theirs: programs do that, and other devices do not mind."""

import numpy as np
import pytest

from tests.runtime.emulation import IS_EMULATED
from tests.runtime.kernel_harness import Program, compile_c

N = 64
SOURCE = """
kernel void k(global uchar *to, global const uchar *from) {
    size_t i = get_global_id(0);
    global float8 *there = (global float8 *)(to + 1);
    there[i] = ((global const float8 *)(from + 3))[i] + 1.0f;
}
kernel void masked(global uchar *to, global const uchar *from) {
    size_t i = get_global_id(0);
    if (i % 3)
        *(global double2 *)(to + 5 + i * 32) = *(global const double2 *)(from + 7 + i * 32) + 1.0;
}
kernel void apart(global uchar *to, global const uchar *from) {
    size_t i = get_global_id(0) * 7 % get_global_size(0);
    *(global int4 *)(to + 1 + i * 16) = *(global const int4 *)(from + 1 + i * 16) + 1;
}
kernel void mine(global uchar *to, global const uchar *from) {
    private uchar bytes[80];
    for (int i = 0; i < 80; i++)
        bytes[i] = from[i];
    volatile int at = 1;
    *(float16 *)(bytes + at) += 1.0f;
    for (int i = 0; i < 80; i++)
        to[80 * get_global_id(0) + i] = bytes[i];
}
"""


@pytest.mark.skipif(IS_EMULATED, reason="emulated memory is aligned as it likes")
@pytest.mark.parametrize("width", [1, 4, 8, 16])
def test_vectors_at_odd_addresses(width):
    program = Program(compile_c(SOURCE), width=width)
    random = np.random.default_rng(1)
    from_ = random.standard_normal(4096).astype(np.float64).view(np.uint8).copy()

    def shifted(offset, type_, count):
        return from_[offset : offset + count * np.dtype(type_).itemsize].view(type_)

    for name in ("k", "masked", "apart", "mine"):
        to = np.zeros(N * 80 + 64, np.uint8)
        want = to.copy()
        with np.errstate(all="ignore"):
            if name == "k":
                values = shifted(3, np.float32, 8 * N) + np.float32(1)
                want[1 : 1 + values.nbytes] = values.view(np.uint8)
            elif name == "masked":
                for i in range(N):
                    if i % 3:
                        value = shifted(7 + i * 32, np.float64, 2) + 1.0
                        want[5 + i * 32 : 21 + i * 32] = value.view(np.uint8)
            elif name == "apart":
                values = shifted(1, np.int32, 4 * N) + 1
                want[1 : 1 + values.nbytes] = values.view(np.uint8)
            else:
                own = from_[:80].copy()
                own[1:65] = (shifted(1, np.float32, 16) + np.float32(1)).view(np.uint8)
                want[: N * 80] = np.tile(own, N)
        program.run(name, N, 16, to, from_)
        if name == "k":
            got, expected = (a[1 : 1 + N * 32].view(np.float32) for a in (to, want))
            np.testing.assert_array_equal(got, expected)
        elif name == "mine":
            assert np.array_equal(to[::80], want[::80])
            got, expected = (a[: N * 80].reshape(N, 80)[:, 1:65].copy().view(np.float32) for a in (to, want))
            np.testing.assert_array_equal(got, expected)
        else:
            assert np.array_equal(to, want), name
