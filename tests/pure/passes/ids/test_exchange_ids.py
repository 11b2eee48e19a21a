"""Kernels whose lanes follow dimension 1: which may, which should, and that they do what they did."""

import copy
import time

import numpy as np
import pytest

from cl_driver.interp.run import run
from cl_driver.passes.lower.exchange_ids import may_exchange_ids, with_exchanged_ids
from cl_driver.passes.lower.lane_dimension import prefers_dimension_1
from cl_driver.spirv.reflect import called

from ..support import compile_cl, entry

HEAD = "kernel void k(global float *a, global float *b, int n, local float *l) { "
HEAD += "int x = get_global_id(0), y = get_global_id(1); "
PLAIN_HEAD = HEAD.replace(", local float *l", "")


def kernel(body, head=PLAIN_HEAD, more=""):
    return compile_cl(f"{more} {head} {body} }}")


@pytest.mark.parametrize(
    "body, may",
    [
        ("a[x * n + y] = b[x * n + y];", True),
        (
            "a[x * n + y + get_global_size(0) - get_global_offset(1) + get_work_dim()] = get_global_id(2);",
            True,
        ),
        ("a[x * n] = b[x];", False),  # there is one dimension
        ("a[y] = b[y * n];", False),
        ("a[x * n + y] = get_local_id(0);", False),
        ("a[x * n + y] = get_group_id(1);", False),
        ("a[x * n + y] = get_local_size(0);", False),
        ("a[x * n + y] = get_num_groups(0);", False),
        ("a[x * n + y] = get_global_linear_id();", False),
        ("a[x * n + y] = get_sub_group_size();", False),
        ("a[x * n + y] = get_global_id(n);", False),  # of a dimension that nobody knows
        ("a[x * n + y] = b[y]; barrier(CLK_GLOBAL_MEM_FENCE); b[y] = a[x];", False),
        ("a[x * n + y] = work_group_all(b[y] > 0);", False),
        ("local float t[8]; t[y & 7] = b[x]; a[x * n + y] = t[x & 7];", False),
    ],
)
def test_what_tells_work_items_apart(body, may):
    point = entry(kernel(body), "k")
    assert may_exchange_ids(point, called(point.function)) == may


@pytest.mark.parametrize(
    "head, more",
    [
        (HEAD, ""),
        (PLAIN_HEAD.replace("void k", "__attribute__((reqd_work_group_size(8, 4, 1))) void k"), ""),
        (PLAIN_HEAD.replace("void k", "__attribute__((work_group_size_hint(8, 4, 1))) void k"), ""),
        (PLAIN_HEAD + "n += f();", "__attribute__((noinline)) int f(void) { return get_global_id(0); }"),
        (PLAIN_HEAD + "n += f(n);", "int f(int n);"),
    ],
)
def test_what_else_forbids_it(head, more):
    point = entry(kernel("a[x * n + y] = b[y];", head, more), "k")
    assert not may_exchange_ids(point, called(point.function))


@pytest.mark.parametrize(
    "body, prefers",
    [
        ("a[x * n + y] = b[x * n + y];", True),
        ("a[y * n + x] = b[y * n + x];", False),
        ("a[x * n + y] = b[y * n + x];", False),  # a transposition
        (
            "float s = 0; for (int k = 0; k < n; k++) s += a[x * n + k] * b[k * n + y]; a[x * n + y] = s;",
            True,
        ),
        (
            "float s = 0; for (int k = 0; k < n; k++) s += a[y * n + k] * b[k * n + x]; a[y * n + x] = s;",
            False,
        ),
        ("for (int k = 0; k < n; k++) a[x * n + k] += y;", False),  # neighbours are in each one's loop
        ("if (x > 0 && y > 0 && y < n) a[x * n + y] = b[(x - 1) * n + y] + b[x * n + y - 1];", True),
        ("a[x * n + min(y + 1, n - 1)] = b[mad24(x, n, max(y - 1, 0))];", True),
        ("vstore4(vload4(x * n + y, b), x * n + y, a);", True),
        ("((global float4 *)a)[x * n + y].y = b[x];", True),
        ("a[x * 4 + y] = b[x * 4 + y];", False),  # there are likely four along dimension 1
        ("a[x * 1024 + y] = b[x * 1024 + y];", True),
        ("a[x * n + y * 64] = b[x * n + y * 64];", False),
        ("a[(int)b[x] * n + (int)b[y]] = 1;", False),
        ("for (int k = 0; k < b[y]; k++) a[x * n + y] += b[k];", False),  # lanes would leave one by one
    ],
)
def test_where_neighbours_are(body, prefers):
    point = entry(kernel(body), "k")
    assert may_exchange_ids(point, called(point.function))
    assert prefers_dimension_1(point.function) == prefers


def test_images_keep_their_order():
    head = PLAIN_HEAD.replace("global float *b", "read_only image2d_t b")
    point = entry(kernel("a[x * n + y] = read_imagef(b, (int2)(x, y)).x;", head), "k")
    assert not prefers_dimension_1(point.function)


@pytest.mark.parametrize("calls", ["", "__attribute__((noinline))"])
@pytest.mark.parametrize(
    "size, offset", [((5, 3), (0, 0)), ((1, 9), (2, 1)), ((4,), (1,)), ((2, 3, 2), (1, 0, 3))]
)
def test_exchanged_kernels_do_the_same(size, offset, calls):
    function = f"{calls} float f(float v, int x) {{ for (int k = 0; k < x; k++) v += v / 2; return v; }}"
    body = "int z = get_global_id(2); int at = (z * 12 + x) * n + y; "
    body += (
        "a[at] = f(b[y], x) + 100 * get_global_size(0) + 1000 * get_global_size(1) + get_global_offset(1);"
    )
    module = kernel(body, more=function)
    point = entry(module, "k")
    assert may_exchange_ids(point, called(point.function))
    exchanged = copy.copy(module)
    exchanged.entry_points = [with_exchanged_ids(module, point, called(point.function))]
    before = [str(i.operands) for block in point.function.blocks for i in block.instructions]
    outputs = []
    for made, (x, y, z), start in (
        (module, (*size, 1, 1)[:3], (*offset, 0, 0)[:3]),
        (exchanged, (*size, 1, 1)[:3], (*offset, 0, 0)[:3]),
    ):
        if made is exchanged:
            x, y, start = y, x, (start[1], start[0], start[2])
        arrays = [np.zeros(12 * 12 * 6, np.float32), np.arange(12, dtype=np.float32)]
        run(made, "k", [*arrays, 12], (x, y, z), (1, 1, 1), start)
        outputs.append(arrays[0])
    np.testing.assert_array_equal(*outputs)
    assert outputs[0].any()
    assert before == [str(i.operands) for block in point.function.blocks for i in block.instructions]


def test_it_takes_no_time_for_what_uses_each_value_twice():
    mix = "at ^= at * at; at += at * at; " * 9
    body = f"uint at = y; for (int k = 0; k < n; k++) {{ a[at] = k; {mix} }} a[x * n + y] = b[x * n + y];"
    function = entry(kernel(body), "k").function
    start = time.process_time()
    prefers_dimension_1(function)
    assert time.process_time() - start < 2
