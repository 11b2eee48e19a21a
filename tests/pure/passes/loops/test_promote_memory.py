"""What loops accumulate in memory is a value in them, where nothing else can be in that place."""

from __future__ import annotations

import numpy as np
import pytest

from cl_driver.interp.run import Local
from cl_driver.passes.ir.dominance import LoopNest, dominators
from cl_driver.passes.ir.instructions import predecessors
from cl_driver.spirv.enums import Op, StorageClass

from ..support import compare, compile_cl, make_plan

HEAD = """kernel void k(global int *c, global int *a, global int *b, int n, global int * restrict r,
    local int *l) { int i = get_global_id(0), j = get_local_id(0); """
ALL = frozenset(range(6))


def stores_in_loops(plan) -> int:
    found = 0
    for region in plan.regions:
        function = region.function
        nest = LoopNest(function, dominators(function), predecessors(function))
        inside = {block for loop in nest.loops for block in loop.blocks}
        stores = [i for block in inside for i in block.instructions if i.op is Op.Store]
        found += sum(i.operands[0].type.storage is not StorageClass.Function for i in stores)
    return found


# body, stores that are left in loops, arguments that are assumed to be apart
CASES = [
    ("for (int k = 0; k < n; k++) c[i] += a[k] * b[k + i];", 0, [0]),
    ("for (int k = 0; k < n; k++) { c[i] += a[k]; b[i] ^= c[i] + k; }", 0, [0, 2]),
    ("for (int k = 0; k < n; k++) c[i] += k * k;", 0, []),  # nothing else is accessed
    ("for (int k = 0; k < n; k++) r[i] += a[k] ^ k;", 0, []),
    ("l[j] = i; for (int k = 0; k < n; k++) l[j] += a[k]; c[i] = l[j];", 0, []),
    ("for (int k = 0; k < n; k++) { c[i] += a[k]; c[i] *= 3; }", 0, [0]),
    ("for (int j = 0; j < n; j++) for (int k = 0; k < n; k++) c[i] += a[k] + b[j];", 0, [0]),
    ("for (int j = 0; j < n; j++) for (int k = 0; k < n; k++) c[i + 40 * j] += a[k] + b[j];", 1, [0]),
    ("int k = 0; do { c[i] += a[k]; if (b[k] == 77) break; k++; } while (k < n);", 0, [0]),
    ("for (int k = 0; k < n; k++) c[i] += a[k] + c[i + 200];", 1, []),
    ("for (int k = 0; k < n; k++) if (a[k] & 1) c[i] += b[k];", 1, []),  # perhaps it must not be stored to
    ("for (int k = 0; k < n; k++) c[i * 5 + k] += a[k];", 1, []),
    ("for (int k = 0; k < n; k++) *(volatile global int *)&c[i] += a[k];", 1, []),
    ("for (int k = 0; k < n; k++) { c[i] += a[k]; atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, "
     "memory_order_acq_rel, memory_scope_device); }", 1, []),
    ("global int *p = a[0] & 1 ? c : b; for (int k = 0; k < n; k++) p[i] += a[k];", 1, []),
]  # fmt: skip


@pytest.mark.parametrize("body, stores, apart", CASES)
@pytest.mark.parametrize("width", [1, 8])
def test_places(body, stores, apart, width):
    module = compile_cl(f"{HEAD} {body} }}")
    plan = make_plan(module, "k", width=width, apart=ALL)
    assert stores_in_loops(plan) == stores
    assert plan.apart_args == apart


@pytest.mark.parametrize("body", [case[0] for case in CASES if "fence" not in case[0]])  # interp has none
def test_the_same_is_stored(body):
    module = compile_cl(f"{HEAD} {body} }}")
    for n in (0, 1, 5):
        rng = np.random.default_rng(n)
        buffers = [rng.integers(0, 99, 400).astype(np.int32) for _ in range(3)]
        args = [*buffers, n, rng.integers(0, 99, 64).astype(np.int32), Local(80)]
        compare(module, "k", args, (40,), (20,), widths=(1, 8, 16), apart=ALL)


@pytest.mark.parametrize("apart", [frozenset(), frozenset([1, 2, 3])])
def test_nothing_is_assumed_of_others(apart):
    module = compile_cl(f"{HEAD} for (int k = 0; k < n; k++) c[i] += a[k] * b[k + i]; }}")
    plan = make_plan(module, "k", width=8, apart=apart)
    assert stores_in_loops(plan) == 1 and plan.apart_args == []
