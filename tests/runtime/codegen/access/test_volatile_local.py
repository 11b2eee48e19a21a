"""Volatile accesses to local memory: in the order of the program, but not lane by lane."""

import numpy as np
import pytest

from tests.runtime.kernel_harness import Local, Program, compile_c

# Sums of a vector of work-items without barriers, as for GPUs whose work-items run in step.
IN_STEP = compile_c("""
kernel void sums(global const short *in, global short *out, volatile local short *all, int lanes) {
    int l = get_local_id(0), lane = l % lanes;
    all[l] = in[get_global_id(0)];
    for (int step = lanes / 2; step > 0; step /= 2)
        if (lane < step) all[l] += all[l + step];
    out[get_global_id(0)] = all[l - lane];
}
kernel void turned(global const int *in, global int *out, volatile local int *all, int by) {
    int l = get_local_id(0), n = get_local_size(0);
    all[l] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l % 3) all[l] = all[(l + by) % n] + all[by];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = all[l];
}
""")


@pytest.mark.parametrize("width", [4, 8, 16])
def test_work_items_in_step(width):
    program = Program(IN_STEP, width=width)
    given = np.arange(64, dtype=np.int16) ** 2 % 100
    out = np.zeros(64, np.int16)
    program.run("sums", 64, 32, given, out, Local(64), np.int32(width))
    np.testing.assert_array_equal(out, given.reshape(-1, width).sum(1, dtype=np.int16).repeat(width))
    text = program.code("sums").text
    assert "volatile" not in text
    assert f"<{width} x i16>, ptr" in text


@pytest.mark.parametrize("width", [1, 8])
def test_with_barriers(width):
    """A place that all lanes read is read once for each; masked lanes keep what they have."""
    given, out = np.arange(32, dtype=np.int32) + 5, np.zeros(32, np.int32)
    Program(IN_STEP, width=width).run("turned", 32, 32, given, out, Local(128), np.int32(30))
    items = np.arange(32)
    # Item 30 keeps its number, so that the order of the vectors does not matter.
    want = given.copy()
    for first in range(0, 32, width):
        group = np.arange(first, first + width)
        new = want[(group + 30) % 32] + want[30]
        want[group] = np.where(items[group] % 3 > 0, new, want[group])
    np.testing.assert_array_equal(out, want)
