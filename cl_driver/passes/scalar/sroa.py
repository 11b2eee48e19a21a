"""Function variables become SSA values where their addresses are known.

A variable is cut into pieces, one per range of bytes that is always accessed as a whole (scalar replacement);
each piece is then a variable of its own for mem2reg.py. Addresses are followed in bytes through bitcasts,
access chains with constant indices and casts to Generic, which is how clang -O2 leaves them. A variable with
any other use of its address, or with accesses that overlap in other ways than a vector and its components,
stays memory as a whole.
"""

from __future__ import annotations

from ...records import field, record
from ...spirv.enums import Op
from ...spirv.module import Block, Constant, Function, Instruction, Kind, Type, Value
from ...spirv.types import TypeTable
from ..ir.instructions import (
    ADDRESS,
    append,
    int_value,
    is_constant_int,
    remove_unreachable_blocks,
    substitute,
    users,
)
from ..ir.layout import size_of, step_into
from .copies import Copy, expand_copy, is_clear, is_number
from .mem2reg import Renamed, rename

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

MAX_PIECES = 64  # of one variable; larger ones are arrays that memory serves better

_SAME_ADDRESS = frozenset((Op.Bitcast, Op.CopyObject, Op.PtrCastToGeneric, Op.GenericCastToPtr))


def constant_offset(instruction: Instruction) -> int | None:
    """Bytes that an access chain with constant indices adds to its base, else None."""
    base, *indices = instruction.operands
    if base.type is None or base.type.element is None:
        return None
    type_ = base.type.element
    offset = 0
    if instruction.op is Op.PtrAccessChain or instruction.op is Op.InBoundsPtrAccessChain:
        if not is_constant_int(indices[0]):
            return None
        offset = _signed(indices[0]) * size_of(type_)
        indices = indices[1:]
    for index in indices:
        if not is_constant_int(index):
            return None
        type_, step = step_into(type_, _signed(index))
        offset += step
    return offset


def _signed(constant: Constant) -> int:
    value, width = int_value(constant), constant.type.width
    return value - (1 << width) if value >> (width - 1) else value


def stored_size(type_: Type) -> int:
    """Bytes that a load or store of the type touches: three components of a 3-vector, not four."""
    return size_of(type_.element) * type_.count if type_.kind is Kind.VECTOR else size_of(type_)


@record(slots=True)
class _Access(Copy):
    """The same as a value of a type."""

    type: Type


@record(slots=True)
class _Uses:
    """All uses of one variable's address, if each is understood."""

    accesses: list[_Access] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    addresses: list[Instruction] = field(
        default_factory=list
    )  # and lifetime marks: dropped with the variable


def _find_uses(variable: Instruction, used_by: dict[Value, list[Instruction]]) -> _Uses | None:
    uses = _Uses()
    total = size_of(variable.type.element)
    work: list[tuple[Value, int]] = [(variable, 0)]
    while work:
        pointer, offset = work.pop()
        for user in dict.fromkeys(used_by.get(pointer, ())):
            op = user.op
            operands = user.operands
            if op is Op.Load:
                uses.accesses.append(_Access(user, offset, stored_size(user.type), False, user.type))
            elif op is Op.Store:
                if operands[1] is pointer:
                    return None
                type_ = operands[1].type
                if is_clear(user):
                    uses.copies.append(Copy(user, offset, size_of(type_), True))
                else:
                    uses.accesses.append(_Access(user, offset, stored_size(type_), True, type_))
            elif op in _SAME_ADDRESS:
                if user.type.kind is not Kind.POINTER:
                    return None
                uses.addresses.append(user)
                work.append((user, offset))
            elif op in ADDRESS:
                step = constant_offset(user) if operands[0] is pointer else None
                if step is None:
                    return None
                uses.addresses.append(user)
                work.append((user, offset + step))
            elif op is Op.LifetimeStart or op is Op.LifetimeStop:
                uses.addresses.append(user)
            elif op is Op.CopyMemorySized and is_constant_int(operands[2]) and operands[0] is not operands[1]:
                size = int_value(operands[2])
                uses.copies.append(Copy(user, offset, size, operands[0] is pointer))
            elif op is Op.CopyMemory and operands[0] is not operands[1]:
                size = size_of(pointer.type.element)
                uses.copies.append(Copy(user, offset, size, operands[0] is pointer))
            else:
                return None
            if user.memory is not None and user.memory.volatile:
                return None
    for access in uses.accesses + uses.copies:
        if access.offset < 0 or access.offset + access.size > total:
            return None
    return uses


def _pieces(uses: _Uses) -> dict[int, Type] | None:
    """Offset and type of each piece, or None if the accesses do not fit together."""
    pieces: dict[int, Type] = {}
    for cluster in _clusters(uses.accesses):
        first = cluster[0]
        if all(a.offset == first.offset and a.size == first.size for a in cluster):
            if any(a.type is not first.type and not _convertible(a.type, first.type) for a in cluster):
                return None
            pieces[first.offset] = first.type
            continue
        # Vectors and components of one element size.
        elements = {a.type.element if a.type.kind is Kind.VECTOR else a.type for a in cluster}
        sizes = {size_of(e) for e in elements}
        if len(sizes) != 1 or any(not is_number(e) for e in elements):
            return None
        size = sizes.pop()
        if any((a.offset - first.offset) % size for a in cluster):
            return None
        for a in cluster:
            element = a.type.element if a.type.kind is Kind.VECTOR else a.type
            for i in range(a.size // size):
                pieces.setdefault(a.offset + i * size, element)
    return pieces if len(pieces) <= MAX_PIECES else None


def _clusters(accesses: list[_Access]) -> list[list[_Access]]:
    """The accesses grouped by ranges of bytes that overlap."""
    result: list[list[_Access]] = []
    end = -1
    for access in sorted(accesses, key=lambda a: (a.offset, -a.size)):
        if access.offset < end:
            result[-1].append(access)
        else:
            result.append([access])
        end = max(end, access.offset + access.size)
    return result


def _convertible(a: Type, b: Type) -> bool:
    """True if a Bitcast turns one into the other."""
    if a is b:
        return True
    if a.kind is Kind.POINTER and b.kind is Kind.POINTER:
        return a.storage is b.storage
    plain = [t.element if t.kind is Kind.VECTOR else t for t in (a, b)]
    return all(is_number(t) for t in plain) and stored_size(a) == stored_size(b)


def promote(function: Function, types: TypeTable) -> None:
    """Promotes what can be. Leaves dead address arithmetic to remove_dead_code."""
    entry = function.blocks[0]
    variables = [i for i in entry.instructions if i.op is Op.Variable]
    if not variables:
        return
    remove_unreachable_blocks(function)  # if simplify was left out
    used_by = users(function)
    if expand_copies(function, types, variables, used_by):
        used_by = users(function)
    promoted: dict[Instruction, tuple[_Uses, dict[int, Type]]] = {}
    for variable in variables:
        uses = _find_uses(variable, used_by)
        if uses is None or uses.copies:
            continue
        pieces = _pieces(uses)
        if pieces is not None:
            promoted[variable] = uses, pieces
    if promoted:
        _Promotion(function, types, promoted).run()


def expand_copies(
    function: Function,
    types: TypeTable,
    variables: list[Instruction],
    used_by: dict[Value, list[Instruction]],
) -> bool:
    """Turns copies from and to variables that can be promoted into loads and stores of their pieces."""
    changed = False
    for variable in variables:
        uses = _find_uses(variable, used_by)
        if uses is None or not uses.copies:
            continue
        pieces = _pieces(uses)
        if pieces is None:
            continue
        pieces = _fill_copied_gaps(variable, pieces, uses.copies, types)
        if pieces is None:
            continue
        for copy in uses.copies:
            inside = {
                offset: type_
                for offset, type_ in pieces.items()
                if copy.offset <= offset and offset + stored_size(type_) <= copy.offset + copy.size
            }
            expand_copy(copy, inside, types, used_by)
        changed = True
    return changed


def _leaves(type_: Type, offset: int, found: dict[int, Type]) -> dict[int, Type]:
    """Offset and type of each scalar of a type, as far as MAX_PIECES is interested."""
    if type_.kind is Kind.STRUCT:
        for i in range(len(type_.members)):
            member, step = step_into(type_, i)
            _leaves(member, offset + step, found)
    elif type_.kind is Kind.ARRAY or type_.kind is Kind.VECTOR:
        for i in range(min(type_.count, MAX_PIECES + 1)):
            member, step = step_into(type_, i)
            _leaves(member, offset + step, found)
    elif len(found) <= MAX_PIECES:
        found[offset] = type_
    return found


def _fill_copied_gaps(
    variable: Instruction, pieces: dict[int, Type], copies: list[Copy], types: TypeTable
) -> dict[int, Type] | None:
    """Adds pieces for bytes that are only ever copied: the scalars of the variable's type, so that variables
    of one type are cut alike. None if a copy would cut a piece."""
    leaves = _leaves(variable.type.element, 0, {})
    if not pieces and all(size_of(leaf) == 1 for leaf in leaves.values()):
        leaves = _copied_leaves(variable, copies) or leaves
    covered = {byte for start, leaf in leaves.items() for byte in range(start, start + size_of(leaf))}
    starts = sorted(pieces)
    for copy in copies:
        for offset in starts:
            end = offset + stored_size(pieces[offset])
            if offset < copy.offset + copy.size and end > copy.offset:
                if offset < copy.offset or end > copy.offset + copy.size:
                    return None
    pieces = dict(pieces)
    for copy in copies:
        if copy.is_write:
            continue
        position, end = copy.offset, copy.offset + copy.size
        while position < end:
            if position in pieces:
                position += stored_size(pieces[position])
                continue
            if position not in covered and len(leaves) <= MAX_PIECES:
                position += 1  # padding
                continue
            limit = min(min([o for o in pieces if o > position], default=end), end)
            type_ = leaves.get(position)
            if type_ is None or position + size_of(type_) > limit:
                size = 8
                while position % size or position + size > limit:
                    size //= 2
                type_ = types.int(size * 8)
            pieces[position] = type_
            position += size_of(type_)
            if len(pieces) > MAX_PIECES:
                return None
    # Pieces made for one copy may straddle the edge of another.
    for copy in copies:
        for offset, type_ in pieces.items():
            end = offset + stored_size(type_)
            inside = copy.offset <= offset and end <= copy.offset + copy.size
            if not inside and offset < copy.offset + copy.size and end > copy.offset:
                return None
    return pieces


def _copied_leaves(variable: Instruction, copies: list[Copy]) -> dict[int, Type]:
    """The scalars of what bytes without a type of their own are copied to or from, by offset in the variable:
    clang initialises variables with copies of such bytes."""
    for copy in copies:
        target, source = copy.instruction.operands[:2]
        found = _origin(source if copy.is_write else target)
        if found is None or found[0] is variable:
            continue
        other, offset = found
        leaves = {
            start - offset + copy.offset: leaf
            for start, leaf in _leaves(other.type.element, 0, {}).items()
            if 0 <= start - offset and start - offset + size_of(leaf) <= copy.size
        }
        if len(leaves) <= MAX_PIECES and any(size_of(leaf) > 1 for leaf in leaves.values()):
            return leaves
    return {}


def _origin(pointer: Value) -> tuple[Instruction, int] | None:
    """The Function variable that an address is in, and how many bytes from its start."""
    offset = 0
    while isinstance(pointer, Instruction):
        if pointer.op is Op.Variable:
            return pointer, offset
        step = (
            0 if pointer.op in _SAME_ADDRESS else constant_offset(pointer) if pointer.op in ADDRESS else None
        )
        if step is None:
            return None
        offset += step
        pointer = pointer.operands[0]
    return None


# A variable and the byte where one of its pieces begins.
_Key: TypeAlias = tuple[Instruction, int]


class _Promotion:
    """Rewrites the loads and stores of all promoted variables in one sweep."""

    def __init__(
        self, function: Function, types: TypeTable, promoted: dict[Instruction, tuple[_Uses, dict[int, Type]]]
    ) -> None:
        self.function = function
        self.types = types
        self.replaced: dict[Value, Value] = {}
        self.pieces: dict[_Key, Renamed] = {}
        self.accesses: dict[Instruction, tuple[Instruction, _Access]] = {}
        self.dropped: set[Instruction] = set(promoted)
        for variable, (uses, pieces) in promoted.items():
            self.dropped.update(uses.addresses)
            for offset, type_ in pieces.items():
                self.pieces[variable, offset] = Renamed(type_, types.undef(type_), variable.name)
            for access in uses.accesses:
                self.accesses[access.instruction] = variable, access

    def run(self) -> None:
        for block in self.function.blocks:
            self._sweep(block)
        rename(self.function, list(self.pieces.values()), self.replaced)
        substitute(self.function, self.replaced)

    def _sweep(self, block: Block) -> None:
        accesses = self.accesses
        if not any(i in accesses or i in self.dropped for i in block.instructions):
            return
        current: dict[_Key, Value] = {}
        asked: dict[_Key, Value] = {}
        old = block.instructions
        block.instructions = []
        for instruction in old:
            found = accesses.get(instruction)
            if found is None:
                if instruction not in self.dropped:
                    block.instructions.append(instruction)
                continue
            variable, access = found
            keys = self._keys(variable, access)
            if access.is_write:
                values = self._split(block, instruction.operands[1], keys)
                current.update(zip(keys, values, strict=True))
            else:
                values = []
                for key in keys:
                    value = current.get(key)
                    if value is None:
                        piece = self.pieces[key]
                        value = Instruction(Op.Undef, piece.type, (), block)
                        piece.questions.append((block, value))
                        current[key] = asked[key] = value
                    values.append(value)
                self.replaced[instruction] = self._join(block, values, instruction.type)
        for key, value in current.items():
            if value is not asked.get(key):
                self.pieces[key].definitions[block] = value

    def _keys(self, variable: Instruction, access: _Access) -> list[_Key]:
        keys = []
        offset, end = access.offset, access.offset + access.size
        while offset < end:
            keys.append((variable, offset))
            offset += stored_size(self.pieces[variable, offset].type)
        return keys

    def _split(self, block: Block, value: Value, keys: list[_Key]) -> list[Value]:
        """The pieces of a stored value."""
        if len(keys) == 1:
            return [self._convert(block, value, self.pieces[keys[0]].type)]
        element = value.type.element
        return [
            self._convert(
                block, append(block, Op.CompositeExtract, element, [value, i]), self.pieces[key].type
            )
            for i, key in enumerate(keys)
        ]

    def _join(self, block: Block, values: list[Value], type_: Type) -> Value:
        """The loaded value from its pieces."""
        if len(values) == 1:
            return self._convert(block, values[0], type_)
        constituents = [self._convert(block, v, type_.element) for v in values]
        return append(block, Op.CompositeConstruct, type_, constituents)

    def _convert(self, block: Block, value: Value, type_: Type) -> Value:
        return value if value.type is type_ else append(block, Op.Bitcast, type_, [value])
