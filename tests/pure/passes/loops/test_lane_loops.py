"""Branches to which lanes go one by one (passes/vectorize/lane_loops.py)."""

import numpy as np
import pytest

from cl_driver.passes.ir.ops import PassOp

from ..support import Local, compare, compile_cl, make_plan

HEAD = """
kernel void k(global int *out, global int *in, int n, local int *l) {
    int i = get_local_id(0), g = get_global_id(0), y = get_local_id(1), s = 0;
    int me = y * get_local_size(0) + i;
    for (int j = 0; j < 8; j++) l[me * 8 + j] = in[(g * 8 + j) & 255];
    barrier(CLK_LOCAL_MEM_FENCE);"""
TAIL = """
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = 0; j < 8; j++) s = s * 3 + l[me * 8 + j];
    out[g + get_global_id(1) * get_global_size(0)] = s;
}"""

ALONE = {
    "add": "if (i % 3 == 0) for (int j = 0; j < n; j++) l[me * 8 + j] += in[(g * 7 + j) & 255];",
    "unlike lengths": """global int *q = in + (g * 9 & 127);
        if (in[g & 255] & 1) for (int j = i & 3; j < n; j++) l[me * 8 + j] += q[j];""",
    "guard": "if (!(i & 2)) { for (int j = 0; j < n; j++) l[me * 8 + (j & 7)] ^= in[i * 11 + j & 255]; }",
    "floats": """float f = in[g & 255] * 0.5f; local float *p = (local float *)(l + me * 8);
        if (i & 1) for (int j = 0; j < n; j++) p[j] += f;""",
    "bools": """bool b = in[g & 255] > 20; global int *q = in + (b ? 3 * g : 5 * g & 127);
        if (i & 1) for (int j = 0; j < n; j++) { if (b || j == 3) l[me * 8 + j] = q[j]; }""",
    "vectors": """int4 v = vload4(g & 31, in); global int *p = in + (in[g & 255] & 127);
        if (v.x & 1) for (int j = 0; j < n; j++) l[me * 8 + j] += p[j * 3] + v.z;""",
    "places": """bool b = in[g & 255] & 1; local int *p = l + me * 8 + (b ? 0 : 7); int step = b ? 1 : -1;
        if (i != 2) for (int j = 0; j < n; j++, p += step) *p += j;""",
    "two": """if (i & 1) for (int j = 0; j < n; j++) l[me * 8 + j] += in[g * 9 + j & 255];
        if (i & 4) for (int j = 0; j < n; j++) l[me * 8 + j] -= in[g * 5 + j & 255];""",
    "in a loop": """for (int r = 0; r < (in[g & 255] & 3); r++)
        if (i + r & 1) for (int j = 0; j < n; j++) l[me * 8 + j] += in[g * 9 + j * r & 255];""",
    "in a branch": """if (in[g & 255] & 8) { l[me * 8] += 5;
        if (i & 1) for (int j = 0; j < n; j++) l[me * 8 + j] += in[g * 9 + j & 255]; }""",
    "nested": """if (i & 1) for (int r = 0; r < 3; r++) for (int j = 0; j < n; j++)
        if (in[g * 9 + j & 255] & 1) l[me * 8 + j] += in[g * 5 + j * r & 255];""",
    "atomic": """if (i & 1) for (int j = 0; j < n; j++) { l[me * 8 + j] += in[g * 9 + j & 255];
        atomic_add(in + 256 + (j & 1), 3); }""",
}

TOGETHER = {
    "near": "if (i & 1) for (int j = 0; j < n; j++) l[j * 64 + me & 511] += in[(g + j) & 255];",
    "work": """if (i & 1) for (int j = 0; j < n; j++)
        l[me * 8 + j] = ((in[g * 7 + j & 255] ^ g) * 7 + (g >> j)) * 13 ^ (g << j) + (g - j) * 3;""",
    "all": "for (int j = 0; j < n; j++) l[me * 8 + j] += in[(g * 7 + j) & 255];",
    "uniform": "if (n & 1) for (int j = 0; j < n; j++) l[me * 8 + j] += in[(g * 7 + j) & 255];",
    "result": "if (i & 1) for (int j = 0; j < n; j++) s += l[me * 8 + j] * in[(g * 7 + j) & 255];",
    "volatile": """if (i & 1) for (int j = 0; j < n; j++)
        ((volatile local int *)l)[me * 8 + j] += in[(g * 7 + j) & 255];""",
    "own": """int own[8]; for (int j = 0; j < 8; j++) own[j & in[0]] = j;
        if (i & 1) for (int j = 0; j < n; j++) l[me * 8 + j] += own[in[g * 7 + j & 255] & 7];""",
}


def turns(body, **options) -> int:
    """How many branches have lanes go one by one."""
    plan = make_plan(compile_cl(HEAD + body + TAIL), "k", width=8, **options)
    assert plan.has_lane_loops == any(_ballots(region) for region in plan.regions)
    return sum(map(_ballots, plan.regions))


def _ballots(region) -> int:
    return sum(i.op is PassOp.Ballot for block in region.function.blocks for i in block.instructions)


@pytest.mark.parametrize("name", ALONE)
def test_alone(name):
    assert turns(ALONE[name]) == (2 if name == "two" else 1)
    assert not turns(ALONE[name], parts=2, part_axis=1)


@pytest.mark.parametrize("name", TOGETHER)
def test_together(name):
    assert not turns(TOGETHER[name])


def test_without_a_barrier():
    source = (HEAD + ALONE["add"] + TAIL).replace("barrier(CLK_LOCAL_MEM_FENCE);", "")
    assert not make_plan(compile_cl(source), "k", width=8).has_lane_loops


@pytest.mark.parametrize("local", [(16, 2, 1), (11, 3, 1)])
@pytest.mark.parametrize("name", [*ALONE, "result"])
def test_results(name, local):
    """Of the plan, by the interpreter, which looks whether lanes differ as the shapes say."""
    body = (ALONE | TOGETHER)[name]
    given = np.random.default_rng(5).integers(0, 100, 300).astype(np.int32)
    out = np.zeros(256, np.int32)
    arguments = [out, given, 8, Local(64 * 8 * 4)]
    compare(compile_cl(HEAD + body + TAIL), "k", arguments, (2 * local[0], local[1], 1), local, (1, 4, 8))
    compare(
        compile_cl(HEAD + body + TAIL), "k", arguments, (2 * local[0], local[1], 1), local, (1, 4, 8),
        linear_lanes=True,
    )  # fmt: skip
