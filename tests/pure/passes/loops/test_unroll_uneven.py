"""Loops whose first or last iterations have less to do; arithmetic that loops need not do again."""

from __future__ import annotations

import numpy as np
import pytest

from cl_driver.passes.ir.dominance import Loop, LoopNest, dominators
from cl_driver.passes.ir.instructions import is_arithmetic, predecessors
from cl_driver.passes.loops.licm import hoist_arithmetic
from cl_driver.spirv.enums import Op
from cl_driver.spirv.enums import OpenCLStd as Std

from ..support import compare, compile_cl, make_plan

WORDS = 8
EXPAND = "".join(
    f"w{k} = rotate(w{(k + 6) % WORDS}, 7u) + rotate(w{(k + 1) % WORDS}, 18u) + w{(k + 3) % WORDS} + w{k};"
    for k in range(WORDS)
)
ROUNDS = "".join(
    f"{{ uint t = d + rotate(a, 6u) + (b ^ (a & (b ^ c))) + w{k} + (i + 5) * {k + 3}u;"
    f" d = c; c = b; b = a; a = t ^ rotate(d, {k + 2}u); }}"
    for k in range(WORDS)
)


def hash_of(words, out, start="a = 1, b = 2, c = 3, d = 4", count="4", last="") -> str:
    """A kernel that hashes messages in a loop. words: of a message; out: of the hash."""
    names = "".join(f"uint w{k} = {word};" for k, word in enumerate(words))
    return f"""kernel void k(global uint *out, global const uint *in, uint n) {{
      uint x = get_global_id(0), y = in[x], s = 0;
      for (uint j = 0; j < n; j++) {{ uint {start}; {names}
        for (uint i = 0; i < {count}; i++) {{ {EXPAND} {ROUNDS} {last} }} s += {out}; }}
      out[x] = s; }}"""


FIXED = ["in[j]", *(f"y * {k + 2}u" for k in range(1, WORDS))]  # but for one word
ALL_CHANGE = [f"in[j + {k}]" for k in range(WORDS)]
ALL = "(a ^ b * 3 ^ c * 5 ^ d * 7 ^ w0 ^ w1 * 9 ^ w2 * 11 ^ w3 ^ w4 ^ w5 ^ w6 ^ w7)"

# source, loops that are left
CASES = [
    (hash_of(FIXED, ALL), 1),
    (hash_of(ALL_CHANGE, "d"), 1),
    (hash_of(FIXED, "d"), 1),
    (hash_of(ALL_CHANGE, ALL, "a = in[j + 8], b = in[j + 9], c = in[j + 10], d = in[j + 11]"), 2),
    (hash_of(FIXED, "d", count="n"), 2),
    (hash_of(FIXED, "d", count="9"), 2),
    (hash_of(FIXED, "d", last="if (a == 77) break;"), 2),
]


def loops(function) -> list[Loop]:
    before = predecessors(function)
    return LoopNest(function, dominators(function, before), before).loops


@pytest.mark.parametrize(("source", "left"), CASES)
def test_which_are_unrolled(source, left):
    assert len(loops(make_plan(compile_cl(source), "k", width=1).regions[0].function)) == left


def test_what_is_saved():
    """The copies are without what nobody wants of the last iteration."""

    plan = make_plan(compile_cl(hash_of(ALL_CHANGE, "d")), "k", width=1)
    (loop,) = loops(plan.regions[0].function)
    rotates = sum(i.op is Op.ExtInst for block in loop.blocks for i in block.instructions)
    assert rotates <= 4 * WORDS * 4 - 3 * 4


@pytest.mark.parametrize("source", [case[0] for case in CASES])
def test_results(source):
    values = np.random.default_rng(3).integers(0, 1 << 32, 64, np.uint32)
    compare(compile_cl(source), "k", [np.zeros(16, np.uint32), values, np.uint32(3)], (16,), (4,))


def test_arithmetic_leaves_loops():
    source = """kernel void k(global float *out, global const float *in, int n, float u) {
      int x = get_global_id(0); float s = 0;
      int j = 0;
      do {
        float t = in[j]; int i = 0;
        do {
          s += exp(u) * in[i] + t / u; if (in[i] > u) s *= sin(u) + (float)i / n;
        } while (++i < n);
        s *= log(t);
      } while (++j < n);
      out[x + 64] = s; }"""
    function = make_plan(compile_cl(source, "-O0"), "k", width=1).regions[0].function

    def places():
        """Which functions are called in which loops."""
        return [
            {i.operands[1] for block in loop.blocks for i in block.instructions if is_arithmetic(i)}
            & {Std.exp, Std.sin, Std.log}
            for loop in loops(function)
        ]

    assert places() == [{Std.exp, Std.sin, Std.log}, {Std.exp, Std.sin}]
    assert hoist_arithmetic(function)
    # What is made under a condition only stays, and what is another number each time.
    assert places() == [{Std.sin, Std.log}, {Std.sin}]
    assert not hoist_arithmetic(function)
