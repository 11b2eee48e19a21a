"""SPV_INTEL_int4: conversions of all integers of 4 bits, vectors as they are packed in memory."""

from __future__ import annotations

import numpy as np
import pytest

from cl_driver.interp.run import run as interpret
from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.reading import reader
from cl_driver.spirv.validation import validate
from tests.pure.spirv.assembler import CAPABILITIES, SCALARS, assemble
from tests.runtime.kernel_harness import Program
from tests.runtime.spirv_kernels import WIDTHS, buffer, module

CAPABILITY = 'OpCapability Int4TypeINTEL\nOpExtension "SPV_INTEL_int4"'
FLOAT8 = f'OpCapability Float8EXT\n{CAPABILITY}\nOpExtension "SPV_EXT_float8"'
COUNTS = (2, 4, 8, 16)
TYPES = "%i4 = OpTypeInt 4 0\n" + "".join(
    f"%{t}v{n} = OpTypeVector %{t} {n}\n" for t in ("i4", "i8", "i16", "i32", "f32") for n in COUNTS
)
DTYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f32": np.float32}
BYTES = np.arange(256).astype(np.uint8)


def unpacked(data: np.ndarray, count: int, signed: bool = False) -> np.ndarray:
    """The components of packed vectors, (vectors, count): the first of a pair is in the lower bits."""
    flat = np.ascontiguousarray(data).view(np.uint8).ravel()
    found = np.stack([flat & 15, flat >> 4], 1).reshape(-1, count).astype(np.int64)
    return np.where(found > 7, found - 16, found) if signed else found


def packed(components: np.ndarray) -> np.ndarray:
    pairs = (np.asarray(components, np.int64) & 15).astype(np.uint8).reshape(-1, 2)
    return pairs[:, 0] | pairs[:, 1] << 4


def run(body: str, operand: str, result: str, x: np.ndarray, out: np.ndarray, y=None, **parts) -> np.ndarray:
    """At all widths and in the interpreter. x, out: an item in each row."""
    capabilities = parts.pop("capabilities", CAPABILITY)
    types = TYPES + parts.pop("types", "")
    spirv = module(body, operand, result, capabilities, types=types, **parts)
    validate.validate(reader.read(spirv))
    items = len(x)
    given, other = buffer(x.shape, x.dtype), buffer(x.shape, x.dtype)
    given[:], other[:] = x, x if y is None else y
    want = buffer(out.shape, out.dtype)
    interpret(Program(spirv).module, "main", [given, other, want], (items,), (16,))
    for width in WIDTHS:
        found = buffer(out.shape, out.dtype)
        Program(spirv, width=width).run("main", items, 16, given, other, found)
        np.testing.assert_array_equal(found, want, f"width {width}")
    return want


def vectors(count: int) -> np.ndarray:
    """Packed vectors in which every value is at every place, an item in each row."""
    size = max(1, count // 2)
    rows = np.stack([np.roll(BYTES, 37 * k) for k in range(size)], 1)
    return np.ascontiguousarray(rows)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("to", ["i8", "i16", "i32", "f32"])
def test_from_int4(count, to):
    data = vectors(count)
    out = np.zeros((256, count), DTYPES[to])
    for op, signed in (("SToF", True), ("UToF", False)) if to == "f32" else (("S", True), ("U", False)):
        name = f"OpConvert{op}" if to == "f32" else f"Op{op}Convert"
        got = run(f"%r = {name} %{to}v{count} %x", f"i4v{count}", f"{to}v{count}", data, out)
        assert got.astype(np.int64).tolist() == unpacked(data, count, signed).tolist()


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("of", ["i8", "i16", "i32"])
def test_to_int4(count, of):
    generator = np.random.default_rng(count)
    limits = np.iinfo(DTYPES[of])
    values = generator.integers(limits.min, limits.max, (256, count), DTYPES[of], endpoint=True)
    values[::2] = generator.integers(-20, 20, (128, count))
    unsigned = values.astype(f"u{limits.dtype}").astype(np.int64)
    signed = values.astype(np.int64)
    cases = {
        "%r = OpUConvert": (unsigned, ""), "%r = OpSConvert": (signed, ""),
        "%r = OpUConvert ": (unsigned.clip(0, 15), "OpDecorate %r SaturatedConversion"),
        "%r = OpSConvert ": (signed.clip(-8, 7), "OpDecorate %r SaturatedConversion"),
        "%r = OpSatConvertSToU": (signed.clip(0, 15), ""), "%r = OpSatConvertUToS": (unsigned.clip(0, 7), ""),
    }  # fmt: skip
    out = np.zeros((256, max(1, count // 2)), np.uint8)
    for text, (want, decorations) in cases.items():
        body = f"{text} %i4v{count} %x"
        got = run(body, f"{of}v{count}", f"i4v{count}", values, out, decorations=decorations)
        assert got.ravel().tolist() == packed(want).tolist(), text


@pytest.mark.parametrize("count", COUNTS)
def test_of_floats(count):
    values = np.random.default_rng(count).uniform(-7.9, 7.9, (256, count)).astype(np.float32)
    out = np.zeros((256, max(1, count // 2)), np.uint8)
    got = run(f"%r = OpConvertFToS %i4v{count} %x", f"f32v{count}", f"i4v{count}", values, out)
    assert got.ravel().tolist() == packed(np.trunc(values)).tolist()
    large = values * 40
    for op, low, high in (("S", -8, 7), ("U", 0, 15)):
        got = run(f"%r = OpConvertFTo{op} %i4v{count} %x", f"f32v{count}", f"i4v{count}", large, out,
                  decorations="OpDecorate %r SaturatedConversion")  # fmt: skip
        assert got.ravel().tolist() == packed(np.trunc(large).clip(low, high)).tolist()


def test_float8_of_int4():
    """Every integer of 4 bits is one: through the packed form and back."""
    body = "%f = OpConvertSToF %f8v2 %x\n%r = OpConvertFToS %i4v2 %f"
    types = "%f8 = OpTypeFloat 8 Float8E4M3EXT\n%f8v2 = OpTypeVector %f8 2\n"
    got = run(body, "i4v2", "i4v2", BYTES[:, None], np.zeros((256, 1), np.uint8), types=types,
              capabilities=FLOAT8)  # fmt: skip
    assert got.ravel().tolist() == BYTES.tolist()


PLACES = """
%ea = OpCompositeExtract %i4 %x 5
%eb = OpCompositeExtract %i4 %y 2
%w = OpSConvert %i32 %ea
%u = OpUConvert %i32 %eb
%n = OpBitwiseAnd %i32 %u %seven
%c = OpVectorExtractDynamic %i4 %x %n
%in = OpCompositeInsert %i4v8 %eb %x 0
%dyn = OpVectorInsertDynamic %i4v8 %in %ea %n
%sh = OpVectorShuffle %i4v8 %dyn %y 7 6 5 4 8 9 10 3
%low = OpVectorShuffle %i4v4 %sh %sh 0 1 2 3
%made = OpCompositeConstruct %i4v8 %low %c %k %ea %eb
%isneg = OpSLessThan %bool %w %zero
%r = OpSelect %i4v8 %isneg %made %fixed
"""
NUMBERS = """
%zero = OpConstant %i32 0
%seven = OpConstant %i32 7
%k = OpConstant %i4 11
%k1 = OpConstant %i4 1
%fixed = OpConstantComposite %i4v8 %k %k1 %k %k1 %k %k1 %k1 %k
"""


def test_components():
    data, other = vectors(8), vectors(8)[::-1].copy()
    got = run(PLACES, "i4v8", "i4v8", data, np.zeros((256, 4), np.uint8), other, types=NUMBERS)
    x, y = unpacked(data, 8), unpacked(other, 8)
    want = []
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        n = b[2] & 7
        changed = [b[2], *a[1:]]
        changed[n] = a[5]
        both = changed + b
        made = [both[k] for k in (7, 6, 5, 4)] + [a[n], 11, a[5], b[2]]
        want.append(made if a[5] > 7 else [11, 1, 11, 1, 11, 1, 1, 11])
    assert unpacked(got, 8).tolist() == want


MEMORY = """
%pv = OpInBoundsAccessChain %pvec %array %one32
OpStore %pv %x
%c0 = OpCompositeExtract %i4 %x 0
OpStore %single %c0
%whole = OpLoad %pair %array
%second = OpCompositeExtract %i4v2 %whole 1
%deep = OpCompositeExtract %i4 %whole 1 1
%changed = OpCompositeInsert %pair %deep %whole 0 0
%first = OpCompositeExtract %i4v2 %changed 0
%back = OpLoad %i4 %single
%table1 = OpInBoundsAccessChain %cvec %table %back32
%listed = OpLoad %i4v2 %table1
%bits = OpBitcast %i8 %second
%odd = OpBitwiseAnd %i8 %bits %bit
%isodd = OpIEqual %bool %odd %bit
OpSelectionMerge %join None
OpBranchConditional %isodd %then %join
%then = OpLabel
%kept = OpFunctionCall %i4v2 %turned %second %back
OpBranch %join
%join = OpLabel
%r = OpPhi %i4v2 %listed %entry %kept %then
"""
MEMORY_TYPES = """
%one32 = OpConstant %i32 1
%two32 = OpConstant %i32 2
%back32 = OpConstant %i32 1
%bit = OpConstant %i8 1
%n9 = OpConstant %i4 9
%n6 = OpConstant %i4 6
%pair = OpTypeArray %i4v2 %two32
%v69 = OpConstantComposite %i4v2 %n6 %n9
%null = OpConstantNull %i4v2
%initial = OpConstantComposite %pair %v69 %null
%both = OpConstantComposite %pair %null %v69
%ppair = OpTypePointer Function %pair
%pvec = OpTypePointer Function %i4v2
%pi4 = OpTypePointer Function %i4
%cpair = OpTypePointer UniformConstant %pair
%cvec = OpTypePointer UniformConstant %i4v2
%table = OpVariable %cpair UniformConstant %both
%ft = OpTypeFunction %i4v2 %i4v2 %i4
"""
FUNCTION = """
%turned = OpFunction %i4v2 None %ft
%v = OpFunctionParameter %i4v2
%s = OpFunctionParameter %i4
%body = OpLabel
%v1 = OpCompositeExtract %i4 %v 1
%made = OpCompositeConstruct %i4v2 %v1 %s
OpReturnValue %made
OpFunctionEnd
"""


def test_memory():
    """Private variables of scalars and of packed vectors, a table, a function, lanes taken apart."""
    got = run(MEMORY, "i4v2", "i4v2", BYTES[:, None], np.zeros((256, 1), np.uint8), types=MEMORY_TYPES,
              functions=FUNCTION, locals="%array = OpVariable %ppair Function %initial\n"
              "%single = OpVariable %pi4 Function")  # fmt: skip
    want = [(b >> 4) | (b & 15) << 4 if b & 1 else 0x96 for b in BYTES.tolist()]
    assert got.ravel().tolist() == want


def test_three_components():
    body = """
%ea = OpUConvert %i4 %x
%v = OpCompositeConstruct %i4v3 %ea %k3 %ea
OpStore %p %v
%w = OpLoad %i4v3 %p
%turned = OpVectorShuffle %i4v3 %w %w 2 1 0
%ints = OpSConvert %i8v3 %turned
%e0 = OpCompositeExtract %i8 %ints 0
%e1 = OpCompositeExtract %i8 %ints 1
%r = OpIAdd %i8 %e0 %e1
"""
    types = (
        "%i4v3 = OpTypeVector %i4 3\n%i8v3 = OpTypeVector %i8 3\n%k3 = OpConstant %i4 13\n"
        "%pv3 = OpTypePointer Function %i4v3\n"
    )
    got = run(body, "i8", "i8", BYTES, np.zeros(256, np.uint8), types=types,
              locals="%p = OpVariable %pv3 Function")  # fmt: skip
    values = (BYTES & 15).astype(np.int64)
    assert got.tolist() == ((np.where(values > 7, values - 16, values) - 3) & 255).tolist()


def test_select_by_components():
    body = """
%xs = OpSConvert %i32v4 %x
%neg = OpSLessThan %boolv4 %xs %zero4
%r = OpSelect %i4v4 %neg %y %k4
"""
    types = (
        "%boolv4 = OpTypeVector %bool 4\n%zero4 = OpConstantNull %i32v4\n%k = OpConstant %i4 13\n"
        "%k4 = OpConstantComposite %i4v4 %k %k %k %k\n"
    )
    data, other = vectors(4), vectors(4)[::-1].copy()
    got = run(body, "i4v4", "i4v4", data, np.zeros((256, 2), np.uint8), other, types=types)
    want = np.where(unpacked(data, 4) > 7, unpacked(other, 4), 13)
    assert unpacked(got, 4).tolist() == want.tolist()


ARGUMENT = f"""{CAPABILITIES}
OpCapability Int4TypeINTEL
OpExtension "SPV_INTEL_int4"
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %main "main"
{SCALARS}
%i4 = OpTypeInt 4 0
%i4v4 = OpTypeVector %i4 4
%pg = OpTypePointer CrossWorkgroup %i32
%fn = OpTypeFunction %void %i4 %i4v4 %pg
%main = OpFunction %void None %fn
%n = OpFunctionParameter %i4
%v = OpFunctionParameter %i4v4
%p = OpFunctionParameter %pg
%entry = OpLabel
%a = OpUConvert %i32 %n
%c = OpCompositeExtract %i4 %v 3
%b = OpSConvert %i32 %c
%r = OpISub %i32 %a %b
OpStore %p %r
OpReturn
OpFunctionEnd
"""


def test_arguments_of_kernels():
    """What a host puts above 4 bits does not count."""
    program = Program(assemble(ARGUMENT))
    out = buffer(1, np.int32)
    program.run("main", 1, 1, np.uint8(0x75), np.uint16(0x9ABC), out)
    assert out.tolist() == [5 + 7]


@pytest.mark.parametrize(
    ("body", "type_", "types", "rule"),
    [
        ("%r = OpIAdd %i4v2 %x %y", "i4v2", "", "OpIAdd: not an instruction for integers of 4 bits"),
        ("%c = OpIEqual %boolv2 %x %y\n%r = OpCopyObject %i4v2 %x", "i4v2",
         "%boolv2 = OpTypeVector %bool 2\n", "OpIEqual: not an instruction for integers of 4 bits"),
        ("%r = OpCopyObject %i4 %x", "i4", "", "in memory that are no vector of an even number"),
        ("%q = OpInBoundsAccessChain %pn %ax %zero\n%n = OpLoad %i4 %q\n%r = OpCopyObject %i4v2 %x", "i4v2",
         "%pn = OpTypePointer CrossWorkgroup %i4\n%zero = OpConstant %i32 0\n",
         "a pointer to 4 bits of a vector"),
    ],
)  # fmt: skip
def test_refused(body, type_, types, rule):
    with pytest.raises(SpirvError, match=rule):
        Program(module(body, type_, type_, CAPABILITY, types=TYPES + types))


@pytest.mark.parametrize(
    ("types", "capability", "rule"),
    [
        ("%t = OpTypeInt 4 0", "", "needs the capability"),
        ("%t = OpTypeInt 4 0\n%v = OpTypeVector %t 4", "", "components of type"),
        ("%t = OpTypeInt 5 0\n%v = OpTypeVector %t 4", CAPABILITY, "components of type"),
        ("%t = OpTypeInt 5 0", CAPABILITY, "needs the capability ArbitraryPrecisionIntegersALTERA"),
    ],
)
def test_wrong_declarations(types, capability, rule):
    spirv = module("%r = OpCopyObject %f32 %x", "f32", "f32", capability, types=types)
    with pytest.raises(SpirvError, match=rule):
        validate.validate(reader.read(spirv))
