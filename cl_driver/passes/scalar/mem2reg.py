"""SSA construction of many variables at once: phis at the iterated dominance frontiers of definitions, then
one walk over the dominator tree (Cytron et al., 1991). Its time is in proportion to the graph, the accesses
and the phis, where questions on demand (ir/ssa_updater.py) walk the graph once for each variable.
"""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import Block, Function, Instruction, Type, Value
from ..ir.dominance import DominatorTree, dominators
from ..ir.instructions import predecessors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias


class Renamed:
    """One variable: its value at the end of blocks that define it, and what asks for it at their start."""

    __slots__ = ("definitions", "name", "questions", "type", "undefined")

    def __init__(self, type_: Type, undefined: Value, name: str) -> None:
        self.type = type_
        self.undefined = undefined  # what it is where no definition reaches
        self.name = name
        self.definitions: dict[Block, Value] = {}
        self.questions: list[tuple[Block, Value]] = []  # (block, the placeholder of its value at the start)


def rename(function: Function, variables: list[Renamed], replaced: dict[Value, Value]) -> None:
    """Answers all questions in `replaced`, which may hold other values already, and puts the phis that are
    needed into their blocks. All blocks of the function can be reached."""
    before = predecessors(function)
    tree = dominators(function, before)
    asked = [v for v in variables if v.questions]
    phis = _place(asked, _frontiers(tree, before))
    _walk(function, tree, asked, phis, replaced)
    _keep_needed(asked, phis, before, replaced)


# Where variables meet: the phis of each block, with the variable that each is of.
_Phis: TypeAlias = dict[Block, list[tuple[Renamed, Instruction]]]


def _frontiers(tree: DominatorTree[Block], before: dict[Block, list[Block]]) -> dict[Block, list[Block]]:
    """The dominance frontier of each block that has one."""
    found: dict[Block, dict[Block, None]] = {}
    for block, sources in before.items():
        if len(sources) > 1:
            stop = tree.immediate(block)
            for runner in sources:
                while runner is not stop:
                    frontier = found.setdefault(runner, {})
                    if block in frontier:
                        break  # the rest of the way was gone for another predecessor
                    frontier[block] = None
                    runner = tree.above(runner)
    return {block: list(frontier) for block, frontier in found.items()}


def _place(variables: list[Renamed], frontiers: dict[Block, list[Block]]) -> _Phis:
    """Phis without operands, wherever definitions meet."""
    phis: _Phis = {}
    for variable in variables:
        seen: set[Block] = set()
        work = list(variable.definitions)
        while work:
            for block in frontiers.get(work.pop(), ()):
                if block not in seen:
                    seen.add(block)
                    phi = Instruction(Op.Phi, variable.type, (), block, variable.name)
                    phis.setdefault(block, []).append((variable, phi))
                    work.append(block)
    return phis


def _walk(
    function: Function,
    tree: DominatorTree[Block],
    variables: list[Renamed],
    phis: _Phis,
    replaced: dict[Value, Value],
) -> None:
    """Goes down the dominator tree with the value that each variable has; fills the phis."""
    questions: dict[Block, list[tuple[Renamed, Value]]] = {}
    definitions: dict[Block, list[tuple[Renamed, Value]]] = {}
    for variable in variables:
        for block, placeholder in variable.questions:
            questions.setdefault(block, []).append((variable, placeholder))
        for block, value in variable.definitions.items():
            definitions.setdefault(block, []).append((variable, value))
    children: dict[Block, list[Block]] = {block: [] for block in function.blocks}
    for block in function.blocks[1:]:
        children[tree.above(block)].append(block)
    now: dict[Renamed, Value] = {variable: variable.undefined for variable in variables}
    work: list[Block | list[tuple[Renamed, Value]]] = [function.blocks[0]]
    while work:
        what = work.pop()
        if isinstance(what, list):  # leave a block: what it defined is undone
            for variable, value in reversed(what):
                now[variable] = value
            continue
        block = what
        undo: list[tuple[Renamed, Value]] = []
        for variable, value in phis.get(block, ()):
            undo.append((variable, now[variable]))
            now[variable] = value
        for variable, placeholder in questions.get(block, ()):
            replaced[placeholder] = now[variable]
        for variable, value in definitions.get(block, ()):
            undo.append((variable, now[variable]))
            now[variable] = value
        for successor in block.successors():
            for variable, phi in phis.get(successor, ()):
                phi.operands += [now[variable], block]
        if undo:
            work.append(undo)
        work += children[block]


def _keep_needed(
    variables: list[Renamed], phis: _Phis, before: dict[Block, list[Block]], replaced: dict[Value, Value]
) -> None:
    """Drops phis that nobody needs, or that merge one value only."""
    made = {phi: variable for here in phis.values() for variable, phi in here}

    def resolve(value: Value) -> Value:
        passed = []
        while value in replaced:
            passed.append(value)
            value = replaced[value]
        for other in passed[:-1]:
            replaced[other] = value
        return value

    needed: set[Instruction] = set()
    work = [replaced[placeholder] for variable in variables for _, placeholder in variable.questions]
    # A needed phi needs the phis behind its operands, and what defines a variable may be another's value.
    work += [value for variable in variables for value in variable.definitions.values()]
    users: dict[Value, list[Instruction]] = {}
    while work:
        value = resolve(work.pop())
        if isinstance(value, Instruction) and value in made and value not in needed:
            needed.add(value)
            work += value.operands[::2]
    for phi in needed:
        for operand in phi.operands[::2]:
            users.setdefault(resolve(operand), []).append(phi)
    phis_left = list(needed)
    while phis_left:
        phi = phis_left.pop()
        if phi in replaced:
            continue
        values = {resolve(o) for o in phi.operands[::2]} - {phi}
        if len(values) > 1:
            continue
        only = values.pop() if values else made[phi].undefined
        replaced[phi] = only
        again = users.pop(phi, [])
        users.setdefault(only, []).extend(again)
        phis_left += again
    for block, here in phis.items():
        for _, phi in here:
            if phi in needed and phi not in replaced:
                given = dict(zip(phi.operands[1::2], phi.operands[::2], strict=True))
                phi.operands = [o for source in before[block] for o in (resolve(given[source]), source)]
                block.instructions.insert(0, phi)
