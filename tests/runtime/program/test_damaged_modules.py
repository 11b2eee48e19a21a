"""Modules of these extensions with words that are not what they were: an error that says what is wrong, or a
program. Nothing else may come of them."""

from __future__ import annotations

import random
import struct

import pytest

from cl_driver import settings
from cl_driver.codegen.llvm.errors import CodegenError
from cl_driver.compiler import pipeline
from cl_driver.device.target import target_of
from cl_driver.jit import bundle
from cl_driver.jit.errors import CompileError
from cl_driver.passes.ir.plan import PlanError
from cl_driver.spirv.enums import Op
from cl_driver.spirv.errors import SpirvError
from tests.runtime.program import test_inline_assembly, test_masked_gather_scatter, test_vectors

MODULES = [
    test_inline_assembly.source(),
    test_vectors.loop_of_vectors(20),
    test_masked_gather_scatter.source(4, test_masked_gather_scatter.GATHER),
    test_masked_gather_scatter.source(4, test_masked_gather_scatter.SCATTER),
]
OTHERS = (
    Op.AsmINTEL, Op.AsmCallINTEL, Op.MaskedGatherINTEL, Op.MaskedScatterINTEL, Op.TypeVector,
    Op.TypeVectorIdEXT, Op.CompositeExtract, Op.CompositeInsert, Op.CompositeConstruct, Op.VectorShuffle,
    Op.VectorExtractDynamic, Op.VectorInsertDynamic, Op.Bitcast, Op.Load, Op.Store, Op.Select,
    Op.FunctionCall, Op.PtrAccessChain, Op.IAdd,
)  # fmt: skip


def damaged(source: random.Random) -> bytes:
    """One of the modules, with one or two words changed."""
    data = bytearray(source.choice(MODULES))
    for _ in range(source.choice((1, 1, 2))):
        at = 4 * source.randrange(5, len(data) // 4)
        (old,) = struct.unpack_from("<I", data, at)
        new = source.choice((
            old + 1, old - 1, source.randrange(80), source.randrange(1 << 32), 0, 1 << 31, (1 << 32) - 1,
            old ^ 1 << source.randrange(32), old & 0xFFFF0000 | source.choice(OTHERS),
        ))  # fmt: skip
        struct.pack_into("<I", data, at, new & 0xFFFFFFFF)
    return bytes(data)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_modules(seed):
    source, target, compiled = random.Random(seed), target_of(settings), 0
    for _ in range(600):
        il = bundle.pack([(damaged(source), {})])
        try:
            program = pipeline.prepare(il, pipeline.Context(target, "", {}))
            for name in program.names:
                pipeline.entry(program, name)
            compiled += 1
        except (CompileError, PlanError, CodegenError, SpirvError):
            continue
    assert compiled, "no module was looked at as far as its code"
