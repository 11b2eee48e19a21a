# ruff: noqa: E501  kernels as one line each
"""Private memory that lives across barriers, spread over all work-items (layout/private_layout.py)."""

import numpy as np
import pytest

from cl_driver.codegen.kernel.wide_kernel import WideKernelEmitter
from cl_driver.codegen.library.functions import ModuleEmitter
from cl_driver.passes.pipeline import plan
from tests.runtime.codegen.access.test_ways import CPUS
from tests.runtime.kernel_harness import Program, builtin_library, compile_c

HEAD = """
typedef struct { float a; float4 v; float b[3]; } record;
kernel void k(global const int *in, global float *out, int n) {
    int x = get_local_id(0), i = get_global_id(0) + get_global_id(1) * get_global_size(0), s = in[i];
    local int all[256];
    BODY
    out[i] = RESULT;
}
"""
SYNC = "all[get_local_id(1) * get_local_size(0) + x] = s; barrier(1); s += all[(s + n) & 7 & (get_local_size(0) - 1)]; barrier(1);"
# How private memory is used, what comes of it, and whether its pieces are spread.
BODIES = {
    "vectors": ("float4 a[5]; for (int k = 0; k < 5; k++) a[k] = k * s; SYNC for (int k = 0; k < n; k++) "
                "{ a[k] += a[k + 1].wzyx * 2; SYNC }", "a[s % 5].y + a[n].x", True),
    "own places": ("float a[8]; for (int k = 0; k < 8; k++) a[k] = k + s; SYNC a[s & 7] += 3; a[(s >> 1) & 7] *= 2;"
                   " SYNC", "a[n] + a[s & 3] + a[7]", True),
    "filled": ("float a[6] = {0}, b[40] = {0}; a[n] = s; SYNC if (s & 1) b[s & 31] = a[n] + a[1]; SYNC",
               "a[n] + b[s & 31] + b[39]", True),
    "filled where few are": ("float a[12]; for (int k = 0; k < 12; k++) a[k] = s + k; SYNC "
                             "if (s % 3 == 0) { __builtin_memset(a, 0, sizeof a); a[n] = 5; } SYNC",
                             "a[n] + a[s % 12] + a[11]", True),
    "structures": ("record r[3]; for (int k = 0; k < 3; k++) { r[k].a = s; r[k].v = s * k; r[k].b[n] = k; "
                   "r[k].b[0] = 7; } SYNC r[s % 3].v.z += 1; r[n].b[s % 2 * 2] = 4; SYNC",
                   "r[n].a + r[2].v.z + r[s % 3].v.x + r[1].b[2 * (s % 2)]", True),
    "bytes": ("uchar a[16]; for (int k = 0; k < 16; k++) a[k] = k * s; SYNC a[s & 15] ^= n; a[n] += 1; SYNC",
              "a[n] * 3 + a[s & 15]", True),
    "doubles": ("double a[4]; for (int k = 0; k < 4; k++) a[k] = k * s; SYNC a[n] += a[s & 3]; SYNC",
                "(float)(a[n] + a[1])", True),
    "generic": ("float a[4]; float *p = a; for (int k = 0; k < 4; k++) p[k] = k * s; SYNC "
                "((float *)(void *)p)[n] += 2; SYNC", "a[n] + p[s & 3]", True),
    "sizes": ("int a[8]; for (int k = 0; k < 8; k++) a[k] = k * s; SYNC ((private char *)a)[s & 31] = 1; SYNC",
              "a[n] + a[(s & 31) / 4]", False),
    "by id": ("float a[64]; for (int k = 0; k < 64; k++) a[k] = k; SYNC a[x] += s; SYNC", "a[x] + a[n]", False),
}  # fmt: skip
GROUPS = [((16, 1), (48, 2)), ((11, 3), (33, 6)), ((5, 5), (10, 5)), ((1, 7), (3, 14)), ((61, 1), (122, 1))]


def program(name, width, cpu="avx512"):
    body, result, _ = BODIES[name]
    text = HEAD.replace("BODY", body).replace("RESULT", result).replace("SYNC", SYNC)
    return Program(compile_c(text), CPUS[cpu], width=width)


@pytest.mark.parametrize("cpu", ["sse", "avx2", "avx512"])
@pytest.mark.parametrize("name", BODIES)
def test_groups_of_all_kinds(name, cpu):
    one, wide = program(name, 1, cpu), [program(name, width, cpu) for width in (4, 8, 16)]
    for group, total in GROUPS:
        given = np.random.default_rng(1).integers(0, 99, total[0] * total[1]).astype(np.int32)
        want = np.zeros(given.size, np.float32)
        one.run("k", total, group, given, want, np.int32(2))
        assert np.ptp(want) > 0
        for made in wide:
            out = np.zeros(given.size, np.float32)
            made.run("k", total, group, given, out, np.int32(2))
            np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("name", BODIES)
def test_what_is_spread(name):
    """Not what has elements of several sizes, or is at a step from lane to lane."""
    made = program(name, 8)
    planned = plan(made.module, made.module.entry_points[0], made.plan_options, builtin_library())
    kept = planned.private_variables
    emitter = WideKernelEmitter(ModuleEmitter(made.options, builtin_library(), {}), planned, 8)
    assert kept
    assert (set(emitter.scratch.spread_offset) == set(kept)) == BODIES[name][2]
    assert emitter.scratch.private_per_item != BODIES[name][2]
