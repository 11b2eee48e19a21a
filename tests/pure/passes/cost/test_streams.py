"""Whether OpenCL vectors, bytes or shorts only stream through a kernel, foreseen."""

import pytest

from cl_driver.device.target import Target
from cl_driver.passes.cost import width
from cl_driver.passes.cost.streams import lanes_of_streams, stays_packed
from cl_driver.spirv.reflect import called

from ..support import compile_cl, entry

HEAD = "kernel void k(global float4 *a, global const float4 *b, int n) { int x = get_global_id(0), at = x; "


@pytest.mark.parametrize(
    "body, stays",
    [
        ("a[x] = b[x] + b[x + 1];", True),
        ("a[x] = b[x * 2];", False),
        ("a[x] = b[n];", False),
        ("float4 s = 0; for (int k = 0; k < n; k++) s += b[x + k * n]; a[x] = s;", True),
        # A counter that begins with the id, and goes on by what is the same for all.
        ("float4 s = 0; for (int k = 0; k < n; k++) { s += b[at]; at += n; } a[x] = s;", True),
        ("float4 s = 0; for (int k = 0; k < n; k++) { s += b[at]; at += x; } a[x] = s;", False),
        ("float4 s = 0; for (int k = 0; k < n; k++) { s += b[at]; at *= 3; } a[x] = s;", False),
        ("float4 s = 0; for (int k = 0; k < n; k++) { s += b[at]; if (k & n) at = k; } a[x] = s;", False),
        ("float4 s = 0; for (at = 2 * x; at < n; at += 2) s += b[at]; a[x] = s;", False),
    ],
)
def test_vectors_that_stream(body, stays):
    assert stays_packed(entry(compile_cl(f"{HEAD} {body} }}"), "k").function) == stays


BYTES = (
    "kernel void k(global uchar *a, global const uchar *b, global short *s, global float *f, "
    "global uchar4 *v, global double *d, local uchar *l, global int *t, int n) { int x = get_global_id(0); "
)


@pytest.mark.parametrize(
    "body, avx2, avx512",
    [
        ("a[x] = b[x];", 32, 32),
        ("int y = get_global_id(1); if (x < n / 3 && y < n) a[y * n + x] = max(b[y * n + x], a[x]);", 32, 32),
        ("s[x] = s[x + n] + 1;", 16, 32),
        ("s[x] = b[x] * 2;", 32, 32),  # two registers of shorts
        ("f[x] = b[x] * 0.5f;", 16, 32),  # two registers of floats
        ("a[x] = convert_uchar_sat(f[x]);", 16, 32),
        ("v[x] = v[x].zyxw;", 32, 32),  # four registers of components
        ("a[x] = b[x] + b[n];", 32, 32),  # one place is the same for all
        ("a[mad24(n, 4, mad24(x, 1, n))] = b[mul24(x, 1)];", 32, 32),
        ("for (int k = 0; k < min(n, 9); k++) a[x + k * n] = max(a[x + k * n], b[x]);", 32, 32),
        # Nothing narrow; numbers of 64 bits; work-items that are no neighbours, or know no places.
        ("f[x] *= 2;", 8, 16),
        ("d[x] = b[x];", 8, 16),
        ("a[x] = b[2 * x];", 8, 16),
        ("a[2 * x] = b[x];", 8, 16),
        ("a[n - x] = b[x];", 8, 16),
        ("a[x] = b[t[x]];", 8, 16),
        ("a[x] = b[clamp(x, 0, n)];", 8, 16),
        ("a[n] = b[x];", 8, 16),
        ("a[mad24(x, 2, n)] = b[x];", 8, 16),
        ("a[mad24(x, n, n)] = b[x];", 8, 16),
        # Wide numbers in loops, barriers, atomics, local, private and volatile memory, slow functions.
        ("for (int k = 0; k < n; k++) f[x + k * n] = b[x];", 8, 16),
        ("for (int k = 0; k < n; k++) a[x * k] = b[x];", 8, 16),
        ("l[x] = b[x]; barrier(CLK_LOCAL_MEM_FENCE); a[x] = b[x];", 8, 16),
        ("a[x] = b[x] + l[x];", 8, 16),
        ("a[x] = b[x]; atomic_inc(t);", 8, 16),
        ("uchar p[9]; for (int k = 0; k < 9; k++) p[k] = b[x + k]; a[x] = p[b[x] & 7];", 8, 16),
        ("a[x] = convert_uchar(exp((float)b[x]));", 8, 16),
        ("a[x] = *(volatile global const uchar *)&b[x];", 8, 16),
    ],
)
def test_lanes_of_narrow_streams(body, avx2, avx512):
    functions = called(entry(compile_cl(f"{BYTES} {body} }}"), "k").function)
    found = [lanes_of_streams(functions, bits // 32, bits, width._PLAIN) for bits in (256, 512)]
    assert found == [avx2, avx512]


@pytest.mark.parametrize("columns, lanes", [(0, 32), (16, 8), (32, 32), (40, 8), (64, 32), (4, 4)])
def test_rows_that_are_required_fill_vectors(columns, lanes):
    functions = called(entry(compile_cl(f"{BYTES} a[x] = b[x]; }}"), "k").function)
    assert width.choose(functions, (columns, 1, 1), Target("x86_64-unknown-linux-gnu", (), 256)) == lanes
