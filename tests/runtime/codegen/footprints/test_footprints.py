# ruff: noqa: E501  kernels as one line each
"""Reads around a place of each lane's own, at clamped coordinates (cl_driver/codegen/footprints/)."""

import numpy as np
import pytest

from tests.runtime.kernel_harness import Program, compile_c

HEAD = "(global float *to, global const float *in, global const int *xs, global const int *ys, int w, int h, int n) { int i = get_global_id(0); if (i >= n) return; int x = xs[i], y = ys[i]; "
AT = "#define P(X, K) ((int)((uint)(X) + (K)))\n#define AT(X, Y) in[clamp(Y, 0, h - 1) * w + clamp(X, 0, w - 1)]\n#define FAR(X, Y) in[(size_t)clamp(Y, 0, h - 1) * w + clamp(X, 0, w - 1)]\n"
KERNELS = {
    "bilinear": "to[i] = FAR(x, y) + 3 * FAR(P(x, 1), y) + 5 * FAR(x, P(y, 1)) + 7 * FAR(P(x, 1), P(y, 1)); }",
    "four": "float s = 0; for (int k = -1; k < 3; k++) s = s * 3 + FAR(P(x, -1), P(y, k)) + 2 * FAR(x, P(y, k)) + 4 * FAR(P(x, 1), P(y, k)) + 8 * FAR(P(x, 2), P(y, k)); to[i] = s; }",
    "three": "to[i] = FAR(P(x, -1), y) + 2 * FAR(x, y) + 4 * FAR(P(x, 1), y) + 8 * FAR(P(x, 3), y); }",
    "bytes": "global const uchar *b = (global const uchar *)in; size_t p = 4 * w; int u = 4 * w - 1; to[i] = b[clamp(y, 0, h - 1) * p + clamp(x, 0, u)] + 3 * b[clamp(P(y, 1), 0, h - 1) * p + clamp(P(x, 1), 0, u)]; }",
    "pixels": "global const uchar4 *b = (global const uchar4 *)in; uchar4 p = b[clamp(y, 0, h - 1) * (size_t)w + clamp(x, 0, w - 1)], q = b[clamp(y, 0, h - 1) * (size_t)w + clamp(P(x, 1), 0, w - 1)]; to[i] = p.x + 3 * p.w + 5 * q.y + 7 * q.z; }",
    "halves": "global const uint2 *b = (global const uint2 *)in; uint2 p = b[clamp(y, 0, h - 1) * (size_t)(w / 2) + clamp(x, 0, w / 2)], q = b[clamp(y, 0, h - 1) * (size_t)(w / 2) + clamp(P(x, 1), 0, w / 2)]; to[i] = (p.x & 0xffff) + 3 * (p.x >> 16) + 5 * (p.y & 0xffff) + 7 * (q.x & 0xffff) + 9 * (q.y >> 16); }",
    "halves_and_more": "global const uint2 *b = (global const uint2 *)in; uint2 p = b[clamp(x, 0, w / 2)], q = b[clamp(P(x, 1), 0, w / 2)]; to[i] = (p.x & 0xffff) + 3 * (p.y >> 15) + 5 * (q.x & 0x1ffff) + 7 * (q.y >> 16); }",
    "doubled": "global const long *b = (global const long *)in; long p = b[clamp(x, 0, w / 2)] - b[clamp(P(x, 1), 0, w / 2)]; to[i] = (float)(p >> 40); }",
    "border": "float s = 0; for (int k = 0; k < 2; k++) { s = 3 * s + (P(x, k) >= 0 && P(x, k) < w && (uint)y < (uint)h ? FAR(P(x, k), y) : 100.0f); } to[i] = s; }",
    "border_chosen": "float s = 0; for (int k = 0; k < 2; k++) { bool in_x = (uint)P(x, k) < (uint)w, in_y = (uint)y < (uint)h; float v = FAR(P(x, k), y); s = 3 * s + (in_x & in_y ? v : 100.0f); } to[i] = s; }",
    "border_of_x": "bool a = (uint)x < (uint)w, b = (uint)P(x, 1) < (uint)w; float u = FAR(x, y), v = FAR(P(x, 1), y); to[i] = (a ? u : 100.0f) + 3 * (b ? v : 7.0f); }",
    "half_of_border": "bool a = (uint)P(x, 1) < (uint)w; float u = FAR(x, y), v = FAR(P(x, 1), P(y, 2)); to[i] = u + 3 * (a ? v : 7.0f); }",
    "by_max": "to[i] = in[max(min(x, w - 1), 0)] + 3 * in[max(min(P(x, 2), w - 1), 0)]; }",
    "unsigned_": "uint u = x; to[i] = in[min(u, (uint)w - 1u)] + 3 * in[min(u + 1u, (uint)w - 1u)]; }",
    "constant_bound": "to[i] = in[clamp(x, 0, 11)] + 3 * in[clamp(P(x, 1), 0, 11)]; }",
    "two_bounds": "to[i] = in[clamp(x, 0, w - 1)] + 3 * in[clamp(P(x, 1), 0, w - 3)]; }",
    "dependent": "float s = FAR(x, y) + FAR(P(x, 1), y); int v = (int)s; to[i] = s + 3 * FAR(v, y) + 5 * FAR(v + 1, y); }",
    "in_branch": "float s = 1; if ((x ^ y) & 1) s = FAR(x, y) + 3 * FAR(P(x, 1), P(y, 1)); to[i] = s; }",
    "known_too": "int a = clamp(x, 0, w - 1), b = clamp(P(x, 1), 0, w - 1); float s = in[a] + 3 * in[b]; to[i] = s + a * 1000 - b; }",
    "rows_of_int": "to[i] = AT(x, y) + 3 * AT(P(x, 1), y) + 5 * AT(x, P(y, 1)); }",
    "one_side": "to[i] = in[max(x, 0) % w] + 3 * in[max(P(x, 1), 0) % w]; }",
    "other_lower": "to[i] = in[clamp(x, 1, w - 1)] + 3 * in[clamp(P(x, 1), 1, w - 1)]; }",
}  # fmt: skip
SOURCE = AT + "\n".join(f"kernel void {name}{HEAD}{body}" for name, body in KERNELS.items())
# What is no footprint: bounds that are not asked about, and reads in blocks of their own.
REFUSED = {"one_side", "other_lower", "border"}
FORMS = ((4, 1), (8, 1), (16, 1), (8, 2))
EDGE = np.iinfo(np.int32)


@pytest.fixture(scope="module")
def programs():
    compiled = compile_c(SOURCE)
    return {form: Program(compiled, width=form[0], parts=form[1]) for form in FORMS}


@pytest.fixture(scope="module")
def alone():
    return Program(compile_c(SOURCE), width=1)


def _coordinates(kind: str, count: int, size: int, rng) -> np.ndarray:
    if kind == "inside":
        return rng.integers(1, size - 3, count)
    if kind == "edges":
        return rng.integers(-4, size + 4, count)
    if kind == "outside":  # a vector is in one direction, another one in any
        far = rng.integers(size, EDGE.max, count, endpoint=True)
        far[rng.integers(0, 2, count) == 1] *= -1
        far[:32] = np.abs(far[:32])
        far[16:32] = -3
        far[40:45] = -1, -2, size, size - 1, EDGE.min
        return far
    wild = rng.integers(EDGE.min, EDGE.max, count, endpoint=True)
    wild[:8] = EDGE.min, EDGE.max, EDGE.max - 1, EDGE.min + 1, -1, 0, size - 1, size
    wild[16:24] = EDGE.max  # a vector of which all coordinates wrap around
    wild[24:32] = EDGE.max - 1
    wild[32:40] = -1
    return wild


BORDERS = {"border_chosen", "border_of_x", "half_of_border"}


def _run(program: Program, name: str, memory, w: int, h: int, n: int) -> np.ndarray:
    to = np.full(100, -1, np.float32)
    program.run(name, (100,), (25,), to, *memory, np.int32(w), np.int32(h), np.int32(n))
    return to


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("form", FORMS)
def test_lanes_read_what_one_work_item_reads(programs, alone, form, name):
    rng = np.random.default_rng(5)
    for w, h in ((23, 17), (1, 1), (2, 3)):
        data = rng.integers(0, 100, w * h + 40).astype(np.float32)
        for kind in ("inside", "edges", "outside", "wild"):
            xs, ys = (_coordinates(kind, 100, max(size, 6), rng).astype(np.int32) for size in (w, h))
            if name in ("rows_of_int", "one_side"):
                xs, ys = xs % 50, ys % 50
            memory = data, xs, ys
            for n in (100, 93):
                wanted = _run(alone, name, memory, w, h, n)
                np.testing.assert_array_equal(_run(programs[form], name, memory, w, h, n), wanted, kind)


@pytest.mark.parametrize("name", KERNELS)
def test_one_question_is_asked_where_it_is_enough(programs, name):
    has_versions = "regular" in programs[8, 1].code(name).text
    assert has_versions == (name not in REFUSED)


@pytest.mark.parametrize("name", KERNELS)
def test_borders_are_asked_about_where_they_are_chosen(programs, name):
    assert ("outside" in programs[8, 1].code(name).text) == (name in BORDERS)
