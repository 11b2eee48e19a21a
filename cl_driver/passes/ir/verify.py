"""Checks a function against the rules of the IR; a broken rule is a bug of the pass before."""

from __future__ import annotations

from collections.abc import Iterator

from ...spirv.enums import Op
from ...spirv.module import (
    Argument,
    Block,
    Constant,
    ConstantExpr,
    Function,
    InlineAssembly,
    Instruction,
    Kind,
    Type,
    Undef,
    Value,
    Variable,
)
from .dominance import DominatorTree, dominators
from .dump import function_text
from .instructions import TERMINATORS, predecessors, reverse_postorder
from .plan import PrivateVariable, Slot

_SAME_TYPE = frozenset(
    op
    for op in Op
    if (128 <= op <= 142 and op is not Op.Dot) or 194 <= op <= 200 or op in (Op.SNegate, Op.FNegate)
)


class VerifyError(Exception):
    """The IR of a function is broken: the pass, the rule, and the text of the function."""


def verify(function: Function, after: str = "") -> None:
    """Raises VerifyError if the function breaks a rule."""
    problem = find_problem(function)
    if problem:
        raise VerifyError(f"after {after}: {problem}\n{function_text(function)}")


def find_problem(function: Function) -> str | None:
    """The first broken rule as a sentence, or None."""
    return next(_problems(function), None)


def _problems(function: Function) -> Iterator[str]:
    """Broken rules. What is behind one takes for granted that it is kept."""
    blocks = set(function.blocks)
    if len(blocks) != len(function.blocks):
        yield "a block is listed twice"
    where: dict[Instruction, tuple[Block, int]] = {}
    for block in function.blocks:
        yield from _problems_of_order(block, where)
        for successor in block.successors():
            if successor not in blocks:
                yield f"{block.name} branches to {successor.name}, which is not in the function"
    before = predecessors(function)
    if before[function.blocks[0]]:
        yield "the entry block has predecessors"
    order = set(reverse_postorder(function))
    tree = dominators(function, before)
    arguments = set(function.arguments)
    for block in function.blocks:
        for i, instruction in enumerate(block.instructions):
            problem = _check_operands(instruction, block, i, blocks, where, order, tree, arguments)
            problem = problem or _check_types(instruction, before)
            if problem:
                yield f"{instruction.op.name} in {block.name}: {problem}"


def _problems_of_order(block: Block, where: dict[Instruction, tuple[Block, int]]) -> Iterator[str]:
    """Of what stands in a block, and in which place. Fills `where`."""
    if not block.instructions:
        yield f"block {block.name} is empty"
    if block.terminator.op not in TERMINATORS:
        yield f"block {block.name} does not end in a terminator but in {block.terminator.op.name}"
    seen_other = False
    for i, instruction in enumerate(block.instructions):
        if instruction in where:
            yield f"{instruction.op.name} stands in two places"
        where[instruction] = block, i
        if instruction.block is not block:
            yield f"{instruction.op.name} in {block.name} says it is in another block"
        if instruction.op is Op.Phi and seen_other:
            yield f"a phi stands behind other instructions in {block.name}"
        seen_other = seen_other or instruction.op is not Op.Phi
        if instruction.op in TERMINATORS and i + 1 != len(block.instructions):
            yield f"{instruction.op.name} stands in the middle of {block.name}"


def _check_operands(
    instruction: Instruction,
    block: Block,
    index: int,
    blocks: set[Block],
    where: dict[Instruction, tuple[Block, int]],
    reachable: set[Block],
    tree: DominatorTree[Block],
    arguments: set[Argument],
) -> str | None:
    operands = instruction.operands
    if instruction.mask is not None:
        operands = [*operands, instruction.mask]
    is_phi = instruction.op is Op.Phi
    for i, operand in enumerate(operands):
        if isinstance(operand, Block):
            if operand not in blocks:
                return f"operand {i} is a block of another function"
        elif isinstance(operand, Instruction):
            place = where.get(operand)
            if place is None:
                return f"operand {i} ({operand.op.name} {operand.name}) is not in the function"
            source = operands[i + 1] if is_phi else block
            if source not in reachable or place[0] not in reachable:
                continue
            if place[0] is source and not is_phi:
                if place[1] >= index:
                    return f"operand {i} ({operand.op.name}) is used before it is computed"
            elif not tree.dominates(place[0], source):
                return f"operand {i} ({operand.op.name} in {place[0].name}) does not dominate its use"
        elif isinstance(operand, Argument):
            if operand not in arguments:
                return f"operand {i} is an argument of another function"
        elif isinstance(operand, Value):
            if not isinstance(operand, (Constant, ConstantExpr, Undef, Variable, Function, InlineAssembly)):
                return f"operand {i} is a {type(operand).__name__}"
        elif operand is None or not isinstance(operand, (int, str, Slot, PrivateVariable)):
            return f"operand {i} is a {type(operand).__name__}"
    return None


def _check_types(instruction: Instruction, before: dict[Block, list[Block]]) -> str | None:
    op = instruction.op
    operands = instruction.operands
    if op is Op.Phi:
        sources = operands[1::2]
        if len(set(sources)) != len(sources):
            return "a predecessor is named twice"
        if set(sources) != set(before[instruction.block]):
            return (
                f"names {[s.name for s in sources]}, predecessors are "
                f"{[b.name for b in before[instruction.block]]}"
            )
        if any(v.type is not instruction.type for v in operands[::2]):
            return "operands of other types than the phi"
    elif op in _SAME_TYPE:
        kind = _shape_of(instruction.type)
        if any(_shape_of(o.type) != kind for o in operands[:1]):
            return "operand and result differ in type"
    elif op is Op.Load:
        pointee = operands[0].type.element
        if pointee is not None and pointee is not instruction.type:
            return "loads another type than the pointer's"
    elif op is Op.Store:
        pointee = operands[0].type.element
        if pointee is not None and pointee is not operands[1].type:
            return "stores another type than the pointer's"
    elif op is Op.BranchConditional and operands[0].type.kind is not Kind.BOOL:
        return "the condition is not a bool"
    elif op is Op.Select and operands[1].type is not operands[2].type:
        return "the two values differ in type"
    return None


def _shape_of(type_: Type) -> Type | tuple[Type, int]:
    return (type_.element, type_.count) if type_.kind is Kind.VECTOR else type_
