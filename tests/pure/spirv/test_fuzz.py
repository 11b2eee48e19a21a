"""Mutated modules: whatever the words say, reading, linking, validating, reflecting and disassembling end in
a SpirvError or in a module, soon, and in nothing else."""

from __future__ import annotations

import contextlib
import random
import struct
import time
from collections import Counter

import pytest

from cl_driver.spirv import link, reflect
from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.reading import reader
from cl_driver.spirv.reading.dis import disassemble
from cl_driver.spirv.validation import validate

from . import mutations, val_compare
from .assembler import PREAMBLE, TYPES, assemble
from .mutations import mutate

pytestmark = pytest.mark.long

CORPUS = assemble(
    PREAMBLE
    + """
OpEntryPoint Kernel %k "kernel" %gid
OpExecutionMode %k LocalSize 8 1 1
OpName %k "kernel"
OpDecorate %n SpecId 3
OpDecorate %gid BuiltIn GlobalInvocationId
OpDecorate %h LinkageAttributes "helper" Export
OpDecorate %g Restrict
%g = OpDecorationGroup
OpGroupDecorate %g %p
"""
    + TYPES
    + """
%n = OpSpecConstant %i32 4
%m = OpSpecConstantOp %i32 IMul %n %c2
%array = OpTypeArray %f32 %m
%s = OpTypeStruct %i8 %array %v4f32
%pl = OpTypePointer Workgroup %s
%lf32 = OpTypePointer Workgroup %f32
%v3 = OpTypeVector %i64 3
%pin = OpTypePointer Input %v3
%gid = OpVariable %pin Input
%shared = OpVariable %pl Workgroup
%f1 = OpConstant %f32 1.5
%cv = OpConstantComposite %v4i32 %c0 %c1 %c2 %c7
%h = OpFunction %i32 None %fn_i32_i32
%x = OpFunctionParameter %i32
%hl = OpLabel
%mem = OpVariable %pi32 Function %c7
%y = OpLoad %i32 %mem Aligned 4
%z = OpIAdd %i32 %x %y
OpReturnValue %z
OpFunctionEnd
%k = OpFunction %void None %fn_gi32
%p = OpFunctionParameter %gi32
%entry = OpLabel
%id = OpLoad %v3 %gid
%i0 = OpCompositeExtract %i64 %id 0
%i = OpUConvert %i32 %i0
OpBranch %loop
%loop = OpLabel
%c = OpPhi %i32 %c0 %entry %d %next
%e = OpFunctionCall %i32 %h %c
%at = OpAccessChain %lf32 %shared %c1 %c
%w = OpExtInst %f32 %std sin %f1
OpStore %at %w Aligned 4
OpSwitch %e %next 1 %one 7 %next
%one = OpLabel
%q = OpVectorShuffle %v4i32 %cv %cv 0 5 2 7
%r = OpCompositeExtract %i32 %q 1
%old = OpAtomicIAdd %i32 %p %c2 %c0 %r
OpBranch %next
%next = OpLabel
%d = OpIAdd %i32 %c %c1
%more = OpULessThan %bool %d %i
OpBranchConditional %more %loop %out
%out = OpLabel
OpControlBarrier %c2 %c2 %c0
OpReturn
OpFunctionEnd
"""
)


@pytest.mark.parametrize("seed", range(4))
def test_mutations(seed):
    rng = random.Random(seed)
    accepted = 0
    for _ in range(500):
        data = mutate(CORPUS, rng)
        start = time.perf_counter()
        try:
            module = link.link([reader.read(data)])
            validate.validate(module, everything=True)
            reflect.reflect(module)
            accepted += 1
        except SpirvError as error:
            assert error.rule and str(error)
        with contextlib.suppress(SpirvError):
            disassemble(data)
        assert time.perf_counter() - start < 2
    assert 0 < accepted < 450


def test_the_corpus_is_valid():
    validate.validate(reader.read(CORPUS), everything=True)


def test_random_words():
    rng = random.Random(1)
    for _ in range(300):
        words = [0x07230203, 0x00010400, 0, 50, 0]
        for _ in range(rng.randrange(1, 30)):
            operands = [rng.randrange(50) for _ in range(rng.randrange(0, 6))]
            words += [len(operands) + 1 << 16 | rng.randrange(1, 420), *operands]
        try:
            validate.validate(reader.read(struct.pack(f"<{len(words)}I", *words)), everything=True)
        except SpirvError:
            continue


def test_mutated_real_modules_through_all_stages():
    """Long: python -m tests.pure.spirv.mutations --count 200000."""
    seen = Counter()
    outcomes = mutations.run(range(300), True, seen)
    assert not seen
    assert outcomes["compiled"] > 20 and outcomes["reader"] > 50 and outcomes["validator"] > 20


# What spirv-val of Debian 12 (2023) does not look at, but specifications say and later stages rely on.
STRICTER = (
    "alignment N is not a power of two",
    "OpBitcast: ",
    "an Input variable that is no BuiltIn",
    "OpGroup",
    "OpLifetime",
    "no access qualifier",
    "integers of kernels have none",
    "needs the capability",
)


def test_spirv_val_agrees():
    """Long: python -m tests.pure.spirv.val_compare --count 20000."""
    laxer, stricter, same = val_compare.compare(range(300), val_compare.corpus())
    assert [message for message in stricter if not any(part in message for part in STRICTER)] == []
    assert same > 280, laxer
