"""Long runs on OpenCL vectors: for some components after the others, so that values stay in registers."""

import re

import numpy as np
import pytest

from cl_driver.interp.run import run as interpret
from tests.runtime.kernel_harness import Program, compile_c

SOURCE = r"""
#define STEP(T, a, b, k, s) a += (b ^ w[(k) & 3]) + (T)((k) * 77); a = rotate(a, (T)s) ^ b;
#define ROUND(T, k) STEP(T, a, b, k, 3) u = u * 5 + k; STEP(T, b, a, k + 1, 7) \
  STEP(T, a, b, k + 2, 11) a ^= (T)u; STEP(T, b, a, k + 3, 19)
#define ALL(T) ROUND(T, 0) ROUND(T, 1) ROUND(T, 2) ROUND(T, 3) ROUND(T, 4) ROUND(T, 5)
#define KERNEL(T, name) kernel void name(global T *out, global const T *in, uint n) { \
  uint i = get_global_id(0), u = n * 3; T w[4] = {in[i], in[i + 1], in[i + 2] + (T)i, in[0]}; \
  T a = w[0], b = w[1] ^ (T)5; ALL(T) ALL(T) out[i] = a ^ b; if (all(a == b)) out[i] = (T)7; }
KERNEL(uint16, hash16)
KERNEL(uint8, hash8)
KERNEL(uint3, hash3)
KERNEL(uint2, hash2)
"""
COUNTS = {"hash16": 16, "hash8": 8, "hash3": 3, "hash2": 2}


def mean_life(text: str) -> float:
    """For how many lines the results of LLVM's additions have to be kept, on average."""
    made: dict[str, int] = {}
    last: dict[str, int] = {}
    for number, line in enumerate(text.split("\n")):
        last.update(dict.fromkeys(re.findall(r"%[\w.]+", line), number))
        if match := re.match(r"  (%[\w.]+) = add <", line):
            made[match[1]] = number
    return sum(last[name] - number for name, number in made.items()) / len(made)


@pytest.fixture(scope="module")
def data():
    return compile_c(SOURCE)


@pytest.mark.parametrize("width, parts", [(1, 1), (4, 1), (8, 1), (16, 1), (8, 2)])
@pytest.mark.parametrize("name", COUNTS)
def test_components_are_right(data, name, width, parts):
    """Groups of 37 have vectors with lanes that are no work-items."""
    count, items = COUNTS[name], 74
    stride = 4 if count == 3 else count
    inputs = np.random.default_rng(count).integers(0, 1 << 32, (items + 2, stride), np.uint32)
    out = np.zeros((items, stride), np.uint32)
    program = Program(data, width=width, parts=parts)
    want = np.zeros_like(out)
    interpret(program.module, name, [want.ravel(), inputs.ravel(), 9], (items,), (37,))
    program.run(name, items, 37, out, inputs, np.uint32(9))
    assert np.array_equal(out[:, :count], want[:, :count])


def test_values_are_used_soon(data):
    """Some components of sixteen have little more between a value and its use than two have, but for what is
    computed of all before and behind."""
    program = Program(data, width=8)
    few, many = (mean_life(program.code(name).text) for name in ("hash2", "hash16"))
    assert many < 5 * few
