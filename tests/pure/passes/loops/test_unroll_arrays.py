"""Private arrays of which loops of known length know every place, and loads that are the same each time."""

from __future__ import annotations

import pytest

from cl_driver.passes.ir.dominance import LoopNest, dominators
from cl_driver.passes.ir.instructions import predecessors
from cl_driver.spirv.enums import Op

from ..support import compile_cl, make_plan

HEAD = "kernel void k(global int *out, global const int *in, int n) { int x = get_global_id(0), v[40];"
FILL = "for (int i = 0; i < 40; i++) v[i] = in[x * 40 + i] + i;"
TAIL = "out[x] = v[3] + v[39]; }"


def region_of(body, width=8):
    module = compile_cl(HEAD + FILL + body + TAIL)
    return make_plan(module, "k", width=width).regions[0]


def has_array(region) -> bool:
    return any(i.op is Op.Variable for b in region.function.blocks for i in b.instructions)


def loads_in_loops(region) -> int:
    function = region.function
    before = predecessors(function)
    nest = LoopNest(function, dominators(function, before), before)
    return sum(i.op is Op.Load for b in nest.innermost for i in b.instructions)


@pytest.mark.parametrize(
    ("body", "is_array"),
    [
        ("for (int r = 0; r < n; r++) for (int i = 1; i < 40; i++) v[i] += v[i - 1] * r;", False),
        ("for (int r = 0; r < n; r++) for (int i = 0; i < 12; i++) for (int j = i; j < 12; j++) "
         "v[j] = v[j] * 3 + v[i];", False),
        # Rows of triangles: how long they are the outer loop says, and the first is empty.
        ("for (int r = 0; r < n; r++) for (int i = 0; i < 9; i++) for (int j = 0; j < 8 - i; j++) "
         "if (v[j] > v[j + 1]) v[j] ^= v[j + 1] + r;", False),
        ("for (int r = 0; r < n; r++) for (int i = 0; i < 7; i++) for (int j = 0; j < i; j++) "
         "for (int k = 0; k < j; k++) v[j * 4 + 1] -= v[i * 4 + k] * v[k] + r;", False),
        ("for (int r = 0; r < n; r++) for (int i = 0; i < 8; i++) for (int j = 0; j < (i ^ r); j++) "
         "v[j & 7] += v[i];", True),
        ("for (int r = 0; r < n; r++) for (int i = 39; i > 0; i -= 2) v[i] += v[i - 1] * r;", False),
        ("for (int r = 0; r < n; r++) for (int i = 1; i < 40; i++) v[i] += v[v[i - 1] & 7] * r;", True),
        ("for (int r = 0; r < n; r++) for (int i = 1; i < min(n, 40); i++) v[i] += v[i - 1] * r;", True),
        ("for (int r = 0; r < n; r++) for (int i = 1; i < 40; i++) "
         "{ if (v[i] == r) break; v[i] += v[i - 1]; }", True),
        ("for (int r = 0; r < n; r++) for (int a = 0; a < 12; a++) for (int b = 0; b < 12; b++) "
         "for (int c = 0; c < 12; c++) v[c] += v[a] * v[b] ^ r;", True),  # too many
        ("for (int r = 0; r < n; r++) for (volatile int *p = v, i = 1; i < 40; i++) p[i] += p[i - 1];", True),
    ],
)  # fmt: skip
def test_arrays_become_values(body, is_array):
    """Only where that is so for the whole array, and in code of bearable size."""
    assert has_array(region_of(body)) == is_array


CLASSES = """typedef struct { int e[4]; } quad; typedef struct { quad q[4]; } block;
kernel void k(global int *out, global const int *in, int n) { int x = get_global_id(0); block b = {0};
    for (int r = 0; r < n; r++) for (int i = 0; i < 4; i++) { BODY }
    for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++)
        if (in[x + i] > j) out[x * 16 + i * 4 + j] = b.q[i].e[j]; }"""


@pytest.mark.parametrize(
    ("body", "is_array"),
    [
        ("for (int j = 0; j < 4; j++) b.q[i].e[j] += in[r * 4 + i] * in[r + j];", False),
        ("*(int4 *)&b.q[i] += in[r * 4 + i] * vload4(r, in);", False),
        ("for (int j = 0; j < 16; j++) ((char *)b.q[i].e)[j] += in[r * 4 + i];", True),
        ("b.q[i].e[in[r] & 3] += in[r * 4 + i];", True),
    ],
)
def test_arrays_in_classes(body, is_array):
    """As C++ has them, cleared as a whole, and accessed by numbers and by vectors of the same size."""
    module = compile_cl(CLASSES.replace("BODY", body))
    assert has_array(make_plan(module, "k", width=8).regions[0]) == is_array


def test_width_1_is_left_to_llvm():
    body = "for (int r = 0; r < n; r++) for (int i = 1; i < 40; i++) v[i] += v[i - 1];"
    assert has_array(region_of(body, 1))


@pytest.mark.parametrize(
    ("body", "loads"),
    [
        ("v[i] += v[i - 1] ^ in[i + x];", 0),
        ("v[i] += v[i - 1] ^ in[i + x + r];", 39),
        ("if (v[i] > 3) v[i] += v[i - 1] ^ in[i + x];", 39),
        ("v[i] += v[i - 1] ^ in[i + x]; out[x + r] = v[i];", 39),
        ("v[i] += v[i - 1] ^ in[i + x]; atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acquire, "
         "memory_scope_device);", 39),
        ("v[i] += v[i - 1] ^ ((volatile global const int *)in)[i + x];", 39),
    ],
)  # fmt: skip
def test_loads_before_loops(body, loads):
    """What the unrolled loop loads in each iteration of the loop around is loaded before that, unless it is
    not always loaded, or may be something else each time."""
    region = region_of(f"for (int r = 0; r < n; r++) for (int i = 1; i < 40; i++) {{ {body} }}")
    assert not has_array(region)
    assert loads_in_loops(region) == loads
