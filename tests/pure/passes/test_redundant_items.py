"""Dimensions that a kernel never asks for: one work-item of each group is enough along them."""

import pytest

from cl_driver.passes.analysis.redundant_items import redundant_dimensions, repeated_dimensions
from cl_driver.spirv.enums import Op
from cl_driver.spirv.module import Instruction

from .support import compile_cl, make_plan

HEAD = (
    "kernel void k(global int *out, global const int *in, local int *l, global int *m) "
    "{ int i = get_global_id(0); "
)


def redundant(body, width):
    return redundant_dimensions(make_plan(compile_cl(f"{HEAD} {body} }}"), "k", width=width))


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize(
    "body, dimensions",
    [
        ("out[i] = in[i];", {1, 2}),
        ("out[i + get_group_id(1) * get_local_size(1) + get_global_size(2)] = in[i];", {1, 2}),
        ("l[get_local_id(0)] = i; barrier(CLK_LOCAL_MEM_FENCE); out[i] = l[0];", {1, 2}),
        ("for (int k = 0; k < 9; k++) if (in[k] > i) out[i] += sin((float)in[k]);", {1, 2}),
        ("out[i + get_global_id(1)] = in[i];", {2}),
        ("out[i + get_local_id(2)] = in[i];", {1}),
        ("out[get_global_id(1)] = in[0];", {0, 2}),
        ("out[get_group_id(0)] = in[get_num_groups(0)];", {0, 1, 2}),
        ("float a[9]; for (int k = 0; k < 9; k++) a[in[k]] = k; out[0] = a[in[9]];", {0, 1, 2}),
        ("l[0] = in[0]; barrier(CLK_LOCAL_MEM_FENCE); out[0] = l[0];", {0, 1, 2}),
        ("volatile local int *v = l; v[in[0]] += in[1]; out[0] = v[0];", {0, 1, 2}),
        ("volatile local int *v = l; v[in[i]] += in[1]; out[0] = v[0];", {1, 2}),
        ("*(volatile global int *)out = in[0];", {0, 1, 2}),
        ("out[0] = *(volatile global const int *)in;", set()),
        ("int3 v = (int3)(get_global_id(0), get_global_id(1), get_global_id(2)); out[v.y] = v.z;", {0}),
        ("out[i + get_local_id(in[0])] = in[i];", set()),
        ("out[0] = in[0]; mem_fence(CLK_GLOBAL_MEM_FENCE); out[1] = in[1];", {0, 1, 2}),
        ("out[i] = get_local_linear_id();", set()),
        ("out[i] = get_global_linear_id();", set()),
        ("atomic_inc(out);", set()),
        ("printf(\"%d\", i);", {1, 2}),
        ("out[0] = in[0]; if (in[0] > 9) printf(\"%d\", in[0]);", {0, 1, 2}),
        ("l[0] = in[0]; barrier(CLK_LOCAL_MEM_FENCE); printf(\"%d\", l[0]);", set()),
        ("*(volatile global int *)out = i;", {1, 2}),
        ("out[i] = work_group_reduce_add(i);", set()),
    ],
)  # fmt: skip
def test_dimensions(body, dimensions, width):
    assert redundant(body, width) == dimensions


def test_what_is_assumed_tells_no_work_items_apart():
    plan = make_plan(compile_cl(f"{HEAD} out[0] = in[0] > 3; }}"), "k", width=1)
    block = plan.regions[0].function.blocks[0]
    (compared,) = (i for i in block.instructions if i.op is Op.SGreaterThan)
    block.instructions.insert(-1, Instruction(Op.AssumeTrueKHR, None, (compared,), block))
    assert redundant_dimensions(plan) == {0, 1, 2}


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize(
    "body, dimensions",
    [
        ("out[i] = in[i];", 2),
        ("out[get_local_size(0) * get_group_id(0) + get_local_id(0)] = in[i];", 2),
        ("l[get_local_id(0)] = i; barrier(CLK_LOCAL_MEM_FENCE); out[i] = l[0];", 2),
        ("out[i + get_group_id(1)] = in[i];", 1),
        ("out[i + get_global_id(1)] = in[i];", 1),
        ("out[get_global_id(1)] = in[0];", 1),
        ("out[get_global_id(2)] = in[i];", 0),
        # Global size and number of groups are the same for all, the local size is another one at the end.
        ("out[i] = get_global_size(1) + get_num_groups(2) + get_global_offset(1) + get_work_dim();", 2),
        ("out[i] = get_local_size(1);", 1),
        ("out[i] = get_local_size(2);", 0),
        ("out[0] = in[0];", 3),
        ("for (int k = 0; k < 3; k++) out[i] += get_group_id(k);", 0),
        ("atomic_inc(out);", 0),
        ("out[i] = *(volatile global const int *)in;", 0),
        ("printf(\"%d\", i);", 0),
        ("out[i] = work_group_reduce_add(in[i]);", 0),
    ],
)  # fmt: skip
def test_repeated_dimensions(body, dimensions, width):
    assert repeated_dimensions(make_plan(compile_cl(f"{HEAD} {body} }}"), "k", width=width)) == dimensions


def test_nothing_is_redundant_where_functions_are_called():
    """They may print, count and ask for ids."""
    source = "int f(int x) { if (x > 1) return x * 3; return 0; } "
    plan = make_plan(compile_cl(f"{source} {HEAD} out[i] = f(i); }}"), "k", width=1)
    assert redundant_dimensions(plan) == ({1, 2} if not plan.calls else set())
