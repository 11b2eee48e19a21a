"""What all ways to a join compute or store alike is done once, behind the join.

Compilers leave a phi of two addresses where two branches access memory, or a store in each. Under a divergent
branch a phi of equal addresses would be varying, and the access a gather or a scatter; that of others would
be selected with 64 bits a lane; and each store would have a mask of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...spirv.enums import Op, StorageClass
from ...spirv.module import Block, Constant, Function, Instruction, Kind, Value
from ..ir.instructions import (
    ADDRESS,
    PURE,
    STAY,
    clone_instruction,
    phi_count,
    predecessors,
    replace_instructions,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_MERGED = 8  # instructions of an expression that is computed behind a join instead of before it

_CONVERSIONS = frozenset((Op.SConvert, Op.UConvert))
_OF_ELEMENTS = frozenset((Op.PtrAccessChain, Op.InBoundsPtrAccessChain))


def sink_values(function: Function) -> bool:
    """A phi of equal expressions is the expression; a phi of addresses in one array, or of wider copies of
    integers, is that of the phi of the indices, or of the integers. True if there was any."""
    replaced: dict[Value, Value] = {}
    for block in function.blocks:
        for phi in list(block.phis()):
            forms = phi.operands[::2]
            first = forms[0]
            if type(first) is not Instruction or first.op not in PURE or first.op in STAY:
                continue
            if all(form is first for form in forms):
                continue
            moved = _expression(forms, block) if forms.count(first) == 1 else None
            moved = moved or _behind_phi(phi, first, forms[1:])
            if moved is not None:
                replaced[phi] = moved
    return replace_instructions(function, replaced)


def sink_stores(function: Function) -> bool:
    """A store to one address at the end of each way to a join is one behind it. True if there was any."""
    changed = False
    for join, sources in predecessors(function).items():
        while len(sources) > 1 and (stores := _last_stores(join, sources)):
            address = stores[0].operands[0]
            if any(store.operands[0] is not address for store in stores):
                found = _expression([store.operands[0] for store in stores], join)
                if found is None:
                    break
                address = found
            value = stores[0].operands[1]
            if any(store.operands[1] is not value for store in stores):
                values = zip((store.operands[1] for store in stores), sources, strict=True)
                value = Instruction(Op.Phi, value.type, [o for pair in values for o in pair], join)
                join.instructions.insert(0, value)
            sunk = clone_instruction(stores[0], [address, value], join)
            is_here = type(address) is Instruction and address.block is join
            join.instructions.insert(
                join.instructions.index(address) + 1 if is_here else phi_count(join), sunk
            )
            for store, source in zip(stores, sources, strict=True):
                source.instructions.remove(store)
            changed = True
    return changed


def _last_stores(join: Block, sources: list[Block]) -> list[Instruction]:
    """The store that each source ends with before it goes to the join and nowhere else; none if one does not,
    or if these are of different kinds."""
    stores: list[Instruction] = []
    for source in sources:
        if source is join or source.terminator.op is not Op.Branch:
            return []
        last = next((i for i in reversed(source.instructions[:-1]) if i.op not in PURE), None)
        if last is None or last.op is not Op.Store or last.operands[0].type.storage is StorageClass.Function:
            return []
        if last.memory is not None and last.memory.volatile:
            return []
        first = stores[0] if stores else last
        if last.operands[1].type is not first.operands[1].type or last.memory != first.memory:
            return []
        stores.append(last)
    return stores


def _behind_phi(phi: Instruction, first: Instruction, others: list[Value]) -> Instruction | None:
    """The operation of all values of a phi, on a phi of the one operand in which they differ; None if they
    differ in more, or if that phi would be no narrower."""
    is_address = first.op in ADDRESS
    if not is_address and not (first.op in _CONVERSIONS and _width(first.operands[0]) < _width(first)):
        return None
    count = len(first.operands)
    place = None
    for other in others:
        if type(other) is not Instruction or other.op is not first.op or other.type is not first.type:
            return None
        if len(other.operands) != count or other.decorations != first.decorations:
            return None
        for k, (a, b) in enumerate(zip(first.operands, other.operands, strict=True)):
            if a is not b and place != k:
                if place is not None or not isinstance(b, Value) or getattr(b, "type", None) is not a.type:
                    return None
                place = k
    if place is None or (is_address and place == 0):
        return None
    values = [o if k % 2 else o.operands[place] for k, o in enumerate(phi.operands)]
    is_element = place == 1 and first.op in _OF_ELEMENTS
    if is_address and not is_element and any(type(value) is Constant for value in values[::2]):
        return None  # a member of a structure, which only constants name
    block = phi.block
    index = Instruction(Op.Phi, values[0].type, values, block, phi.name)
    block.instructions.insert(0, index)
    operands = [index if k == place else o for k, o in enumerate(first.operands)]
    moved = clone_instruction(first, operands, block)
    block.instructions.insert(phi_count(block), moved)
    return moved


def _width(value: Value) -> int:
    type_ = value.type
    return type_.element.width if type_.kind is Kind.VECTOR else type_.width


def _expression(forms: list[Value], block: Block) -> Instruction | None:
    """What has these equal forms, computed at the start of a block; None if they are not equal."""
    first = forms[0]
    if type(first) is not Instruction or first.op not in PURE or first.op in STAY:
        return None
    if not all(_equal(first, form, MAX_MERGED) for form in forms[1:]):
        return None
    return _copy_tree(forms, block, phi_count(block))


def _equal(a: Value, b: Value, budget: int) -> bool:
    """True for expressions of the same operations on the same values."""
    if a is b:
        return True
    if type(a) is not Instruction or type(b) is not Instruction:
        return type(a) is type(b) and not isinstance(a, (Value, Block)) and a == b
    if a.op is not b.op or a.type is not b.type or a.op not in PURE or a.op in STAY or budget == 0:
        return False
    if a.decorations != b.decorations or len(a.operands) != len(b.operands):
        return False
    return all(_equal(x, y, budget - 1) for x, y in zip(a.operands, b.operands, strict=True))


def _copy_tree(forms: Sequence[Any], block: Block, at: int) -> Instruction:
    """Computes an expression in a block, from the values that all its forms share."""
    operands = []
    for values in zip(*(form.operands for form in forms), strict=True):
        value = values[0]
        if type(value) is Instruction and any(other is not value for other in values):
            value = _copy_tree(values, block, at)
            at = block.instructions.index(value) + 1
        operands.append(value)
    copy = clone_instruction(forms[0], operands, block)
    block.instructions.insert(at, copy)
    return copy
