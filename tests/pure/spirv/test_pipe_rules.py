"""Rules of pipes: a module that keeps them all, and one change for each that breaks it."""

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
OpCapability Groups
OpCapability GenericPointer
OpCapability Int64
OpCapability Pipes
OpCapability PipeStorage
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %k "k"
%void = OpTypeVoid
%bool = OpTypeBool
%i32 = OpTypeInt 32 0
%i64 = OpTypeInt 64 0
%f32 = OpTypeFloat 32
%reads = OpTypePipe ReadOnly
%writes = OpTypePipe WriteOnly
%both = OpTypePipe ReadWrite
%id = OpTypeReserveId
%event = OpTypeEvent
%storage = OpTypePipeStorage
%pg = OpTypePointer Generic %i32
%pw = OpTypePointer CrossWorkgroup %i32
%pc = OpTypePointer UniformConstant %i32
%zero = OpConstantNull %i32
%one = OpConstant %i32 1
%two = OpConstant %i32 2
%four = OpConstant %i32 4
%long = OpConstant %i64 4
%float = OpConstant %f32 4
%stored = OpConstantPipeStorage %storage 4 4 8
%null = OpConstantNull %id
%none = OpConstantNull %event
%fn = OpTypeFunction %void %reads %writes %both %pw %pc
%k = OpFunction %void None %fn
%r = OpFunctionParameter %reads
%w = OpFunctionParameter %writes
%rw = OpFunctionParameter %both
%q = OpFunctionParameter %pw
%c = OpFunctionParameter %pc
%entry = OpLabel
%p = OpPtrCastToGeneric %pg %q
%read = OpReadPipe %i32 %r %p %four %four
%write = OpWritePipe %i32 %w %p %four %four
%mine = OpReserveReadPipePackets %id %r %two %four %four
%yours = OpReserveWritePipePackets %id %w %two %four %four
%got = OpReservedReadPipe %i32 %r %mine %one %p %four %four
%put = OpReservedWritePipe %i32 %w %yours %one %p %four %four
%valid = OpIsValidReserveId %bool %mine
OpCommitReadPipe %r %mine %four %four
OpCommitWritePipe %w %yours %four %four
%some = OpGetNumPipePackets %i32 %r %four %four
%most = OpGetMaxPipePackets %i32 %w %four %four
%ours = OpGroupReserveReadPipePackets %id %two %r %two %four %four
%theirs = OpGroupReserveWritePipePackets %id %two %w %two %four %four
OpGroupCommitReadPipe %two %r %ours %four %four
OpGroupCommitWritePipe %two %w %theirs %four %four
%made = OpCreatePipeFromPipeStorage %reads %stored
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
OpReadPipe %i32 %r | OpReadPipe %i32 %w | a pipe that is WriteOnly
OpReadPipe %i32 %r | OpReadPipe %i32 %rw | a pipe that is ReadWrite
OpReadPipe %i32 %r | OpReadPipe %i32 %one | a pipe of type int32
OpReadPipe %i32 | OpReadPipe %i64 | the result has type int64
OpReadPipe %i32 %r %p | OpReadPipe %i32 %r %one | the pointer has type int32
OpReadPipe %i32 %r %p | OpReadPipe %i32 %r %c | packets in UniformConstant
OpReadPipe %i32 %r %p %four | OpReadPipe %i32 %r %p %long | a packet size of type int64
OpReadPipe %i32 %r %p %four %four | OpReadPipe %i32 %r %p %four %float | a packet alignment of type
OpReadPipe %i32 %r %p %four | OpReadPipe %i32 %r %p %zero | packets of 0 bytes
OpReadPipe %i32 %r %p %four | OpReadPipe %i32 %r %p %two | packets of 2 bytes, aligned to 4
OpReadPipe %i32 %r %p %four %four | OpReadPipe %i32 %r %p %four %zero | aligned to 0
OpWritePipe %i32 %w | OpWritePipe %i32 %r | a pipe that is ReadOnly
OpReserveReadPipePackets %id %r | OpReserveReadPipePackets %id %w | a pipe that is WriteOnly
OpReserveReadPipePackets %id %r %two | OpReserveReadPipePackets %id %r %long | a number of packets
OpReserveReadPipePackets %id | OpReserveReadPipePackets %event | a reservation of type event
OpReserveWritePipePackets %id %w | OpReserveWritePipePackets %id %r | a pipe that is ReadOnly
OpReservedReadPipe %i32 %r | OpReservedReadPipe %i32 %w | a pipe that is WriteOnly
OpReservedReadPipe %i32 %r %mine | OpReservedReadPipe %i32 %r %none | a reservation of type event
OpReservedReadPipe %i32 %r %mine %one | OpReservedReadPipe %i32 %r %mine %float | an index of type
OpReservedWritePipe %i32 %w | OpReservedWritePipe %i32 %r | a pipe that is ReadOnly
OpReservedWritePipe %i32 | OpReservedWritePipe %f32 | the result has type float32
OpIsValidReserveId %bool %mine | OpIsValidReserveId %bool %one | a reservation of type int32
OpIsValidReserveId %bool | OpIsValidReserveId %i32 | the result has type int32
OpCommitReadPipe %r | OpCommitReadPipe %w | a pipe that is WriteOnly
OpCommitReadPipe %r %mine | OpCommitReadPipe %r %r | a reservation of type pipe
OpCommitWritePipe %w %yours %four | OpCommitWritePipe %w %yours %zero | packets of 0 bytes
OpGetNumPipePackets %i32 %r | OpGetNumPipePackets %i32 %rw | a pipe that is ReadWrite
OpGetMaxPipePackets %i32 | OpGetMaxPipePackets %i64 | the result has type int64
OpGroupReserveReadPipePackets %id %two | OpGroupReserveReadPipePackets %id %one | scope 1 for execution
OpGroupReserveReadPipePackets %id %two | OpGroupReserveReadPipePackets %id %some | a scope that is no constant
OpGroupReserveWritePipePackets %id %two %w | OpGroupReserveWritePipePackets %id %two %r | is ReadOnly
OpGroupCommitReadPipe %two | OpGroupCommitReadPipe %four | scope 4 for execution
OpGroupCommitWritePipe %two %w %theirs | OpGroupCommitWritePipe %two %w %none | a reservation of type event
OpCreatePipeFromPipeStorage %reads %stored | OpCreatePipeFromPipeStorage %reads %one | pipe storage of type
OpCreatePipeFromPipeStorage %reads | OpCreatePipeFromPipeStorage %id | the result has type reserveid
%storage 4 4 8 | %storage 0 4 8 | packets of 0 bytes
%storage 4 4 8 | %storage 6 4 8 | packets of 6 bytes, aligned to 4
%storage 4 4 8 | %storage 4 0 8 | aligned to 0
%storage 4 4 8 | %storage 4 4 0 | room for 0 packets
%storage 4 4 8 | %storage 4 4 0x80000000 | room for 2147483648 packets
OpConstantPipeStorage %storage | OpConstantPipeStorage %id | not the type of pipe storage
"""


@pytest.mark.parametrize("case", CASES.strip().splitlines())
def test_what_breaks_one(case):
    old, new, rule = case.split(" | ")
    assert MODULE.count(old) == 1
    with pytest.raises(SpirvError, match=rule):
        check(MODULE.replace(old, new))


def test_capabilities():
    text = MODULE.replace("OpCapability Pipes\n", "").replace("OpCapability PipeStorage\n", "")
    with pytest.raises(SpirvError, match="needs the capability Pipe"):
        check(text)


def test_pipe_storage_of_the_same_sizes_is_not_the_same():
    text = MODULE.replace("%null =", "%other = OpConstantPipeStorage %storage 4 4 8\n%null =")
    module = reader.read(
        assemble(
            text.replace("%made =", "%more = OpCreatePipeFromPipeStorage %reads %other\n%made ="), (1, 1)
        )
    )
    block = module.entry_points[0].function.blocks[0]
    more, made = (i.operands[0] for i in block.instructions[-3:-1])
    assert more.value == made.value == (4, 4, 8) and more is not made
