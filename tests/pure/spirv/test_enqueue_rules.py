"""Rules of kernels that enqueue kernels: a module that keeps them, and one change for each that breaks it."""

from __future__ import annotations

import pytest

from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.reading import reader
from cl_driver.spirv.validation import validate
from cl_driver.spirv.writer import write

from .assembler import assemble

MODULE = """
OpCapability Addresses
OpCapability Kernel
OpCapability GenericPointer
OpCapability Int64
OpCapability Int8
OpCapability DeviceEnqueue
OpCapability SubgroupDispatch
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %k "k"
%void = OpTypeVoid
%bool = OpTypeBool
%i8 = OpTypeInt 8 0
%i32 = OpTypeInt 32 0
%i64 = OpTypeInt 64 0
%f32 = OpTypeFloat 32
%queue = OpTypeQueue
%event = OpTypeDeviceEvent
%zero = OpConstantNull %i32
%one = OpConstant %i32 1
%two = OpConstant %i32 2
%three = OpConstant %i32 3
%eight = OpConstant %i32 8
%long = OpConstant %i64 8
%float = OpConstant %f32 4
%sizes = OpTypeArray %i64 %three
%pair = OpTypeArray %i64 %two
%longs = OpConstantComposite %pair %long %long
%range = OpTypeStruct %i32 %sizes %sizes %sizes
%other = OpTypeStruct %i32 %sizes %sizes %i64
%pg = OpTypePointer Generic %i8
%pl = OpTypePointer Workgroup %i32
%pw = OpTypePointer CrossWorkgroup %i64
%pb = OpTypePointer CrossWorkgroup %i8
%pe = OpTypePointer Function %event
%pge = OpTypePointer Generic %event
%null = OpConstantNull %pge
%fn = OpTypeFunction %void %pw %pb
%block = OpTypeFunction %void %pg %pl
%plain = OpTypeFunction %void %pg
%bad = OpTypeFunction %void %pb
%worse = OpTypeFunction %void %pg %i32
%f = OpFunction %void None %block
%f1 = OpFunctionParameter %pg
%f2 = OpFunctionParameter %pl
%fb = OpLabel
OpReturn
OpFunctionEnd
%g = OpFunction %void None %plain
%g1 = OpFunctionParameter %pg
%gb = OpLabel
OpReturn
OpFunctionEnd
%h = OpFunction %void None %bad
%h1 = OpFunctionParameter %pb
%hb = OpLabel
OpReturn
OpFunctionEnd
%j = OpFunction %void None %worse
%j1 = OpFunctionParameter %pg
%j2 = OpFunctionParameter %i32
%jb = OpLabel
OpReturn
OpFunctionEnd
%k = OpFunction %void None %fn
%place = OpFunctionParameter %pw
%bytes = OpFunctionParameter %pb
%entry = OpLabel
%var = OpVariable %pe Function
%events = OpPtrCastToGeneric %pge %var
%p = OpPtrCastToGeneric %pg %bytes
%q = OpGetDefaultQueue %queue
%nd = OpBuildNDRange %range %long %long %long
%nd2 = OpBuildNDRange %range %longs %longs %longs
%user = OpCreateUserEvent %event
%done = OpEnqueueKernel %i32 %q %one %nd %one %events %events %f %p %eight %eight %eight
%again = OpEnqueueKernel %i32 %q %one %nd2 %zero %null %null %g %p %eight %eight
%mark = OpEnqueueMarker %i32 %q %one %events %events
%most = OpGetKernelWorkGroupSize %i32 %f %p %eight %eight
%times = OpGetKernelPreferredWorkGroupSizeMultiple %i32 %g %p %eight %eight
%groups = OpGetKernelNDrangeSubGroupCount %i32 %nd %g %p %eight %eight
%size = OpGetKernelNDrangeMaxSubGroupSize %i32 %nd %g %p %eight %eight
%local = OpGetKernelLocalSizeForSubgroupCount %i32 %two %f %p %eight %eight
%number = OpGetKernelMaxNumSubgroups %i32 %g %p %eight %eight
OpRetainEvent %user
OpReleaseEvent %user
%good = OpIsValidEvent %bool %user
OpSetUserEventStatus %user %zero
OpCaptureEventProfilingInfo %user %one %place
OpReturn
OpFunctionEnd
"""


def check(text: str) -> None:
    validate.validate(reader.read(assemble(text, (1, 1))), everything=True)


def test_a_module_that_keeps_them():
    check(MODULE)
    assert write(reader.read(write(reader.read(assemble(MODULE, (1, 1)))))) == write(
        reader.read(assemble(MODULE, (1, 1)))
    )


# What is changed, to what, and the rule that is broken then.
CASES = """
OpGetDefaultQueue %queue | OpGetDefaultQueue %event | the result is of type deviceevent
OpBuildNDRange %range %long | OpBuildNDRange %other %long | the result has type
OpBuildNDRange %range %long %long %long | OpBuildNDRange %range %one %one %one | sizes of type int32
OpBuildNDRange %range %long %long %long | OpBuildNDRange %range %long %longs %long | sizes of types
OpCreateUserEvent %event | OpCreateUserEvent %queue | the result is of type queue
OpEnqueueKernel %i32 %q %one | OpEnqueueKernel %i64 %q %one | the result has type int64
OpEnqueueKernel %i32 %q %one | OpEnqueueKernel %i32 %user %one | a queue of type deviceevent
OpEnqueueKernel %i32 %q %one | OpEnqueueKernel %i32 %q %long | flags of type int64
%one %nd %one %events | %one %one %one %events | an nd-range of type int32
%one %nd %one %events | %one %nd %long %events | a number of events of type int64
%nd %one %events %events | %nd %one %place %events | an address of events of type int64
%nd %one %events %events | %nd %one %events %place | an address of events of type int64
%events %f %p %eight | %events %one %p %eight | what is invoked is no function
%events %f %p %eight | %events %h %bytes %eight | the block's function has parameters
%events %f %p %eight | %events %j %p %eight | the block's function has a parameter of type int32
%events %f %p %eight | %events %f %bytes %eight | captured by the block: pointer(CrossWorkgroup, int)
%p %eight %eight %eight | %p %long %eight %eight | a size of what is captured of type int64
%p %eight %eight %eight | %p %eight %float %eight | an alignment of what is captured of type float32
%p %eight %eight %eight | %p %eight %three %eight | what is captured is aligned to 3
%f %p %eight %eight %eight | %f %p %eight %eight | 0 sizes of 1 local arguments
%p %eight %eight %eight | %p %eight %eight %float | a local size of type float32
OpEnqueueMarker %i32 %q | OpEnqueueMarker %i32 %one | a queue of type int32
OpEnqueueMarker %i32 %q %one | OpEnqueueMarker %i32 %q %float | a number of events of type float32
OpGetKernelWorkGroupSize %i32 %f | OpGetKernelWorkGroupSize %i32 %h | the block's function has parameters
OpGetKernelNDrangeSubGroupCount %i32 %nd | OpGetKernelNDrangeSubGroupCount %i32 %one | an nd-range of type
OpGetKernelLocalSizeForSubgroupCount %i32 %two | OpGetKernelLocalSizeForSubgroupCount %i32 %long | a number of
OpGetKernelMaxNumSubgroups %i32 | OpGetKernelMaxNumSubgroups %i64 | the result has type int64
OpRetainEvent %user | OpRetainEvent %q | an event of type queue
OpReleaseEvent %user | OpReleaseEvent %one | an event of type int32
OpIsValidEvent %bool | OpIsValidEvent %i32 | the result has type int32
OpSetUserEventStatus %user %zero | OpSetUserEventStatus %user %long | a status of type int64
OpCaptureEventProfilingInfo %user %one %place | OpCaptureEventProfilingInfo %user %one %p | times in pointer
"""


@pytest.mark.parametrize("case", CASES.strip().splitlines())
def test_a_broken_rule(case):
    before, after, rule = case.split(" | ")
    assert MODULE.count(before) >= 1
    with pytest.raises(SpirvError) as error:
        check(MODULE.replace(before, after, 1))
    assert rule in str(error.value)
