"""Random control-flow graphs, irreducible ones and switches among them, agree before and after the passes.

Long: python -m tests.pure.random.graphs 0 20000
"""

import pytest

from cl_driver.passes.ir.dominance import LoopNest, dominators, is_reducible
from cl_driver.passes.ir.instructions import predecessors, remove_unreachable_blocks
from cl_driver.passes.ir.lcssa import close_loops
from cl_driver.passes.ir.verify import verify
from cl_driver.passes.lower.inline import inline
from cl_driver.passes.scalar.reducible import make_reducible
from cl_driver.passes.scalar.simplify import simplify
from cl_driver.passes.scalar.sroa import promote
from cl_driver.spirv.enums import Op
from cl_driver.spirv.module import Instruction
from cl_driver.spirv.reading import reader
from tests.pure.random.graphs import Module, check

pytestmark = pytest.mark.long


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


def uses_behind_loops(function) -> int:
    """How many operands are values of loops that the user is not in; a phi is where they come from."""
    before = predecessors(function)
    loops = LoopNest(function, dominators(function, before), before).loops
    count = 0
    for block in function.blocks:
        for i in block.instructions:
            for k, operand in enumerate(i.operands):
                if isinstance(operand, Instruction):
                    where = i.operands[k + 1] if i.op is Op.Phi else block
                    count += any(operand.block in loop.blocks and where not in loop.blocks for loop in loops)
    return count


def test_values_leave_loops_by_phis_only():
    closed = 0
    for seed in (*range(40), 103, 112, 122, 186, 188, 288):  # the latter: from loop to loop
        module = reader.read(Module(seed).data)
        function = inline(module, module.entry_points[0].function)
        for pass_ in (simplify, promote, simplify, make_reducible):
            pass_(function, module.types)
        closed += uses_behind_loops(function)
        close_loops(function, module.types)
        verify(function, f"close_loops of {seed}")
        assert uses_behind_loops(function) == 0, seed
    assert closed > 100


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
