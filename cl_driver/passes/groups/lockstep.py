"""Groups of one size whose vectors are executed in lockstep (vectorize/coarsening.py): their barriers have
nothing left to do.

Every instruction is executed by all work-items of the group before the next one is, so a kernel need not be
split into regions, values need not be kept from one to the next, and nothing dispatches between them. The
size of the group is a constant, and so is how often the loops run that count by it: they are unrolled.
"""

from __future__ import annotations

from ...spirv.enums import BuiltIn, Op
from ...spirv.module import Constant, Function, Instruction, Variable
from ...spirv.types import TypeTable
from ..analysis.lane_constants import decide_branches
from ..ir.instructions import ADDRESS, GROUP_OPERATIONS, is_boundary, replace_instructions
from ..ir.plan import PlanError, PlanOptions
from ..ir.remarks import DROPPED
from ..loops.loop_versioning import split_loops
from ..loops.unroll import unroll
from ..scalar.reducible import make_reducible
from ..scalar.simplify import simplify
from .barriers import note_boundaries

# Instructions that a kernel may have times the work-items of a group, and where loops are unrolled for the
# sake of local memory, whose places are known then (codegen/lockstep/lane_constants.py): short vectors gain
# as much by it as long ones, though their code is longer.
MOST_INSTRUCTIONS = 96_000
MOST_OF_LOCAL = 320_000
FEWEST_LANES = 8  # vectors of fewer count as such, or the code for a group would be too long

_SIZES = (BuiltIn.WorkgroupSize, BuiltIn.EnqueuedWorkgroupSize)


def make_lockstep(function: Function, types: TypeTable, options: PlanOptions) -> None:
    """Makes a kernel into code for groups of PlanOptions.group, all of them full. PlanError where it uses
    what only regions have: collectives and asynchronous copies."""
    note_boundaries(function, options, DROPPED)
    for block in function.blocks:
        for i in block.instructions:
            if i.op in GROUP_OPERATIONS:
                raise PlanError("collective operations of a group in lockstep")
        block.instructions = [i for i in block.instructions if not is_boundary(i)]
    x, y, z = options.group
    put_sizes(function, types, (x, y, z))
    simplify(function, types)
    make_reducible(function, types)
    items = options.parts * max(options.width, FEWEST_LANES)
    budget = MOST_INSTRUCTIONS // items
    unroll(function, types, budget, MOST_OF_LOCAL // items)
    decide_branches(function, types, (x, y, z))
    simplify(function, types)
    split_loops(function, types, options, budget)


def put_sizes(function: Function, types: TypeTable, group: tuple[int, int, int]) -> None:
    """Sizes of the group are constants; an id in a dimension of one work-item is 0."""
    replaced = {}
    for block in function.blocks:
        for i in block.instructions:
            variable, k = component_of(i)
            if variable is None or k is None:
                continue
            if variable.builtin in _SIZES:
                replaced[i] = types.integer(i.type.width, group[k])
            elif variable.builtin == BuiltIn.LocalInvocationId and group[k] == 1:
                replaced[i] = types.integer(i.type.width, 0)
    replace_instructions(function, replaced)


def component_of(i: Instruction) -> tuple[Variable | None, int | None]:
    """The built-in variable of which an instruction gives one component, and which."""
    index = None
    if i.op is Op.CompositeExtract and len(i.operands) == 2:
        load, index = i.operands
        if not isinstance(load, Instruction) or load.op is not Op.Load:
            return None, None
        source = load.operands[0]
    elif i.op is Op.Load:
        source = i.operands[0]
        if not isinstance(source, Instruction) or source.op not in ADDRESS or len(source.operands) != 2:
            return None, None
        source, number = source.operands
        index = (number.value or 0) if isinstance(number, Constant) else None
    else:
        return None, None
    return (source, index) if isinstance(source, Variable) else (None, None)
