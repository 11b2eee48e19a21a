"""Conditions on all components of a vector are one question of the vector, and give the same results."""

from __future__ import annotations

import numpy as np
import pytest

from cl_driver.spirv.enums import Op

from ..support import compare, compile_cl, make_plan

SOURCE = """
#define OR4(F) (F(0) || F(1) || F(2) || F(3))
#define AND4(F) (F(0) && F(1) && F(2) && F(3))
#define LOAD int i = get_global_id(0); int4 v = vload4(i & 7, in), w = vload4((i + 3) & 7, in)
kernel void same(global int *out, global const int *in, int x) {
    LOAD;
#define EQUALS(n) (v.s##n == w.s##n)
    out[i] = OR4(EQUALS) ? x : 0;
}
#define NOT_EQUAL(n) (v.s##n != w.s##n)
kernel void scalar(global int *out, global const int *in, int x) {
    LOAD;
#define LESS(n) (v.s##n < x)
    out[i] = AND4(LESS) ? w.x : w.y;
}
kernel void more(global int *out, global const int *in, int x) {
    LOAD;
#define OTHER(n) (x != w.s##n)
    if (i > 3 && AND4(OTHER) && v.y > v.z) out[i] = 7;
}
kernel void both(global int *out, global const int *in, int x) {
    LOAD;
    out[i] = (OR4(EQUALS) || i == x) + 2 * (AND4(LESS) || v.x == 5);
}
kernel void floats(global int *out, global const int *in, int x) {
    LOAD;
    float4 a = convert_float4(v) / convert_float4(w - 1);  // some are NaN
#define NOT_LESS(n) !(a.s##n < 1.0f)
    out[i] = OR4(NOT_LESS);
}
kernel void bools(global int *out, global const int *in, int x) {
    LOAD;
    int4 c = v == w;
    out[i] = c.x && c.y && c.z && c.w ? x : i;
}
kernel void left(global int *out, global const int *in, int x) {
    LOAD;
#define GREATER(n) (w.y > v.s##n)
    out[i] = OR4(GREATER);
}
kernel void undefined(global int *out, global const int *in, int x) {
    LOAD;
    if (i & 1) v = (int4)(x, w.x, w.yz); else v.x = x;
    out[i] = v.x == x || v.y == 3 || v.z == 4 || v.w == 5;
}
kernel void mixed(global int *out, global const int *in, int x) {
    LOAD;
    bool a = OR4(EQUALS), b = AND4(LESS), c = (a && b) || OR4(NOT_EQUAL) || (w.x > 1 && w.y > 1);
    out[i] = c + 2 * (a ? true : false) + 4 * (b && a && AND4(NOT_EQUAL));
}
kernel void three(global int *out, global const int *in, int x) {
    LOAD;
    out[i] = v.x == x || v.y == x || v.w == x;
}
"""
INPUT = np.random.default_rng(7).integers(0, 4, 32).astype(np.int32)


def questions(name: str, width: int) -> list[Op]:
    (region,) = make_plan(compile_cl(SOURCE), name, width=width).regions
    ops = [i.op for block in region.function.blocks for i in block.instructions]
    return [op for op in ops if op is Op.Any or op is Op.All]


@pytest.mark.parametrize(
    "name", ["same", "scalar", "more", "both", "floats", "bools", "left", "undefined", "mixed", "three"]
)
@pytest.mark.parametrize("x", [1, 4])
def test_results(name, x):
    compare(compile_cl(SOURCE), name, [np.zeros(24, np.int32), INPUT, x], (24,), (8,), (1, 8, (4, 2, 0)))


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("same", [Op.Any]), ("scalar", [Op.All]), ("more", [Op.All]), ("both", [Op.Any, Op.All]),
        ("floats", [Op.Any]), ("bools", [Op.All]), ("three", []),
    ],
)  # fmt: skip
def test_one_question_for_a_vector(name, found, width):
    assert questions(name, width) == found
