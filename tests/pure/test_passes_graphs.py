"""Random control-flow graphs, irreducible ones and switches among them, agree before and after the passes.

Long: python -m tests.pure.random_graphs 0 20000
"""

import pytest

from cl_driver.passes.dominance import dominators, is_reducible
from cl_driver.passes.ir import remove_unreachable_blocks
from cl_driver.spirv import reader
from cl_driver.spirv.enums import Op

from .random_graphs import Module, check


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_graphs(first):
    for seed in range(first, first + 10):
        check(seed)


@pytest.mark.parametrize(
    "seed",
    [
        122,  # a loop that is left for the head of another one, which carries that one's mask
        200698,
    ],
)
def test_graphs_that_went_wrong_once(seed):
    check(seed, (2, 4, 8))


def test_they_are_of_all_kinds():
    irreducible = switches = barriers = unreachable = 0
    for seed in range(60):
        for function in reader.read(Module(seed).data).functions:
            ops = [i.op for block in function.blocks for i in block.instructions]
            switches += Op.Switch in ops
            barriers += Op.ControlBarrier in ops
            before = len(function.blocks)
            remove_unreachable_blocks(function)
            unreachable += len(function.blocks) < before
            irreducible += not is_reducible(function, dominators(function))
    assert min(irreducible, switches, barriers, unreachable) >= 10
