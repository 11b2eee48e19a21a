"""What operations give, for one work-item, where it follows from ids, constants and arguments.

Integers are unsigned numbers of their width. A bool is the probability that it is true: where a comparison
depends on data, a guess by what it is compared with, since most data are neither large nor special.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from ...spirv.enums import Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Constant, Instruction, Kind, Type, Value
from ..ir.fold import COMPARE, INTEGER, signed
from .launch import Number

# Nobody knows data: how often they equal something, are not a number, or beyond a number that is large.
_EQUAL, _NEVER, _LARGE = 0.1, 0.002, 1e4
_BITS_OF_DATA = 10  # of an integer of which nothing is known, as far as comparisons go

_SIGNED = frozenset((Op.SGreaterThan, Op.SGreaterThanEqual, Op.SLessThan, Op.SLessThanEqual))
_LESS = frozenset((
    Op.ULessThan, Op.ULessThanEqual, Op.SLessThan, Op.SLessThanEqual, Op.FOrdLessThan, Op.FOrdLessThanEqual,
    Op.FUnordLessThan, Op.FUnordLessThanEqual,
))  # fmt: skip
_GREATER = frozenset((
    Op.UGreaterThan, Op.UGreaterThanEqual, Op.SGreaterThan, Op.SGreaterThanEqual, Op.FOrdGreaterThan,
    Op.FOrdGreaterThanEqual, Op.FUnordGreaterThan, Op.FUnordGreaterThanEqual,
))  # fmt: skip
_SAME = frozenset((Op.IEqual, Op.FOrdEqual, Op.FUnordEqual, Op.PtrEqual))
_OTHER = frozenset((Op.INotEqual, Op.FOrdNotEqual, Op.FUnordNotEqual, Op.PtrNotEqual))
COMPARISONS = _LESS | _GREATER | _SAME | _OTHER

_FLOAT: dict[Op, Callable[[Any, Any], float]] = {
    Op.FAdd: lambda a, b: a + b,
    Op.FSub: lambda a, b: a - b,
    Op.FMul: lambda a, b: a * b,
    Op.FDiv: lambda a, b: a / b if b else math.inf,
}
_LIMITS: dict[int, tuple[bool, Callable[..., int]]] = {
    Std.s_min: (True, min), Std.s_max: (True, max), Std.u_min: (False, min), Std.u_max: (False, max),
    Std.s_clamp: (True, lambda x, low, high: min(max(x, low), high)),
    Std.u_clamp: (False, lambda x, low, high: min(max(x, low), high)),
    Std.s_mul24: (True, lambda a, b: a * b), Std.u_mul24: (False, lambda a, b: a * b),
    Std.s_mad24: (True, lambda a, b, c: a * b + c), Std.u_mad24: (False, lambda a, b, c: a * b + c),
    Std.s_abs: (True, abs),
}  # fmt: skip
_TO_FLOAT = {Op.ConvertSToF: True, Op.ConvertUToF: False}
_TO_INT = frozenset((Op.ConvertFToS, Op.ConvertFToU))
_EXTENDS = {Op.SConvert: True, Op.UConvert: False}
_FORMATS = {16: "<e", 32: "<f", 64: "<d"}


def of_constant(constant: Constant) -> Number:
    """A constant's number."""
    type_, value = constant.type, constant.value
    match type_.kind:
        case Kind.INT:
            return int(value or 0)
        case Kind.BOOL:
            return float(bool(value))
        case Kind.FLOAT:
            return _float_of(int(value or 0), type_.width)
        case Kind.VECTOR if value is None:
            return (0.0 if type_.element.kind is Kind.FLOAT else 0,) * type_.count
        case Kind.VECTOR:
            return tuple(of_constant(v) if isinstance(v, Constant) else None for v in value)
        case Kind.POINTER:
            return 0
    return None


def _float_of(bits: int, width: int) -> Number:
    data = bits.to_bytes(width // 8, "little")
    return float(struct.unpack(_FORMATS[width], data)[0]) if width in _FORMATS else None


def compute(i: Instruction, operands: list[Number]) -> Number:
    """The number of an instruction; componentwise for vectors. operands: of those that are Values."""
    type_ = i.type
    if type_.kind is Kind.VECTOR and any(type(o) is tuple for o in operands):
        pieces = []
        for k in range(type_.count):
            own = [o[k] if type(o) is tuple and k < len(o) else o for o in operands]
            pieces.append(_scalar(i, type_.element, own))
        return tuple(pieces)
    return _scalar(i, type_.element if type_.kind is Kind.VECTOR else type_, operands)


def _scalar(i: Instruction, type_: Type, values: list[Any]) -> Number:
    op = i.op
    if type_.kind is Kind.BOOL:
        return _bool(i, values)
    if any(v is None or type(v) is tuple for v in values):
        return None
    if op in INTEGER:
        width = type_.width
        result = INTEGER[op](int(values[0]), int(values[1]), width)
        return None if result is None else result & ((1 << width) - 1)
    if op in _FLOAT:
        return float(_FLOAT[op](*values))
    if op in _EXTENDS:
        value, width = int(values[0]), _element(i.operands[0]).width
        value = signed(value, width) if _EXTENDS[op] else value
        return value & ((1 << type_.width) - 1)
    if op in _TO_FLOAT:
        return float(signed(values[0], _element(i.operands[0]).width) if _TO_FLOAT[op] else values[0])
    if op in _TO_INT:
        return int(values[0]) & ((1 << type_.width) - 1) if math.isfinite(values[0]) else None
    if op is Op.ExtInst and i.operands[1] in _LIMITS and type_.kind is Kind.INT:
        width = type_.width
        is_signed, function = _LIMITS[i.operands[1]]
        numbers = [signed(int(v), width) if is_signed else int(v) for v in values]
        return int(function(*numbers)) & ((1 << width) - 1)
    if op is Op.SNegate or op is Op.Not:
        value = int(values[0])
        return (-value if op is Op.SNegate else ~value) & ((1 << type_.width) - 1)
    if op is Op.FNegate:
        return float(-values[0])
    if op is Op.SRem or op is Op.SMod:
        a, b = (signed(int(v), type_.width) for v in values)
        if not b:
            return None
        rest = math.fmod(a, b) if op is Op.SRem else a % b
        return int(rest) & ((1 << type_.width) - 1)
    return None


def _element(value: Value) -> Type:
    return value.type.element if value.type.kind is Kind.VECTOR else value.type


def _bool(i: Instruction, values: list[Any]) -> float:
    """The probability that a bool is true."""
    op = i.op
    if op in (Op.LogicalAnd, Op.LogicalOr, Op.LogicalNot, Op.LogicalEqual, Op.LogicalNotEqual):
        chances = [v if isinstance(v, float) else 0.5 for v in values]
        match op:
            case Op.LogicalAnd:
                return chances[0] * chances[1]
            case Op.LogicalOr:
                return 1 - (1 - chances[0]) * (1 - chances[1])
            case Op.LogicalNot:
                return 1 - chances[0]
        same = chances[0] * chances[1] + (1 - chances[0]) * (1 - chances[1])
        return same if op is Op.LogicalEqual else 1 - same
    if op in (Op.IsNan, Op.IsInf):
        return _NEVER
    if op in (Op.IsFinite, Op.IsNormal):
        return 1 - _NEVER
    if op not in COMPARISONS:
        return 0.5
    a, b = (v if isinstance(v, int | float) else None for v in values)
    if a is not None and b is not None:
        return float(_compared(i, a, b))
    if i.operands[0] is i.operands[1]:  # x != x: not a number
        return _NEVER if op in _OTHER else 1 - _NEVER
    if op in _SAME or op in _OTHER:
        return _EQUAL if op in _SAME else 1 - _EQUAL
    if a is None and b is None:
        return 0.5
    is_integer = _element(i.operands[0]).kind is Kind.INT
    bound: Any = a if b is None else b
    if is_integer and op in _SIGNED:
        bound = signed(int(bound), _element(i.operands[0]).width)
    below = _integer_below(int(bound)) if is_integer else _float_below(bound)
    is_below = (op in _LESS) == (b is not None)
    return below if is_below else 1 - below


def _compared(i: Instruction, a: Any, b: Any) -> bool:
    op = i.op
    if op in COMPARE:
        element = _element(i.operands[0])
        return COMPARE[op](int(a), int(b), element.width if element.kind is Kind.INT else 64)
    if op in _LESS:
        return bool(a < b)
    if op in _GREATER:
        return bool(a > b)
    return bool((a == b) == (op in _SAME))


def _integer_below(bound: int) -> float:
    """How often an unknown integer is below a number: most are not negative and small."""
    if bound <= 0:
        return 0.05
    return min(0.95, math.log2(1 + bound) / _BITS_OF_DATA)


def _float_below(bound: float) -> float:
    """How often an unknown float is below a number: most are positive, around 1."""
    if math.isnan(bound) or abs(bound) >= _LARGE:
        return 1 - _NEVER if bound > 0 else _NEVER
    if abs(bound) < 1e-6:
        return 0.2 if bound > -1e-6 else 0.02
    return min(0.95, 0.5 + 0.15 * math.log10(bound)) if bound > 0 else 0.1
