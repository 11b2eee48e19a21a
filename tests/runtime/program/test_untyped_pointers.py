"""SPV_KHR_untyped_pointers: memory through pointers that say nothing of what they point to."""

from __future__ import annotations

import numpy as np
import pytest

from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.reading import reader
from cl_driver.spirv.validation import validate
from tests.pure.spirv.assembler import CAPABILITIES, SCALARS, assemble
from tests.runtime.kernel_harness import Local, Program
from tests.runtime.spirv_kernels import GROUP, ITEMS, WIDTHS, X, Y, buffer, module, same

CAPABILITY = (
    'OpCapability UntypedPointersKHR\nOpExtension "SPV_KHR_untyped_pointers"\n'
    '%std = OpExtInstImport "OpenCL.std"'
)
TYPES = """
%ug = OpTypeUntypedPointerKHR CrossWorkgroup
%up = OpTypeUntypedPointerKHR Function
%uc = OpTypeUntypedPointerKHR UniformConstant
%zero = OpConstant %i32 0
%one = OpConstant %i32 1
%two = OpConstant %i32 2
%three = OpConstant %i32 3
%four = OpConstant %i32 4
%four64 = OpConstant %i64 4
%array = OpTypeArray %i32 %four
%pair = OpTypeStruct %i8 %i32 %array
%e1 = OpConstantComposite %array %three %one %zero %two
%table = OpUntypedVariableKHR %uc UniformConstant %array %e1
"""
PARTS = {"capabilities": CAPABILITY, "types": TYPES}


def test_global_memory():
    """The kernel's typed arguments as untyped ones: elements by their number and by their bytes."""
    body = """
%ua = OpBitcast %ug %a
%ub = OpBitcast %ug %b
%uo = OpBitcast %ug %out
%ai = OpUntypedPtrAccessChainKHR %ug %i32 %ua %id
%bytes = OpIMul %i64 %id %four64
%bi = OpUntypedInBoundsPtrAccessChainKHR %ug %i8 %ub %bytes
%oi = OpUntypedInBoundsPtrAccessChainKHR %ug %i32 %uo %id
%u = OpLoad %i32 %ai Aligned 4
%v = OpLoad %i32 %bi Aligned 4
%w = OpISub %i32 %u %v
OpStore %oi %w Aligned 4
%old = OpAtomicIAdd %i32 %oi %one %zero %two
OpUntypedPrefetchKHR %oi %four
%r = OpLoad %i32 %oi Aligned 4
"""
    same(body, X - Y + 2, **PARTS)


def test_private_memory_and_constants():
    body = """
%low = OpBitwiseAnd %i32 %x %three
%byte = OpUConvert %i8 %x
%odd = OpBitwiseAnd %i32 %x %one
%isodd = OpIEqual %bool %odd %one
%from = OpUntypedAccessChainKHR %uc %array %table %low
%number = OpLoad %i32 %from
%first = OpUntypedAccessChainKHR %up %pair %v %zero
OpStore %first %byte
%second = OpUntypedInBoundsAccessChainKHR %up %pair %v %one
OpStore %second %y
%inner = OpUntypedInBoundsAccessChainKHR %up %pair %v %two %number
OpStore %inner %low
%chosen = OpSelect %up %isodd %second %inner
%read = OpLoad %i32 %chosen
%whole = OpLoad %pair %v
%again = OpCompositeExtract %i32 %whole 1
%r = OpIAdd %i32 %read %again
"""
    want = [(y if x & 1 else x & 3) + y for x, y in zip(X.tolist(), Y.tolist(), strict=True)]
    same(body, want, locals="%v = OpUntypedVariableKHR %up Function %pair", **PARTS)


def test_arguments_of_functions_and_loops():
    """A pointer walks through a table in a loop that lanes leave at different times."""
    types = TYPES + "%f = OpTypeFunction %i32 %uc %i32\n"
    function = """
%sum = OpFunction %i32 DontInline %f
%fp = OpFunctionParameter %uc
%count = OpFunctionParameter %i32
%fe = OpLabel
OpBranch %head
%head = OpLabel
%i = OpPhi %i32 %zero %fe %ni %body
%p = OpPhi %uc %fp %fe %np %body
%total = OpPhi %i32 %zero %fe %ntotal %body
%more = OpSLessThan %bool %i %count
OpBranchConditional %more %body %done
%body = OpLabel
%fv = OpLoad %i32 %p
%ntotal = OpIAdd %i32 %total %fv
%np = OpUntypedPtrAccessChainKHR %uc %i32 %p %one
%ni = OpIAdd %i32 %i %one
OpBranch %head
%done = OpLabel
OpReturnValue %total
OpFunctionEnd
"""
    body = "%n = OpBitwiseAnd %i32 %x %three\n%s = OpFunctionCall %i32 %sum %table %n\n%r = OpIAdd %i32 %s %y"
    want = [sum((3, 1, 0, 2)[: x & 3]) + y for x, y in zip(X.tolist(), Y.tolist(), strict=True)]
    same(body, want, capabilities=CAPABILITY, types=types, functions=function)


def test_functions_that_write_through_pointers():
    body = """
%scalar = OpConvertSToF %f32 %x
%halves = OpExtInst %f32 %std ldexp %scalar %minus
%fraction = OpExtInst %f32 %std fract %halves %v
%whole = OpLoad %f32 %v
%twice = OpFAdd %f32 %fraction %fraction
%bits = OpFAdd %f32 %twice %whole
%r = OpConvertFToS %i32 %bits
"""
    types = TYPES + "%minus = OpConstant %i32 -1\n"
    want = [(x & 1) + (x >> 1) for x in X.tolist()]
    same(
        body, want, capabilities=CAPABILITY, types=types, locals="%v = OpUntypedVariableKHR %up Function %f32"
    )


@pytest.mark.parametrize(
    ("body", "types", "rule"),
    [
        ("%c = OpUntypedAccessChainKHR %ug %array %table %zero", "", "of pointer\\(UniformConstant"),
        ("%c = OpUntypedAccessChainKHR %uc %pair %table %four", "", "member 4 of"),
        ("%c = OpUntypedAccessChainKHR %uc %zero %table %zero", "", "no type where one is needed"),
        ("%c = OpUntypedAccessChainKHR %uc %void %table %zero", "", "memory of type void"),
        ("%c = OpUntypedAccessChainKHR %uc %array %x %zero", "", "the base has type int32"),
        ("%c = OpUntypedPtrAccessChainKHR %pa %i32 %a %zero", "", "a result of type pointer"),
        ("", "%bad = OpUntypedVariableKHR %uc UniformConstant\n", "no type of data"),
        ("", "%bad = OpUntypedVariableKHR %uc UniformConstant %i32 %e1\n", "initializer of type array"),
        ("", "%bad = OpUntypedVariableKHR %ug UniformConstant %i32\n", "not an untyped pointer into Uniform"),
    ],
)
def test_refused(body, types, rule):
    given = PARTS | {"types": TYPES + types}
    with pytest.raises(SpirvError, match=rule):
        validate.validate(reader.read(module(body + "\n%r = OpCopyObject %i32 %x", "i32", "i32", **given)))


def test_the_capability_is_needed():
    spirv = module("%r = OpCopyObject %i32 %x", "i32", "i32", types=TYPES)
    with pytest.raises(SpirvError, match="needs the capability UntypedPointersKHR"):
        validate.validate(reader.read(spirv))


ARGUMENTS = f"""{CAPABILITIES}
OpCapability Groups
OpCapability UntypedPointersKHR
OpExtension "SPV_KHR_untyped_pointers"
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %main "main" %lid %gid
OpDecorate %lid BuiltIn LocalInvocationId
OpDecorate %gid BuiltIn GlobalInvocationId
{SCALARS}
%ug = OpTypeUntypedPointerKHR CrossWorkgroup
%ul = OpTypeUntypedPointerKHR Workgroup
%event = OpTypeEvent
%v3 = OpTypeVector %i64 3
%pin = OpTypePointer Input %v3
%fn = OpTypeFunction %void %ug %ul
%two = OpConstant %i32 2
%n1 = OpConstant %i32 1
%pe = OpTypePointer Function %event
%fence = OpConstant %i32 272
%four = OpConstant %i64 4
%one = OpConstant %i64 1
%count = OpConstant %i64 {GROUP}
%none = OpConstantNull %event
%lid = OpVariable %pin Input
%gid = OpVariable %pin Input
%main = OpFunction %void None %fn
%out = OpFunctionParameter %ug
%tile = OpFunctionParameter %ul
%entry = OpLabel
%events = OpVariable %pe Function
%lid3 = OpLoad %v3 %lid
%l = OpCompositeExtract %i64 %lid3 0
%gid3 = OpLoad %v3 %gid
%g = OpCompositeExtract %i64 %gid3 0
%start = OpISub %i64 %g %l
%from = OpUntypedPtrAccessChainKHR %ug %i32 %out %start
%copied = OpUntypedGroupAsyncCopyKHR %event %two %tile %from %four %count %one %none
OpStore %events %copied
OpGroupWaitEvents %two %n1 %events
OpControlBarrier %two %two %fence
%next = OpIAdd %i64 %l %one
%around = OpUMod %i64 %next %count
%at = OpUntypedPtrAccessChainKHR %ul %i32 %tile %around
%read = OpLoad %i32 %at Aligned 4
%place = OpUntypedPtrAccessChainKHR %ug %i32 %out %g
OpStore %place %read Aligned 4
OpReturn
OpFunctionEnd
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_arguments_of_kernels(width):
    """Each work-item gets what its neighbour in the group had, by way of local memory."""
    spirv = assemble(ARGUMENTS, (1, 6))
    out = buffer(ITEMS, np.int32)
    out[:] = X
    Program(spirv, width=width).run("main", ITEMS, GROUP, out, Local(4 * GROUP))
    assert out.tolist() == np.concatenate([np.roll(part, -1) for part in X.reshape(-1, GROUP)]).tolist()
