"""SPV_INTEL_variable_length_array: arrays of lengths that differ between lanes, given back in order."""

from __future__ import annotations

import signal
import struct
import subprocess
import sys

import numpy as np
import pytest

from cl_driver.passes.program import variable_arrays
from cl_driver.spirv.enums import Op
from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.link import link
from cl_driver.spirv.reading import reader
from cl_driver.spirv.validation import validate
from tests.conftest import ROOT
from tests.runtime.emulation import IS_EMULATED
from tests.runtime.kernel_harness import Program
from tests.runtime.spirv_kernels import GROUP, ITEMS, X, Y, buffer, module, same

CAPABILITY = 'OpCapability VariableLengthArrayINTEL\nOpExtension "SPV_INTEL_variable_length_array"'
TYPES = """
%pi = OpTypePointer Function %i32
%pl = OpTypePointer Function %i64
%pc = OpTypePointer Function %i8
%zero = OpConstant %i32 0
%one = OpConstant %i32 1
%three = OpConstant %i32 3
%seven = OpConstant %i32 7
%five8 = OpConstant %i8 5
"""
# Fills an array with i * y, and sums it from its end, weighted.
LOOPS = """
OpBranch %head$
%head$ = OpLabel
%i$ = OpPhi %i32 %zero BEFORE %ni$ %fill$
%fills$ = OpULessThan %bool %i$ LENGTH
OpBranchConditional %fills$ %fill$ %filled$
%fill$ = OpLabel
%at$ = OpInBoundsPtrAccessChain POINTER ARRAY %i$
%product$ = OpIMul %i32 %i$ %y
%cast$ = CONVERT VALUE %product$
OpStore %at$ %cast$
%ni$ = OpIAdd %i32 %i$ %one
OpBranch %head$
%filled$ = OpLabel
OpBranch %sum$
%sum$ = OpLabel
%j$ = OpPhi %i32 LENGTH %filled$ %nj$ %add$
%total$ = OpPhi %i32 START %filled$ %ntotal$ %add$
%adds$ = OpUGreaterThan %bool %j$ %zero
OpBranchConditional %adds$ %add$ %done$
%add$ = OpLabel
%nj$ = OpISub %i32 %j$ %one
%from$ = OpInBoundsPtrAccessChain POINTER ARRAY %nj$
%read$ = OpLoad VALUE %from$
%narrow$ = CONVERT %i32 %read$
%twice$ = OpIMul %i32 %total$ %three
%ntotal$ = OpIAdd %i32 %twice$ %narrow$
OpBranch %add$end
%add$end = OpLabel
OpBranch %sum$
%done$ = OpLabel
"""


def loops(name: str, array: str, length: str, before: str, start="%zero", type_="i32", pointer="pi") -> str:
    text = LOOPS.replace("%nj$ %add$", "%nj$ %add$end").replace("%ntotal$ %add$", "%ntotal$ %add$end")
    convert = "OpCopyObject" if type_ == "i32" else "OpSConvert"
    for old, new in (
        ("$", name), ("BEFORE", before), ("LENGTH", length), ("POINTER", f"%{pointer}"), ("ARRAY", array),
        ("CONVERT", convert), ("VALUE", f"%{type_}"), ("START", start),
    ):  # fmt: skip
        text = text.replace(old, new)
    return text


def summed(n: int, y: int, start: int = 0, bits: int = 32) -> int:
    total = start
    for i in reversed(range(n)):
        value = (i * y) & ((1 << bits) - 1)
        value -= value >> (bits - 1) << bits
        total = total * 3 + value
    return total


def wrapped(values) -> list[int]:
    return [(v + (1 << 31)) % (1 << 32) - (1 << 31) for v in values]


LENGTH = "%low = OpBitwiseAnd %i32 %x %seven\n%n = OpIAdd %i32 %low %one\n"
PARTS = {"capabilities": CAPABILITY, "types": TYPES}


@pytest.mark.parametrize(
    ("type_", "pointer", "bits"), [("i32", "pi", 32), ("i64", "pl", 64), ("i8", "pc", 8)]
)
def test_lengths_of_each_lane(type_, pointer, bits):
    body = (
        LENGTH
        + f"""
%saved = OpSaveMemoryINTEL %pc
%array = OpVariableLengthArrayINTEL %{pointer} %n
{loops("A", "%array", "%n", "%entry", type_=type_, pointer=pointer)}
OpRestoreMemoryINTEL %saved
%r = OpCopyObject %i32 %totalA
"""
    )
    want = wrapped(summed((x & 7) + 1, y, 0, bits) for x, y in zip(X.tolist(), Y.tolist(), strict=True))
    same(body, want, **PARTS)


def test_several_at_once():
    """Each keeps its own contents: bytes, and then words, which are aligned."""
    body = (
        LENGTH
        + f"""
%saved = OpSaveMemoryINTEL %pc
%first = OpVariableLengthArrayINTEL %pc %n
%second = OpVariableLengthArrayINTEL %pl %low
{loops("A", "%first", "%n", "%entry", type_="i8", pointer="pc")}
{loops("B", "%second", "%low", "%doneA", type_="i64", pointer="pl")}
{loops("C", "%first", "%n", "%doneB", "%totalB", type_="i8", pointer="pc")}
OpRestoreMemoryINTEL %saved
%r = OpIAdd %i32 %totalC %totalA
"""
    )
    want = []
    for x, y in zip(X.tolist(), Y.tolist(), strict=True):
        n, y8 = (x & 7) + 1, y
        a, b = summed(n, y8, 0, 8), summed(n - 1, y)
        want.append(summed(n, y8, b, 8) + a)
    same(body, wrapped(want), **PARTS)


NESTED = """
%turns = OpBitwiseAnd %i32 %y %three
OpBranch %loop
%loop = OpLabel
%t = OpPhi %i32 %zero %entry %nt %again
%sofar = OpPhi %i32 %zero %entry %after %again
%goes = OpULessThan %bool %t %turns
OpBranchConditional %goes %turn %left
%turn = OpLabel
SAVE
%length = OpIAdd %i32 %n %t
%array = OpVariableLengthArrayINTEL %pi LENGTH
INNER
RESTORE
OpBranch %again
%again = OpLabel
%after = OpIAdd %i32 %sofar %totalA
%nt = OpIAdd %i32 %t %one
OpBranch %loop
%left = OpLabel
%r = OpCopyObject %i32 %sofar
"""


def nested(length: str, save: bool) -> str:
    body = LENGTH + NESTED.replace("LENGTH", length)
    body = body.replace("SAVE", "%saved = OpSaveMemoryINTEL %pc" if save else "")
    body = body.replace("RESTORE", "OpRestoreMemoryINTEL %saved" if save else "")
    return body.replace("INNER", loops("A", "%array", length, "%turn"))


@pytest.mark.parametrize("save", [True, False])
@pytest.mark.parametrize("length", ["%length", "%three"])
def test_in_loops(save, length):
    """Lanes leave the loop at different times, and take memory that they do or do not give back."""
    want = []
    for x, y in zip(X.tolist(), Y.tolist(), strict=True):
        n = (x & 7) + 1
        want.append(sum(summed(3 if length == "%three" else n + t, y) for t in range(y & 3)))
    same(nested(length, save), wrapped(want), **PARTS)


def variables(body: str) -> list[int]:
    """Bytes of the arrays that lowering makes."""
    program = Program(module(body, "i32", "i32", **PARTS))
    function = program.module.entry_points[0].function
    variable_arrays.lower_variable_arrays(function, program.module.types)
    found = [i.type.element for b in function.blocks for i in b.instructions if i.op is Op.Variable]
    return sorted(type_.count for type_ in found if type_.count)


def test_what_needs_no_stack():
    assert variables(nested("%three", True)) == [3]
    assert variables(nested("%three", False)) == [variable_arrays.STACK]
    assert variables(nested("%length", True)) == [variable_arrays.STACK]


def test_memory_is_given_back():
    """Far more in all iterations together than there is at a time."""
    big = "%big = OpConstant %i32 9000\n%many = OpConstant %i32 40\n"
    body = nested("%big", True).replace(
        "%turns = OpBitwiseAnd %i32 %y %three", "%turns = OpCopyObject %i32 %many"
    )
    body = body.replace("%big", "%wide", 1).replace("%length = ", "%wide = OpIAdd %i32 %low %big\n%length = ")
    body = body.replace("INTEL %pi %big", "INTEL %pi %wide")
    body = body.replace(loops("A", "%array", "%big", "%turn"), loops("A", "%array", "%three", "%turn"))
    want = [40 * summed(3, y) for y in Y.tolist()]
    same(body, wrapped(want), widths=(1, 4), **(PARTS | {"types": TYPES + big}))


FUNCTION = f"""
%called = OpFunction %i32 None %f
%ca = OpFunctionParameter %i32
%cb = OpFunctionParameter %i32
%centry = OpLabel
%none = OpBitwiseAnd %i32 %ca %zero
%length = OpIAdd %i32 %none %thousands
%carray = OpVariableLengthArrayINTEL %pi %length
{loops("F", "%carray", "%ca", "%centry").replace("%y", "%cb")}
OpReturnValue %totalF
OpFunctionEnd
"""


def test_memory_of_a_function_ends_with_it():
    """Called again and again, it never says so itself."""
    types = TYPES + "%f = OpTypeFunction %i32 %i32 %i32\n%many = OpConstant %i32 12\n"
    types += f"%thousands = OpConstant %i32 {variable_arrays.STACK // 40}\n"
    body = (
        LENGTH
        + """
OpBranch %loop
%loop = OpLabel
%t = OpPhi %i32 %zero %entry %nt %loop
%nt = OpIAdd %i32 %t %one
%value = OpFunctionCall %i32 %called %n %y
%goes = OpULessThan %bool %nt %many
OpBranchConditional %goes %loop %left
%left = OpLabel
%r = OpCopyObject %i32 %value
"""
    )
    want = [summed((x & 7) + 1, y) for x, y in zip(X.tolist(), Y.tolist(), strict=True)]
    same(body, wrapped(want), widths=(1, 8), capabilities=CAPABILITY, types=types, functions=FUNCTION)


def test_specialisation_constants_are_lengths():
    body = f"""
%saved = OpSaveMemoryINTEL %pc
%array = OpVariableLengthArrayINTEL %pi %spec
{loops("A", "%array", "%spec", "%entry")}
OpRestoreMemoryINTEL %saved
%r = OpCopyObject %i32 %totalA
"""
    spirv = module(
        body, "i32", "i32", CAPABILITY, types=TYPES + "%spec = OpSpecConstant %i32 2\n",
        decorations="OpDecorate %spec SpecId 5",
    )  # fmt: skip
    given = link([reader.read(spirv, {5: struct.pack("<I", 6)})])
    function = given.entry_points[0].function
    variable_arrays.lower_variable_arrays(function, given.types)
    counts = [i.type.element.count for b in function.blocks for i in b.instructions if i.op is Op.Variable]
    assert counts == [6]


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("%v = OpVariableLengthArrayINTEL %i32 %x", "an array of type int32"),
        ("%v = OpVariableLengthArrayINTEL %pr %x", "an array of type pointer\\(CrossWorkgroup"),
        ("%v = OpVariableLengthArrayINTEL %pi %ax", "a length of type pointer"),
        ("%v = OpVariableLengthArrayINTEL %pi", "words, where"),
        ("%v = OpSaveMemoryINTEL %pr", "is not a pointer into Function memory"),
        ("OpRestoreMemoryINTEL %x", "the pointer has type int32"),
        ("OpRestoreMemoryINTEL %ax", "is not a pointer into Function memory"),
    ],
)
def test_refused(body, rule):
    with pytest.raises(SpirvError, match=rule):
        validate.validate(reader.read(module(body + "\n%r = OpCopyObject %i32 %x", "i32", "i32", **PARTS)))


def test_the_capability_is_needed():
    spirv = module("%s = OpSaveMemoryINTEL %pc\n%r = OpCopyObject %i32 %x", "i32", "i32", types=TYPES)
    with pytest.raises(SpirvError, match="needs the capability VariableLengthArrayINTEL"):
        validate.validate(reader.read(spirv))


OVERFLOW = """
import numpy as np
from tests.conftest import ROOT
from tests.runtime.emulation import IS_EMULATED
from tests.runtime.kernel_harness import Program
from tests.runtime.program import test_variable_arrays as t
from tests.runtime.spirv_kernels import GROUP, ITEMS, X, Y, buffer
Program(t.of_length("%large"), width=4).run("main", ITEMS, GROUP, X, Y, buffer(ITEMS, np.int32))
"""


def of_length(length: str) -> bytes:
    body = f"""
%wide = OpBitwiseOr %i32 %x %large
%zeros = OpBitwiseAnd %i32 %x %zero
%n = OpIAdd %i32 {length} %zeros
%array = OpVariableLengthArrayINTEL %pi %n
OpStore %array %y
%r = OpLoad %i32 %array
"""
    types = TYPES + f"%large = OpConstant %i32 {variable_arrays.STACK // 4 + 1}\n"
    return module(body, "i32", "i32", CAPABILITY, types=types)


@pytest.mark.skipif(IS_EMULATED, reason="faults are those of this CPU")
def test_more_than_there_is_faults():
    done = subprocess.run([sys.executable, "-c", OVERFLOW], cwd=ROOT, capture_output=True, timeout=60)
    assert done.returncode == -signal.SIGSEGV, done.stderr.decode()


def test_without_a_type():
    """UntypedVariableLengthArrayINTEL implies what else it needs."""
    capability = (
        "OpCapability UntypedVariableLengthArrayINTEL\n"
        'OpExtension "SPV_INTEL_variable_length_array"\nOpExtension "SPV_KHR_untyped_pointers"'
    )
    body = (
        LENGTH
        + f"""
%saved = OpSaveMemoryINTEL %up
%array = OpUntypedVariableLengthArrayINTEL %up %i32 %n
%typed = OpBitcast %pi %array
{loops("A", "%typed", "%n", "%entry")}
OpRestoreMemoryINTEL %saved
%r = OpCopyObject %i32 %totalA
"""
    )
    want = wrapped(summed((x & 7) + 1, y) for x, y in zip(X.tolist(), Y.tolist(), strict=True))
    types = TYPES + "%up = OpTypeUntypedPointerKHR Function\n"
    same(body, want, capabilities=capability, types=types)


@pytest.mark.parametrize("length", ["%n", "%three"])
@pytest.mark.parametrize("width", [1, 4])
def test_zeros(length, width):
    """Where a context wants private memory to be zeros: each work-item writes where the next one reads."""
    body = (
        LENGTH
        + f"""
%array = OpVariableLengthArrayINTEL %pi {length}
%r = OpLoad %i32 %array
OpStore %array %seven
%last = OpInBoundsPtrAccessChain %pi %array %low
OpStore %last %seven
"""
    )
    if length == "%three":
        body = body.replace("%array %low", "%array %one")
    got = buffer(ITEMS, np.int32)
    program = Program(module(body, "i32", "i32", **PARTS), width=width, zero_private=True)
    for _ in range(2):
        got[:] = 5
        program.run("main", ITEMS, GROUP, X, Y, got)
        assert not got.any()
