"""Loops that fill memory byte by byte: LLVM's SPIR-V back end makes such of llvm.memset of a size that only a
run knows, and clang makes that of `for (i = 0; i < n; i++) v[i] = 0`. Where the size is a multiple of a word,
they fill word by word. That takes a part of the iterations. And private arrays of which all other accesses
are of such words lie with those of all lanes together (codegen/layout/private_layout.py).
"""

from __future__ import annotations

from ...records import record, replace
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Block, Constant, Function, Instruction, Kind, MemoryAccess, Type, Value
from ...spirv.types import TypeTable
from ..analysis.private_uses import multiple_of
from ..ir.instructions import ADDRESS, int_value, is_constant_int, predecessors, users
from ..ir.layout import size_of

_USUAL = 4  # bytes of a word, where nobody knows what lies in memory


@record(slots=True)
class _Fill:
    """A loop of one block, and the block before it."""

    before: Block
    block: Block
    place: Instruction
    store: Instruction
    compare: Instruction
    size: Value


def fill_by_words(function: Function, types: TypeTable) -> bool:
    """Changes a function in place. True if there are such loops."""
    before = predecessors(function)
    found = [fill for block in function.blocks if (fill := _fill(block, before[block])) is not None]
    if not found:
        return False
    used_by = users(function)
    changed = False
    for fill in found:
        word = _word(fill.place.operands[0])
        if multiple_of(fill.size) % word or word == 1 or not _is_alone(fill, used_by):
            continue
        _widen(fill, types, word)
        changed = True
    return changed


def _fill(block: Block, before: list[Block]) -> _Fill | None:
    if len(block.instructions) != 6 or len(before) != 2 or block not in before:
        return None
    phi, place, store, following, compare, branch = block.instructions
    if [i.op for i in block.instructions[2:]] != [Op.Store, Op.IAdd, Op.ULessThan, Op.BranchConditional]:
        return None
    entry = next(b for b in before if b is not block)
    starts = dict(zip(phi.operands[1::2], phi.operands[::2], strict=True)) if phi.op is Op.Phi else {}
    start = starts.get(entry)
    is_counter = is_constant_int(start) and int_value(start) == 0 and starts.get(block) is following
    one = following.operands[1]
    if not (is_counter and following.operands[0] is phi and is_constant_int(one) and int_value(one) == 1):
        return None
    if place.op not in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain) or place.operands[1:] != [phi]:
        return None
    value, is_plain = store.operands[1], store.memory is None or not store.memory.volatile
    if store.operands[0] is not place or not is_constant_int(value) or value.type.width != 8 or not is_plain:
        return None
    counted, size = compare.operands
    if counted is not following or branch.operands[0] is not compare or branch.operands[1] is not block:
        return None
    if size in block.instructions or place.operands[0] in block.instructions:
        return None
    if not _is_guarded(entry, block, size):
        return None
    return _Fill(entry, block, place, store, compare, size)


def _is_guarded(entry: Block, block: Block, size: Value) -> bool:
    """Whether the loop is not entered for a size of 0, with which it would fill one byte."""
    branch = entry.terminator
    condition = branch.operands[0] if branch.op is Op.BranchConditional else None
    if not isinstance(condition, Instruction) or condition.op not in (Op.IEqual, Op.INotEqual):
        return False
    zero = [o for o in condition.operands if o is not size]
    asks_size = len(zero) == 1 and is_constant_int(zero[0]) and int_value(zero[0]) == 0
    return asks_size and branch.operands[2 if condition.op is Op.IEqual else 1] is block


def _is_alone(fill: _Fill, used_by: dict[Value, list[Instruction]]) -> bool:
    """Whether nobody else wants what the loop calculates."""
    return all(user.block is fill.block for i in fill.block.instructions[:-1] for user in used_by.get(i, ()))


def _word(pointer: Value) -> int:
    """Bytes of what lies in memory."""
    while isinstance(pointer, Instruction) and (pointer.op is Op.Bitcast or pointer.op in ADDRESS):
        pointer = pointer.operands[0]
    if not (isinstance(pointer, Instruction) and pointer.type.storage is StorageClass.Function):
        return _USUAL
    type_: Type = pointer.type.element
    while type_.kind in (Kind.ARRAY, Kind.VECTOR):
        type_ = type_.element
    return size_of(type_) if type_.kind in (Kind.INT, Kind.FLOAT) else _USUAL


def _is_variable(pointer: Value) -> bool:
    """Whether it points to the start of a variable."""
    while isinstance(pointer, Instruction) and pointer.op is Op.Bitcast:
        pointer = pointer.operands[0]
    return isinstance(pointer, Instruction) and pointer.op is Op.Variable


def _widen(fill: _Fill, types: TypeTable, word: int) -> None:
    type_ = types.int(8 * word)
    byte = int_value(fill.store.operands[1]) & 0xFF
    pointer = fill.place.operands[0]
    words = types.pointer(pointer.type.storage, type_)
    start = Instruction(Op.Bitcast, words, [pointer], fill.before)
    shift = types.integer(fill.size.type.width, word.bit_length() - 1)
    count = Instruction(Op.ShiftRightLogical, fill.size.type, [fill.size, shift], fill.before)
    for made in (start, count):
        made.line, made.offset = fill.store.line, fill.store.offset
    fill.before.instructions[-1:-1] = [start, count]
    fill.place.type, fill.place.operands[0] = words, start
    value: Constant = types.integer(8 * word, int.from_bytes(bytes([byte]) * word, "little"))
    fill.store.operands[1] = value
    if not _is_variable(pointer):
        memory = fill.store.memory or MemoryAccess()
        fill.store.memory = replace(memory, alignment=max(memory.alignment, 1))
    fill.compare.operands[1] = count
