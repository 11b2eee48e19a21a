"""The enumerations of SPIR-V: what the type checker is told of them is what they are."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from cl_driver.passes.ir.ops import PassOp
from cl_driver.spirv import enums, generate
from cl_driver.spirv.enums import Op


def test_the_stub_names_every_member():
    assert Path(enums.__file__).with_suffix(".pyi").read_text() == generate.stub(enums.TEXTS)


def test_operations_of_passes_are_apart_from_those_of_spirv():
    numbers = [int(op) for op in PassOp]
    assert numbers == list(range(1 << 16, (1 << 16) + len(PassOp)))
    assert PassOp.SlotLoad in PassOp and PassOp.SlotLoad not in Op and Op.Phi not in PassOp
    assert isinstance(PassOp.AnyLane, Op) and repr(PassOp.AnyLane) == "PassOp.AnyLane"
    assert PassOp["RegionExit"] is PassOp.RegionExit
    with pytest.raises(ValueError, match="is not a valid PassOp"):
        PassOp(int(Op.Phi))
    assert pickle.loads(pickle.dumps([PassOp.AnyLane, Op.Phi])) == [PassOp.AnyLane, Op.Phi]
