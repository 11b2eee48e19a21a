"""Integers of 4 bits (SPV_INTEL_int4), as integers that all stages know.

A scalar becomes one of 8 bits, of which the upper 4 are zero, and is that in private memory, too. A vector
becomes one integer of 4 bits for each component, the first lowest, as it lies in memory: "in an OpTypeVector
with an even Component Count, where the first component in every pair is in bits 0-3 of the corresponding
byte, and the second component is in bits 4-7". The types of variables, pointers and functions change with
those of values. There are but conversions of such integers, and what moves them.
"""

from __future__ import annotations

from ...spirv.enums import Capability, Decoration, Op, StorageClass
from ...spirv.errors import SpirvError
from ...spirv.module import (
    NO_DECORATIONS,
    Constant,
    ConstantExpr,
    Function,
    Instruction,
    Kind,
    Module,
    Operand,
    Type,
    Undef,
    Value,
)
from ..ir.emission import Emission

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeGuard

_WIDTH, _ONES = 4, 15
_MOVES = frozenset((
    Op.Store, Op.Phi, Op.CopyObject, Op.FunctionCall, Op.ReturnValue, Op.Undef, Op.Variable, Op.CopyMemory,
    Op.LifetimeStart, Op.LifetimeStop,
))  # fmt: skip
_CHAINS = frozenset((
    Op.AccessChain, Op.InBoundsAccessChain, Op.PtrAccessChain, Op.InBoundsPtrAccessChain,
))  # fmt: skip
_FROM_POINTERS = frozenset((Op.PtrAccessChain, Op.InBoundsPtrAccessChain))
_RESIZES = frozenset((Op.UConvert, Op.SConvert, Op.SatConvertSToU, Op.SatConvertUToS))
_TO_FLOAT = {Op.ConvertUToF: False, Op.ConvertSToF: True}  # whether signed
_FROM_FLOAT = {Op.ConvertFToU: False, Op.ConvertFToS: True}
_SIGNED = frozenset((Op.SConvert, Op.SatConvertSToU, Op.ConvertSToF))  # of what they read


def lower_int4(module: Module, functions: list[Function]) -> None:
    """Changes functions and the module's variables. SpirvError for instructions that the type is not for."""
    for function in functions:
        function.blocks  # noqa: B018  decoded while types are still what they were
    lowering = _Lowering(module)
    for function in functions:
        lowering.change_types(function)
    for function in functions:
        lowering.lower_function(function)


def _is_scalar(type_: Type | None) -> TypeGuard[Type]:
    return type_ is not None and type_.kind is Kind.INT and type_.width == _WIDTH


def _is_vector(type_: Type | None) -> TypeGuard[Type]:
    return type_ is not None and type_.kind is Kind.VECTOR and _is_scalar(type_.element)


def _is_either(type_: Type | None) -> bool:
    return _is_scalar(type_) or _is_vector(type_)


class _Lowering(Emission):
    def __init__(self, module: Module) -> None:
        super().__init__(module.types)
        self.legal_types: dict[Type, Type] = {}
        self.were: dict[Value, Type] = {}  # types of values before
        self.constants: dict[Value, Value] = {}
        self.entries = {id(entry.function) for entry in module.entry_points}
        # In memory an integer of any width has bytes of its own.
        self.has_bytes = Capability.ArbitraryPrecisionIntegersALTERA in module.capabilities
        for variable in module.variables:
            self.change(variable)
        for variable in module.variables:
            if variable.initializer is not None:
                variable.initializer = self.constant(variable.initializer)

    # Types.

    def legal(self, type_: Type) -> Type:
        """What values of a type are."""
        if type_.kind is Kind.POINTER:
            element = type_.element
            if element is None or element.kind is Kind.POINTER:
                return type_
            return self.types.pointer(type_.storage, self.legal(element))
        found = self.legal_types.get(type_)
        if found is None:
            found = self.legal_types[type_] = self.make_legal(type_)
        return found

    def make_legal(self, type_: Type) -> Type:
        kind, types = type_.kind, self.types
        if _is_scalar(type_):
            return types.int(8)
        if _is_vector(type_):
            return types.int(max(8, _WIDTH << (type_.count - 1).bit_length()))
        if kind is Kind.ARRAY:
            element = self.legal_part(type_.element)
            return type_ if element is type_.element else types.array(element, type_.count)
        if kind is Kind.STRUCT:
            members = tuple(map(self.legal_part, type_.members))
            return type_ if members == type_.members else types.struct(members, type_.packed, type_.name)
        if kind is Kind.FUNCTION:
            return types.function(self.legal(type_.element), tuple(map(self.legal, type_.members)))
        return type_

    def legal_part(self, type_: Type) -> Type:
        """Pointers in composites stay: they may point to what they are within."""
        return type_ if type_.kind is Kind.POINTER else self.legal(type_)

    def change(self, value: Value) -> None:
        """Gives a value its new type."""
        if value.type is not None:
            legal = self.legal(value.type)
            if legal is not value.type:
                self.were[value], value.type = value.type, legal

    def change_types(self, function: Function) -> None:
        function.type = self.legal(function.type)
        for argument in function.arguments:
            self.change(argument)
        for block in function.blocks:
            for i in block.instructions:
                self.change(i)

    def was(self, value: Operand) -> Type | None:
        """The type of a value in the program."""
        return self.were.get(value) or value.type if isinstance(value, Value) else None

    # Constants.

    def constant(self, value: Operand) -> Operand:
        """A constant of the new type; anything else as it is."""
        if not isinstance(value, (Constant, ConstantExpr, Undef)):
            return value
        found = self.constants.get(value)
        if found is None:
            found = self.constants[value] = self.make_constant(value)
            if found is not value and isinstance(found, ConstantExpr):
                self.were[found] = value.type
        return found

    def make_constant(self, value: Constant | ConstantExpr | Undef) -> Value:
        type_, legal = value.type, self.legal(value.type)
        if isinstance(value, ConstantExpr):
            if value.op in _CHAINS:
                self.check_chain(value)
            operands = tuple(map(self.constant, value.operands))
            same = legal is type_ and all(map(_is, operands, value.operands))
            return value if same else ConstantExpr(legal, value.op, operands)
        if isinstance(value, Undef):
            return value if legal is type_ else self.types.undef(legal)
        if value.value is None:
            return value if legal is type_ else self.types.constant(legal, 0 if _is_either(type_) else None)
        if _is_scalar(type_):
            return self.types.constant(legal, value.value & _ONES)
        if _is_vector(type_):
            bits = 0
            for k, piece in enumerate(value.value):
                bits |= ((getattr(piece, "value", None) or 0) & _ONES) << _WIDTH * k
            return self.types.constant(legal, bits)
        if type_.kind in (Kind.VECTOR, Kind.ARRAY, Kind.STRUCT):
            pieces = tuple(map(self.constant, value.value))
            same = legal is type_ and all(map(_is, pieces, value.value))
            return value if same else self.types.constant(legal, pieces)
        return value

    # Instructions.

    def refusal(self, what: str) -> SpirvError:
        return SpirvError(self.line.offset, f"Op{self.line.op.name}", what)

    def lower_function(self, function: Function) -> None:
        given: dict[Value, Value] = {}  # arguments of a kernel, without what hosts put above 4 bits
        scalars = [a for a in function.arguments if _is_scalar(self.was(a))]
        for block in function.blocks:
            self.block = block
            old, block.instructions = block.instructions, []
            for i in old:
                self.line = i
                if scalars and i.op is not Op.Variable and id(function) in self.entries:
                    given = {a: self.masked(a) for a in scalars}
                    self.were.update((made, self.were[a]) for a, made in given.items())
                    scalars = []
                kinds = [self.was(o) for o in i.operands]
                i.operands = [
                    self.constant(given.get(o, o) if isinstance(o, Value) else o) for o in i.operands
                ]
                self.lower(i, kinds)
                block.instructions.append(i)

    def lower(self, i: Instruction, kinds: list[Type | None]) -> None:
        """kinds: types that operands had."""
        type_ = self.was(i)
        if i.op in _CHAINS:
            self.check_chain(i)
            i.operands = [
                self.emit(Op.SConvert, self.types.int(32), [self.extended(o, kind, True)])
                if _is_scalar(kind) else o
                for o, kind in zip(i.operands, kinds, strict=True)
            ]  # fmt: skip
            return
        if i.op in (Op.Load, Op.Store):
            self.check_memory(i.operands[0], type_ if i.op is Op.Load else kinds[1])
        if not any(map(self.has_any, (type_, *kinds))):
            return
        if i.op in _MOVES:
            return
        lower = _RULES.get(i.op)
        if lower is None:
            raise self.refusal("not an instruction for integers of 4 bits")
        lower(self, i, type_, kinds)

    def has_any(self, type_: Type | None) -> bool:
        """Whether values of a type are or have such integers."""
        return type_ is not None and type_.kind is not Kind.POINTER and self.legal(type_) is not type_

    def check_chain(self, chain: Instruction | ConstantExpr) -> None:
        """SpirvError for a pointer to a component, which has no address."""
        base, *path = chain.operands
        pointer = self.was(base)
        type_ = pointer.element if pointer is not None else None
        for index in path[chain.op in _FROM_POINTERS :]:
            if type_ is None or _is_vector(type_):
                raise SpirvError(
                    getattr(chain, "offset", 0), f"Op{chain.op.name}", "a pointer to 4 bits of a vector"
                )
            if type_.kind is Kind.STRUCT:
                type_ = type_.members[index.value or 0] if isinstance(index, Constant) else None
            else:
                type_ = type_.element

    def check_memory(self, pointer: Value, type_: Type | None) -> None:
        """SpirvError for what has no place there: "Scalar integer variables with a Width of 4 can only be
        declared in the Private or Function storage classes"."""
        if type_ is None or self.has_bytes or pointer.type.storage is StorageClass.Function:
            return
        if self.has_any(type_) and _has_loose(type_):
            raise self.refusal("integers of 4 bits in memory that are no vector of an even number")

    # Values of 8 bits, the upper 4 of which are zero: one for each component.

    def bytes_of(self, value: Value, was: Type | None) -> Value:
        """Of an operand."""
        if not _is_vector(was) or was is None:
            return value
        count, packed = was.count, value.type.width // 8
        byte = self.types.int(8)
        if packed == 1:
            pieces = [self.with_number(Op.BitwiseAnd, value, _ONES),
                     self.with_number(Op.ShiftRightLogical, value, _WIDTH)]  # fmt: skip
            return self.emit(Op.CompositeConstruct, self.types.vector(byte, 2), pieces)
        pairs = self.emit(Op.Bitcast, self.types.vector(byte, packed), [value])
        low = self.with_number(Op.BitwiseAnd, pairs, _ONES)
        high = self.with_number(Op.ShiftRightLogical, pairs, _WIDTH)
        places = [k // 2 + packed * (k % 2) for k in range(count)]
        return self.emit(Op.VectorShuffle, self.types.vector(byte, count), [low, high, *places])

    def define(self, i: Instruction, value: Value) -> None:
        """The instruction becomes the integers of these bytes."""
        was = self.was(i)
        assert was is not None
        i.op, i.operands, i.decorations = Op.CopyObject, [value], NO_DECORATIONS
        if not _is_vector(was):
            return
        packed = i.type.width // 8
        if packed == 1:
            byte = self.types.int(8)
            low, high = (self.emit(Op.CompositeExtract, byte, [value, k]) for k in (0, 1))
        else:
            type_, none = self.types.vector(self.types.int(8), packed), self.types.null(value.type)
            low, high = (
                self.emit(
                    Op.VectorShuffle,
                    type_,
                    [value, none, *(min(k, was.count) for k in range(first, 2 * packed, 2))],
                )
                for first in (0, 1)
            )
        high = self.with_number(Op.ShiftLeftLogical, high, _WIDTH)
        i.op = Op.BitwiseOr if packed == 1 else Op.Bitcast
        i.operands = [low, high] if packed == 1 else [self.emit(Op.BitwiseOr, low.type, [low, high])]

    def extended(self, value: Value, was: Type | None, is_signed: bool) -> Value:
        """The bytes of an operand, filled with its sign; another integer as it is."""
        if not _is_either(was):
            return value
        value = self.bytes_of(value, was)
        if not is_signed:
            return value
        value = self.with_number(Op.ShiftLeftLogical, value, _WIDTH)
        return self.with_number(Op.ShiftRightArithmetic, value, _WIDTH)

    def masked(self, value: Value) -> Value:
        """The lowest bits of integers, as bytes."""
        byte = self.like(value.type, self.types.int(8))
        if value.type is not byte:
            value = self.emit(Op.UConvert, byte, [value])
        return self.with_number(Op.BitwiseAnd, value, _ONES)

    def within(self, value: Value, from_signed: bool, to_signed: bool) -> Instruction:
        """Clamped to what 4 bits can be."""
        made = self.least(Op.SLessThan if from_signed else Op.ULessThan, value, 7 if to_signed else _ONES)
        return self.least(Op.SGreaterThan, made, -8 if to_signed else 0) if from_signed else made

    # Rules.

    def load(self, i: Instruction, type_: Type | None, kinds: list[Type | None]) -> None:
        """What is above 4 bits in memory may be anything."""
        if _is_scalar(type_):
            made = self.emit(Op.Load, i.type, i.operands)
            made.memory = i.memory
            self.define(i, self.masked(made))
            i.memory = None

    def select(self, i: Instruction, type_: Type | None, kinds: list[Type | None]) -> None:
        condition, a, b = i.operands
        if condition.type.kind is Kind.VECTOR and _is_vector(type_):
            choices = [self.bytes_of(o, type_) for o in (a, b)]
            self.define(i, self.emit(Op.Select, choices[0].type, [condition, *choices]))

    def construct(self, i: Instruction, type_: Type | None, kinds: list[Type | None]) -> None:
        if _is_vector(type_):
            pieces = [self.bytes_of(o, kind) for o, kind in zip(i.operands, kinds, strict=True)]
            bytes_ = self.like(type_, self.types.int(8))
            self.define(i, self.emit(Op.CompositeConstruct, bytes_, pieces))

    def component(self, i: Instruction, type_: Type | None, kinds: list[Type | None]) -> None:
        """OpCompositeExtract."""
        composite, *path = i.operands
        holder = _holder(kinds[0], path)
        if not _is_scalar(type_):
            return
        if len(path) > 1 or not _is_vector(holder):
            piece = path[:-1] if _is_vector(holder) else path
            composite = self.emit(Op.CompositeExtract, self.legal(holder) if _is_vector(holder) else i.type,
                                  [composite, *piece])  # fmt: skip
        if _is_vector(holder):
            composite = self.with_number(Op.ShiftRightLogical, composite, _WIDTH * path[-1])
        self.define(i, self.masked(composite))

    def insert(self, i: Instruction, type_: Type | None, kinds: list[Type | None]) -> None:
        """OpCompositeInsert."""
        piece, composite, *path = i.operands
        holder = _holder(type_, path)
        if not _is_vector(holder):
            return
        inner = composite
        if len(path) > 1:
            inner = self.emit(Op.CompositeExtract, self.legal(holder), [composite, *path[:-1]])
        changed = self.replaced(inner, piece, _WIDTH * path[-1])
        if len(path) == 1:
            i.op, i.operands = Op.CopyObject, [changed]
        else:
            i.operands = [changed, composite, *path[:-1]]

    def replaced(self, packed: Value, piece: Value, at: int | Value) -> Value:
        """The integer with other 4 bits at a place."""
        if packed.type is not piece.type:
            piece = self.emit(Op.UConvert, packed.type, [piece])
        place = self.number(packed.type, at) if isinstance(at, int) else at
        hole = self.emit(Op.ShiftLeftLogical, packed.type, [self.number(packed.type, _ONES), place])
        rest = self.emit(Op.BitwiseAnd, packed.type, [packed, self.emit(Op.Not, packed.type, [hole])])
        piece = self.emit(Op.ShiftLeftLogical, packed.type, [piece, place])
        return self.emit(Op.BitwiseOr, packed.type, [rest, piece])

    def place(self, packed: Value, index: Value, was: Type | None) -> Value:
        """The first bit of a component of that number."""
        index = self.extended(index, was, False)
        if index.type is not packed.type:
            index = self.emit(Op.UConvert, packed.type, [index])
        return self.with_number(Op.ShiftLeftLogical, index, 2)

    def extract_dynamic(self, i: Instruction, type_: Type | None, kinds: list[Type | None]) -> None:
        vector, index = i.operands
        if not _is_vector(kinds[0]):  # the index is one
            i.operands = [vector, self.extended(index, kinds[1], False)]
            return
        at = self.place(vector, index, kinds[1])
        self.define(i, self.masked(self.emit(Op.ShiftRightLogical, vector.type, [vector, at])))

    def insert_dynamic(self, i: Instruction, type_: Type | None, kinds: list[Type | None]) -> None:
        vector, piece, index = i.operands
        if not _is_vector(kinds[0]):
            i.operands = [vector, piece, self.extended(index, kinds[2], False)]
            return
        changed = self.replaced(vector, piece, self.place(vector, index, kinds[2]))
        i.op, i.operands = Op.CopyObject, [changed]

    def shuffle(self, i: Instruction, type_: Type | None, kinds: list[Type | None]) -> None:
        a, b, *places = i.operands
        assert type_ is not None
        pieces = [self.bytes_of(o, kind) for o, kind in zip((a, b), kinds, strict=False)]
        bytes_ = self.like(type_, self.types.int(8))
        self.define(i, self.emit(Op.VectorShuffle, bytes_, [*pieces, *places]))

    def bitcast(self, i: Instruction, type_: Type | None, kinds: list[Type | None]) -> None:
        (value,) = i.operands
        if value.type is i.type:
            i.op = Op.CopyObject

    def resize(self, i: Instruction, type_: Type | None, kinds: list[Type | None]) -> None:
        """Integers of another width, some of which are clamped."""
        op, from_signed = i.op, i.op in _SIGNED
        value = self.extended(i.operands[0], kinds[0], from_signed)
        if _is_either(type_):
            clamps = op in (Op.SatConvertSToU, Op.SatConvertUToS)
            if clamps or Decoration.SaturatedConversion in i.decorations:
                value = self.within(value, from_signed, from_signed is not clamps)
            self.define(i, self.masked(value))
            return
        if op is Op.SatConvertSToU:
            value = self.least(Op.SGreaterThan, value, 0)
        i.op = Op.SConvert if op is Op.SConvert else Op.UConvert
        i.op, i.operands = Op.CopyObject if value.type is i.type else i.op, [value]
        i.decorations = NO_DECORATIONS

    def to_float(self, i: Instruction, type_: Type | None, kinds: list[Type | None]) -> None:
        i.operands = [self.extended(i.operands[0], kinds[0], _TO_FLOAT[i.op])]

    def of_float(self, i: Instruction, type_: Type | None, kinds: list[Type | None]) -> None:
        is_signed = _FROM_FLOAT[i.op]
        made = self.emit(i.op, self.like(i.operands[0].type, self.types.int(8)), i.operands)
        made.decorations = i.decorations
        if Decoration.SaturatedConversion in i.decorations:
            made = self.within(made, is_signed, is_signed)
        self.define(i, self.masked(made))


_RULES = {
    Op.Load: _Lowering.load, Op.Select: _Lowering.select, Op.CompositeConstruct: _Lowering.construct,
    Op.CompositeExtract: _Lowering.component, Op.CompositeInsert: _Lowering.insert,
    Op.VectorExtractDynamic: _Lowering.extract_dynamic, Op.VectorInsertDynamic: _Lowering.insert_dynamic,
    Op.VectorShuffle: _Lowering.shuffle, Op.Bitcast: _Lowering.bitcast,
    **dict.fromkeys(_RESIZES, _Lowering.resize),
    **dict.fromkeys(_TO_FLOAT, _Lowering.to_float), **dict.fromkeys(_FROM_FLOAT, _Lowering.of_float),
}  # fmt: skip


def _is(a: object, b: object) -> bool:
    return a is b


def _has_loose(type_: Type) -> bool:
    """Whether there are such integers in a type that are no vector of an even number."""
    if _is_vector(type_):
        return type_.count % 2 == 1
    if type_.kind is Kind.ARRAY:
        return _has_loose(type_.element)
    if type_.kind is Kind.STRUCT:
        return any(map(_has_loose, type_.members))
    return _is_scalar(type_)


def _holder(type_: Type | None, path: list[int]) -> Type | None:
    """The type that the last index of a path through composites is of."""
    for index in path[:-1]:
        if type_ is None:
            return None
        type_ = type_.members[index] if type_.kind is Kind.STRUCT else type_.element
    return type_
