"""Elements side by side are copied as one without lanes, unless the copy overtakes itself."""

import numpy as np
import pytest

from cl_driver.spirv.enums import Op
from cl_driver.spirv.module import Kind

from ..support import compare, compile_cl, make_plan

HEAD = "kernel void k(global uchar *a, global short *b, global float *x, int from, int to, int n) { "
BYTES = "global uchar *p = a + from, *q = a + to; for (int i = 0; i < 16; i++) q[i] = p[i];"
SHORTS = "global short *p = b + from, *q = b + to; for (int i = 0; i < 7; i++) q[i] = p[i];"
FIELDS = """typedef struct { float x, y, z; uchar kind[4]; int last; } Record;
    kernel void k(global uchar *a, global short *b, global Record *x, int from, int to, int n) {
        x[to].x = x[from].x; x[to].y = x[from].y; x[to].z = x[from].z; x[to].last = x[from].last;
        for (int i = 0; i < 4; i++) x[to].kind[i] = x[from].kind[i];"""


def program(body):
    return compile_cl(f"{body if body.startswith('typedef') else HEAD + body} }}")


def bits(type_):
    return type_.count * bits(type_.element) if type_.kind is Kind.VECTOR else type_.width


def stored(body, width=1):
    """Bits of each store, in ascending order."""
    (region,) = make_plan(program(body), "k", width=width).regions
    stores = (i for block in region.function.blocks for i in block.instructions if i.op is Op.Store)
    return sorted(bits(i.operands[1].type) for i in stores)


@pytest.mark.parametrize(
    "body, wide",
    [
        (BYTES, [128]),
        (BYTES.replace("16", "31"), [128, 64, 32, 16, 8]),
        (BYTES.replace("16", "32"), [256]),
        (SHORTS, [64, 32, 16]),
        (f"{BYTES} {SHORTS.replace('*p', '*r').replace('*q', '*s').replace('q[i] = p', 's[i] = r')}",
         [128, 64, 32, 16]),
        ("global uchar *p = a + from, *q = a + to; uchar c = p[0], d = p[1], e = p[2], f = p[3];"
         "q[0] = c; q[1] = d; q[2] = e; q[3] = f;", [32]),
        ("for (int i = 0; i < 16; i++) a[to * 20 + i] = a[from * 24 + i];", [128]),
    ],
    ids=["bytes", "an odd number", "a vector of 256 bits", "shorts", "two runs", "loaded first", "rows"],
)  # fmt: skip
def test_copies_are_joined(body, wide):
    found = stored(body)
    for size in wide:
        found.remove(size)
    assert found == stored(body, width=4), "one by one, where they overlap"


@pytest.mark.parametrize(
    "body",
    [
        BYTES.replace("16", "3"),
        BYTES.replace("q[i] = p[i]", "q[i] = p[i] + 1"),
        BYTES.replace("q[i]", "q[2 * i]"),
        BYTES.replace("p[i]", "p[15 - i]"),
        BYTES.replace("global uchar *p", "volatile global uchar *p"),
        BYTES.replace("q[i] = p[i];", "{ q[i] = p[i]; b[i] = n; }"),
        BYTES.replace("q[i] = p[i];", "{ n += p[i]; q[i] = p[i]; } b[0] = n;"),
        f"local uchar l[16]; {BYTES.replace('q[i]', 'l[i]')} a[to] = l[n];",
    ],
    ids=[
        "few",
        "arithmetic",
        "gaps",
        "backwards",
        "volatile",
        "others between",
        "used twice",
        "local memory",
    ],
)
def test_others_stay(body):
    assert stored(body) == stored(body, width=4)


@pytest.mark.parametrize("body", [BYTES, BYTES.replace("16", "13"), SHORTS, FIELDS])
@pytest.mark.parametrize(
    "to", [24, 25, 23, 26, 20, 28, 30, 31, 32, 38, 39, 40, 41, 8, 9, 10, 11, 12, 13, 0, 50]
)
def test_results(body, to):
    """Also where the target is within the source, so that what was copied is copied again."""
    x = np.arange(64 * 5, dtype=np.int32) if body is FIELDS else np.arange(4, dtype=np.float32)
    args = [np.arange(96, dtype=np.uint8), np.arange(96, dtype=np.int16), x, 24, to, 3]
    compare(program(body), "k", args, (1, 1, 1), (1, 1, 1))
