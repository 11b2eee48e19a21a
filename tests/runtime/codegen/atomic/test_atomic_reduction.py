"""Atomics that come to memory at the end of a call: the same results, and nobody can tell."""

import re

import numpy as np
import pytest

from tests.marks import split
from tests.runtime.kernel_harness import Program, compile_c

WIDTHS = ((4, 1), (16, 2), (8, 1), (16, 1))
# Bodies: of kernels whose atomics are gathered, and of such that could tell. i: the work-item's id.
GATHERED = {
    "count": "if (from[i] > k) atomic_inc(to);",
    "all": "atomic_inc(to);",
    "down": "if (i & 1) atomic_dec(to); atomic_sub(to, 3);",
    "sum": "atomic_add(to, from[i]);",
    "ids": "atomic_add(to, (int)i);",
    "least": "atomic_min(to, from[i]);",
    "greatest": "if (from[i] < 50) atomic_max(to, from[i]);",
    "least_unsigned": "atomic_min((global uint *)to, (uint)from[i]);",
    "greatest_unsigned": "atomic_max((global uint *)to, (uint)from[i]);",
    "bits": "atomic_or(to, 1 << (from[i] & 31));",
    "masks": "atomic_and(to, ~(1 << (from[i] & 15)));",
    "parity": "atomic_xor(to, from[i]);",
    "place": "if (from[i] > 0) atomic_inc(&to[k]);",
    "several": "if (from[i] > k) atomic_inc(&to[1]); else atomic_inc(&to[2]);",
    "loop": "for (int j = 0; j < (i & 3); j++) atomic_add(to, j);",
    "rounds": "for (int j = i; j < 200; j += 64) if (from[j] > k) atomic_inc(to);",
    "never": "if (from[i] > 1000) atomic_inc(&to[1 << 30]);",
    "stored_before": "to[10 + i] = from[i]; atomic_inc(to);",
    "after_barrier": "local int l[64]; l[get_local_id(0)] = from[i]; barrier(CLK_LOCAL_MEM_FENCE);"
    "if (l[get_local_size(0) - 1 - get_local_id(0)] > k) atomic_inc(to);",
}
STAY = {
    "used": "to[10 + i] = atomic_inc(to);",
    "read": "if (i == 5) { atomic_add(to, 7); to[1] = to[0]; }",
    "read_otherwise": "if (i == 5) { atomic_add(to, 7); to[1] = from[k]; }",
    "overwritten": "if (i == 5) { atomic_add(to, 7); to[0] = 3; }",
    "read_in_rounds": "for (int j = 0; j < k; j++) if (i == 5) { to[1] = to[0]; atomic_inc(to); }",
    "other_operation": "if (i == 5) { atomic_add(to, 7); atomic_and(to, 3); }",
    "seen_later": "atomic_add(to, 1); barrier(CLK_GLOBAL_MEM_FENCE); if (i == 5) to[1] = to[0];",
    "released": "atomic_inc(to); atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_release, "
    "memory_scope_device);",
    "ordering": "atomic_fetch_add((global atomic_int *)to, 1);",
    "host": "atomic_fetch_add_explicit((global atomic_int *)to, 1, memory_order_relaxed, "
    "memory_scope_all_svm_devices);",
    "computed": "if (i == 5) atomic_inc(&to[from[0] & 1]);",
}
RESTRICT = {"rounds"}  # gathered where the parameters say that `from` does not meet `to`


def source(name: str, body: str, restrict: str) -> str:
    return (
        f"kernel void {name}(global int *{restrict}to, global const int *{restrict}from, int k) "
        f"{{ size_t i = get_global_id(0); {body} }}"
    )


@pytest.fixture(scope="module", params=["", "restrict "])
def compiled(request):
    bodies = (GATHERED | STAY).items()
    return request.param, compile_c("\n".join(source(*body, request.param) for body in bodies))


@pytest.mark.parametrize(("width", "parts"), WIDTHS)
def test_what_is_gathered(compiled, width, parts):
    """Gathered atomics are in the last block alone, which is behind the loops."""
    restrict, il = compiled
    program = Program(il, width=width, parts=parts)
    for name in GATHERED | STAY:
        before, after = re.split(r"\nfinished:", program.code(name).text)[:2]
        gathered = bool(restrict) if name in RESTRICT else name in GATHERED
        assert ("atomicrmw" not in before) == gathered, name
        assert "atomicrmw" in after or not gathered, name


@pytest.mark.parametrize("widths", split(WIDTHS, 2), ids=["some", "others"])
def test_same_results(compiled, widths):
    """Where nothing is `restrict`, `from` may be `to`: what atomics did is read by way of the other."""
    restrict, il = compiled
    one = Program(il, width=1)
    for width, parts in widths:
        program = Program(il, width=width, parts=parts)
        for name in GATHERED | STAY:
            before = np.random.default_rng(3).integers(-100, 100, 256, np.int32)
            before[[0, -5]] = 1, 0
            outputs = []
            for run in (one, program):
                to = before.copy()
                meets = name == "read_otherwise" and not restrict
                from_, k = (to, 0) if meets else (before[::-1].copy(), 3)
                run.run(name, 139, 64, to, from_, np.int32(k))
                outputs.append(to)
            assert np.array_equal(*outputs), (name, width, parts)
            assert np.array_equal(outputs[0], before) == (name == "never"), name
