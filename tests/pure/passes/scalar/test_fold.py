"""Operations on constant vectors of integers, component by component."""

from __future__ import annotations

import pytest

from cl_driver.passes.ir.fold import Folder
from cl_driver.spirv.enums import Op
from cl_driver.spirv.module import Instruction
from cl_driver.spirv.types import TypeTable

from ..support import compile_cl, make_plan

MISSING = object()  # a component that is not known


def vector(types, values):
    type_ = types.vector(types.int(8), 4)
    if values is None:
        return types.null(type_)
    return types.constant(
        type_,
        tuple(types.undef(types.int(8)) if v is MISSING else types.integer(8, v) for v in values),
    )


@pytest.mark.parametrize(
    "op, a, b, wanted",
    [
        (Op.IAdd, (1, 2, 3, 250), (5, 6, 7, 8), (6, 8, 10, 2)),
        (Op.ISub, (64, 0, 1, 2), (45, 1, 1, 1), (19, 255, 0, 1)),
        (Op.UMod, (45, 64, 70, 7), (64, 64, 64, 7), (45, 0, 6, 0)),
        (Op.BitwiseXor, None, (1, 2, 3, 4), (1, 2, 3, 4)),
        (Op.IAdd, None, None, (0, 0, 0, 0)),
        (Op.SDiv, (250, 7, 7, 128), (3, 254, 2, 1), (254, 253, 3, 128)),
        (Op.UDiv, (1, 2, 3, 4), (1, 0, 1, 1), None),  # a component is divided by zero
        (Op.ShiftLeftLogical, (1, 2, 3, 4), (1, 2, 3, 8), None),  # one is shifted too far
        (Op.UDiv, (1, 2, 3, 4), None, None),
        (Op.IAdd, (1, MISSING, 3, 4), (1, 2, 3, 4), None),
        (Op.IAdd, (1, 2, 3, 4), (1, 2, 3, MISSING), None),
    ],
)
def test_constants(op, a, b, wanted):
    types = TypeTable()
    operands = [vector(types, a), vector(types, b)]
    folded = Folder(types).fold(Instruction(op, operands[0].type, operands))
    if wanted is None:
        assert folded is None
    else:
        assert folded.type is operands[0].type
        assert tuple(c.value for c in folded.value) == wanted


def test_values_stay():
    types = TypeTable()
    operands = [Instruction(Op.Undef, types.vector(types.int(8), 4)), vector(types, (0, 0, 0, 0))]
    assert Folder(types).fold(Instruction(Op.IAdd, operands[0].type, operands)) is None


def test_counts_of_rotations_are_numbers():
    source = "kernel void k(global ulong4 *a) { *a = rotate(*a, (ulong4)(3, 60, 0, 65)); }"
    plan = make_plan(compile_cl(source), "k")
    operations = {i.op for r in plan.regions for b in r.function.blocks for i in b.instructions}
    assert not operations & {Op.UMod, Op.ISub}
