"""Logic of three values by one instruction, whatever it is: AVX-512's vpternlog.

LLVM finds it for two operations, one with the other's result. Here are those that take more, as the majority
in `bitselect(a, b, c ^ a)` or `(a & b) | (c & (a | b))`.

Where there is no such instruction, a majority is `b ^ ((a ^ b) & (b ^ c))`, with b the value that is neither
the oldest nor the newest. It is four operations as other forms are; but hashes whose values move on by one
from round to round have one of the exclusive ors from the round before.
"""

from __future__ import annotations

from collections.abc import Callable

from ...spirv.enums import Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Instruction, Kind, Value
from ..llvm.emitter import FunctionEmitter
from ..llvm.forms import Form
from ..llvm.types import ir_type, leaf_types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeGuard

# What an operation is in operations of LLVM.
_OPERATIONS = {Op.BitwiseAnd: 1, Op.BitwiseOr: 1, Op.BitwiseXor: 1, Op.Not: 1, Op.ExtInst: 3}
_LEAST, _LARGEST = 4, 40  # below which LLVM does as well; above which nobody looks further
_TRUTH = 0xF0, 0xCC, 0xAA  # of the three operands, in the immediate
_MOST_VALUES = 3
_MOST_BETWEEN = 5  # of which some may be made of the others
_MAJORITY = 0xE8


def ternary_vector(e: FunctionEmitter, i: Instruction) -> str | None:
    """A single OpenCL vector by vpternlog or, of a majority, without; if it is such logic."""
    if i.op not in _OPERATIONS or i.type.kind is not Kind.VECTOR:
        return None
    made = ternary(e, e.form_of(i.type), i, lambda value: [e.operand(value)])
    return made and made(0)


def ternary(
    e: FunctionEmitter, f: Form, i: Instruction, leaves_of: Callable[[Value], list[str]]
) -> Callable[[int], str] | None:
    """What makes a leaf of the instruction by vpternlog or, of a majority, without; if it is such logic."""
    if i.op not in _OPERATIONS or i.type.kind not in (Kind.INT, Kind.VECTOR) or not _is_logic(i):
        return None
    element = leaf_types(i.type)[0]
    if element.kind is not Kind.INT or element.width not in (32, 64):
        return None
    values, operations = _values(i)
    if operations < _LEAST or len(values) != _MOST_VALUES:
        return None
    table = _table(i, dict(zip(values, _TRUTH, strict=True))) & 0xFF
    bits, t, size = f.count * element.width, f(ir_type(element)), "d" if element.width == 32 else "q"
    feature = {512: "avx512f", 256: "avx512vl", 128: "avx512vl"}.get(bits)
    if feature not in e.options.features:
        return _majority(e, t, values, leaves_of) if table == _MAJORITY else None
    leaves = [leaves_of(value) for value in values]

    def leaf(k: int) -> str:
        operands = ", ".join(f"{t} {of_value[k if len(of_value) > 1 else 0]}" for of_value in leaves)
        return e.emit(f"call {t} @llvm.x86.avx512.pternlog.{size}.{bits}({operands}, i32 {table})")

    return leaf


def _majority(
    e: FunctionEmitter, t: str, values: list[Value], leaves_of: Callable[[Value], list[str]]
) -> Callable[[int], str]:
    """What makes a leaf of the majority of three values."""
    by_age = sorted(values, key=lambda value: _place(e, value))
    leaves = [leaves_of(value) for value in by_age]

    def leaf(k: int) -> str:
        old, middle, new = (of_value[k if len(of_value) > 1 else 0] for of_value in leaves)
        older = e.emit(f"xor {t} {old}, {middle}")
        newer = e.emit(f"xor {t} {middle}, {new}")
        both = e.emit(f"and {t} {older}, {newer}")
        return e.emit(f"xor {t} {middle}, {both}")

    return leaf


def _place(e: FunctionEmitter, value: Value) -> int:
    """Where a value is computed in its function; -1 before it."""
    if type(value) is not Instruction:
        return -1
    function = value.block.function
    if e.order is None or e.order[0] is not function:
        blocks = function.blocks if function is not None else ()
        instructions = (i for block in blocks for i in block.instructions)
        e.order = function, {i: place for place, i in enumerate(instructions)}
    return e.order[1].get(value, -1)


def _is_logic(value: Value) -> TypeGuard[Instruction]:
    if type(value) is not Instruction or value.op not in _OPERATIONS:
        return False
    return value.op is not Op.ExtInst or value.operands[1] is Std.bitselect


def _operands(i: Instruction) -> list[Value]:
    return i.operands[2:] if i.op is Op.ExtInst else i.operands


def _values(i: Instruction) -> tuple[list[Value], int]:
    """The values that the logic is of, three at most if that can be, and how many operations it is."""
    values, operations = list(dict.fromkeys(_operands(i))), _OPERATIONS[i.op]
    found = values, operations
    while operations <= _LARGEST:
        wider = [(_without(values, value), value) for value in values if _is_logic(value)]
        if not wider:
            break
        values, value = min(wider, key=lambda pair: len(pair[0]))
        operations += _OPERATIONS[value.op]
        if len(values) > _MOST_BETWEEN:
            break
        if len(values) <= _MOST_VALUES:
            found = values, operations
    return found


def _without(values: list[Value], value: Instruction) -> list[Value]:
    """The values, with what one of them is made of in its place."""
    return list(dict.fromkeys(v for v in values if v is not value) | dict.fromkeys(_operands(value)))


def _table(value: Value, seen: dict[Value, int]) -> int:
    """The truth table of a value; adds it to what is known."""
    if value in seen:
        return seen[value]
    assert isinstance(value, Instruction)  # what is none is known
    a, b, mask = ([_table(o, seen) for o in _operands(value)] + [0, 0])[:3]
    match value.op:
        case Op.BitwiseAnd:
            seen[value] = a & b
        case Op.BitwiseOr:
            seen[value] = a | b
        case Op.BitwiseXor:
            seen[value] = a ^ b
        case Op.Not:
            seen[value] = ~a
        case _:
            seen[value] = (a & ~mask) | (b & mask)
    return seen[value]
