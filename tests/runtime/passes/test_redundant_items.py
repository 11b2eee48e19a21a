"""One work-item of a group stands for all that do the same."""

import numpy as np
import pytest

from tests.runtime.kernel_harness import Local, Program, compile_c

SOURCE = compile_c("""
kernel void once(global int *out) { out[get_global_id(0)] += 1 + get_local_size(1); }
kernel void through_local(global int *out, local int *l) {
    l[get_local_id(0)] = get_global_id(0) * 3;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] += l[get_local_size(0) - 1 - get_local_id(0)];
}
kernel void planes(global int *out) {
    out[get_global_id(1) * get_global_size(0) + get_global_id(0)] += get_local_size(2);
}
kernel void of_group(global int *out) { out[get_group_id(0)] += get_local_size(0) * get_local_size(2); }
kernel void of_group_through_local(global int *out, volatile local int *l) {
    for (int k = 0; k < 3; k++)
        l[k] = k ? l[k - 1] + 1 : get_local_size(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_group_id(0)] += l[2];
}
kernel void of_row(global int *out) { out[get_global_id(1)] += get_local_size(0); }
kernel void counts(global int *out) { atomic_inc(out + get_global_id(0)); }
""")


@pytest.mark.parametrize("width", [1, 4, 8])
@pytest.mark.parametrize("x", [16, 13])
def test_each_group_does_it_once(width, x):
    """What they do is a race; that all count is not to be had, so how often groups do it can be told."""
    program, local = Program(SOURCE, width=width), (x, 4, 2)
    size, groups = (2 * x, 8, 4), 4  # of groups for each id of dimension 0
    ids = np.arange(2 * x, dtype=np.int32)

    def run(name, shape, *more):
        out = np.zeros(shape, np.int32)
        program.run(name, size, local, out, *more)
        return out

    assert (run("once", 2 * x) == groups * 5).all()
    mirrored = ids // x * x + x - 1 - ids % x
    np.testing.assert_array_equal(run("through_local", 2 * x, Local(4 * x)), groups * 3 * mirrored)
    assert (run("planes", (8, 2 * x)) == 2 * 2).all()
    assert (run("counts", 2 * x) == 32).all()


@pytest.mark.parametrize("x", [16, 13])
def test_one_of_a_row_does_it(x):
    """One work-item at a time, which is what such kernels get."""
    program, local, size = Program(SOURCE, width=1), (x, 4, 2), (2 * x, 8, 4)

    def run(name, shape, *more):
        out = np.zeros(shape, np.int32)
        program.run(name, size, local, out, *more)
        return out

    assert (run("of_group", 2) == 4 * x * 2).all()
    assert (run("of_group_through_local", 2, Local(12)) == 4 * (x + 2)).all()
    assert (run("of_row", 8) == 4 * x).all()
