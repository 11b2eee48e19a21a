"""SPV_INTEL_arbitrary_precision_integers: integers of any width against Python's."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.layout import word_width
from cl_driver.spirv.reading import reader
from cl_driver.spirv.validation import validate
from tests.pure.spirv.assembler import CAPABILITIES, SCALARS, assemble
from tests.runtime.kernel_harness import Program
from tests.runtime.spirv_kernels import GROUP, ITEMS, WIDTHS, X, buffer, module

CAPABILITY = (
    "OpCapability ArbitraryPrecisionIntegersALTERA\n"
    'OpExtension "SPV_ALTERA_arbitrary_precision_integers"\n%std = OpExtInstImport "OpenCL.std"'
)
NARROW, WIDE = (1, 3, 13, 24, 33, 48, 63), (65, 100, 128, 192, 257, 1024)


def memory(values: list[int], width: int, garbage: int = 0) -> np.ndarray:
    """Integers as they lie in memory, with something above their width."""
    size = -(-width // word_width(width)) * word_width(width) // 8
    out = buffer((len(values), size), np.uint8)
    for k, value in enumerate(values):
        bits = value & (1 << width) - 1 | garbage << width
        out[k] = np.frombuffer((bits & (1 << 8 * size) - 1).to_bytes(size, "little"), np.uint8)
    return out


def integers(data: np.ndarray, width: int) -> list[int]:
    return [int.from_bytes(row.tobytes(), "little") & (1 << width) - 1 for row in data]


def operands(width: int) -> tuple[list[int], list[int]]:
    rng = random.Random(width)
    most = (1 << width) - 1
    special = [0, 1, most, most >> 1, (most >> 1) + 1, most - 1, 2 & most, 3 & most, most // 3]
    values = special + [rng.getrandbits(rng.randint(1, width)) for _ in range(ITEMS - len(special))]
    others = [rng.getrandbits(rng.randint(1, width)) for _ in range(ITEMS - 6)] + special[1:7]
    return values, others


def signed(value: int, width: int) -> int:
    return value - (value >> (width - 1) << width)


def truncated(a: int, b: int) -> int:
    return -(abs(a) // abs(b)) if (a < 0) != (b < 0) else abs(a) // abs(b)


def of_signs(function):
    """Of numbers with signs."""
    return lambda a, b, w: function(signed(a, w), signed(b, w))


OPERATIONS = {
    "OpIAdd": lambda a, b, w: a + b, "OpISub": lambda a, b, w: a - b, "OpIMul": lambda a, b, w: a * b,
    "OpBitwiseAnd": lambda a, b, w: a & b, "OpBitwiseOr": lambda a, b, w: a | b,
    "OpBitwiseXor": lambda a, b, w: a ^ b, "OpUDiv": lambda a, b, w: a // b, "OpUMod": lambda a, b, w: a % b,
    "OpSDiv": of_signs(truncated), "OpSRem": of_signs(lambda a, b: a - truncated(a, b) * b),
    "OpSMod": of_signs(lambda a, b: a % b), "OpShiftLeftLogical": lambda a, b, w: a << b % w,
    "OpShiftRightLogical": lambda a, b, w: a >> b % w,
    "OpShiftRightArithmetic": lambda a, b, w: signed(a, w) >> b % w,
}  # fmt: skip


def run(spirv: bytes, width: int, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    out[:] = 0
    Program(spirv, width=width).run("main", ITEMS, GROUP, a, b, out)


def types(width: int) -> str:
    return f"%w = OpTypeInt {width} 0\n"


def lanes(width: int) -> tuple[int, ...]:
    return WIDTHS if width < 129 else (1, 8)


@pytest.mark.parametrize("width", NARROW + WIDE)
@pytest.mark.parametrize("op", OPERATIONS)
def test_arithmetic(op, width):
    a, b = operands(width)
    if "Div" in op or "Mod" in op or "Rem" in op:
        b = [value or 1 for value in b]
        if width == 1024:
            pytest.skip("long; 257 bits have the same code")
    body = f"%r = {op} %w %x %y"
    if "Shift" in op:
        if width == 1:
            pytest.skip("no distance but 0")
        b = [value % width for value in b]
    spirv = module(body, "w", "w", CAPABILITY, types=types(width))
    want = [OPERATIONS[op](x, y, width) & (1 << width) - 1 for x, y in zip(a, b, strict=True)]
    for w in lanes(width):
        out = memory([0] * ITEMS, width)
        run(spirv, w, memory(a, width, 0x55), memory(b, width, 0x2A), out)
        assert integers(out, width) == want, w


@pytest.mark.parametrize("width", NARROW + WIDE)
def test_comparisons_and_extremes(width):
    a, b = operands(width)
    b[::3] = a[::3]
    names = (
        "OpIEqual", "OpINotEqual", "OpULessThan", "OpULessThanEqual", "OpUGreaterThan", "OpUGreaterThanEqual",
        "OpSLessThan", "OpSLessThanEqual", "OpSGreaterThan", "OpSGreaterThanEqual",
    )  # fmt: skip
    body = "%r0 = OpCopyObject %i32 %zero\n"
    for k, name in enumerate(names):
        body += f"%c{k} = {name} %bool %x %y\n%s{k} = OpSelect %i32 %c{k} %k{k} %zero\n"
        body += f"%r{k + 1} = OpIAdd %i32 %r{k} %s{k}\n"
    body += f"%r = OpCopyObject %i32 %r{len(names)}"
    constants = "%zero = OpConstant %i32 0\n"
    constants += "".join(f"%k{k} = OpConstant %i32 {1 << k}\n" for k in range(len(names)))
    spirv = module(body, "w", "i32", CAPABILITY, types=types(width) + constants)

    def flags(x: int, y: int) -> int:
        s, t = signed(x, width), signed(y, width)
        found = (x == y, x != y, x < y, x <= y, x > y, x >= y, s < t, s <= t, s > t, s >= t)
        return sum(1 << k for k, is_so in enumerate(found) if is_so)

    for w in lanes(width):
        out = buffer(ITEMS, np.int32)
        run(spirv, w, memory(a, width, 0x55), memory(b, width), out)
        assert out.tolist() == [flags(x, y) for x, y in zip(a, b, strict=True)], w
    for name, of in (("u_max", max), ("u_min", min), ("s_max", None), ("s_min", None)):
        spirv = module(f"%r = OpExtInst %w %std {name} %x %y", "w", "w", CAPABILITY, types=types(width))
        choose = max if name == "s_max" else min
        want = [
            of(x, y) if of else choose(x, y, key=lambda v: signed(v, width))
            for x, y in zip(a, b, strict=True)
        ]
        out = memory([0] * ITEMS, width)
        run(spirv, 8, memory(a, width), memory(b, width), out)
        assert integers(out, width) == want, name


@pytest.mark.parametrize("width", NARROW + WIDE)
@pytest.mark.parametrize("other", [8, 20, 64, 96, 200])
@pytest.mark.parametrize("op", ["OpUConvert", "OpSConvert"])
def test_conversions(op, other, width):
    a, _ = operands(width)
    spirv = module(f"%r = {op} %v %x", "w", "v", CAPABILITY, types=types(width) + typed(other))
    want = [(signed(x, width) if op == "OpSConvert" else x) & (1 << other) - 1 for x in a]
    for w in (1, 8):
        out = memory([0] * ITEMS, other)
        run(spirv, w, memory(a, width, 0x33), memory(a, width), out)
        assert integers(out, other) == want, w


def typed(width: int) -> str:
    """%v, an integer of another width."""
    return f"%v = OpTypeInt {width} 0\n"


def exact(value: int, dtype) -> float:
    """The nearest float of an integer."""
    digits = {np.float32: 24, np.float64: 53}[dtype]
    magnitude = abs(value)
    excess = max(magnitude.bit_length() - digits, 0)
    low, magnitude = magnitude & (1 << excess) - 1, magnitude >> excess
    half = 1 << excess >> 1
    magnitude += excess > 0 and (low > half or (low == half and magnitude & 1))
    magnitude <<= excess
    try:
        found = float(magnitude)
    except OverflowError:
        found = np.inf
    return float(dtype(-found if value < 0 else found))


@pytest.mark.parametrize("width", NARROW + WIDE)
@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_floating_point(type_, width):
    a, _ = operands(width)
    dtype = {"f32": np.float32, "f64": np.float64}[type_]
    for op in ("OpConvertUToF", "OpConvertSToF"):
        spirv = module(f"%r = {op} %{type_} %x", "w", type_, CAPABILITY, types=types(width))
        with np.errstate(over="ignore"):
            want = [exact(signed(x, width) if "S" in op[9:] else x, dtype) for x in a]
        for w in (1, 8):
            out = buffer(ITEMS, dtype)
            run(spirv, w, memory(a, width, 0x33), memory(a, width), out)
            assert out.tolist() == want, (op, w)
    limit = min(width - 1, 100)
    numbers = buffer(ITEMS, dtype)
    numbers[:] = [0.75 * v % (1 << limit) if limit else 0 for v in range(ITEMS)]
    numbers[3:9] = [v % (1 << limit) for v in (1e30, 12345678901.5, 7.99, 2.0**40 + 0.5, 1e18, 3.5)]
    for op in ("OpConvertFToU", "OpConvertFToS"):
        given = numbers if op == "OpConvertFToU" else np.where(np.arange(ITEMS) % 2, -numbers, numbers)
        given = np.ascontiguousarray(given)
        spirv = module(f"%r = {op} %w %x", type_, "w", CAPABILITY, types=types(width))
        for w in (1, 8):
            out = memory([0] * ITEMS, width)
            run(spirv, w, given, given, out)
            assert integers(out, width) == [int(v) & (1 << width) - 1 for v in given.tolist()], (op, w)


@pytest.mark.parametrize("width", NARROW + WIDE)
def test_bits(width):
    a, _ = operands(width)
    for name, of in (
        ("clz", lambda x: width - x.bit_length()),
        ("ctz", lambda x: (x & -x).bit_length() - 1 if x else width),
        ("popcount", int.bit_count),
        ("s_abs", lambda x: abs(signed(x, width))),
    ):
        spirv = module(f"%r = OpExtInst %w %std {name} %x", "w", "w", CAPABILITY, types=types(width))
        out = memory([0] * ITEMS, width)
        run(spirv, 8, memory(a, width, 0x33), memory(a, width), out)
        assert integers(out, width) == [of(x) & (1 << width) - 1 for x in a], name


DIVERGENT = """
%low = OpUConvert %i32 %x
%n = OpBitwiseAnd %i32 %low %seven
OpBranch %head
%head = OpLabel
%i = OpPhi %i32 %zero %entry %ni %body
%sum = OpPhi %w %start %entry %nsum %body
%more = OpULessThan %bool %i %n
OpBranchConditional %more %body %done
%body = OpLabel
%product = OpFunctionCall %w %mad %sum %x %y
%odd = OpBitwiseAnd %i32 %i %one
%isodd = OpIEqual %bool %odd %one
%nsum = OpSelect %w %isodd %product %y
%ni = OpIAdd %i32 %i %one
OpBranch %head
%done = OpLabel
%filled = OpCompositeConstruct %s %n %sum %low
%set = OpCompositeInsert %s %x %filled 1
OpStore %v %set
%part = OpAccessChain %pw %v %one
%read = OpLoad %w %part
%whole = OpLoad %s %v
%again = OpCompositeExtract %w %whole 1
%both = OpIAdd %w %read %again
%r = OpIAdd %w %both %sum
"""
MAD = """
%mad = OpFunction %w DontInline %fw
%fa = OpFunctionParameter %w
%fb = OpFunctionParameter %w
%fc = OpFunctionParameter %w
%fentry = OpLabel
%fp = OpIMul %w %fa %fb
%fs = OpIAdd %w %fp %fc
OpReturnValue %fs
OpFunctionEnd
"""


@pytest.mark.parametrize("width", (13, 48, 100, 192))
def test_loops_calls_and_memory(width):
    a, b = operands(width)
    more = """
%zero = OpConstant %i32 0
%one = OpConstant %i32 1
%seven = OpConstant %i32 7
%fw = OpTypeFunction %w %w %w %w
%s = OpTypeStruct %i32 %w %i32
%ps = OpTypePointer Function %s
%pw = OpTypePointer Function %w
%start = OpConstant %w 5
"""
    spirv = module(DIVERGENT, "w", "w", CAPABILITY, types=types(width) + more, functions=MAD,
                   locals="%v = OpVariable %ps Function")  # fmt: skip
    mask = (1 << width) - 1

    def result(x: int, y: int) -> int:
        total = 5
        for i in range(x & 7):
            total = total * x + y & mask if i & 1 else y
        return 2 * x + total & mask

    for w in WIDTHS:
        out = memory([0] * ITEMS, width)
        run(spirv, w, memory(a, width, 0x55), memory(b, width), out)
        assert integers(out, width) == [result(x, y) for x, y in zip(a, b, strict=True)], w


@pytest.mark.parametrize("width", (24, 100))
def test_constants_in_memory(width):
    values = [(1 << width) - 1, 5, (1 << width - 1) + 3, 1 << width - 2]
    more = "%four = OpConstant %i32 4\n%three = OpConstant %i32 3\n"
    more += "".join(f"%e{k} = OpConstant %w {value}\n" for k, value in enumerate(values))
    more += """
%table = OpTypeArray %w %four
%ptable = OpTypePointer UniformConstant %table
%pword = OpTypePointer UniformConstant %w
%all = OpConstantComposite %table %e0 %e1 %e2 %e3
%values = OpVariable %ptable UniformConstant %all
"""
    body = "%k = OpBitwiseAnd %i32 %x %three\n%at = OpAccessChain %pword %values %k\n%r = OpLoad %w %at"
    spirv = module(body, "i32", "w", CAPABILITY, types=types(width) + more)
    for w in WIDTHS:
        out = memory([0] * ITEMS, width)
        run(spirv, w, X, X, out)
        assert integers(out, width) == [values[x & 3] for x in X.tolist()], w


@pytest.mark.parametrize(
    ("declared", "body", "rule"),
    [
        ("%w = OpTypeInt 1025 0", "", "width 1025 is not one of 1 to 1024"),
        ("%w = OpTypeInt 0 0", "", "width 0 is not one of"),
        ("%w = OpTypeInt 24 0\n%v = OpTypeVector %w 4", "", "components of type int24"),
        ("%w = OpTypeInt 24 0", "%z = OpSatConvertSToU %i32 %q", "not available for integers of 24 bits"),
        ("%w = OpTypeInt 24 0", "%z = OpExtInst %w %std rotate %q %q", "rotate available for integers of 24"),
        ("%w = OpTypeInt 100 0", "%z = OpIAdd %w %q %x", "an operand has type int32"),
    ],
)  # fmt: skip
def test_refused(declared, body, rule):
    body = f"%q = OpUConvert %w %x\n{body}" if body else body
    with pytest.raises(SpirvError, match=rule):
        spirv = module(f"{body}\n%r = OpCopyObject %i32 %x", "i32", "i32", CAPABILITY, types=declared)
        validate.validate(reader.read(spirv))
        Program(spirv)


def test_the_capability_is_needed():
    spirv = module("%q = OpUConvert %w %x\n%r = OpUConvert %i32 %q", "i32", "i32", types=types(24))
    with pytest.raises(SpirvError, match="width 24 needs the capability ArbitraryPrecisionIntegersALTERA"):
        validate.validate(reader.read(spirv))


ARGUMENTS = f"""{CAPABILITIES}
{CAPABILITY.replace('%std = OpExtInstImport "OpenCL.std"', "")}
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %main "main" %gid
OpDecorate %gid BuiltIn GlobalInvocationId
{SCALARS}
%wide = OpTypeInt 100 0
%narrow = OpTypeInt 24 0
%v3 = OpTypeVector %i64 3
%pin = OpTypePointer Input %v3
%pr = OpTypePointer CrossWorkgroup %wide
%fn = OpTypeFunction %void %narrow %wide %pr
%gid = OpVariable %pin Input
%main = OpFunction %void None %fn
%n = OpFunctionParameter %narrow
%w = OpFunctionParameter %wide
%out = OpFunctionParameter %pr
%entry = OpLabel
%id3 = OpLoad %v3 %gid
%id = OpCompositeExtract %i64 %id3 0
%longid = OpUConvert %wide %id
%longn = OpSConvert %wide %n
%product = OpIMul %wide %w %longid
%sum = OpIAdd %wide %product %longn
%place = OpInBoundsPtrAccessChain %pr %out %id
OpStore %place %sum
OpReturn
OpFunctionEnd
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_arguments_of_kernels(width):
    """The bits above the width may be anything."""
    wide, narrow = (1 << 99) + 12345, -77
    out = memory([0] * ITEMS, 100)
    given = (narrow & 0xFFFFFF | 0x5A000000).to_bytes(4, "little"), (wide | 3 << 126).to_bytes(16, "little")
    Program(assemble(ARGUMENTS, (1, 6)), width=width).run("main", ITEMS, GROUP, *given, out)
    assert integers(out, 100) == [wide * k + narrow & (1 << 100) - 1 for k in range(ITEMS)]
