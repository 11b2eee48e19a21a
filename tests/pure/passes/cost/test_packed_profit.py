"""Whether OpenCL vectors only stream through a kernel, foreseen."""

import pytest

from cl_driver.passes.cost.packed_profit import stays_packed

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
