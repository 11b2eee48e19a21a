"""Ids where lanes go on in the next row of groups of one size (passes/groups/linear_ids.py)."""

import numpy as np
import pytest

from cl_driver.passes.ir.plan import PlanError
from cl_driver.spirv.enums import BuiltIn, Op

from ..support import compare, compile_cl, make_plan

HEAD = (
    "kernel void k(global int *out, int n) {"
    "int x = get_local_id(0), y = get_local_id(1), z = get_local_id(2),"
    "nx = get_local_size(0), ny = get_local_size(1), gx = get_global_id(0), gy = get_global_id(1); "
)


def stride(index, group=(4, 4, 4), width=8):
    """Of the address of the only store."""
    module = compile_cl(f"{HEAD} out[{index}] = 1; }}")
    options = {"linear_lanes": True, "linear_group": group}
    (region,) = make_plan(module, "k", width=width, **options).regions
    (store,) = (i for b in region.function.blocks for i in b.instructions if i.op is Op.Store)
    return region.shapes.stride(store.operands[0])


@pytest.mark.parametrize(
    "index, expected",
    [
        ("(z * ny + y) * nx + x", 4),
        ("x + nx * (y + ny * z)", 4),
        ("(z * 4 + y) * 4 + x", 4),  # 4 is the size
        ("z * 16 + y * 4 + x + 3", 4),
        ("((z * ny + y) * nx + x) * 3 + n", 12),
        ("x * 2 + y * 8 + z * 32", 8),
        ("(z << 4 | y << 2 | x) & 15", 4),
        ("((z * ny + y) * nx + x) >> 4", 0),
        ("get_local_linear_id()", 4),
        ("z", 0),  # a plane is two vectors
        ("y", None),
        ("x", None),
        ("(z * ny + y) * 5 + x", None),
        ("(y * ny + z) * nx + x", None),
        ("y * nx + x", 4),  # begins anew in the next plane, and with a vector
        ("z * ny + y", None),
        ("z * nx + x", None),
        ("(z * ny + y) * nx - x", None),
        ("gy * n + gx", None),
    ],
)
def test_strides(index, expected):
    assert stride(index) == expected


@pytest.mark.parametrize(
    "index, group, expected",
    [
        ("y * nx + x", (5, 7, 1), 4),
        ("y", (1, 32, 1), 4),
        ("z * ny + y", (1, 4, 8), 4),
        ("z", (1, 1, 16), 4),
        ("z", (5, 5, 5), None),
        ("y", (8, 4, 1), 0),
        ("x", (8, 4, 1), 4),
        ("x", (4, 4, 1), None),
        ("gy", (1, 64, 1), 4),
        ("y * nx + x", (3, 4, 5), None),
        ("z * 2 + y", (16, 2, 3), 0),
        ("z * 3 + x", (3, 1, 8), 4),
    ],
)
def test_other_groups(index, group, expected):
    assert stride(index, group) == expected


KERNELS = """
kernel void ids(global int *out, int n) {
    int s = 0;
    for (int k = 0; k < 3; k++)
        s = s * 31 + get_local_id(k) + 7 * get_global_id(k) + 3 * get_group_id(k) + get_local_size(k);
    size_t at = get_global_linear_id();
    out[at] = s + n * get_local_linear_id();
}
kernel void around(global int *out, int n) {
    local int all[128];
    int x = get_local_id(0), y = get_local_id(1), z = get_local_id(2);
    int nx = get_local_size(0), ny = get_local_size(1), me = (z * ny + y) * nx + x, s = 0;
    all[me] = get_global_id(0) * 5 + get_global_id(1) * n;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < n + y; i++)
        if (all[(me + i) % (nx * ny)] & 1) s += all[(me ^ i) % (nx * ny)] + x;
    barrier(CLK_LOCAL_MEM_FENCE);
    all[me] = s;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_linear_id()] = all[nx * ny * get_local_size(2) - 1 - me];
}
kernel void chosen(global int *out, int n) {
    out[get_global_linear_id()] = get_local_id(n & 1) + get_global_size(0);
}
"""


GROUPS = [(4, 4, 4), (3, 5, 2), (1, 9, 4), (6, 10, 1), (2, 2, 2), (1, 1, 24), (8, 3, 1)]


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("kernel", ["ids", "around"])
def test_results(kernel, group):
    out = np.zeros(4000, np.int32)
    total = tuple(2 * size for size in group)
    options = {"linear_lanes": True, "linear_group": group}
    compare(compile_cl(KERNELS), kernel, [out, 5], total, group, (1, 4, 8, 16), (3, 1, 2), **options)


def test_no_id_is_left():
    plan = make_plan(compile_cl(KERNELS), "ids", width=8, linear_lanes=True, linear_group=(4, 4, 4))
    assert not plan.builtins & {BuiltIn.LocalInvocationId, BuiltIn.GlobalInvocationId, BuiltIn.GlobalLinearId}


def test_a_component_that_is_not_known():
    with pytest.raises(PlanError, match="components"):
        make_plan(compile_cl(KERNELS), "chosen", width=8, linear_lanes=True, linear_group=(4, 4, 4))
