"""Masks that are passed on as integers: the same results as of one work-item at a time."""

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.cpu import host_cpu
from cl_driver.device.target import Target, host_target
from cl_driver.jit import emit
from tests.runtime.kernel_harness import Program, compile_c

AVX2 = "avx avx2 f16c fma popcnt sse4.1 sse4.2 ssse3".split()
SOURCE = """
kernel void leave(global {t} *to, global const {t} *from, int most) {{
  int i = get_global_id(0); {t} x = from[i], sum = 0;
  int n = 0;
  while (n < most && sum < 100) {{
    n++;
    if (x > 7) {{ x -= 3; if (n > 5 && x < 20) break; sum += x; continue; }}
    if (!(sum > 50 || x < 2)) sum += 2; else x += 5;
    for (int k = 0; k < n; k++) {{ if (sum > 90 + k) break; sum += ({t})(k & 1); }}
  }}
  to[i] = sum * 64 + n;
}}
"""
BITS = """
kernel void bits(global {t} *to, global const {t} *from, int most) {{
  int i = get_global_id(0); {t} x = from[i] * 77 - most, y = x;
  for (int n = 0; n < most && y != 1; n++) {{
    y = y & 1 ? y * 3 + 1 : y >> 1;
    if (y & (({t})1 << ({high}))) y ^= x;
    if (!(y & 64)) y += n;
  }}
  to[i] = y;
}}
"""
TYPES = {"int": np.int32, "long": np.int64, "float": np.float32, "short": np.int16, "double": np.float64}
ITEMS = 80


def avx2():
    if not set(AVX2) <= set(host_cpu().features):
        pytest.skip("this CPU has no AVX2")
    host = host_target()
    return Target(host.triple, tuple(AVX2), 256)


@pytest.mark.parametrize("name", TYPES)
def test_lanes_leave_as_they_do_alone(name):
    target = avx2()
    source = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" + SOURCE.format(t=name)
    compiled = compile_c(source)
    given = np.random.default_rng(9).integers(0, 60, ITEMS).astype(TYPES[name])
    results = {}
    for width, parts in ((1, 1), (4, 1), (8, 1), (8, 4), (16, 2)):
        options = CodegenOptions(frozenset(AVX2), 256)
        program = Program(compiled, options, width, parts=parts)
        to = np.zeros(ITEMS, TYPES[name])
        program.run("leave", ITEMS, 40, to, given, np.int32(40))
        results[width, parts] = to
        if (width, name) == (8, "float"):
            text = program.code("leave").text
            _, made = emit.commented_assembly(text, target, "short", 2)
            assert "wide.mask" in made
    for form, found in results.items():
        assert np.array_equal(found, results[1, 1]), form


@pytest.mark.parametrize(("name", "high"), [("int", 31), ("long", 63), ("long", 40), ("short", 14)])
def test_questions_of_a_bit(name, high):
    target = avx2()
    compiled = compile_c(BITS.format(t=name, high=high))
    given = np.random.default_rng(7).integers(-60, 60, ITEMS).astype(TYPES[name])
    results = []
    for width, parts in ((1, 1), (4, 1), (8, 1), (8, 2), (16, 1)):
        program = Program(compiled, CodegenOptions(frozenset(AVX2), 256), width, parts=parts)
        to = np.zeros(ITEMS, TYPES[name])
        program.run("bits", ITEMS, 40, to, given, np.int32(40))
        results.append(to)
        assert np.array_equal(to, results[0]), (width, parts)
        if width == 8 and name != "short":
            _, made = emit.commented_assembly(program.code("bits").text, target, "short", 2)
            assert "wide.bit" in made
