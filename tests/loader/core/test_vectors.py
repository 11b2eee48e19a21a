"""Vectors: steps, alignment in memory, components by name (OpenCL C 6.3.5 to 6.3.7, 6.15.11)."""

import numpy as np
import pytest

from .session import Local
from .test_basic import SCALARS


@pytest.mark.parametrize("type_", SCALARS)
def test_vec_step(session, type_):
    """Of types and of expressions; three components count as four, and the expression is not evaluated."""
    steps = "".join(f"out[n++] = vec_step({type_}{size}); " for size in ("", 2, 3, 4, 8, 16))
    source = (
        f"kernel void k(global int *out) {{ int n = 0; {steps} {type_}3 v; out[n] = vec_step(v = n++); }}"
    )
    source = source.replace("vec_step(v = n++)", f"vec_step(({type_}8)n++) + 100 * n")
    assert list(session.compute(source, 1, np.int32, 7)) == [1, 2, 4, 4, 8, 16, 608]


@pytest.mark.parametrize("type_", ["char", "int", "double"])
def test_private_local_and_argument_vectors_are_aligned(session, type_):
    source = f"""
        kernel void k(global ulong *out, local char *unused, local {type_}16 *shared, global {type_}16 *in) {{
          local {type_}4 a[3]; local char c; local {type_}8 b;
          char first = unused[0]; {type_}3 x[3]; char second; {type_}16 y;
          x[0] = first; y = first; c = 1; second = c; a[0] = first; b = second; shared[0] = y;
          out[0] = (ulong)a % sizeof(a[0]); out[1] = (ulong)&b % sizeof(b); out[2] = (ulong)x % sizeof(x[0]);
          out[3] = (ulong)&y % sizeof(y); out[4] = (ulong)shared % sizeof(y); out[5] = (ulong)in % sizeof(y);
          out[6] = a[0].x + b.s7 + x[0].z + second;
        }}"""
    found = session.compute(source, 1, np.uint64, 7, Local(3), Local(128), session.buffer(4096))
    assert list(found[:6]) == [0] * 6


def test_packed_and_aligned_structures(session):
    """Attributes of types (6.13.1): without padding, or with more."""
    source = """
        typedef struct __attribute__((packed)) { char c; int i; short s; double d; } tight;
        typedef struct { char c; int i __attribute__((aligned(16))); } __attribute__((aligned(64))) wide;
        kernel void k(global int *out, global tight *t, global wide *w) {
          out[0] = sizeof(tight); out[1] = sizeof(wide);
          out[2] = (int)((global char *)&w[1].i - (global char *)w);
          out[3] = t[1].i + (int)t[1].d; t[2].i = 77; w[1].i = 5;
        }"""
    dtype = np.dtype([("c", "i1"), ("i", "<i4"), ("s", "<i2"), ("d", "<f8")])
    data = np.zeros(3, dtype)
    data["i"][1], data["d"][1] = 1000, 23.5
    tight, wide = session.buffer(data), session.buffer(np.zeros(128, np.uint8))
    assert list(session.compute(source, 1, np.int32, 4, tight, wide)) == [15, 64, 80, 1023]
    after = session.read(tight, dtype, 3)
    assert after["i"][2] == 77 and after["s"][2] == 0 and after["c"][2] == 0
    assert list(np.flatnonzero(session.read(wide, np.uint8, 128))) == [80]


def test_components_by_name(session):
    source = """
        kernel void k(global float *out) {
          float8 v = (float8)(0, 1, 2, 3, 4, 5, 6, 7);
          float4 a = v.odd, b = v.hi, c = v.s7310.wzyx; float3 d = v.lo.zyx;
          v.s04 = v.s40; a.yw = (float2)(10, 11); b.lo.x = -1;
          vstore4(a, 0, out); vstore4(b, 1, out); vstore4(c, 2, out);
          vstore3(d, 0, out + 12); vstore8(v, 2, out);
        }"""
    found = session.compute(source, 1, np.float32, 24)
    assert list(found[:12]) == [1, 10, 5, 11, -1, 5, 6, 7, 0, 1, 3, 7]
    assert list(found[12:15]) == [2, 1, 0] and list(found[16:]) == [4, 1, 2, 3, 0, 5, 6, 7]


@pytest.mark.parametrize("size", [2, 3, 4, 8, 16])
def test_loads_and_stores_need_only_the_alignment_of_components(session, size):
    source = f"""
        kernel void k(global short *out, global const short *in) {{
          int i = get_global_id(0); vstore{size}(vload{size}(i, in + 1) + (short)1, i, out + 3);
        }}"""
    data = np.arange(20 * size + 1, dtype=np.int16)
    found = session.compute(source, 20, np.int16, 20 * size + 5, session.buffer(data))
    assert np.array_equal(found[3:-2], data[1:] + 1) and not found[[0, 1, 2, -2, -1]].any()
