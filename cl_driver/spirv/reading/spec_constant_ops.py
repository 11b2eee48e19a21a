"""Evaluates OpSpecConstantOp: every opcode that the specification allows in it, on scalars and vectors.

Integer results wrap; float results are rounded to nearest even. What depends on an address stays a
ConstantExpr, which codegen/ lowers as a constant expression of the linker's.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from ..enums import Op
from ..module import Constant, ConstantExpr, Kind, Operand, Type, Undef, Value
from ..types import TypeTable


def size(type_: Type) -> int:
    """Bytes of a scalar as clSetProgramSpecializationConstant takes it."""
    return 1 if type_.kind is Kind.BOOL else -(-type_.width // 8)


def split(op: Op, words: list[int]) -> tuple[list[int], list[int]]:
    """The operands of an OpSpecConstantOp after its opcode: ids, and the literals behind them."""
    ids = {Op.CompositeExtract: 1, Op.CompositeInsert: 2, Op.VectorShuffle: 2}.get(op, len(words))
    return words[:ids], words[ids:]


FLOAT_CODES = {16: "<e", 32: "<f", 64: "<d"}


def bits_to_float(bits: int, width: int) -> float:
    """The number that the bits of a float of a width (16, 32, 64) stand for."""
    value: float
    (value,) = struct.unpack(FLOAT_CODES[width], bits.to_bytes(width // 8, "little"))
    return value


def float_to_bits(value: float, width: int) -> int:
    """Rounds to nearest even; too large becomes infinity."""
    try:
        packed = struct.pack(FLOAT_CODES[width], value)
    except OverflowError:
        packed = struct.pack(FLOAT_CODES[width], math.copysign(math.inf, value))
    return int.from_bytes(packed, "little")


def signed(value: int, width: int) -> int:
    """The number that bits stand for in two's complement."""
    return value - (1 << width) if value >> (width - 1) & 1 else value


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int) -> int:
    return a - _quotient(a, b) * b


def _divide(a: float, b: float) -> float:
    if b == 0:
        if a == 0 or math.isnan(a):
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


def _fmod(a: float, b: float, floored: bool) -> float:
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
        return math.nan
    r = math.fmod(a, b)
    if floored and r and (r < 0) != (b < 0):
        r = math.nan if math.isinf(b) else r + b
    return r


def _shift(function: Callable[[int, int, int], int | None]) -> Callable[[int, int, int], int | None]:
    """Shifts by the width or more are undefined; here they shift everything out."""
    return lambda a, b, w: function(a, min(b, w), w)


# (a, b, width) of unsigned integers to an integer of any size and sign; None is a division by zero.
INTEGER_BINARY: dict[Op, Callable[[int, int, int], int | None]] = {
    Op.IAdd: lambda a, b, w: a + b,
    Op.ISub: lambda a, b, w: a - b,
    Op.IMul: lambda a, b, w: a * b,
    Op.UDiv: lambda a, b, w: a // b if b else None,
    Op.UMod: lambda a, b, w: a % b if b else None,
    Op.SDiv: lambda a, b, w: _quotient(signed(a, w), signed(b, w)) if b else None,
    Op.SRem: lambda a, b, w: _remainder(signed(a, w), signed(b, w)) if b else None,
    Op.SMod: lambda a, b, w: signed(a, w) % signed(b, w) if b else None,
    Op.ShiftRightLogical: _shift(lambda a, b, w: a >> b),
    Op.ShiftRightArithmetic: _shift(lambda a, b, w: signed(a, w) >> b),
    Op.ShiftLeftLogical: _shift(lambda a, b, w: a << b),
    Op.BitwiseOr: lambda a, b, w: a | b,
    Op.BitwiseXor: lambda a, b, w: a ^ b,
    Op.BitwiseAnd: lambda a, b, w: a & b,
}
INTEGER_COMPARE: dict[Op, Callable[[int, int, int], bool]] = {
    Op.IEqual: lambda a, b, w: a == b,
    Op.INotEqual: lambda a, b, w: a != b,
    Op.UGreaterThan: lambda a, b, w: a > b,
    Op.SGreaterThan: lambda a, b, w: signed(a, w) > signed(b, w),
    Op.UGreaterThanEqual: lambda a, b, w: a >= b,
    Op.SGreaterThanEqual: lambda a, b, w: signed(a, w) >= signed(b, w),
    Op.ULessThan: lambda a, b, w: a < b,
    Op.SLessThan: lambda a, b, w: signed(a, w) < signed(b, w),
    Op.ULessThanEqual: lambda a, b, w: a <= b,
    Op.SLessThanEqual: lambda a, b, w: signed(a, w) <= signed(b, w),
}
FLOAT_BINARY: dict[Op, Callable[[float, float], float]] = {
    Op.FAdd: lambda a, b: a + b,
    Op.FSub: lambda a, b: a - b,
    Op.FMul: lambda a, b: a * b,
    Op.FDiv: _divide,
    Op.FRem: lambda a, b: _fmod(a, b, False),
    Op.FMod: lambda a, b: _fmod(a, b, True),
}
BOOL_BINARY: dict[Op, Callable[[bool, bool], bool]] = {
    Op.LogicalOr: lambda a, b: a or b,
    Op.LogicalAnd: lambda a, b: a and b,
    Op.LogicalEqual: lambda a, b: a == b,
    Op.LogicalNotEqual: lambda a, b: a != b,
}
ADDRESSES = frozenset(
    {
        Op.AccessChain,
        Op.InBoundsAccessChain,
        Op.PtrAccessChain,
        Op.InBoundsPtrAccessChain,
        Op.ConvertPtrToU,
        Op.ConvertUToPtr,
        Op.GenericCastToPtr,
        Op.PtrCastToGeneric,
    }
)
CONVERSIONS = frozenset(
    {
        Op.SConvert,
        Op.UConvert,
        Op.FConvert,
        Op.ConvertFToS,
        Op.ConvertFToU,
        Op.ConvertSToF,
        Op.ConvertUToF,
        Op.Bitcast,
        Op.QuantizeToF16,
    }
)
UNARY = frozenset({Op.SNegate, Op.Not, Op.FNegate, Op.LogicalNot}) | CONVERSIONS
COMPOSITE = frozenset({Op.VectorShuffle, Op.CompositeExtract, Op.CompositeInsert})
BINARY = (
    frozenset(INTEGER_BINARY) | frozenset(INTEGER_COMPARE) | frozenset(FLOAT_BINARY) | frozenset(BOOL_BINARY)
)
OPS = ADDRESSES | UNARY | COMPOSITE | BINARY | {Op.Select}


def fold(table: TypeTable, op: Op, type_: Type, operands: list[Operand]) -> Value:
    """The value of one operation, a Constant, or a ConstantExpr on addresses. ValueError: malformed."""
    if op in COMPOSITE:
        return _composite(table, op, type_, operands)
    values = [o for o in operands if not isinstance(o, int)]
    if op in ADDRESSES or any(
        isinstance(v, ConstantExpr) or not isinstance(v, Constant | Undef) for v in values
    ):
        return _address(table, op, type_, operands)
    wanted = 3 if op == Op.Select else 1 if op in UNARY else 2
    if len(operands) != wanted:
        raise ValueError(f"{len(operands)} operands, not {wanted}")
    if type_.kind is Kind.POINTER:
        return _address(table, op, type_, operands)
    if op == Op.Bitcast:
        return _bitcast(table, type_, operands[0])
    if type_.kind is Kind.VECTOR:
        vectors = [
            components(table, o) if o.type.kind is Kind.VECTOR else (o,) * type_.count for o in operands
        ]
        if any(len(p) != type_.count for p in vectors):
            raise ValueError("vectors of different lengths")
        return table.constant(
            type_,
            tuple(
                table.constant(type_.element, _scalar(op, type_.element, list(scalars)))
                for scalars in zip(*vectors, strict=True)
            ),
        )
    return table.constant(type_, _scalar(op, type_, operands))


def components(table: TypeTable, value: Value) -> tuple[Value, ...]:
    """The constituents of a composite constant, those of null and undef, too. ValueError for scalars, and for
    arrays that are very long."""
    type_ = value.type
    if isinstance(value, Constant) and isinstance(value.value, tuple):
        return value.value
    if type_.kind is Kind.STRUCT:
        return tuple(map(table.null, type_.members))
    if type_.kind in (Kind.VECTOR, Kind.ARRAY) and type_.count <= 1 << 16:
        return (table.null(type_.element),) * type_.count
    raise ValueError(f"{type_!r} has no components")


def _raw(operand: Value) -> int:
    if operand.type.kind not in (Kind.BOOL, Kind.INT, Kind.FLOAT):
        raise ValueError(f"an operand of type {operand.type!r}")
    value: int | None = getattr(operand, "value", None)
    return value if value is not None else False if operand.type.kind is Kind.BOOL else 0


def _need(kind: Kind, *types: Type) -> None:
    for type_ in types:
        if type_.kind is not kind or type_.operands:  # of an encoding of its own: bits only
            raise ValueError(f"{type_!r} where {kind.value} is needed")


def _scalar(op: Op, type_: Type, operands: list[Operand]) -> int:
    raw = [_raw(o) for o in operands]
    source = operands[0].type
    mask = (1 << type_.width) - 1
    if op == Op.Select:
        _need(Kind.BOOL, source)
        if operands[1].type is not type_ or operands[2].type is not type_:
            raise ValueError("the objects do not have the result's type")
        return raw[1] if raw[0] else raw[2]
    if op in INTEGER_BINARY:
        _need(Kind.INT, type_, source, operands[1].type)
        value = INTEGER_BINARY[op](raw[0], raw[1], type_.width)
        return 0 if value is None else value & mask
    if op in INTEGER_COMPARE:
        _need(Kind.BOOL, type_)
        _need(Kind.INT, source, operands[1].type)
        return INTEGER_COMPARE[op](raw[0], raw[1], source.width)
    if op in FLOAT_BINARY:
        _need(Kind.FLOAT, type_, source, operands[1].type)
        a, b = (bits_to_float(v, source.width) for v in raw)
        return float_to_bits(FLOAT_BINARY[op](a, b), type_.width)
    if op in BOOL_BINARY:
        _need(Kind.BOOL, type_, source, operands[1].type)
        return BOOL_BINARY[op](bool(raw[0]), bool(raw[1]))
    return _unary(op, type_, source, raw[0], mask)


def _unary(op: Op, type_: Type, source: Type, raw: int, mask: int) -> int:
    if op == Op.LogicalNot:
        _need(Kind.BOOL, type_, source)
        return not raw
    if op in (Op.SNegate, Op.Not, Op.UConvert):
        _need(Kind.INT, type_, source)
        return (-raw if op == Op.SNegate else ~raw if op == Op.Not else raw) & mask
    if op == Op.SConvert:
        _need(Kind.INT, type_, source)
        return signed(raw, source.width) & mask
    if op == Op.FNegate:
        _need(Kind.FLOAT, type_, source)
        return raw ^ 1 << (type_.width - 1)
    if op in (Op.ConvertSToF, Op.ConvertUToF):
        _need(Kind.FLOAT, type_)
        _need(Kind.INT, source)
        return _integer_to_bits(signed(raw, source.width) if op == Op.ConvertSToF else raw, type_.width)
    _need(Kind.FLOAT, source)
    value = bits_to_float(raw, source.width)
    if op == Op.FConvert:
        _need(Kind.FLOAT, type_)
        return float_to_bits(value, type_.width)
    if op == Op.QuantizeToF16:
        half = float_to_bits(value, 16)
        flushed = half if half & 0x7C00 else half & 0x8000
        return float_to_bits(bits_to_float(flushed, 16), type_.width)
    _need(Kind.INT, type_)
    return int(value) & mask if math.isfinite(value) else 0


def _integer_to_bits(value: int, width: int) -> int:
    """Integer to float, rounded once: through double a 64-bit integer would be rounded twice to float."""
    keep = {16: 11, 32: 24, 64: 53}[width]
    magnitude = abs(value)
    excess = magnitude.bit_length() - keep
    if excess > 0:
        low = magnitude & ((1 << excess) - 1)
        half = 1 << (excess - 1)
        magnitude >>= excess
        magnitude += low > half or (low == half and magnitude & 1)
        magnitude <<= excess
    return float_to_bits(math.copysign(float(magnitude), value), width)


def _bitcast(table: TypeTable, type_: Type, operand: Value) -> Constant:
    """Through the bits, the first component lowest."""
    scalars = components(table, operand) if operand.type.kind is Kind.VECTOR else (operand,)
    bits = position = 0
    for scalar in scalars:
        _need_numeric(scalar.type)
        bits |= _raw(scalar) << position
        position += scalar.type.width
    element, count = (type_.element, type_.count) if type_.kind is Kind.VECTOR else (type_, 1)
    _need_numeric(element)
    if element.width * count != position:
        raise ValueError(f"{position} bits to {type_!r}")
    mask = (1 << element.width) - 1
    out = tuple(table.constant(element, bits >> i * element.width & mask) for i in range(count))
    return table.constant(type_, out) if type_.kind is Kind.VECTOR else out[0]


def _need_numeric(type_: Type) -> None:
    if type_.kind not in (Kind.INT, Kind.FLOAT):
        raise ValueError(f"{type_!r} is not numeric")


def _composite(table: TypeTable, op: Op, type_: Type, operands: list[Operand]) -> Value:
    literals = [o for o in operands if isinstance(o, int)]
    values = operands[: len(operands) - len(literals)]
    if any(not isinstance(v, Constant | Undef) for v in values):
        raise ValueError("an operand is not a constant")
    if len(values) != (1 if op == Op.CompositeExtract else 2):
        raise ValueError("too few operands")
    if op == Op.VectorShuffle:
        pool = components(table, values[0]) + components(table, values[1])
        if type_.kind is not Kind.VECTOR or len(literals) != type_.count:
            raise ValueError(f"{len(literals)} components for {type_!r}")
        picked = []
        for i in literals:
            if i >= len(pool) and i != 0xFFFFFFFF:
                raise ValueError(f"component {i} of {len(pool)}")
            picked.append(table.null(type_.element) if i == 0xFFFFFFFF else pool[i])
        return table.constant(type_, tuple(picked))
    if op == Op.CompositeExtract:
        value: Value = values[0]
        for i in literals:
            value = _constituent(components(table, value), i)
    else:
        value = _insert(table, values[1], values[0], literals)
    if value.type is not type_:
        raise ValueError(f"the result has type {value.type!r}, not {type_!r}")
    return value


def _constituent(constituents: tuple[Value, ...], index: int) -> Value:
    if index >= len(constituents):
        raise ValueError(f"index {index} of {len(constituents)}")
    return constituents[index]


def _insert(table: TypeTable, composite: Value, constituent: Value, path: list[int]) -> Value:
    if len(path) > 255:
        raise ValueError("more than 255 indices")
    if not path:
        return constituent
    constituents = list(components(table, composite))
    old = _constituent(tuple(constituents), path[0])
    constituents[path[0]] = _insert(table, old, constituent, path[1:])
    if constituents[path[0]].type is not old.type:
        raise ValueError("the object does not have the type of the part")
    return table.constant(composite.type, tuple(constituents))


def _address(table: TypeTable, op: Op, type_: Type, operands: list[Operand]) -> Constant | ConstantExpr:
    first = operands[0] if operands else None
    null = isinstance(first, Constant) and not first.value and not isinstance(first.value, tuple)
    if null and len(operands) == 1 and op in ADDRESSES | {Op.Bitcast}:
        return table.null(type_)
    return ConstantExpr(type_, op, tuple(operands))
