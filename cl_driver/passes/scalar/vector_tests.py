"""Conditions that ask every component of a vector one after the other become one question of the vector.

`v.s0 == x || v.s1 == x || ...` is what OpenCL C programs write that know their vectors' length from a macro.
LLVM makes it a chain of branches, or of selects, each of which takes one bit out of one and the same mask.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...spirv.enums import Op
from ...spirv.module import Block, Constant, Function, Instruction, Kind, Type, Value
from ...spirv.types import TypeTable
from ..ir.instructions import replace_instructions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

FEWEST = 4  # components: of fewer, a chain costs no more
MOST = 64  # conditions that are looked at together

_JOINS = frozenset((Op.LogicalOr, Op.LogicalAnd, Op.Select))
_COMPARISONS = frozenset(op for op in Op if 170 <= op <= 191)  # OpIEqual to OpFUnordGreaterThanEqual

# A comparison and its operands: vectors, or a scalar that stands for all components.
_Question: TypeAlias = tuple[Op, tuple[Value, Value]]


def ask_vectors(function: Function, types: TypeTable) -> bool:
    """Replaces such conditions by OpAny, or OpAll, of a comparison. True if there was any."""
    replaced: dict[Value, Value] = {}
    for block in function.blocks:
        joins = {i: kind for i in block.instructions if i.op in _JOINS and (kind := _kind(i)) is not None}
        if len(joins) < FEWEST - 1:
            continue
        inner = {
            o
            for i, kind in joins.items()
            for o in _sides(i)
            if type(o) is Instruction and joins.get(o) is kind
        }
        for root, kind in joins.items():
            if root not in inner:
                made = _ask(root, kind, joins, block, types)
                if made is not None:
                    replaced[root] = made
    return replace_instructions(function, replaced)


def _kind(i: Instruction) -> Op | None:
    """OpAny for a join that is true if one of its conditions is, OpAll for one that is true if both are."""
    if i.type.kind is not Kind.BOOL:
        return None
    if i.op is not Op.Select:
        return Op.Any if i.op is Op.LogicalOr else Op.All
    _, if_true, if_false = i.operands
    if type(if_true) is Constant and if_true.value:
        return Op.Any
    return Op.All if type(if_false) is Constant and not if_false.value else None


def _sides(join: Instruction) -> tuple[Value, Value]:
    """The two conditions of such a join."""
    if join.op is not Op.Select:
        return join.operands[0], join.operands[1]
    condition, if_true, if_false = join.operands
    return condition, if_false if type(if_true) is Constant and if_true.value else if_true


def _ask(
    root: Instruction, kind: Op, joins: dict[Instruction, Op], block: Block, types: TypeTable
) -> Value | None:
    """What stands for a tree of joins of one kind; None if no vector is asked for all of its components."""
    leaves: list[Value] = []
    todo = [root]
    while todo:
        for side in reversed(_sides(todo.pop())):
            if type(side) is Instruction and joins.get(side) is kind:
                todo.append(side)
            else:
                leaves.append(side)
        if len(leaves) > MOST:
            return None
    if len(leaves) < FEWEST:
        return None
    asked: dict[_Question, dict[int, Value]] = {}
    for leaf in leaves:
        for question, component in _questions(leaf):
            asked.setdefault(question, {})[component] = leaf
    at = block.instructions.index(root)
    found: list[Value] = []
    for question, components in asked.items():
        if len(components) == _count(question) and set(leaves).issuperset(components.values()):
            at, value = _insert(question, kind, at, root, types)
            found.append(value)
            leaves = [leaf for leaf in leaves if leaf not in components.values()]
    if not found:
        return None
    result, *others = found + leaves
    decided = types.constant(root.type, int(kind is Op.Any))
    for other in others:
        operands = [result, decided, other] if kind is Op.Any else [result, other, decided]
        result = Instruction(Op.Select, root.type, operands, block)
        block.instructions.insert(at, result)
        at += 1
    return result


def _questions(leaf: Value) -> Iterable[tuple[_Question, int]]:
    """The questions of whole vectors that a condition may be part of, and of which component it is."""
    if type(leaf) is Instruction and leaf.op in _COMPARISONS:
        a, b = leaf.operands
        x, y = _component(a), _component(b)
        if x is not None and y is not None and x[1] == y[1] and x[0].type is y[0].type:
            yield (leaf.op, (x[0], y[0])), x[1]
        if x is not None:
            yield (leaf.op, (x[0], b)), x[1]
        if y is not None:
            yield (leaf.op, (a, y[0])), y[1]


def _component(value: Value) -> tuple[Value, int] | None:
    """The vector, of FEWEST components or more, and the component of it that a value is."""
    if type(value) is not Instruction or value.op is not Op.CompositeExtract or len(value.operands) != 2:
        return None
    vector, index = value.operands
    return (vector, index) if vector.type.kind is Kind.VECTOR and vector.type.count >= FEWEST else None


def _count(question: _Question) -> int:
    """How many components the vectors of a question have."""
    return next(o.type.count for o in question[1] if o.type.kind is Kind.VECTOR)


def _insert(question: _Question, kind: Op, at: int, root: Instruction, types: TypeTable) -> tuple[int, Value]:
    """Asks a question of all components before a place in the root's block. Where that place is then, and the
    answer."""
    op, operands = question
    block, boolean = root.block, root.type
    count = _count(question)
    made: list[Instruction] = []

    def add(op: Op, type_: Type, operands: list[Value]) -> Instruction:
        made.append(Instruction(op, type_, operands, block))
        return made[-1]

    wide = [
        o
        if o.type.kind is Kind.VECTOR
        else add(Op.CompositeConstruct, types.vector(o.type, count), [o] * count)
        for o in operands
    ]
    vector = add(op, types.vector(boolean, count), wide)
    answer = add(kind, boolean, [vector])
    block.instructions[at:at] = made
    return at + len(made), answer
