"""Kernels that do little but access memory at places of each work-item's own get no lanes."""

import pytest

from cl_driver.passes.cost.own_places import prefers_own_places
from cl_driver.passes.ir.remarks import Remarks

from ..support import compile_cl, make_plan

HEAD = (
    "typedef struct { float x, y, z, w, r, s; } Record; "
    "kernel void k(global float *out, global const Record *in, global const int *at, int n, local int *l, "
    "global const char *bytes) { uint i = get_global_id(0); "
)


def prefers(body, gathers=False, width=8, **options):
    plan = make_plan(compile_cl(f"{HEAD} {body} }}"), "k", width=width, **options)
    return prefers_own_places(plan, gathers)


RECORD = (
    "Record r = in[at[i]]; out[4 * i] = r.x; out[4 * i + 1] = r.y; "
    "out[4 * i + 2] = r.z; out[4 * i + 3] = r.w;"
)
SCATTER = "int p = at[i]; out[p] = 1; out[p + 77] = 2; out[p * 3] = 3;"


@pytest.mark.parametrize("body", [RECORD, f"if (i < n) {{ {RECORD} }}", SCATTER])
def test_mostly_places(body):
    assert prefers(body)
    assert not prefers(body, width=1)


@pytest.mark.parametrize(
    "body, why",
    [
        ("out[i] = at[i];", "neighbours"),
        ("out[get_group_id(0)] = n;", "nothing that lanes do is an access"),
        ("out[i] = at[(int)i * n + 3] + at[i + n];", "more is done than one gather"),
        ("out[4 * (size_t)i] = in[i].x + in[i].y;", "a known step: vectors that are shuffled"),
        ("size_t j = i; out[8 * j] = in[j].x * in[j].y + in[j].z * in[j].w;", "records of a known size"),
        ("out[i] = at[i + n] + at[i - n] + at[i * 1];", "neighbours, if sums do not wrap"),
        ("float s = in[at[i]].x; s = sin(s) * exp(s) + s * 3; out[i] = s;", "arithmetic"),
        ("float s = 0; for (int k = 0; k < n; k++) s += in[at[k * n + i]].x; out[i] = s;", "a loop"),
        ("int p = at[i]; l[p] = l[p * 3] + l[p * 7]; out[i] = l[p ^ 1];", "local memory"),
        ("atomic_inc((volatile global int *)out + at[i]);", "atomics"),
        ("l[i] = at[at[i]]; barrier(1); out[at[i]] = l[at[i] & 7];", "a barrier"),
    ],
)
def test_lanes_stay(body, why):
    assert not prefers(body), why


def test_cpus_that_gather():
    """An access costs less there, but if it is of bytes: then nothing gathers."""
    some = "int p = at[i]; out[p] = in[p].x * in[p].y + in[p].z * in[p].w * n;"
    assert prefers(some) and not prefers(some, gathers=True)
    assert prefers("int p = at[i]; out[p] = bytes[p] + bytes[p + 99] + bytes[p + 333];", gathers=True)


def test_it_says_why():
    remarks = Remarks()
    assert prefers(RECORD, remarks=remarks)
    assert "places of each lane's own" in remarks.choices["width"]
