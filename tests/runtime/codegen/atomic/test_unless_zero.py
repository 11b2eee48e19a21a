"""Atomics in lanes that change nothing, and are left out where nobody can tell
(cl_driver/codegen/atomic/lane_combining.py)."""

import os
import re

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.target import host_target
from tests.runtime.kernel_harness import Program, compile_c

OPTIONS = CodegenOptions(features=frozenset(host_target(os.environ.get("CL_DRIVER_TEST_CPU", "")).features))

# `to` is looked at by the kernel, so that threads have no copies of it.
LEFT_OUT = {
    "add": "atomic_add(place, value);",
    "sub": "atomic_sub(place, value);",
    "or": "atomic_or(place, value);",
    "xor": "atomic_xor(place, value);",
    "masked": "if (i % 3) atomic_add(place, value);",
    "same": "atomic_add(place, from[1]);",
}
KEPT = {
    "and": "atomic_and(place, value);",
    "constant": "atomic_add(place, 0);",
    "used": "to[64 + i] = atomic_add(place, value);",
    "ordered": "atomic_fetch_add_explicit((global atomic_int *)place, value, memory_order_acq_rel, "
    "memory_scope_device);",
    "exchange": "atomic_xchg(place, value);",
}


@pytest.fixture(scope="module")
def source():
    return "\n".join(
        f"kernel void k_{name}(global int *to, global const int *from) {{ int i = get_global_id(0); "
        f"int value = from[i]; global int *place = to + (i * 7 & 63); {body} "
        "if (to[0] == 12345) to[1] = 0; }"
        for name, body in (LEFT_OUT | KEPT).items()
    )


def expected(name: str, to: np.ndarray, given: np.ndarray) -> np.ndarray:
    for i, value in enumerate(given):
        at = i * 7 & 63
        if name == "same":
            to[at] += given[1]
        elif name in ("add", "used", "ordered") or (name == "masked" and i % 3):
            to[at] += value
        elif name == "sub":
            to[at] -= value
        elif name == "or":
            to[at] |= value
        elif name == "xor":
            to[at] ^= value
        elif name == "and":
            to[at] &= value
        elif name == "exchange":
            to[at] = value
    return to


@pytest.mark.parametrize("width", (4, 8, 16))
@pytest.mark.parametrize("name", LEFT_OUT | KEPT)
def test_atomics(source, name, width):
    program = Program(compile_c(source, "-cl-std=CL3.0"), OPTIONS, width)
    text = program.code(f"k_{name}").text
    guarded = re.findall(r"^changes\d+:\n(?:.*\n)?.*atomicrmw", text, re.M)
    assert bool(guarded) == (name in LEFT_OUT)
    given = np.random.default_rng(width).integers(-2, 3, 64).astype(np.int32) & -2
    to = np.arange(128, dtype=np.int32)
    to[64:] = 0
    want = expected(name, to.copy(), given)
    if name == "used":  # the old value, of places that lanes have each for itself
        want[64:] = np.arange(64) * 7 & 63
    program.run(f"k_{name}", 64, 64, to, given)
    assert np.array_equal(to, want)
