"""Values of vectors that become pieces: see vectors.py."""

from __future__ import annotations

from collections.abc import Sequence

from ...spirv.enums import Op
from ...spirv.errors import SpirvError
from ...spirv.module import Block, Constant, Instruction, Kind, Operand, Type, Undef, Value
from ...spirv.types import TypeTable

_MOST = 16  # components of a vector that all stages know


def is_split(type_: Type | None) -> bool:
    """Whether values of a type become pieces."""
    if type_ is None or type_.kind is not Kind.VECTOR:
        return False
    return type_.element.kind is Kind.POINTER or not 1 < type_.count <= _MOST


def holds_split(type_: Type) -> bool:
    """Whether there is such a vector in a type, at any depth but behind pointers."""
    if type_.kind is Kind.ARRAY:
        return holds_split(type_.element)
    return is_split(type_) or (type_.kind is Kind.STRUCT and any(map(holds_split, type_.members)))


def sizes_of(type_: Type) -> list[int]:
    """The components of each piece of a vector type."""
    if type_.element.kind is Kind.POINTER:
        return [1] * type_.count
    sizes = [_MOST] * (type_.count // _MOST)
    return sizes + [size for size in (8, 4, 2, 1) if type_.count & size]


class Pieces:
    """What is known of a function's values while it is changed, and where its new instructions go."""

    def __init__(self, types: TypeTable) -> None:
        self.types = types
        self.pieces: dict[Value, list[Value]] = {}
        self.singles: dict[tuple[Value, int], list[Value]] = {}  # components of a value, in a block
        self.out: list[Instruction] = []
        self.block: Block
        self.line: Instruction

    def emit(self, op: Op, type_: Type | None, operands: Sequence[Operand]) -> Instruction:
        """A new instruction at the end of what there is of the block, decorated as the one that it is for."""
        made = Instruction(op, type_, operands, self.block)
        made.line, made.offset = self.line.line, self.line.offset
        self.out.append(made)
        return made

    def like(self, i: Instruction, type_: Type | None, operands: Sequence[Operand]) -> Instruction:
        """A new instruction of the same kind, with the decorations."""
        made = self.emit(i.op, type_, operands)
        made.decorations = i.decorations
        return made

    def refusal(self, what: str) -> SpirvError:
        """The SpirvError of the instruction that is looked at."""
        i = self.line
        name = i.operands[1].name if i.op is Op.ExtInst else f"Op{i.op.name}"
        return SpirvError(i.offset, f"Op{i.op.name}", f"{name} is not for {what}")

    def piece(self, type_: Type, size: int) -> Type:
        """The type of a piece of so many components."""
        return self.types.vector(type_.element, size) if size > 1 else type_.element

    def piece_types(self, type_: Type) -> list[Type]:
        """The types of the pieces of such a vector."""
        return [self.piece(type_, size) for size in sizes_of(type_)]

    def result_type(self, type_: Type) -> Type:
        """What functions give in place of such a vector."""
        if not is_split(type_):
            return type_
        pieces = self.piece_types(type_)
        return pieces[0] if len(pieces) == 1 else self.types.struct(tuple(pieces))

    def known(self, value: Value) -> list[Value]:
        """The pieces of a value of such a type."""
        found = self.pieces.get(value)
        if found is not None:
            return found
        type_ = value.type
        if isinstance(value, Undef):
            return [self.types.undef(t) for t in self.piece_types(type_)]
        if not isinstance(value, Constant):
            raise self.refusal(f"a vector of type {type_!r} that is not known here")
        if value.value is None:
            return [self.types.null(t) for t in self.piece_types(type_)]
        pieces, start = [], 0
        for size in sizes_of(type_):
            some = value.value[start : start + size]
            pieces.append(some[0] if size == 1 else self.types.constant(self.piece(type_, size), some))
            start += size
        return pieces

    def components(self, value: Value) -> list[Value]:
        """The components of any vector; a scalar is its own."""
        type_ = value.type
        if type_.kind is not Kind.VECTOR:
            return [value]
        key = value, id(self.block)
        found = self.singles.get(key)
        if found is None:
            found = self.singles[key] = []
            for piece in self.known(value) if is_split(type_) else [value]:
                if piece.type.kind is not Kind.VECTOR:
                    found.append(piece)
                elif isinstance(piece, Constant) and piece.value is not None:
                    found += piece.value
                else:
                    found += [
                        self.emit(Op.CompositeExtract, type_.element, [piece, k])
                        for k in range(piece.type.count)
                    ]
        return found

    def joined(self, components: list[Value], type_: Type) -> list[Value]:
        """The pieces of a vector that has these components."""
        pieces: list[Value] = []
        start = 0
        for size in sizes_of(type_):
            some = components[start : start + size]
            start += size
            made = some[0] if size == 1 else self.emit(Op.CompositeConstruct, self.piece(type_, size), some)
            pieces.append(made)
        return pieces

    def define(self, i: Instruction, components: list[Value]) -> None:
        """Gives a vector of any type its components."""
        if is_split(i.type):
            self.pieces[i] = self.joined(components, i.type)
        else:
            self.become(i, Op.CompositeConstruct, components)

    def become(self, i: Instruction, op: Op, operands: Sequence[Operand]) -> None:
        """The instruction stays, as another."""
        i.op, i.operands, i.block = op, list(operands), self.block
        self.out.append(i)

    def what(self, i: Instruction) -> str:
        """The vectors of an instruction, for people."""
        found = next(v.type for v in (i, *i.operands) if isinstance(v, Value) and is_split(v.type))
        return "vectors of " + (
            "pointers" if found.element.kind is Kind.POINTER else f"{found.count} components"
        )

    def size(self, piece: Value) -> int:
        """The components of a piece."""
        return piece.type.count if piece.type.kind is Kind.VECTOR else 1

    def number(self, index: Value, value: int) -> Constant:
        """A constant of the type of an index."""
        return self.types.integer(index.type.width, value)

    def within(self, index: Value, start: int, piece: Value) -> Value:
        """An index of a component of the piece that begins there: any, if it is of another one."""
        distance = self.emit(Op.ISub, index.type, [index, self.number(index, start)])
        return self.emit(Op.BitwiseAnd, index.type, [distance, self.number(index, self.size(piece) - 1)])

    @staticmethod
    def is_vector(value: Value) -> bool:
        """Whether a value is a vector of any kind."""
        return value.type is not None and value.type.kind is Kind.VECTOR
