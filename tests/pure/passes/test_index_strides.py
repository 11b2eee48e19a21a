"""Indices that may wrap around for all that is known: those of in-bounds addresses keep their stride."""

import numpy as np
import pytest

from cl_driver.spirv.enums import Op

from .support import compare, compile_cl, make_plan

HEAD = "kernel void k(global int *out, global uchar *bytes, int n, uint u) { int x = get_global_id(0); "


def stride(statement, width=8):
    """Of the address of the only store."""
    (region,) = make_plan(compile_cl(f"{HEAD} {statement} }}"), "k", width=width).regions
    (store,) = (i for b in region.function.blocks for i in b.instructions if i.op is Op.Store)
    return region.shapes.stride(store.operands[0])


@pytest.mark.parametrize(
    "statement, expected",
    [
        ("out[mad24(x, 3, n)] = 1;", 12),
        ("out[mad24((int)get_global_id(1), n, mad24(x, 1, n))] = 1;", 4),
        ("*(global int *)(bytes + mad24(x, 12, n)) = 1;", 12),
        ("out[mul24(x, 2) + n] = 1;", 8),
        ("out[(int)((uint)x * 3u + u)] = 1;", 12),
        ("out[mad24(x, 3, n) - 5] = 1;", 12),  # clang: out + mad24(...), which may be out of bounds, less 5
        ("global char *p = (global char *)(out + mad24(x, 3, n)) + 8; *(global int *)p = 1;", 12),
        ("out[(long)mad24(x, 3, n) + (1L << 31)] = 1;", None),  # too far away
        ("out[mad24(x, 3, n) - 5] = (size_t)(out + (mad24(x, 3, n) - 5)) >> 9;", None),
        ("int i = mad24(x, 3, n); if (i > n) out[i] = 1;", 12),
        ("int i = mad24(x, 3, n); if (i >= 0 && i < n) out[i] = 1;", None),  # -3 becomes 2^32 - 3, and then 0
        ("out[mad24(x, 3, n) & 0xffff] = 1;", None),
        ("out[mad24((uint)x, 3u, u)] = 1;", None),  # (a buffer may have 2^32 elements)
        ("out[(short)mad24(x, 3, n)] = 1;", None),
        ("out[mad24(x, -3, n)] = 1;", None),  # lane 0 may be the only one that wraps
        ("out[mad24(x, 1 << 20, n)] = 1;", None),
        ("out[mad24(x, n, n)] = 1;", None),
        ("long i = mad24(x, 3, n); out[i] = i >> 33;", None),  # the number itself is wanted
    ],
)
def test_strides(statement, expected):
    assert stride(statement) == expected


@pytest.mark.parametrize("n", [-40, -7, 0, 3, 50, (1 << 31) - 30, -(1 << 31) + 4])
def test_lanes_that_are_elsewhere(n):
    """Those whose index wraps around, or is out of bounds, do nothing."""
    body = "int i = (int)((uint)x * 4u + (uint)n); if (i >= 0 && i < 100) out[i] += x;"
    source = f"kernel void k(global int *out, int n) {{ int x = get_global_id(0); {body} }}"
    out = np.arange(100, dtype=np.int32)
    compare(compile_cl(source), "k", [out, n], (24, 1, 1), (12, 1, 1), (1, 4, 8), inner=True)


@pytest.mark.parametrize("n", [-40, -7, 3, (1 << 31) - 30, -(1 << 31) + 4])
def test_lanes_that_are_elsewhere_beside_what_they_access(n):
    body = "int i = (int)((uint)x * 4u + (uint)n); if (i >= 2 && i < 98) out[i + 2] = in[i - 2] + in[i + 1];"
    source = f"kernel void k(global int *out, global int *in, int n) {{ int x = get_global_id(0); {body} }}"
    out = np.arange(100, dtype=np.int32)
    compare(compile_cl(source), "k", [out, out * 3, n], (24, 1, 1), (12, 1, 1), (1, 4, 8), inner=True)


def test_products_and_sums():
    """mul24 and mad24 of all types."""
    body = "".join(
        f"{t} {t}_ = *(global {t} *)(in + 4 * x);"
        f"*(global {t} *)(out + {k} + 4 * x) = mad24({t}_, ({t})3, {t}_) ^ mul24({t}_, {t}_);"
        for k, t in enumerate(("int", "uint"))
    )
    body += "int4 v = vload4(x, in); vstore4(mad24(v, v.yzwx, mul24(v, v.wzyx)), x, out + 400);"
    source = f"kernel void k(global int *out, global int *in) {{ int x = get_global_id(0); {body} }}"
    rng = np.random.default_rng(24)
    numbers = rng.integers(-(1 << 23), 1 << 23, 100).astype(np.int32)
    numbers[::4] &= 0x7FFFFF
    compare(
        compile_cl(source), "k", [np.zeros(900, np.int32), numbers], (24, 1, 1), (12, 1, 1), (1, 4, (4, 2, 0))
    )
