"""SPV_EXT_float8: all numbers of both types, conversions of many numbers to them, memory, at every width."""

from __future__ import annotations

import numpy as np
import pytest

from cl_driver.interp.run import run as interpret
from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.reading import reader
from cl_driver.spirv.validation import validate
from tests.runtime.kernel_harness import Program
from tests.runtime.spirv_kernels import WIDTHS, buffer, module

CAPABILITY = (
    "OpCapability Float8EXT\nOpCapability Float16\nOpCapability BFloat16TypeKHR\n"
    'OpExtension "SPV_EXT_float8"\nOpExtension "SPV_KHR_bfloat16"'
)
TYPES = """
%e4m3 = OpTypeFloat 8 Float8E4M3EXT
%e5m2 = OpTypeFloat 8 Float8E5M2EXT
%f16 = OpTypeFloat 16
%bf16 = OpTypeFloat 16 BFloat16KHR
"""
FORMATS = {"e4m3": (4, 3, 7), "e5m2": (5, 2, 15)}  # bits of exponent and mantissa, bias
DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": np.uint16, "i8": np.int8,
          "i16": np.int16, "i32": np.int32, "i64": np.int64, "e4m3": np.uint8, "e5m2": np.uint8}  # fmt: skip
SATURATES = "OpDecorate %r SaturatedToLargestFloat8NormalConversionEXT"
BYTES = np.arange(256).astype(np.uint8)


def decoded(name: str, bits) -> np.ndarray:
    """The numbers that bits stand for, by the definition of the format."""
    exponent_bits, mantissa_bits, bias = FORMATS[name]
    found = []
    for byte in np.asarray(bits, np.uint8).tolist():
        sign = -1.0 if byte & 0x80 else 1.0
        exponent, mantissa = (byte & 0x7F) >> mantissa_bits, byte & (1 << mantissa_bits) - 1
        if name == "e4m3" and byte & 0x7F == 0x7F:
            value = np.nan
        elif name == "e5m2" and exponent == (1 << exponent_bits) - 1:
            value = np.nan if mantissa else np.inf
        elif exponent:
            value = (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)
        else:
            value = mantissa / (1 << mantissa_bits) * 2.0 ** (1 - bias)
        found.append(sign * value)
    return np.array(found)


def nearest(name: str, values, saturates: bool = False) -> list[float]:
    """The numbers of the format that values become: the nearest, ties to an even mantissa. Exact for doubles
    and for integers."""
    numbers = [n for n in decoded(name, BYTES[:128]).tolist() if np.isfinite(n)]
    # What would be next if there were no end.
    step = numbers[-1] - numbers[-2]
    beyond = numbers[-1] if saturates else np.nan if name == "e4m3" else np.inf
    candidates = [*numbers, numbers[-1] + step]
    middles = [(a + b) / 2 for a, b in zip(candidates, candidates[1:], strict=False)]  # exact
    found = []
    for value in np.asarray(values).tolist():
        if value != value:
            found.append(np.nan)
            continue
        magnitude = abs(value)
        place = int(np.searchsorted(middles, float(min(magnitude, 1 << 20)), "left"))
        if place < len(middles) and magnitude == middles[place]:
            place += place & 1
        result = candidates[place] if place < len(numbers) else beyond
        found.append(np.copysign(result, np.copysign(1.0, value) if isinstance(value, float) else value or 1))
    return found


def interesting(dtype) -> np.ndarray:
    """Numbers of both formats, what lies between them and next to that, and others."""
    found = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-300, 1e-40, 464.0, 61440.0, 1e30, 3e38, 1e300]
    for name in FORMATS:
        numbers = decoded(name, BYTES[:127])
        numbers = numbers[np.isfinite(numbers)]
        found += numbers.tolist()
        found += ((numbers[1:] + numbers[:-1]) / 2).tolist()
    with np.errstate(over="ignore"):
        base = np.array(found).astype(dtype)
        base = np.concatenate((base, np.nextafter(base, dtype(np.inf)), np.nextafter(base, dtype(0))))
        exponents = np.random.default_rng(7).uniform(-20, 18, 200)
        base = np.concatenate((base, (2.0**exponents).astype(dtype)))
    return np.concatenate((base, -base))


def integers(dtype) -> np.ndarray:
    limits = np.iinfo(dtype)
    base = np.unique(interesting(np.float64)[:1500])
    base = base[np.isfinite(base) & (base > limits.min) & (base < limits.max)].astype(dtype)
    near = np.array([limits.min, limits.max, limits.min + 1, limits.max - 1, 17, 19, -17], dtype)
    return np.unique(np.concatenate((base, base + dtype(1), base - dtype(1), near)))


def bfloat16(values) -> np.ndarray:
    bits = np.asarray(values, np.float32).view(np.uint32)
    return (bits >> 16).astype(np.uint16)


def convert(op: str, source: str, target: str, values, decorations="", widths=WIDTHS, types="") -> np.ndarray:
    """What a conversion makes of numbers, at all widths and in the interpreter."""
    spirv = module(f"%r = Op{op} %{target} %x", source, target, CAPABILITY, types=TYPES + types,
                   decorations=decorations)  # fmt: skip
    validate.validate(reader.read(spirv))
    count = -(-len(values) // 13) * 13
    given = buffer((count, *values.shape[1:]), values.dtype)
    given[: len(values)] = values
    shape, dtype = given.shape, DTYPES[target.rstrip("v4")] if target.endswith("v4") else DTYPES[target]
    want = buffer(shape, dtype)
    interpret(Program(spirv).module, "main", [given, given, want], (count,), (13,))
    for width in widths:
        out = buffer(shape, dtype)
        Program(spirv, width=width).run("main", count, 13, given, given, out)
        np.testing.assert_array_equal(out, want, f"width {width}")
    return want[: len(values)]


def equal(got, want) -> None:
    """Also of zeros' signs; NaNs are alike."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    np.testing.assert_array_equal(got, want)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))


@pytest.mark.parametrize("name", FORMATS)
def test_every_number(name):
    values = decoded(name, BYTES)
    equal(convert("FConvert", name, "f32", BYTES), values)
    equal(convert("FConvert", name, "f64", BYTES), values)
    equal(convert("FConvert", name, "f16", BYTES), values.astype(np.float16))
    bits = convert("FConvert", name, "bf16", BYTES)
    equal((bits.astype(np.uint32) << 16).view(np.float32), values)
    whole = BYTES[np.isfinite(values)]
    got = convert("ConvertFToS", name, "i32", whole)
    assert got.tolist() == [int(v) for v in decoded(name, whole)]


@pytest.mark.parametrize("saturates", [False, True])
@pytest.mark.parametrize("source", ["f16", "f32", "f64"])
@pytest.mark.parametrize("name", FORMATS)
def test_of_floats(name, source, saturates):
    values = interesting(DTYPES[source])
    got = convert("FConvert", source, name, values, SATURATES * saturates)
    equal(decoded(name, got), nearest(name, values, saturates))


def test_of_doubles_is_rounded_once():
    """Each of these becomes the middle between two numbers as a float."""
    values = np.array([1.0625, 1.1875, -1.125, -1.375, 2.0**-10, 3 * 2.0**-17, 464.0, 61440.0])
    values = np.concatenate((values * (1 + 2.0**-50), values * (1 - 2.0**-50)))
    for name in FORMATS:
        equal(decoded(name, convert("FConvert", "f64", name, values)), nearest(name, values))


@pytest.mark.parametrize("saturates", [False, True])
@pytest.mark.parametrize("source", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("name", FORMATS)
def test_of_integers(name, source, saturates):
    values = integers(DTYPES[source])
    got = convert("ConvertSToF", source, name, values, SATURATES * saturates)
    equal(decoded(name, got), nearest(name, values, saturates))
    got = convert("ConvertUToF", source, name, values, SATURATES * saturates)
    equal(decoded(name, got), nearest(name, values.view(values.dtype.name.replace("i", "ui", 1)), saturates))


def test_of_one_another():
    for source, target in (("e4m3", "e5m2"), ("e5m2", "e4m3"), ("e4m3", "e4m3")):
        for saturates in (False, True):
            got = convert("FConvert", source, target, BYTES, SATURATES * saturates)
            equal(decoded(target, got), nearest(target, decoded(source, BYTES), saturates))
    values = interesting(np.float32)
    given = bfloat16(values)
    got = convert("FConvert", "bf16", "e4m3", given)
    equal(decoded("e4m3", got), nearest("e4m3", (given.astype(np.uint32) << 16).view(np.float32)))


def test_vectors():
    types = "%f32v4 = OpTypeVector %f32 4\n%e4m3v4 = OpTypeVector %e4m3 4\n%e5m2v4 = OpTypeVector %e5m2 4\n"
    values = interesting(np.float32)
    values = values[: len(values) // 4 * 4].reshape(-1, 4)
    for name in FORMATS:
        got = convert("FConvert", "f32v4", f"{name}v4", values, types=types)
        equal(decoded(name, got.ravel()), nearest(name, values.ravel()))
        got = convert("FConvert", f"{name}v4", "f32v4", BYTES.reshape(-1, 4), types=types)
        equal(got.ravel(), decoded(name, BYTES))


MEMORY = """
OpStore %v %x
%loaded = OpLoad %e4m3 %v
%element = OpInBoundsAccessChain %pe %array %two
OpStore %element %loaded
%whole = OpLoad %e4m3s %array
%third = OpCompositeExtract %e4m3 %whole 2
%pair = OpCompositeConstruct %e4m3v2 %third %one
%turned = OpVectorShuffle %e4m3v2 %pair %pair 1 2
%first = OpCompositeExtract %e4m3 %turned 1
%bits = OpBitcast %i8 %first
%odd = OpBitwiseAnd %i8 %bits %bit
%isodd = OpIEqual %bool %odd %bit
OpSelectionMerge %join None
OpBranchConditional %isodd %then %join
%then = OpLabel
%kept = OpFunctionCall %e4m3 %same %first
OpBranch %join
%join = OpLabel
%p = OpPhi %e4m3 %given %entry %kept %then
%last = OpLoad %e4m3 %table2
%sel = OpSelect %e4m3 %isodd %p %last
%wide = OpFConvert %f32 %sel
%third32 = OpFConvert %f32 %spec
%sum = OpFAdd %f32 %wide %third32
%r = OpFConvert %e4m3 %sum
"""
MEMORY_TYPES = """
%pe = OpTypePointer Function %e4m3
%two = OpConstant %i32 2
%four = OpConstant %i32 4
%bit = OpConstant %i8 1
%e4m3s = OpTypeArray %e4m3 %four
%pes = OpTypePointer Function %e4m3s
%e4m3v2 = OpTypeVector %e4m3 2
%one = OpConstant %e4m3 56
%given = OpConstant %e4m3 60
%spec = OpSpecConstant %e4m3 48
%table0 = OpConstantComposite %e4m3s %one %one %given %one
%pus = OpTypePointer UniformConstant %e4m3s
%pu = OpTypePointer UniformConstant %e4m3
%table = OpVariable %pus UniformConstant %table0
%table2 = OpSpecConstantOp %pu InBoundsAccessChain %table %two
%fe = OpTypeFunction %e4m3 %e4m3
"""
SAME = """
%same = OpFunction %e4m3 None %fe
%n = OpFunctionParameter %e4m3
%body = OpLabel
OpReturnValue %n
OpFunctionEnd
"""


def test_memory_and_constants():
    """Variables, arrays, a table, a function, a specialisation constant, branches that lanes take apart."""
    spirv = module(MEMORY, "e4m3", "e4m3", CAPABILITY, types=TYPES + MEMORY_TYPES, functions=SAME,
                   decorations="OpDecorate %spec SpecId 3",
                   locals="%v = OpVariable %pe Function\n%array = OpVariable %pes Function")  # fmt: skip
    given = buffer(260, np.uint8)
    given[:256] = BYTES
    numbers = decoded("e4m3", given)
    want = nearest("e4m3", np.where(given & 1, numbers, 1.5) + 0.5)
    for width in WIDTHS:
        out = buffer(260, np.uint8)
        Program(spirv, width=width).run("main", 260, 13, given, given, out)
        equal(decoded("e4m3", out), want)


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("%r = OpFAdd %e4m3 %x %y", "OpFAdd: not an instruction for numbers of type float8"),
        ("%r = OpFNegate %e4m3 %x", "OpFNegate: not an instruction for numbers of type float8"),
        ("%c = OpFOrdLessThan %bool %x %y\n%r = OpCopyObject %e4m3 %x", "OpFOrdLessThan: not an instruction"),
    ],
)
def test_refused(body, rule):
    with pytest.raises(SpirvError, match=rule):
        Program(module(body, "e4m3", "e4m3", CAPABILITY, types=TYPES))


def test_rounding_modes_are_refused():
    spirv = module("%r = OpFConvert %e4m3 %x", "f32", "e4m3", CAPABILITY, types=TYPES,
                   decorations="OpDecorate %r FPRoundingMode RTZ")  # fmt: skip
    with pytest.raises(SpirvError, match="a rounding mode for float8 other than RTE"):
        Program(spirv)


@pytest.mark.parametrize(
    ("type_", "capability", "rule"),
    [
        ("OpTypeFloat 8 Float8E4M3EXT", "", "needs the capability Float8EXT"),
        ("OpTypeFloat 16 Float8E5M2EXT", CAPABILITY, "encoding Float8E5M2EXT of width 16 is not supported"),
        ("OpTypeFloat 8", CAPABILITY, "width 8 is not 16, 32 or 64"),
        ("OpTypeFloat 8 Float8E4M3EXT\n%c = OpConstant %t 1\n%d = OpSpecConstantOp %f32 FConvert %c",
         CAPABILITY, "where float is needed"),
    ],
)  # fmt: skip
def test_wrong_declarations(type_, capability, rule):
    spirv = module("%r = OpCopyObject %f32 %x", "f32", "f32", capability, types=f"%t = {type_}")
    with pytest.raises(SpirvError, match=rule):
        validate.validate(reader.read(spirv))
