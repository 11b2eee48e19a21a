"""Loops that few lanes come to (passes/vectorize/few_lanes.py)."""

import numpy as np
import pytest

from cl_driver.passes.ir.ops import PassOp

from ..support import compare, compile_cl, make_plan

HEAD = """
kernel void k(global int *out, global const int *in, int n, constant float *h) {
    int i = get_global_id(0), y = get_global_id(1), s = 0, a = in[i & 255], b = in[i * 5 & 255];
    float f = 0.5f;
"""
TAIL = "out[i + y * get_global_size(0)] = s + (int)f; }"

SENT = {
    "sum": "for (int j = a; j < b; j++) s += in[j * 7 & 255];",
    "row": "for (int j = a; j < b; j++) s += in[(i * 31 + j) & 255] * in[j];",
    "of parts": "for (int j = a; j < b; j++) s += in[(j * 3 + y) & 255];",
    "floats": "for (int j = a; j < b; j++) f += h[j & 63] * h[(j * 3 + y) & 63];",
    "two results": "for (int j = a; j < b; j++) { s += in[j * 7 & 255]; f += h[(j + y) * 5 & 63]; }",
    "seldom": "if (a > 14) for (int j = 0; j < n; j++) s += in[(a + b * j) & 255];",
    "otherwise": "if (a > 7) s = 7; else for (int j = 0; j < n; j++) s += in[(a + b * j) & 255];",
    "bools": """bool odd = a & 1;
        for (int j = a; j < b; j++) odd ^= in[j * 3 & 255] > in[j * 7 & 255];
        s = odd ? a : b;""",
    "places": """global const int *p = in + a;
        if (a > 12) for (int j = 0; j < b; j++) p = in + *p * 3; s = p - in;""",
    "vectors": """int4 v = (int4)(a, b, i, y);
        for (int j = a; j < b; j++) v += vload4(j * 5 & 31, in) * v.x;
        s = v.x ^ v.y ^ v.z ^ v.w;""",
    "in a loop": """for (int r = 0; r < (a & 3); r++)
        for (int j = in[(i + r) & 255] ; j < b; j++) s += in[j * 7 & 255] ^ r;""",
    "in a branch": """if (b & 8) { out[i + y * get_global_size(0)] = 3;
        for (int j = a; j < b; j++) s += in[j * 7 & 255]; }""",
    "nested": "for (int j = a; j < b; j++) for (int k = 0; k < (j & 3); k++) s += in[(j * k + y) & 255];",
    "inner branch": "for (int j = a; j < b; j++) if (in[j * 3 & 255] & 1) s += in[j * 7 & 255]; else s ^= j;",
    "two": """for (int j = a; j < b; j++) s += in[j * 7 & 255];
        for (int j = b; j < a; j++) s -= in[j * 9 & 255];""",
    "left alone": """int r = in[i * 11 & 255] * 3;
        for (int j = a; j < b; j++) if (in[(j * 7 + a) & 255] == 5) { r = j; break; }
        s = r;""",
    "division": "for (int j = a; j < b; j++) s += in[j * 7 & 255] / (b - a) + in[j * 5 & 255] % (b - j);",
}

TOGETHER = {
    "near": "for (int j = 0; j < a; j++) s += in[i + j] + in[j];",
    "store": "for (int j = a; j < b; j++) out[i + y * get_global_size(0)] = in[j * 7 & 255];",
    "work": """for (int j = a; j < b; j++)
        s += (((in[j * 7 & 255] ^ a) * 7 + (a >> (j & 7))) * 13 ^ (b << (j & 3))) * (b - j) + (a ^ j) * 3;""",
    "uniform": "if (n & 1) for (int j = 0; j < n; j++) s += in[(a + b * j) & 255];",
    "volatile": "for (int j = a; j < b; j++) s += ((volatile global const int *)in)[j * 7 & 255];",
    "own": """int own[8]; for (int j = 0; j < 8; j++) own[j & b] = j;
        for (int j = a; j < b; j++) s += own[in[j * 7 & 255] & 7];""",
}

# Parts go different ways.
APART = {
    "trips": "for (int j = a; j < b + y; j++) s += in[j * 7 & 255] * in[j * 3 & 255];",
    "ways": "for (int j = a; j < b; j++) if (in[j + y & 255] & 1) s += in[j * 7 & 255];",
}


def sent(body, **options) -> int:
    """How many branches few lanes go through one by one."""
    options = {"few_lanes": True, **options}
    (region,) = make_plan(compile_cl(HEAD + body + TAIL), "k", width=8, **options).regions
    return sum(i.op is PassOp.Ballot for block in region.function.blocks for i in block.instructions)


@pytest.mark.parametrize("name", SENT)
def test_sent(name):
    for options in ({}, {"parts": 4, "part_axis": 1}):
        assert sent(SENT[name], **options) == (2 if name == "two" else 1)
    assert not sent(SENT[name], few_lanes=False)


@pytest.mark.parametrize("name", TOGETHER)
def test_together(name):
    assert not sent(TOGETHER[name])


@pytest.mark.parametrize("name", APART)
def test_parts_apart(name):
    assert sent(APART[name]) and not sent(APART[name], parts=2, part_axis=1)


@pytest.mark.parametrize("name", [*SENT, *TOGETHER, *APART])
@pytest.mark.parametrize("shape", [4, 8, (8, 3, 1), (4, 2, 0)])
def test_results(name, shape):
    """Of the plan, by the interpreter, which looks whether lanes differ as the shapes say."""
    body = (SENT | TOGETHER | APART)[name]
    random = np.random.default_rng(5)
    for most in (1, 8):  # so that few lanes have anything to do, or many
        given = random.integers(0, 16, 300).astype(np.int32)
        given[random.integers(0, 10, 300) >= most] = 0
        arguments = [np.zeros(64, np.int32), given, 8, random.uniform(0, 9, 64).astype(np.float32)]
        compare(
            compile_cl(HEAD + body + TAIL), "k", arguments, (11, 4, 1), (11, 4, 1), (shape,), few_lanes=True
        )
