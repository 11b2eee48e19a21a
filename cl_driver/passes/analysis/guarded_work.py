"""What a kernel does for the lanes alone that the data let through: of linearised code, what has such a mask,
what stands behind jumps over empty ones, and what is computed for nothing else. Lanes do all of it where one
of them needs it. One work-item at a time does it seldom then, for LLVM computes what only one way needs on
that way."""

from __future__ import annotations

from ...spirv.enums import Op, StorageClass
from ...spirv.module import Block, Function, Instruction, Value
from ..ir.dominance import DominatorTree
from ..ir.instructions import EXTINST_WITH_EFFECT, PURE, users
from ..ir.ops import PassOp
from .roots import Root, roots

_SHARED = (StorageClass.CrossWorkgroup, StorageClass.UniformConstant, StorageClass.Generic)
_MOVABLE = (PURE | {Op.Load}) - {Op.Phi}
_LEADS_ON = PURE - {Op.Phi}  # to instructions that use it, which are found as well


def guarded_by_data(
    function: Function, tree: DominatorTree[Block], before: dict[Block, list[Block]]
) -> set[Instruction]:
    """The instructions of a linearised function that only lanes need that a mask lets through which memory
    has decided about."""
    asked: dict[Value, bool] = {}
    heads = [
        block.successors()[0]
        for block in tree.order
        if len(block.successors()) > 1 and _is_question_of_data(block.terminator.operands[0], asked)
    ]
    heads = [head for head in heads if len(before[head]) == 1]
    found = {
        i
        for block in tree.order
        for i in block.instructions
        if any(tree.dominates(head, block) for head in heads)
        or (i.mask is not None and i.op is not Op.Phi and _depends_on_data(i.mask, asked))
    }
    if not found:
        return found
    uses = users(function)
    readers = _readers(function)
    for block in reversed(tree.order):
        for i in reversed(block.instructions):
            if i in found:
                continue
            if i.op is Op.Store:
                wanted = _read_by(i, readers)
            else:
                wanted = uses.get(i, []) if _is_movable(i) else []
            if wanted and all(user in found for user in wanted):
                found.add(i)
    return found


def _is_movable(i: Instruction) -> bool:
    return i.op in _MOVABLE or (i.op is Op.ExtInst and i.operands[1] not in EXTINST_WITH_EFFECT)


def _is_question_of_data(condition: Value, asked: dict[Value, bool]) -> bool:
    """Whether a jump asks whether any lane of a mask is left that the data decide about."""
    is_question = isinstance(condition, Instruction) and condition.op is PassOp.AnyLane
    return is_question and _depends_on_data(condition, asked)


def _depends_on_data(mask: Value, asked: dict[Value, bool]) -> bool:
    """Whether memory that work-items share decides. asked: what is known of masks already."""
    if mask in asked:
        return asked[mask]
    seen, rest, found = {mask}, [mask], False
    while rest and not found:
        value = rest.pop()
        if isinstance(value, Instruction):
            found = value.op is Op.Load and value.operands[0].type.storage in _SHARED
            news = {operand for operand in value.operands if isinstance(operand, Instruction)} - seen
            seen |= news
            rest += news
    asked[mask] = found
    return found


def _readers(function: Function) -> dict[Root, list[Instruction]]:
    """By private variable, what uses it but to store to it."""
    found: dict[Root, list[Instruction]] = {}
    for i in (i for block in function.blocks for i in block.instructions):
        for number, operand in enumerate(i.operands):
            stores = i.op is Op.Store and number == 0
            if _is_place(operand) and not stores and i.op not in _LEADS_ON:
                for root in roots(operand) or ():
                    found.setdefault(root, []).append(i)
    return found


def _is_place(value: object) -> bool:
    if not isinstance(value, Instruction) or value.type is None:
        return False
    return getattr(value.type, "storage", None) == StorageClass.Function


def _read_by(store: Instruction, readers: dict[Root, list[Instruction]]) -> list[Instruction]:
    """What may read what is stored in private memory; nothing if that is not known, or others see it."""
    pointer = store.operands[0]
    found = roots(pointer) if _is_place(pointer) else None
    return [reader for root in found or () for reader in readers.get(root, ())]
