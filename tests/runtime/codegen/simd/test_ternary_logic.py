"""Logic of three values, in one instruction where there is one, at every width."""

import os
import re

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.target import host_target
from tests.runtime.emulation import IS_ARM
from tests.runtime.kernel_harness import Program, compile_c

CPU = os.environ.get("CL_DRIVER_TEST_CPU", "")
OPTIONS = CodegenOptions(features=frozenset(host_target(CPU).features))

# What numpy evaluates as well, but for bitselect.
FORMS = (
    "bitselect(a, b, c ^ a)",
    "(a & b) | (c & (a | b))",
    "(a & b) ^ (a & c) ^ (b & c)",
    "~(a ^ b) & ~(b | c)",
    "bitselect(~a, c, b & ~c)",
    "(a | ~b) ^ (c & ~(a ^ b))",
    "bitselect(bitselect(a, b, c), bitselect(c, a, b), a ^ ~b)",
    "(a ^ b ^ c) & (u | (a & b))",  # of four
    "(a & u) | (b & (a | ~u))",  # one is the same in all lanes
    "bitselect(a, b, 0x0f0f0f0fu ^ a)",
)


def bitselect(a, b, mask):
    return (a & ~mask) | (b & mask)


@pytest.mark.parametrize("type_", ("uint", "ulong", "int", "ushort2", "uint2"))
def test_forms(type_):
    assigned = "".join(
        f"{{ T v = {form.replace('0x0f0f0f0fu', '(T)0x0f0f0f0fu')}; out[i * {len(FORMS)} + {k}] = v; }}"
        for k, form in enumerate(FORMS)
    )
    source = f"""typedef {type_} T;
    kernel void k(global T *out, global const T *in, T u) {{
      size_t i = get_global_id(0); T a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2]; {assigned} }}"""
    element = {"ulong": "u8", "ushort2": "u2"}.get(type_, "u4")
    count, per = 37, 2 if type_[-1] == "2" else 1
    rng = np.random.default_rng(3)
    values = rng.integers(0, 1 << 8 * int(element[1]), (count, 3, per), element, endpoint=False)
    u = rng.integers(0, 1 << 8 * int(element[1]), per, element)
    a, b, c = values.transpose(1, 0, 2)
    names = {"a": a, "b": b, "c": c, "u": u, "bitselect": bitselect}
    mask = np.uint64(0x0F0F0F0F).astype(element)
    want = [eval(form.replace("0x0f0f0f0fu", "mask"), names | {"mask": mask}) for form in FORMS]
    want = np.stack(np.broadcast_arrays(*want), 1)
    spirv = compile_c(source)
    for width in (1, 4, 8, 16):
        out = np.zeros((count, len(FORMS), per), element)
        program = Program(spirv, OPTIONS, width)
        program.run("k", count, 16, out, values, u.tobytes() if per > 1 else u[0])
        assert np.array_equal(out, want), f"{type_}, width {width}"


@pytest.mark.parametrize(
    "form", ["bitselect(A, B, C ^ A)", "(A & B) | (C & (A | B))", "(A & B) ^ (A & C) ^ (B & C)"]
)
def test_majorities_of_values_that_move_on(form):
    """Without such an instruction: the second has an exclusive or in common with the first."""
    majority = form.replace("A", "(x)").replace("B", "(y)").replace("C", "(z)")
    source = f"""#define MAJORITY(x, y, z) ({majority})
    kernel void k(global uint *out, global const uint *in) {{
      size_t i = get_global_id(0); uint c = in[i], b = in[i + 64], a = in[i + 128], d = a * 3 + b;
      uint first = MAJORITY(a, b, c); d += first;
      out[i] = MAJORITY(d, a, b) * first; }}"""
    program = Program(compile_c(source), CodegenOptions(frozenset({"avx2", "avx"}), 256), 8)
    text = program.code("k").text.split("\nr0.rest:")[0]
    pairs = [frozenset(pair) for pair in re.findall(r"= xor <8 x i32> (%\w+), (%\w+)", text)]
    shared = [pair for pair in set(pairs) if pairs.count(pair) == 2]
    assert len(shared) == 1
    values = np.random.default_rng(2).integers(0, 1 << 32, 192, np.uint32)
    c, b, a = values[:64], values[64:128], values[128:]
    first = (a & b) | (c & (a | b))
    d = a * np.uint32(3) + b + first
    out = np.zeros(64, np.uint32)
    program.run("k", 64, 64, out, values)
    assert np.array_equal(out, ((d & a) | (b & (d | a))) * first)


@pytest.mark.skipif(IS_ARM, reason="about x86")
@pytest.mark.parametrize(
    ("features", "has_ternary"), [({"avx2", "avx"}, False), ({"avx512f", "avx512vl"}, True)]
)
def test_opencl_vectors(features, has_ternary):
    """One work-item at a time: as lanes have it."""
    majority = "(({0} & {1}) | ({2} & ({0} | {1})))"
    source = f"""kernel void k(global ulong4 *out, global const ulong4 *in) {{
      size_t i = get_global_id(0); ulong4 c = in[i], b = in[i + 1], a = in[i + 2];
      ulong4 first = {majority.format("a", "b", "c")}; ulong4 d = a * 3 + first;
      out[i] = {majority.format("d", "a", "b")} * first; }}"""
    text = Program(compile_c(source), CodegenOptions(frozenset(features), 256), 1).code("k").text
    assert text.count("@llvm.x86.avx512.pternlog.q.256(<4 x i64>") >= 2 * has_ternary
    pairs = [frozenset(pair) for pair in re.findall(r"= xor <4 x i64> (%\w+), (%\w+)", text)]
    assert len(pairs) - len(set(pairs)) == (not has_ternary)
    values = np.random.default_rng(2).integers(0, 1 << 64, (6, 4), np.uint64)
    out = np.zeros((4, 4), np.uint64)
    Program(compile_c(source), OPTIONS, 1).run("k", 4, 4, out, values)
    c, b, a = values[:4], values[1:5], values[2:]
    first = (a & b) | (c & (a | b))
    d = a * np.uint64(3) + first
    assert np.array_equal(out, ((d & a) | (b & (d | a))) * first)


@pytest.mark.skipif(IS_ARM, reason="about x86")
def test_one_instruction():
    """Half of SHA-2's operations on bits."""
    source = """kernel void k(global uint *out, global const uint *in) {
      size_t i = get_global_id(0); uint a = in[i], b = in[i + 64], c = in[i + 128];
      out[i] = bitselect(a, b, c ^ a); }"""
    spirv = compile_c(source)

    def count(*features):
        options = CodegenOptions(features=frozenset(features), vector_bits=512)
        return (
            Program(spirv, options, 16).code("k").text.count("= call <16 x i32> @llvm.x86.avx512.pternlog.d")
        )

    assert count("avx512f", "avx512vl") == 2  # in full vectors, and in the rest
    assert count("avx2") == 0
