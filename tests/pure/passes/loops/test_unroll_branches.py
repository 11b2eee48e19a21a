"""Loops whose counter decides which way their branches go."""

from __future__ import annotations

import pytest

from cl_driver.passes.ir.dominance import LoopNest, dominators
from cl_driver.passes.ir.instructions import predecessors

from ..support import compile_cl, make_plan

HEAD = "kernel void k(global int *out, global const int *in, int n) { int x = get_global_id(0), s = in[x];"
ROUND = "switch (i & 3) { case 0: s ^= in[i]; break; case 1: s = s * in[i + 9]; break; default: s += in[i]; }"
MUCH = "".join(ROUND.replace("9", str(9 * k)).replace("in[i]", f"in[i + {k}]") for k in range(20))


def has_loop(body, width=8) -> bool:
    module = compile_cl(HEAD + body + "out[x] = s; }")
    function = make_plan(module, "k", width=width).regions[0].function
    before = predecessors(function)
    return bool(LoopNest(function, dominators(function, before), before).loops)


@pytest.mark.parametrize(
    ("body", "stays"),
    [
        (f"for (int i = 0; i < 48; i++) {{ {ROUND} }}", False),
        (f"for (int i = 60; i > 3; i -= 3) {{ {ROUND} }}", False),
        (f"for (int i = 0; i < n; i++) {{ {ROUND} }}", True),
        (f"for (int i = 0; i < 65; i++) {{ {ROUND} }}", True),
        (f"for (int i = 0; i < 48; i++) {{ {ROUND} if (s == 7) break; }}", True),
        (f"for (int i = 0; i < 48; i++) {{ {ROUND.replace('i & 3', 's & 3')} }}", True),
        ("for (int i = 0; i < 48; i++) s = s * 3 + in[i + s];", True),
        (f"for (int i = 0; i < 60; i++) {{ {MUCH} }}", True),
    ],
)  # fmt: skip
def test_loops(body, stays):
    assert has_loop(body) == stays


def test_barriers_stay_in_loops():
    module = compile_cl(f"{HEAD} for (int i = 0; i < 48; i++) {{ {ROUND} barrier(1); }} out[x] = s; }}")
    assert len(make_plan(module, "k", width=8).regions) < 5


def test_width_1_is_left_to_llvm():
    assert has_loop(f"for (int i = 0; i < 48; i++) {{ {ROUND} }}", 1)
