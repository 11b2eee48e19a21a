"""Rotates by whole bytes: right at every width, and a shuffle each."""

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.cpu import host_cpu
from cl_driver.device.target import Target, host_target
from cl_driver.jit import emit
from tests.runtime.kernel_harness import Program, compile_c

AVX2 = "avx avx2 f16c fma popcnt sse4.1 sse4.2 ssse3".split()
ITEMS = 48
SOURCE = """
#define TURN(x, n) {turn}
kernel void rounds(global {t} *to, global const {t} *from) {{
  size_t i = get_global_id(0);
  {t} a = from[i], b = from[i + 48], c = from[i + 96], d = from[i + 144];
  for (int k = 0; k < 5; k++) {{
    a += b, d = TURN(d ^ a, {first}), c += d, b = TURN(b ^ c, 12);
    a += b, d = TURN(d ^ a, {second}), c += d, b = TURN(b ^ c, 7);
  }}
  to[i] = a ^ b ^ c ^ d;
}}
"""
TURNS = {"rotate": "rotate(x, ({t})(n))", "shifts": "((x) << (n) | (x) >> ({bits} - (n)))"}


def turn(x, n):
    bits = np.array(8 * x.itemsize, x.dtype)
    n = np.array(n, x.dtype)
    return x << n | x >> (bits - n)


@pytest.mark.parametrize("written", TURNS)
@pytest.mark.parametrize(("name", "first", "second"), [("uint", 16, 8), ("ulong", 40, 24)])
def test_rounds(name, first, second, written):
    if not set(AVX2) <= set(host_cpu().features):
        pytest.skip("this CPU has no AVX2")
    dtype = {"uint": np.uint32, "ulong": np.uint64}[name]
    how = TURNS[written].format(t=name, bits=8 * np.dtype(dtype).itemsize)
    compiled = compile_c(SOURCE.format(turn=how, t=name, first=first, second=second))
    given = np.random.default_rng(1).integers(0, 1 << 8 * np.dtype(dtype).itemsize, 4 * ITEMS, dtype)
    a, b, c, d = (x.copy() for x in given.reshape(4, ITEMS))
    for _ in range(5):
        for by, other in ((first, 12), (second, 7)):
            a += b
            d = turn(d ^ a, by)
            c += d
            b = turn(b ^ c, other)
    for width in (1, 4, 8):
        program = Program(compiled, CodegenOptions(frozenset(AVX2), 256), width)
        to = np.zeros(ITEMS, dtype)
        program.run("rounds", ITEMS, ITEMS, to, given)
        assert np.array_equal(to, a ^ b ^ c ^ d), width
    target = Target(host_target().triple, tuple(AVX2), 256)
    width = 256 // (8 * np.dtype(dtype).itemsize)
    text = Program(compiled, CodegenOptions(frozenset(AVX2), 256), width).code("rounds").text
    _, made = emit.commented_assembly(text, target, "short", 2)
    assert "arithmetic.fence" in made
