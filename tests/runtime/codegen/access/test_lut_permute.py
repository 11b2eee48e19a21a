"""Look-ups in small constant arrays, as permutes of registers and, where there is none, as loads."""

import re

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.cpu import host_cpu
from cl_driver.interp.run import run as interpret
from tests.marks import few_rows, needs_x86
from tests.runtime.kernel_harness import Program, compile_c

# Element type and count of arrays: full registers, parts of one, two, and one that is too large.
TABLES = [("uchar", 64), ("uchar", 100), ("char", 5), ("ushort", 40), ("int", 16), ("uint", 11), ("int", 32),
          ("float", 27), ("float", 8), ("ulong", 8), ("double", 13), ("int", 40)]  # fmt: skip

_BASE = {"fma", "f16c", "sse4.1", "ssse3"}
_V3 = _BASE | {"avx", "avx2", "bmi", "bmi2"}
_V4 = _V3 | {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"}
CPUS = {"v2": (_BASE, 128), "v3": (_V3, 256), "v4": (_V4, 512), "vbmi": (_V4 | {"avx512vbmi"}, 512)}


def name_of(type_: str, count: int) -> str:
    return f"table_{type_}{count}"


def kernel(type_: str, count: int) -> str:
    suffix = {"float": ".5f", "double": ".25"}.get(type_, "")
    numbers = ", ".join(f"{k * 37 % 113}{suffix}" for k in range(count))
    name = name_of(type_, count)
    return f"""
    constant {type_} {name}s[{count}] = {{{numbers}}};
    kernel void {name}(global {type_} *out, global const uint *in) {{
        size_t x = get_global_id(0);
        {type_} v = {name}s[in[x] % {count}u];
        if (in[x] & 4) v += {name}s[(in[x] >> 3) % {count}u];
        out[x] = v; }}"""


@pytest.fixture(scope="module")
def compiled():
    return compile_c("\n".join(kernel(*table) for table in TABLES))


@pytest.mark.parametrize("cpu", list(CPUS))
@pytest.mark.parametrize(("width", "parts"), few_rows([(4, 1), (16, 1), (1, 1), (8, 1), (16, 2)], 2))
def test_small_tables(compiled, cpu, width, parts):
    """All element types, at all widths, with and without the instructions of larger CPUs."""
    features, bits = CPUS[cpu]
    if not features <= set(host_cpu().features):
        pytest.skip(f"this CPU is no {cpu}")
    program = Program(compiled, CodegenOptions(frozenset(features), bits), width=width, parts=parts)
    index = np.random.default_rng(width).integers(0, 1 << 32, 53).astype(np.uint32)
    for type_, count in TABLES:
        dtype = {"uchar": "u1", "char": "i1", "ushort": "u2", "int": "i4", "uint": "u4", "float": "f4",
                 "ulong": "u8", "double": "f8"}[type_]  # fmt: skip
        want, out = np.zeros(53, dtype), np.zeros(53, dtype)
        interpret(program.module, name_of(type_, count), [want, index.copy()], (53,), (53,))
        program.run(name_of(type_, count), 53, 53, out, index)
        assert np.array_equal(out, want), f"{type_} {count}"


@needs_x86
@pytest.mark.parametrize(("cpu", "width", "instruction"), [
    ("vbmi", 16, "permvar.qi.512"), ("v4", 16, "avx2.pshuf.b"), ("v3", 8, "pshuf.b"), ("v2", 4, "pshuf.b"),
])  # fmt: skip
def test_bytes_are_permuted(compiled, cpu, width, instruction):
    """Not a load is left of a table of 64 bytes but that of the table."""
    features, bits = CPUS[cpu]
    program = Program(compiled, CodegenOptions(frozenset(features), bits), width=width)
    text = program.code(name_of("uchar", 64)).text
    assert instruction in text
    assert len(re.findall(r"load .*@constant", text)) == 1


TOGETHER = """
constant uchar one[64] = {{{}}};
constant char other[40] = {{{}}};
kernel void pairs(global uchar4 *out, global const uint *in) {{
    size_t x = get_global_id(0);
    uint v = in[x];
    out[x] = (uchar4)(one[v >> 26], one[v >> 20 & 63], one[v >> 14 & 63], one[v & 63]); }}
kernel void after_one_another(global uchar4 *out, global const uint *in) {{
    size_t x = get_global_id(0);
    uint v = in[x], a = one[v & 63], b = one[a & 63] ^ v;
    char c = other[b % 40];
    if (v & 256) {{ c += other[(v >> 9) % 40] * one[v >> 26]; a ^= one[(b >> 4) & 63]; }}
    out[x] = (uchar4)(a, b, c, one[(uchar)c & 31] + other[(v >> 3) % 40]); }}
kernel void in_a_loop(global uchar4 *out, global const uint *in) {{
    size_t x = get_global_id(0);
    uint v = in[x], sum = 0;
    for (uint k = 0; k < (v & 7); k++) {{
        uchar a = one[(v + k) & 63], b = one[(v >> k) & 63];
        out[x].x = a; sum = sum * 3 + a + b; if (sum > 900) break; }}
    out[x] = (uchar4)(sum, sum >> 8, sum >> 16, one[sum & 63]); }}
""".format(
    ", ".join(str(k * 37 % 256) for k in range(64)),
    ", ".join(str(k * 29 % 120 - 60) for k in range(40)),
)


@pytest.fixture(scope="module")
def together():
    return compile_c(TOGETHER)


@pytest.mark.parametrize("cpu", list(CPUS))
@pytest.mark.parametrize(("width", "parts"), few_rows([(8, 2), (4, 1), (8, 1), (16, 1), (4, 3), (2, 4)], 3))
def test_look_ups_together(together, cpu, width, parts):
    features, bits = CPUS[cpu]
    if not features <= set(host_cpu().features):
        pytest.skip(f"this CPU is no {cpu}")
    program = Program(together, CodegenOptions(frozenset(features), bits), width=width, parts=parts)
    index = np.random.default_rng(width).integers(0, 1 << 32, 53).astype(np.uint32)
    for name in ("pairs", "after_one_another", "in_a_loop"):
        want, out = np.zeros((53, 4), np.uint8), np.zeros((53, 4), np.uint8)
        interpret(program.module, name, [want, index.copy()], (53,), (53,))
        program.run(name, 53, 53, out, index)
        assert np.array_equal(out, want), name


@needs_x86
@pytest.mark.parametrize(("cpu", "width", "parts", "shuffles"), [
    ("v3", 8, 1, 4), ("v3", 8, 2, 8), ("v3", 4, 1, 4), ("v3", 16, 1, 8), ("v2", 4, 1, 4), ("v2", 8, 1, 8),
])  # fmt: skip
def test_registers_are_full(together, cpu, width, parts, shuffles):
    """Four look-ups for each work-item, in four pieces of a table of 64 bytes."""
    features, bits = CPUS[cpu]
    options = CodegenOptions(frozenset(features), bits)
    program = Program(together, options, width=width, parts=parts)
    text = program.code("pairs").text.split("\nr0.rest:")[0]
    name = "avx2.pshuf.b" if cpu == "v3" else "ssse3.pshuf.b.128"
    assert text.count(f"@llvm.x86.{name}(") == shuffles
    assert text.count("pshuf.b") == shuffles
