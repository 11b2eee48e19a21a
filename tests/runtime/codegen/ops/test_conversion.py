# ruff: noqa: E501  kernels as one line each
"""Conversions between all scalar types in every rounding mode, saturated and not, against exact fractions."""

import re
import struct
from fractions import Fraction

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.target import make_target
from cl_driver.jit import emit
from cl_driver.spirv.reading import reader
from cl_driver.spirv.validation import validate
from tests.marks import few
from tests.runtime.emulation import IS_ARM
from tests.runtime.jit.test_emit import EVERYTHING
from tests.runtime.kernel_harness import Program, compile_c

INTEGERS = {"char": np.int8, "uchar": np.uint8, "short": np.int16, "ushort": np.uint16, "int": np.int32,
            "uint": np.uint32, "long": np.int64, "ulong": np.uint64}  # fmt: skip
FLOATS = {"half": np.float16, "float": np.float32, "double": np.float64}
SOME_FIRST = ["uchar", "short", "int", "ulong", "char", "ushort", "uint", "long"]  # each size, both signs
MODES = ("", "_rte", "_rtz", "_rtp", "_rtn")

# mantissa bits with the hidden one, least exponent of a normal number, largest exponent
FORMATS = {"half": (11, -14, 15), "float": (24, -126, 127), "double": (53, -1022, 1023)}


def round_fraction(value: Fraction, mode: str) -> int:
    floor = value.numerator // value.denominator
    if mode == "_rtn" or value == floor:
        return floor
    if mode == "_rtp":
        return floor + 1
    if mode == "_rtz":
        return floor if value > 0 else floor + 1
    rest = value - floor
    if rest != Fraction(1, 2):
        return floor + (rest > Fraction(1, 2))
    return floor + floor % 2


def round_to_format(value: Fraction, target: str, mode: str) -> float:
    """The number of a binary format nearest in the mode's sense; infinite beyond its range."""
    if value == 0:
        return 0.0
    digits, least, largest = FORMATS[target]
    exponent = abs(value).numerator.bit_length() - abs(value).denominator.bit_length()
    if Fraction(2) ** exponent > abs(value):
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, least) - digits + 1)
    rounded = round_fraction(value / unit, mode or "_rte") * unit
    limit = (2 - Fraction(2) ** (1 - digits)) * Fraction(2) ** largest
    if abs(rounded) > limit:
        towards_zero = mode == "_rtz" or (mode == "_rtp" and value < 0) or (mode == "_rtn" and value > 0)
        rounded = limit if towards_zero else float("inf")
        return float(-rounded if value < 0 else rounded)
    return float(rounded)


def integers(type_: str) -> np.ndarray:
    info = np.iinfo(INTEGERS[type_])
    rng = np.random.default_rng(info.bits)
    values = [info.min, info.max, 0, 1, info.max - 1, info.min + 1]
    for shift in range(info.bits):
        values += [v for k in (-1, 0, 1) if info.min <= (v := (1 << shift) + k) <= info.max]
        values += [v for k in (-1, 0, 1) if info.min <= (v := -(1 << shift) + k) <= info.max]
    values += [int(v) for v in rng.integers(info.min, info.max, 200, INTEGERS[type_])]
    values += [values[0]] * (-len(values) % 8)
    return np.array(values, INTEGERS[type_])


def numbers(type_: str) -> np.ndarray:
    rng = np.random.default_rng(5)
    values = list(rng.integers(0, 256, 300 * FLOATS[type_]().itemsize, np.uint8).view(FLOATS[type_]))
    values += [
        0.0,
        -0.0,
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        -2.5,
        0.25,
        -0.75,
        float("inf"),
        -float("inf"),
        float("nan"),
    ]
    for bits in (7, 8, 15, 16, 31, 32, 63, 64, 11, 14, 24, 25, 127, -14, -24, -25, -126, -149):
        for value in (
            2.0**bits,
            2.0**bits * (1 - 2.0**-23),
            2.0**bits + 0.5,
            2.0**bits * 1.0001,
            1.5 * 2.0**bits,
            2.0**bits * (1 + 2.0**-11),
            2.0**bits * (1 + 2.0**-12),
            65519.0,
            65520.0,
            65504.5,
        ):
            values += [value, -value]
    values += list(rng.normal(0, 300, 100)) + list(rng.uniform(-5, 5, 100))
    values += [0.0] * (-len(values) % 8)
    with np.errstate(over="ignore"):
        return np.array(values, FLOATS[type_])


def kernel(name: str, source: str, target: str, call: str) -> str:
    return (
        f"kernel void k{name}(global {target} *out, global const {source} *in) {{ size_t i = get_global_id(0); "
        f"out[i] = {call}(in[i]); }}\n"
        f"kernel void k{name}_v(global {target} *out, global const {source} *in) {{ size_t i = get_global_id(0);"
        f" vstore4({call.replace(target, target + '4')}(vload4(i, in)), i, out); }}\n"
    )


def run(program: Program, name: str, data: np.ndarray, result, prefix="k") -> list[np.ndarray]:
    outs = []
    for suffix, count in (("", len(data)), ("_v", len(data) // 4)):
        out = np.zeros(len(data), result)
        program.run(prefix + name + suffix, count, 2, out, data)
        outs.append(out)
    return outs


@pytest.mark.parametrize("target", few(SOME_FIRST, 4))
def test_integer_to_integer(target):
    text = "".join(
        kernel(f"{s}{sat}", s, target, f"convert_{target}{sat}") for s in INTEGERS for sat in ("", "_sat")
    )
    program = Program(compile_c(text))
    info = np.iinfo(INTEGERS[target])
    for source in INTEGERS:
        data = integers(source)
        for out in run(program, source, data, INTEGERS[target]):
            assert np.array_equal(out, data.astype(INTEGERS[target]))
        for out in run(program, source + "_sat", data, INTEGERS[target]):
            assert out.tolist() == [min(max(int(v), int(info.min)), int(info.max)) for v in data]


@pytest.mark.parametrize("target", few(SOME_FIRST, 4))
@pytest.mark.parametrize("source", FLOATS)
def test_float_to_integer(source, target):
    text = "".join(
        kernel(f"k{sat}{m}", source, target, f"convert_{target}{sat}{m}")
        for sat in ("", "_sat")
        for m in MODES
    )
    program = Program(compile_c(text))
    data = numbers(source)
    info = np.iinfo(INTEGERS[target])
    low, high = int(info.min), int(info.max)
    for mode in MODES:
        exact = []
        for value in data.astype(np.float64):
            if np.isnan(value):
                exact.append(None)
            elif np.isinf(value):
                exact.append(high + 1 if value > 0 else low - 1)
            else:
                exact.append(round_fraction(Fraction(float(value)), mode or "_rtz"))
        for out in run(program, f"k_sat{mode}", data, INTEGERS[target]):
            assert out.tolist() == [0 if v is None else min(max(v, low), high) for v in exact], mode
        for out in run(program, f"k{mode}", data, INTEGERS[target]):
            for got, want in zip(out.tolist(), exact, strict=True):
                assert want is None or not low <= want <= high or got == want


@pytest.mark.skipif(IS_ARM, reason="about x86")
@pytest.mark.parametrize("setting", ["x86-64-v3", "x86-64-v4"])
def test_lanes_are_converted_at_once(setting):
    """LLVM takes saturation and the rounding of halves element by element, if it is let."""
    target = make_target(EVERYTHING, setting)
    options = CodegenOptions(features=frozenset(target.features))
    has_long = setting == "x86-64-v4"
    wanted = [(s, t) for s in FLOATS for t in INTEGERS if has_long or s == "half" or "long" not in t]
    text = "".join(
        kernel(f"{s}_{t}{m}", s, t, f"convert_{t}_sat{m}") for s, t in wanted for m in ("", "_rte", "_rtn")
    )
    text += "".join(
        kernel(call, "half", "half", call) for call in ("floor", "ceil", "rint", "trunc", "round")
    )
    program = Program(compile_c(text), options, width=16)
    for entry in program.module.entry_points:
        if not entry.name.endswith("_v"):
            found = emit.assembly(program.code(entry.name).text, target)
            assert not re.search(r"\bv?(cvtts[sd]2u?si|rounds[sd]|rndscales[sd])", found), entry.name


@pytest.mark.parametrize("source", few(SOME_FIRST, 4))
def test_integer_to_float(source):
    text = "".join(kernel(f"{t}{m}", source, t, f"convert_{t}{m}") for t in FLOATS for m in MODES)
    program = Program(compile_c(text))
    data = integers(source)
    for target in FLOATS:
        for mode in MODES:
            expected = [round_to_format(Fraction(int(v)), target, mode) for v in data]
            for out in run(program, target + mode, data, FLOATS[target]):
                assert out.tolist() == expected, (target, mode)


def near_ties(type_: str) -> np.ndarray:
    """64-bit integers of every length, next to the middle between two floats, or two doubles."""
    info = np.iinfo(INTEGERS[type_])
    rng = np.random.default_rng(9)
    values = []
    for length in range(26, info.bits - (info.min < 0) + 1):
        for digits in (24, 53):
            if length > digits:
                first = (1 << digits - 1) + int(rng.integers(0, 1 << digits - 1))
                middle = (2 * first + 1) << length - digits - 1
                below = 1 << max(length - digits - 2, 0)
                values += [middle + k for k in (-below, -1, 0, 1, below) if middle + k <= info.max]
    if info.min < 0:
        values += [-v for v in values]
    values += [values[0]] * (-len(values) % 8)
    return np.array(values, INTEGERS[type_])


@pytest.mark.parametrize("source", ["long", "ulong"])
def test_long_to_float_is_rounded_once(source):
    text = "".join(kernel(f"to_{t}", source, t, f"convert_{t}") for t in ("float", "double"))
    program = Program(compile_c(text))
    data = near_ties(source)
    for target in ("float", "double"):
        expected = [round_to_format(Fraction(int(v)), target, "") for v in data]
        for out in run(program, f"to_{target}", data, FLOATS[target]):
            assert out.tolist() == expected


@pytest.mark.skipif(IS_ARM, reason="about x86")
def test_longs_are_converted_at_once():
    target = make_target(EVERYTHING, "x86-64-v3")
    options = CodegenOptions(features=frozenset(target.features))
    text = "".join(
        kernel(f"{s}_{t}", s, t, f"convert_{t}") for s in ("long", "ulong") for t in ("float", "double")
    )
    program = Program(compile_c(text), options, width=8)
    for entry in program.module.entry_points:
        if not entry.name.endswith("_v"):
            found = emit.assembly(program.code(entry.name).text, target)
            assert not re.search(r"\bv?cvtsi2s[sd]", found), entry.name


@pytest.mark.skipif(IS_ARM, reason="about x86")
def test_longs_that_nothing_computed_are_converted():
    """OpenCL vectors that are arguments, and none that an instruction gives."""
    options = CodegenOptions(features=frozenset(make_target(EVERYTHING, "x86-64-v3").features))
    source = "kernel void k(global float4 *to, ulong4 x) { to[get_global_id(0)] = convert_float4(x); }"
    program = Program(compile_c(source), options, width=8)
    to, x = np.zeros(32, np.float32), np.array([1, 2**40 + 1, 2**63 + 2**38, 2**64 - 1], np.uint64)
    program.run("k", 8, 8, to, x.tobytes())
    assert to.tolist() == x.astype(np.float32).tolist() * 8


def same(got: np.ndarray, expected: list[float]) -> None:
    want = np.array(expected, got.dtype)
    assert np.array_equal(got, want, equal_nan=True)


def exact_float(value: float, target: str, mode: str) -> float:
    if np.isnan(value) or np.isinf(value) or value == 0:
        return value
    return round_to_format(Fraction(float(value)), target, mode)


@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("source", FLOATS)
def test_float_to_float(source, target):
    text = "".join(kernel(f"k{m}", source, target, f"convert_{target}{m}") for m in MODES)
    program = Program(compile_c(text))
    data = numbers(source)
    for mode in MODES:
        for out in run(program, f"k{mode}", data, FLOATS[target]):
            same(out, [exact_float(v, target, mode) for v in data])


@pytest.mark.parametrize("features", [{"fma", "f16c", "avx", "sse4.1"}, {"sse4.1"}])
@pytest.mark.parametrize("source", ["float", "double"])
def test_half_storage(source, features):
    text = "".join(
        f"kernel void s{m}(global half *out, global const {source} *in) {{ size_t i = get_global_id(0); "
        f"vstore_half{m}(in[i], i, out); }}\n"
        f"kernel void s{m}_v(global half *out, global const {source} *in) {{ size_t i = get_global_id(0); "
        f"vstore_half4{m}(vload4(i, in), i, out); }}\n"
        for m in MODES
    )
    text += """kernel void l(global float *out, global const half *in) { size_t i = get_global_id(0);
      out[i] = vload_half(i, in); }
      kernel void l3(global float *out, global const half *in) { size_t i = get_global_id(0);
      vstore3(vload_half3(i, in), i, out); }
      kernel void a3(global half *out, global const float *in) { size_t i = get_global_id(0);
      vstorea_half3(vload3(i, in), i, out); }
      kernel void la3(global float *out, global const half *in) { size_t i = get_global_id(0);
      vstore3(vloada_half3(i, in), i, out); }"""
    program = Program(compile_c(text), CodegenOptions(features=frozenset(features)))
    data = numbers(source)
    for mode in MODES:
        for out in run(program, f"s{mode}", data, np.float16, ""):
            same(out, [exact_float(v, "half", mode) for v in data])
    halves = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16)
    out = np.zeros(1 << 16, np.float32)
    program.run("l", 1 << 16, 64, out, halves)
    same(out, list(halves.astype(np.float32)))
    out[:] = 0
    program.run("l3", 21845, 5, out, halves)
    same(out[:65535], list(halves[:65535].astype(np.float32)))
    small = np.array([1, 2, 3, 4.5, 5, 6], np.float32)
    stored = np.zeros(8, np.float16)
    program.run("a3", 2, 1, stored, small)
    assert stored.tolist() == [1, 2, 3, 0, 4.5, 5, 6, 0]
    back = np.zeros(6, np.float32)
    program.run("la3", 2, 1, back, stored)
    assert np.array_equal(back, small)


def test_reinterpretation():
    text = """kernel void k(global uchar8 *out, global const double *in, global int2 *o2, global float4 *o4) {
      size_t i = get_global_id(0); out[i] = as_uchar8(in[i]); o2[i] = as_int2(as_uchar8(in[i]).s76543210);
      o4[i] = as_float4((double2)(in[i], in[i])); }"""
    data = np.array([1.5, -2.25, 3e300], np.float64)
    out, o2, o4 = np.zeros((3, 8), np.uint8), np.zeros((3, 2), np.int32), np.zeros((3, 4), np.float32)
    Program(compile_c(text)).run("k", 3, 1, out, data, o2, o4)
    assert np.array_equal(out, data.view(np.uint8).reshape(3, 8))
    assert np.array_equal(o2.view(np.uint8).reshape(3, 8), out[:, ::-1])
    assert struct.pack("<4f", *o4[1]) == data[1:2].tobytes() * 2


def test_masks_in_place_of_truncations():
    """Without optimisations clang 22 writes OpBitwiseAnd of a ulong that is a uint."""
    source = """kernel void k(global uint *to, global const ulong *from) {
        size_t g = get_global_id(0); ulong x = from[g]; ulong2 two = (ulong2)(x, x >> 9);
        to[g] = (ushort)((ushort)x * (ushort)x) ^ (uint)(uchar)x << 20;
        uint2 cut = convert_uint2(convert_ushort2(two)) * 3u; to[g + 64] = cut.x ^ cut.y << 7; }"""
    data = compile_c(source, "-cl-std=CL3.0 -cl-opt-disable")
    validate.validate(reader.read(data))
    x, to = np.arange(64, dtype=np.uint64) * np.uint64(0x1234567890ABCDEF), np.zeros(128, np.uint32)
    Program(data).run("k", 64, 16, to, x)
    low, high = (v.astype(np.uint16).astype(np.uint32) for v in (x, x >> np.uint64(9)))
    assert (to[:64] == ((low * low & 0xFFFF) ^ (low & 0xFF) << 20)).all()
    assert (to[64:] == (low * 3 ^ high * 3 << 7)).all()
