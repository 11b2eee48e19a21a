"""Refuses modules that break what the later stages rely on; see rules.py for types per instruction.

Only what can run is looked at: kernels and what they call, or every function if there are no kernels, or on
request. Raises SpirvError with word offset, instruction and rule.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from functools import reduce
from operator import or_

from ..enums import Capability, FunctionControl, LinkageType, Op
from ..errors import SpirvError
from ..link import plain_name
from ..module import Block, Function, Instruction, Module
from ..reading.body import reverse_postorder
from ..reflect import called_by_address
from ..tables import ROWS
from .rules import RULES, Rule, RuleError
from .rules_access import ACCESS_RULES
from .rules_extensions import EXTENSION_RULES
from .rules_images import IMAGE_RULES
from .rules_memory import MORE_RULES, OPAQUE_CLASSES, opaque_rule
from .rules_module import Requirements, check_entry_points, check_module, check_uses, refuse
from .rules_pipes import PIPE_RULES
from .rules_vectors import vector_rules

FUNCTION_CONTROLS = reduce(or_, FunctionControl)
_RULES = {**RULES, **ACCESS_RULES, **MORE_RULES, **IMAGE_RULES, **PIPE_RULES, **EXTENSION_RULES}
_RULES.update(vector_rules(_RULES))


def validate(
    module: Module,
    capabilities: Container[int] | None = None,
    extensions: Container[str] | None = None,
    everything: bool = False,
) -> None:
    """Checks a module. capabilities, extensions: those of the device, None for all; everything: functions
    that no kernel calls, too."""
    requirements = check_module(module, capabilities, extensions)
    check_entry_points(module.entry_points)
    rules = _Rules(requirements)
    roots = [(entry.function, f"kernel '{entry.name}'") for entry in module.entry_points]
    if everything or not roots:
        roots += ((function, f"function '{plain_name(function)}'") for function in module.functions)
    roots += ((function, f"function '{plain_name(function)}'") for function in _only_by_address(module))
    done: set[int] = set()
    for root, name in roots:
        _calls(root, name, done, rules)
    check_uses(module, requirements)


def _only_by_address(module: Module) -> list[Function]:
    """What pointers to functions may point to: kernels reach it without naming it."""
    by_pointer = {Capability.FunctionPointersINTEL, Capability.IndirectReferencesINTEL}
    return [] if by_pointer.isdisjoint(module.capabilities) else called_by_address(module)


def accepted_capabilities(names: Iterable[str]) -> frozenset[int]:
    """What modules may declare for a device that reports these capabilities: nothing more. SubgroupDispatch
    implies DeviceEnqueue, but a device with sub-groups need not have queues of its own."""
    return frozenset(Capability[name] for name in names)


def _calls(root: Function, name: str, done: set[int], rules: _Rules) -> None:
    """Checks a function and what it calls; recursion is not allowed in kernels. name: of the function, for
    messages."""
    if id(root) in done:
        return
    path: list[tuple[Function, list[Function]]] = []  # those being visited, and what is left of their callees
    active: set[int] = set()

    def enter(function: Function) -> None:
        done.add(id(function))
        active.add(id(function))
        path.append((function, _function(function, rules)))

    enter(root)
    while path:
        function, callees = path[-1]
        if not callees:
            path.pop()
            active.discard(id(function))
            continue
        callee = callees.pop()
        if id(callee) in active:
            names = [plain_name(f) for f, _ in path]
            cycle = names[[id(f) for f, _ in path].index(id(callee)) :]
            chain = "' calls '".join([*cycle, cycle[0]])
            raise refuse(f"OpFunction '{cycle[0]}'", f"recursion in {name}: '{chain}'", callee.offset)
        if id(callee) not in done:
            enter(callee)


def _function(function: Function, rules: _Rules) -> list[Function]:
    """Checks one function. Returns what it calls."""
    if function.control & ~FUNCTION_CONTROLS:
        unknown = function.control & ~FUNCTION_CONTROLS
        raise refuse(
            f"OpFunction '{function.name}'", f"unknown function control {unknown:#x}", function.offset
        )
    blocks = function.blocks
    imported = function.linkage is not None and function.linkage[1] == LinkageType.Import
    if not blocks:
        if not imported:
            raise refuse(f"OpFunction '{function.name}'", "no body, and no Import linkage", function.offset)
        return []
    if imported:
        raise refuse(f"OpFunction '{function.name}'", "Import linkage, and a body", function.offset)
    predecessors: dict[int, list[Block]] = {id(block): [] for block in blocks}
    for block in blocks:
        for successor in block.successors():
            predecessors[id(successor)].append(block)
    if predecessors[id(blocks[0])]:
        raise refuse(f"OpFunction '{function.name}'", "a branch to the entry block", function.offset)
    callees: dict[int, Function] = {}
    dominates = _dominance(blocks, predecessors) if len(blocks) > 1 else None
    instruction: Instruction | None = None
    try:
        for block in blocks:
            for instruction in block.instructions:
                rule = rules[instruction.op]
                if rule is not None:
                    rule(instruction)
                if dominates is not None:
                    _defined(instruction, block, predecessors, dominates)
                if instruction.op == Op.FunctionCall:
                    callees[id(instruction.operands[0])] = instruction.operands[0]
    except RuleError as error:
        raise _at(instruction, str(error)) from None
    except AttributeError:
        # An operand without a type, or a block or literal for a value: only malformed code gets here.
        raise _at(instruction, "an operand of the wrong kind") from None
    return list(callees.values())


class _Rules(dict[Op, Rule | None]):
    """{Op: its rule or None}, for one module: what an instruction needs is asked when it is first met."""

    def __init__(self, requirements: Requirements) -> None:
        super().__init__()
        self.requirements = requirements

    def __missing__(self, op: Op) -> Rule | None:
        row = ROWS[op]
        lacking = self.requirements.missing(row)
        if lacking:
            raise RuleError(lacking)
        rule = _RULES.get(op)
        if rule is None and op not in WITHOUT_RULE:
            if row.class_ not in OPAQUE_CLASSES or row.version is None:
                raise RuleError("not an instruction of kernels that this driver knows")
            rule = opaque_rule
        self[op] = rule
        return rule


def _at(instruction: Instruction | None, rule: str) -> SpirvError:
    assert instruction is not None  # a rule was broken by one
    return SpirvError(instruction.offset, f"Op{instruction.op.name}", rule)


def _defined(
    instruction: Instruction,
    block: Block,
    predecessors: dict[int, list[Block]],
    dominates: Callable[[Block, Block], bool],
) -> None:
    """Definitions dominate uses; a phi has one value for each predecessor."""
    if instruction.op == Op.Phi:
        parents = instruction.operands[1::2]
        before = predecessors[id(block)]
        if len(parents) != len(before) or set(map(id, parents)) != set(map(id, before)):
            raise RuleError("its parents are not the predecessors of the block")
        for value, parent in zip(instruction.operands[::2], parents, strict=True):
            if value.__class__ is Instruction and not dominates(value.block, parent):
                raise RuleError("a value that is not defined at the end of its parent")
        return
    for operand in instruction.operands:
        if (
            operand.__class__ is Instruction
            and operand.block is not block
            and not dominates(operand.block, block)
        ):
            raise RuleError("an operand whose definition does not dominate it")


def _dominance(blocks: list[Block], predecessors: dict[int, list[Block]]) -> Callable[[Block, Block], bool]:
    """A function that tells whether one block dominates another; blocks that cannot be reached are dominated
    by all. (Cooper, Harvey, Kennedy: A simple, fast dominance algorithm.)"""
    order = reverse_postorder(blocks[0])
    number = {id(block): i for i, block in enumerate(order)}
    before = [[number[id(p)] for p in predecessors[id(block)] if id(p) in number] for block in order]
    parent: list[int] = [0] + [-1] * (len(order) - 1)
    changed = True
    while changed:
        changed = False
        for i in range(1, len(order)):
            new = -1
            for p in before[i]:
                if parent[p] < 0:
                    continue
                if new < 0:
                    new = p
                    continue
                while new != p:
                    if p > new:
                        p = parent[p]
                    else:
                        new = parent[new]
            if parent[i] != new:
                parent[i], changed = new, True
    # Preorder numbers of the dominator tree: a dominates b if b lies in a's interval.
    children: list[list[int]] = [[] for _ in order]
    for i in range(1, len(order)):
        children[parent[i]].append(i)
    first, last = [0] * len(order), [0] * len(order)
    clock, walk = 0, [0]
    while walk:
        i = walk.pop()
        if i < 0:
            last[~i] = clock
            continue
        clock += 1
        first[i] = clock
        walk.append(~i)
        walk += children[i]

    def dominates(a: Block, b: Block) -> bool:
        x, y = number.get(id(a)), number.get(id(b))
        if y is None:
            return True
        return x is not None and first[x] <= first[y] <= last[x]

    return dominates


# Instructions that have nothing to check beyond what the reader did.
WITHOUT_RULE = frozenset({Op.Branch, Op.Unreachable, Op.Kill, Op.AssumeTrueKHR, Op.Undef, Op.Nop})
