"""Vectors of any number of components (SPV_EXT_long_vector, VectorAnyINTEL), at every width."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.reading import reader
from cl_driver.spirv.types import MAX_COMPONENTS
from cl_driver.spirv.validation import validate
from cl_driver.spirv.writer import write
from tests.runtime.kernel_harness import Program
from tests.runtime.spirv_kernels import GROUP, ITEMS, WIDTHS, buffer, module

LONG = 'OpCapability LongVectorEXT\nOpExtension "SPV_EXT_long_vector"'
ANY = 'OpCapability VectorAnyINTEL\nOpExtension "SPV_INTEL_vector_compute"'
COUNTS = (1, 5, 17, 22, 32, 63)
RNG = np.random.default_rng(5)


def laid_out(n: int) -> int:
    """Elements from one vector in memory to the next."""
    return 1 << (n - 1).bit_length()


def vectors(n: int, dtype) -> np.ndarray:
    """Numbers for all work-items, with what lies between vectors."""
    made = buffer((ITEMS, laid_out(n)), dtype)
    if np.dtype(dtype).kind == "f":
        made[:] = RNG.integers(-50, 50, made.shape) / 4
    else:
        made[:] = RNG.integers(-(2**31), 2**31, made.shape)
    return made


def types_of(n: int) -> str:
    """Names of types with so many components."""
    return f"%v = OpTypeVector %i32 {n}\n%w = OpTypeVector %f32 {n}\n%vb = OpTypeVector %bool {n}\n" + (
        f"%l = OpTypeVector %i64 {n}\n"
    )


def run(body: str, n: int, want, x, y, of=("v", "v"), capabilities=LONG, widths=WIDTHS, **parts) -> None:
    """want: [work-item, component], of vectors; [work-item] of scalars."""
    spirv = module(body, *of, capabilities, types=types_of(n) + parts.pop("types", ""), **parts)
    validate.validate(reader.read(spirv))
    want = np.asarray(want)
    is_scalar = want.ndim == 1
    for width in widths:
        for data in (spirv, write(reader.read(spirv))):
            out = buffer(ITEMS if is_scalar else (ITEMS, laid_out(n)), want.dtype)
            Program(data, width=width).run("main", ITEMS, GROUP, x, y, out)
            got = out if is_scalar else out[:, :n]
            np.testing.assert_array_equal(got, want, f"width {width}")
            if not is_scalar:
                assert not out[:, n:].any(), "written behind the vector"


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("capabilities", [LONG, ANY])
def test_arithmetic(n, capabilities):
    x, y = vectors(n, np.int32), vectors(n, np.int32)
    a, b = x[:, :n], y[:, :n]
    body = """
%s = OpIAdd %v %x %y
%m = OpIMul %v %s %x
%less = OpSLessThan %vb %x %y
%c = OpSelect %v %less %m %s
%n = OpNot %v %c
%wide = OpSConvert %l %n
%back = OpUConvert %v %wide
%r = OpExtInst %v %std s_max %back %y
"""
    s = a + b
    chosen = ~np.where(a < b, s * a, s)
    head = capabilities + '\n%std = OpExtInstImport "OpenCL.std"'
    run(body, n, np.maximum(chosen, b), x, y, capabilities=head)


@pytest.mark.parametrize("n", COUNTS)
def test_floats(n):
    x, y = vectors(n, np.float32), vectors(n, np.float32)
    a, b = x[:, :n], y[:, :n]
    body = """
%s = OpFMul %w %x %y
%t = OpVectorTimesScalar %w %s %two
%f = OpExtInst %w %std floor %t
%p = OpExtInst %w %std fract %t %whole
%q = OpLoad %w %whole
%u = OpFSub %w %f %q
%r = OpFAdd %w %p %u
"""
    want = (a * b * 2) - np.floor(a * b * 2)
    run(body, n, want.astype(np.float32), x, y, ("w", "w"),
        capabilities=LONG + '\n%std = OpExtInstImport "OpenCL.std"',
        types="%two = OpConstant %f32 2.0\n%pw = OpTypePointer Function %w\n",
        locals="%whole = OpVariable %pw Function")  # fmt: skip


@pytest.mark.parametrize("n", COUNTS)
def test_reductions(n):
    x, y = vectors(n, np.float32), vectors(n, np.float32)
    a, b = x[:, :n], y[:, :n]
    body = """
%d = OpDot %f32 %x %y
%less = OpFOrdLessThan %vb %x %y
%any = OpAny %bool %less
%all = OpAll %bool %less
%e = OpSelect %f32 %any %d %two
%r = OpSelect %f32 %all %two %e
"""
    dot = np.sum(a.astype(np.float64) * b, 1)  # these are exact
    less = a < b
    want = np.where(less.all(1), 2, np.where(less.any(1), dot, 2)).astype(np.float32)
    run(body, n, want, x, y, ("w", "f32"), types="%two = OpConstant %f32 2.0\n")


@pytest.mark.parametrize("n", COUNTS)
def test_components(n):
    """Shuffles, inserts and extracts, with indices that are known and not."""
    x, y = vectors(n, np.int32), vectors(n, np.int32)
    a, b = x[:, :n].copy(), y[:, :n].copy()
    source = random.Random(n)
    picks = [source.randrange(2 * n) for _ in range(n)]
    last = n - 1
    body = f"""
%sh = OpVectorShuffle %v %x %y {" ".join(map(str, picks))}
%first = OpCompositeExtract %i32 %sh 0
%in = OpCompositeInsert %v %first %sh {last}
%narrow = OpUConvert %i32 %id
%at = OpUMod %i32 %narrow %n
%dyn = OpVectorExtractDynamic %i32 %in %at
%i8id = OpUConvert %i8 %at
%twice = OpIAdd %i32 %dyn %dyn
%r = OpVectorInsertDynamic %v %in %twice %i8id
"""
    want = np.concatenate([a, b], 1)[:, picks]
    want[:, last] = want[:, 0]
    items = np.arange(ITEMS)
    want[items, items % n] += want[items, items % n]
    run(body, n, want, x, y, types=f"%n = OpConstant %i32 {n}\n")


LOOP = """
OpBranch %head
%head = OpLabel
%k = OpPhi %i32 %zero %entry %next %latch
%acc = OpPhi %v %x %entry %sum %latch
%go = OpULessThan %bool %k %limit
OpLoopMerge %done %latch None
OpBranchConditional %go %latch %done
%latch = OpLabel
%sum = OpFunctionCall %v %add %acc %y
%next = OpIAdd %i32 %k %one
OpBranch %head
%done = OpLabel
OpStore %kept %acc
%part = OpInBoundsAccessChain %pi %kept %zero
OpStore %part %limit
%loaded = OpLoad %v %kept
%whole = OpCompositeConstruct %st %limit %loaded
%again = OpCompositeInsert %st %loaded %whole 1
OpStore %array %again
%member = OpInBoundsAccessChain %pv %array %one
%l2 = OpLoad %v %member
%st2 = OpLoad %st %array
%l3 = OpCompositeExtract %v %st2 1
%r = OpIAdd %v %l2 %l3
"""
ADD = """
%add = OpFunction %v None %fadd
%p = OpFunctionParameter %v
%q = OpFunctionParameter %v
%start = OpLabel
%total = OpIAdd %v %p %q
OpReturnValue %total
OpFunctionEnd
"""


TYPES = """
%zero = OpConstant %i32 0
%one = OpConstant %i32 1
%three = OpConstant %i32 3
%fadd = OpTypeFunction %v %v %v
%st = OpTypeStruct %i32 %v
%pi = OpTypePointer Function %i32
%pv = OpTypePointer Function %v
%pst = OpTypePointer Function %st
%null = OpConstantNull %v
"""
BODY = "%narrow = OpUConvert %i32 %id\n%limit = OpBitwiseAnd %i32 %narrow %three" + LOOP
LOCALS = "%kept = OpVariable %pv Function %null\n%array = OpVariable %pst Function"


def loop_of_vectors(n: int) -> bytes:
    return module(BODY, "v", "v", LONG, types=types_of(n) + TYPES, functions=ADD, locals=LOCALS)


@pytest.mark.parametrize("n", COUNTS)
def test_control_flow_calls_and_memory(n):
    x, y = vectors(n, np.int32), vectors(n, np.int32)
    limit = (np.arange(ITEMS) & 3).astype(np.int32)[:, None]
    acc = x[:, :n] + limit * y[:, :n]
    acc[:, :1] = limit
    run(BODY, n, acc * 2, x, y, types=TYPES, functions=ADD, locals=LOCALS)


def test_the_largest():
    n = MAX_COMPONENTS
    x, y = vectors(n, np.int32), vectors(n, np.int32)
    run("%r = OpIMul %v %x %y", n, x * y, x, y, widths=(1, 16))


@pytest.mark.parametrize("n", [2, 3, 16, 20])
def test_components_of_other_sizes(n):
    """Bits of 4 n integers of 8 as n of 32, and back."""
    x, y = vectors(n, np.int32), vectors(n, np.int32)
    types = f"%bytes = OpTypeVector %i8 {4 * n}\n%s = OpTypeVector %i16 {2 * n}\n"
    body = """
%xb = OpBitcast %bytes %x
%yb = OpBitcast %bytes %y
%sum = OpIAdd %bytes %xb %yb
%half = OpBitcast %s %sum
%not = OpNot %s %half
%r = OpBitcast %v %not
"""
    a, b = x[:, :n].copy().view(np.int8), y[:, :n].copy().view(np.int8)
    run(body, n, (~(a + b)).view(np.int32), x, y, types=types)


def test_numbers_of_components_that_are_constants():
    n = 24
    x, y = vectors(n, np.int32), vectors(n, np.int32)
    types = """
%half = OpConstant %i32 12
%n = OpSpecConstantOp %i32 IAdd %half %half
%t = OpTypeVectorIdEXT %i32 %n
%c = OpConstantComposite %t {}
""".format(" ".join(["%half"] * n))
    body = "%s = OpIAdd %t %x %y\n%r = OpISub %t %s %c"
    run(body, n, x[:, :n] + y[:, :n] - 12, x, y, ("t", "t"), types=types)


def test_arguments_of_kernels_and_variables_of_programs():
    """A vector of 24 by value, and one in memory with an initialiser."""
    n = 24
    text = """
%fk = OpTypeFunction %void %v %pr
%pc = OpTypePointer CrossWorkgroup %v
%kept = OpVariable %pc CrossWorkgroup %init
"""
    constants = "".join(f"%c{k} = OpConstant %i32 {k * k}\n" for k in range(n))
    init = "%init = OpConstantComposite %v " + " ".join(f"%c{k}" for k in range(n)) + "\n"
    functions = """
%second = OpFunction %void None %fk
%given = OpFunctionParameter %v
%to = OpFunctionParameter %pc
%begin = OpLabel
%kv = OpLoad %v %kept
%both = OpIAdd %v %given %kv
OpStore %to %both
OpReturn
OpFunctionEnd
"""
    text = text.replace("%pr", "%pc").replace(
        "%fk = OpTypeFunction %void %v %pc\n%pc = OpTypePointer CrossWorkgroup %v",
        "%pc = OpTypePointer CrossWorkgroup %v\n%fk = OpTypeFunction %void %v %pc",
    )
    spirv = module("%r = OpCopyObject %v %x", "v", "v", LONG, types=types_of(n) + constants + init + text,
                   functions=functions, modes='OpEntryPoint Kernel %second "second" %gid')  # fmt: skip
    spirv = write(reader.read(spirv))
    given = RNG.integers(-99, 99, laid_out(n)).astype(np.int32)
    for width in WIDTHS:
        out = buffer(laid_out(n), np.int32)
        Program(spirv, width=width).run("second", 1, 1, given.tobytes(), out)
        assert out[:n].tolist() == (given[:n] + np.arange(n) ** 2).tolist()


@pytest.mark.parametrize(
    ("parts", "rule"),
    [
        ({"capabilities": "", "n": 17}, "17 components; a vector has 2 to 16"),
        ({"n": 0}, "0 components; a vector has 1 to"),
        ({"n": 1 << 31}, "2147483648 components; a vector has 1 to"),
        ({"n": MAX_COMPONENTS + 1}, f"{MAX_COMPONENTS + 1} components"),
        ({"types": "%t = OpTypeVectorIdEXT %i32 %big\n"}, "OpTypeVectorIdEXT: 4294967295 components"),
        ({"types": "%t = OpTypeVectorIdEXT %i32 %wide\n"}, "is not an integer of 32 bits"),
        ({"types": "%t = OpTypeVectorIdEXT %i32 %i32\n"}, "is not a constant, variable or function"),
        ({"types": "%t = OpTypeVectorIdEXT %v %big\n"}, "components of type vector"),
        ({"types": "%pi = OpTypePointer Function %i32\n%t = OpTypeVector %pi 4\n"}, "of type pointer"),
        ({"body": "%r = OpIAdd %v %x %short", "types": "%t = OpTypeVector %i32 21\n%short = OpUndef %t\n"},
         "OpIAdd: "),
        ({"body": "%r = OpVectorShuffle %v %x %y 0 1"}, "OpVectorShuffle: "),
        ({"body": "%c = OpCompositeExtract %i32 %x 20\n%r = OpCopyObject %v %x"}, "OpCompositeExtract: "),
        ({"capabilities": 'OpCapability VectorComputeINTEL\nOpExtension "SPV_INTEL_vector_compute"', "n": 17},
         "17 components"),
    ],
)  # fmt: skip
def test_modules_that_are_wrong(parts, rule):
    types = "%big = OpConstant %i32 4294967295\n%wide = OpConstant %i64 20\n" + types_of(parts.get("n", 20))
    body = parts.get("body", "%r = OpCopyObject %v %x")
    with pytest.raises(SpirvError, match=rule):
        spirv = module(body, "v", "v", parts.get("capabilities", LONG), types=types + parts.get("types", ""))
        validate.validate(reader.read(spirv))


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (
            "%c = OpIAddCarry %pair %x %y\n%r = OpCompositeExtract %v %c 0",
            "OpIAddCarry is not for vectors of 20",
        ),
        ("%r = OpGroupBroadcast %v %two %x %zero", "OpGroupBroadcast is not for vectors of 20 components"),
    ],
)
def test_what_they_are_not_for(body, rule):
    types = types_of(20) + "%pair = OpTypeStruct %v %v\n%two = OpConstant %i32 2\n%zero = OpConstant %i32 0\n"
    with pytest.raises(SpirvError, match=rule):
        Program(module(body, "v", "v", "OpCapability Groups\n" + LONG, types=types))
