"""Stores to components of vectors: only these are stored where lanes access places of their own."""

import numpy as np
import pytest

from cl_driver.spirv.enums import Op
from cl_driver.spirv.module import Kind

from ..support import compare, compile_cl, make_plan

HEAD = (
    "kernel void k(global float4 *out, global const int *index, global const float *in, global float3 *three,"
    " local float4 *l, global float8 *eight) { int i = get_global_id(0); int j = index[i]; "
)


def accesses(body, width=8):
    """Components of each load, and of each store, of floats."""
    (region,) = make_plan(compile_cl(f"{HEAD} {body} }}"), "k", width=width).regions
    found = [i for block in region.function.blocks for i in block.instructions]
    loads = [i.type for i in found if i.op is Op.Load and i.operands[0].type.element.kind is not Kind.INT]
    stores = [i.operands[1].type for i in found if i.op is Op.Store]
    loads = [type_ for type_ in loads if (type_.element or type_).kind is Kind.FLOAT]
    return tuple(sorted(t.count if t.kind is Kind.VECTOR else 1 for t in types) for types in (loads, stores))


@pytest.mark.parametrize(
    "body, loads, stores",
    [
        ("out[j].x += 1;", [1], [1]),
        ("out[j].w = 1;", [], [1]),
        ("out[j].y += 1; out[j].z += 2;", [1, 1], [1, 1]),
        ("three[j].y *= 3;", [1], [1]),
        ("eight[j].s5 *= 3;", [1], [1]),
        ("out[j].x = out[j].z;", [1], [1]),
        ("out[j].x += 1; out[j + 1].x += 1;", [1, 1], [1, 1]),
        ("l[j].x += 1;", [1], [1]),
        # More than half of the components, or all are wanted.
        ("out[j].xyz += 1;", [4], [4]),
        ("float4 v = out[j]; v.x += v.y + v.z + v.w; out[j] = v;", [4], [1]),
        ("float4 v = out[j]; out[j].x = 1; *out = v;", [4], [1, 4]),
        ("float4 v = out[j]; v.x = 1; out[j] = v; *out = v;", [4], [1, 4]),
        # Vectors that lie one after the other, and one for all lanes.
        ("out[i].x += 1;", [4], [4]),
        ("out->x += in[i];", [1, 4], [4]),
        # What others may write meanwhile, or must not be left out.
        ("float4 v = out[j]; out[i] = 3; v.x += 1; out[j] = v;", [4], [4, 4]),
        ("float4 v = out[j]; atomic_inc((global int *)out); v.x += 1; out[j] = v;", [4], [4]),
        ("volatile global float4 *v = out; float4 w = v[j]; w.x = 1; v[j] = w;", [4], [4]),
    ],
)
def test_what_is_accessed(body, loads, stores):
    assert accesses(body) == (loads, stores)


PRIVATE = """kernel void k(global float4 *out, global const int *index, int n) {
    float4 a[16];
    for (int k = 0; k < 16; k++) a[k] = k;
    int i = get_global_id(0);
    for (int k = 0; k < n; k++) {
        a[index[i + k] & 15].x += 1;
        a[index[i + 2 * k] & 15].w = a[index[i + 3 * k] & 15].y;
        a[k & 15].z *= 2;
    }
    for (int k = 0; k < 16; k++) out[i * 16 + k] = a[k];
}"""


def test_private_memory():
    rng = np.random.default_rng(1)
    args = [np.zeros(16 * 16 * 4, np.float32), rng.integers(0, 64, 80).astype(np.int32), 9]
    compare(compile_cl(PRIVATE), "k", args, (16, 1, 1), (8, 1, 1), (1, 4, 8, (4, 2, 0)))


@pytest.mark.parametrize(
    "body",
    [
        "out[j].x += 1; out[j].w = out[j].y + i; out[63 - j].y *= 2;",
        "if (i & 1) { out[j].y = i; out[j].x += 3; } else out[j].z -= out[j].y;",
        "for (int k = 0; k < 3; k++) { eight[j & 15].s1 += k; eight[(j + k) & 15].s7 = eight[j & 15].s1; }",
        "three[j].y = i; three[j].z += three[j].y;",
        "float4 v = out[j]; v.x = v.y; out[j] = v; v.z = v.x + 1; out[j] = v;",
    ],
)
def test_results(body):
    rng = np.random.default_rng(2)
    floats = [rng.integers(0, 99, 64 * 4).astype(np.float32) for _ in range(4)]
    index = rng.permutation(64)[:32].astype(np.int32)
    if "63 - j" in body:  # which no other work-item may have
        index = np.arange(32, dtype=np.int32)[::-1].copy()
    args = [floats[0], index, floats[1], floats[2], 0, floats[3]]
    source = f"{HEAD} {body} }}".replace("local float4 *l", "int l")
    size = (1 if "15" in body else 32, 1, 1)
    compare(compile_cl(source), "k", args, size, size, (1, 4, 8, (4, 2, 0)))
