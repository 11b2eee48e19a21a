"""Constant folding and local simplification of single instructions, by tables of laws."""

from __future__ import annotations

from collections.abc import Callable

from ...spirv.enums import BuiltIn, Decoration, Op, StorageClass
from ...spirv.module import Constant, Instruction, Kind, Type, Undef, Value, Variable
from ...spirv.types import TypeTable
from .instructions import ADDRESS, int_value, is_constant_int, is_id
from .layout import member_offset, size_of, step_into

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias


def signed(value: int, width: int) -> int:
    """The number that the bits of an integer stand for in two's complement."""
    return value - (1 << width) if value >> (width - 1) else value


def signed_value(constant: Constant) -> int:
    """The same of a constant."""
    return signed(constant.value or 0, constant.type.width)


# Two unsigned integers and their width in bits to a result that is masked afterwards, or None.
_Law: TypeAlias = Callable[[int, int, int], int | None]


def _shift_in_range(function: _Law) -> _Law:
    return lambda a, b, width: function(a, b, width) if b < width else None


def _nonzero(function: _Law) -> _Law:
    return lambda a, b, width: function(a, b, width) if b else None


def _truncated_division(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


INTEGER: dict[Op, _Law] = {
    Op.IAdd: lambda a, b, w: a + b,
    Op.ISub: lambda a, b, w: a - b,
    Op.IMul: lambda a, b, w: a * b,
    Op.UDiv: _nonzero(lambda a, b, w: a // b),
    Op.UMod: _nonzero(lambda a, b, w: a % b),
    Op.SDiv: _nonzero(lambda a, b, w: _truncated_division(signed(a, w), signed(b, w))),
    Op.BitwiseAnd: lambda a, b, w: a & b,
    Op.BitwiseOr: lambda a, b, w: a | b,
    Op.BitwiseXor: lambda a, b, w: a ^ b,
    Op.ShiftLeftLogical: _shift_in_range(lambda a, b, w: a << b),
    Op.ShiftRightLogical: _shift_in_range(lambda a, b, w: a >> b),
    Op.ShiftRightArithmetic: _shift_in_range(lambda a, b, w: signed(a, w) >> b),
}

COMPARE: dict[Op, Callable[[int, int, int], bool]] = {
    Op.IEqual: lambda a, b, w: a == b,
    Op.INotEqual: lambda a, b, w: a != b,
    Op.UGreaterThan: lambda a, b, w: a > b,
    Op.UGreaterThanEqual: lambda a, b, w: a >= b,
    Op.ULessThan: lambda a, b, w: a < b,
    Op.ULessThanEqual: lambda a, b, w: a <= b,
    Op.SGreaterThan: lambda a, b, w: signed(a, w) > signed(b, w),
    Op.SGreaterThanEqual: lambda a, b, w: signed(a, w) >= signed(b, w),
    Op.SLessThan: lambda a, b, w: signed(a, w) < signed(b, w),
    Op.SLessThanEqual: lambda a, b, w: signed(a, w) <= signed(b, w),
}

LOGICAL: dict[Op, Callable[[int, int], int]] = {
    Op.LogicalAnd: lambda a, b: a and b,
    Op.LogicalOr: lambda a, b: a or b,
    Op.LogicalEqual: lambda a, b: a == b,
    Op.LogicalNotEqual: lambda a, b: a != b,
}

# x op neutral = x, on the right only
_NEUTRAL = {
    Op.IAdd: 0, Op.ISub: 0, Op.IMul: 1, Op.BitwiseOr: 0, Op.BitwiseXor: 0, Op.ShiftLeftLogical: 0,
    Op.ShiftRightLogical: 0, Op.ShiftRightArithmetic: 0, Op.UDiv: 1,
}  # fmt: skip


_LOCAL_IDS = (BuiltIn.LocalInvocationId, BuiltIn.LocalInvocationIndex)
_INT_MAX = (1 << 31) - 1  # groups have fewer work-items than that
_CUTS = frozenset((Op.BitwiseAnd, Op.ShiftRightArithmetic, Op.ShiftRightLogical))


class Folder:
    """Simplifies one instruction at a time; `fold` returns a value that can stand for it, or None."""

    def __init__(self, types: TypeTable) -> None:
        self.types = types
        self.by_op: dict[Op, Callable[[Instruction], Value | None]] = {
            Op.Phi: self._phi,
            Op.Select: self._select,
            Op.CompositeExtract: self._extract,
            Op.Bitcast: self._bitcast,
            Op.CopyObject: lambda i: i.operands[0],
            Op.UConvert: self._convert,
            Op.SConvert: self._convert,
            Op.LogicalNot: self._not,
            Op.Load: self._load,
        }
        self.by_op.update(dict.fromkeys(INTEGER, self._integer))
        self.by_op.update(dict.fromkeys(COMPARE, self._compare))
        self.by_op.update(dict.fromkeys(LOGICAL, self._logical))

    def fold(self, instruction: Instruction) -> Value | None:
        """A value that stands for the instruction, by the law of its operation; None if there is none."""
        law = self.by_op.get(instruction.op)
        return law(instruction) if law else None

    def _integer(self, instruction: Instruction) -> Value | None:
        a, b = instruction.operands
        if type(b) is not Constant:
            return None
        if b.type.kind is Kind.VECTOR:
            return self._vector(instruction.op, instruction.type, a, b)
        if b.type.kind is not Kind.INT:
            return None
        right = b.value or 0
        op = instruction.op
        if type(a) is not Constant:
            if op in _CUTS and _is_local_id(source := _before_cut(op, a, right)):
                return source
            return a if _NEUTRAL.get(op) == right and a.type is instruction.type else None
        if a.type.kind is not Kind.INT:
            return None
        width = instruction.type.width
        result = INTEGER[op](a.value or 0, right, width)
        return None if result is None else self.types.integer(width, result)

    def _vector(self, op: Op, type_: Type, a: Value, b: Constant) -> Constant | None:
        """An operation on two constant vectors, as of the counts of rotations of vectors."""
        if type(a) is not Constant or a.type.kind is not Kind.VECTOR or type_.element.kind is not Kind.INT:
            return None
        components = []
        width = type_.element.width
        for left, right in zip(_components(a), _components(b), strict=True):
            result = None if left is None or right is None else INTEGER[op](left, right, width)
            if result is None:
                return None
            components.append(self.types.integer(width, result))
        return self.types.constant(type_, tuple(components))

    def _compare(self, instruction: Instruction) -> Value | None:
        a, b = instruction.operands
        if type(a) is not Constant or type(b) is not Constant or a.type.kind is not Kind.INT:
            return None
        result = COMPARE[instruction.op](a.value or 0, b.value or 0, a.type.width)
        return self.types.constant(instruction.type, result)

    def _logical(self, instruction: Instruction) -> Value | None:
        a, b = instruction.operands
        if instruction.type.kind is not Kind.BOOL:
            return None
        op = instruction.op
        if type(a) is Constant and type(b) is Constant:
            return self.types.constant(instruction.type, bool(LOGICAL[op](bool(a.value), bool(b.value))))
        for known, other in ((a, b), (b, a)):
            if type(known) is Constant:
                if op is Op.LogicalAnd:
                    return other if known.value else known
                if op is Op.LogicalOr:
                    return known if known.value else other
        return None

    def _not(self, instruction: Instruction) -> Value | None:
        value = instruction.operands[0]
        if type(value) is Constant and instruction.type.kind is Kind.BOOL:
            return self.types.constant(instruction.type, not value.value)
        return None

    def _phi(self, instruction: Instruction) -> Value | None:
        only = None
        for operand in instruction.operands[::2]:
            if operand is instruction or operand is only:
                continue
            if only is not None:
                return None
            only = operand
        return self.types.undef(instruction.type) if only is None else only

    def _select(self, instruction: Instruction) -> Value | None:
        condition: Value
        a: Value
        b: Value
        condition, a, b = instruction.operands
        if a is b:
            return a
        if type(condition) is Constant and condition.type.kind is Kind.BOOL:
            return a if condition.value else b
        if type(a) is Constant and type(b) is Constant and a.type.kind is Kind.BOOL:
            return condition if a.value and not b.value else None
        if type(a) is Undef or type(b) is Undef:
            return b if type(a) is Undef else a
        return None

    def _extract(self, instruction: Instruction) -> Value | None:
        value, *indices = instruction.operands
        while indices:
            if type(value) is Instruction and value.op is Op.CompositeConstruct:
                if value.type.kind is Kind.VECTOR and len(value.operands) != value.type.count:
                    return None
                value = value.operands[indices[0]]
            elif type(value) is Instruction and value.op is Op.CompositeInsert and len(indices) == 1:
                inserted, base, *where = value.operands
                if len(where) != 1:
                    return None
                if where[0] != indices[0]:
                    value = base
                    continue
                value = inserted
            elif type(value) is Constant and value.value is not None:
                value = value.value[indices[0]]
            elif type(value) is Undef:
                return self.types.undef(instruction.type)
            else:
                return None
            indices = indices[1:]
        return value if isinstance(value, Value) and value.type is instruction.type else None

    def _load(self, instruction: Instruction) -> Value | None:
        """What is at a known place of a constant variable."""
        pointer, offset, access = instruction.operands[0], 0, instruction.memory
        while type(pointer) is Instruction and (pointer.op is Op.Bitcast or pointer.op in ADDRESS):
            if pointer.op in ADDRESS:
                step = _constant_step(pointer)
                if step is None:
                    return None
                offset += step
            pointer = pointer.operands[0]
        if type(pointer) is not Variable or pointer.type.storage is not StorageClass.UniformConstant:
            return None
        value, type_ = pointer.initializer, instruction.type
        if type(value) is not Constant or type_.kind not in (Kind.INT, Kind.FLOAT, Kind.VECTOR):
            return None
        if access is not None and access.volatile:
            return None
        found = _element(value, offset, type_)
        if found is not None and found.value is None:
            return self.types.constant(type_, None if type_.kind is Kind.VECTOR else 0)
        return found

    def _bitcast(self, instruction: Instruction) -> Value | None:
        value: Value = instruction.operands[0]
        while True:
            if value.type is instruction.type:
                return value
            if type(value) is not Instruction or value.op is not Op.Bitcast:
                return None
            value = value.operands[0]

    def _convert(self, instruction: Instruction) -> Value | None:
        value = instruction.operands[0]
        if type(value) is Instruction and value.op is Op.UConvert and value.type.width == 32:
            source = value.operands[0]
            return source if source.type is instruction.type and _is_local_id(source) else None
        if type(value) is not Constant or value.type.kind is not Kind.INT:
            return None
        if Decoration.SaturatedConversion in instruction.decorations:
            return None
        number = value.value or 0
        if instruction.op is Op.SConvert:
            number = signed(number, value.type.width)
        return self.types.integer(instruction.type.width, number)


def _before_cut(op: Op, value: Value, right: int) -> Value | None:
    """What a value is made of if `value op right` takes its lower 31 or 32 bits as an int of 64."""
    if op is Op.BitwiseAnd:
        return value if right & _INT_MAX == _INT_MAX else None
    if right != 32 or type(value) is not Instruction or value.op is not Op.ShiftLeftLogical:
        return None
    source, distance = value.operands
    return source if is_constant_int(distance) and int_value(distance) == 32 else None


def _is_local_id(value: Value | None) -> bool:
    """Whether a value is a local id of 64 bits, which an int of 32 holds.

    clang writes one as a signed int here and as an unsigned one there, and phis of these; all are the id.
    """
    if type(value) is not Instruction or value.type.kind is not Kind.INT or value.type.width != 64:
        return False
    load = value.operands[0] if value.op is Op.CompositeExtract else value
    return is_id(load) and load.operands[0].builtin in _LOCAL_IDS


def _constant_step(chain: Instruction) -> int | None:
    """The bytes that an access chain adds to its base, if its indices are constants."""
    base, *indices = chain.operands
    type_, total = base.type.element, 0
    if type_ is None or not all(map(is_constant_int, indices)):
        return None
    numbers = [signed_value(index) for index in indices]
    if chain.op in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain):
        total = numbers.pop(0) * size_of(type_)
    for number in numbers:
        type_, step = step_into(type_, number)
        total += step
    return total


def _components(vector: Constant) -> list[int | None]:
    """The integers of a constant vector; None stands for one that is not known."""
    if vector.value is None:
        return [0] * vector.type.count
    return [(c.value or 0) if type(c) is Constant else None for c in vector.value]


def _element(value: Constant, offset: int, type_: Type) -> Constant | None:
    """The scalar or vector of a type at an offset in bytes within a constant; the whole, if it is null."""
    while type(value) is Constant and value.type is not type_:
        whole = value.type
        if whole.kind not in (Kind.ARRAY, Kind.VECTOR, Kind.STRUCT) or not size_of(whole):
            return None
        if whole.kind is Kind.STRUCT:
            starts = [member_offset(whole, k) for k in range(len(whole.members))]
            k = max((k for k, start in enumerate(starts) if start <= offset), default=-1)
            start = starts[k]
        else:
            k = offset // size_of(whole.element)
            start = k * size_of(whole.element)
        count = len(whole.members) if whole.kind is Kind.STRUCT else whole.count
        if not 0 <= k < count:
            return None
        if value.value is None:
            return value if 0 <= offset < size_of(whole) else None
        value, offset = value.value[k], offset - start
    return value if type(value) is Constant and offset == 0 else None
