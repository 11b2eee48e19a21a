"""Addresses as sums: what varies between lanes, and what all lanes have in common.

    row = data + clamp(y + 1, 0, height - 1) * pitch;  row[clamp(x - 1, 0, width - 1)]

If no clamp changes anything, this is `data + y * pitch + x * 4`, which several reads have in common, and
`pitch - 4`, which is the same for all lanes. A *coordinate* is such an x or y: an integer of 32 bits, to
which constants are added, and which is then kept between 0 and an upper bound that all lanes have in common.
"""

from __future__ import annotations

from ...fast_typing import NamedTuple
from ...passes.analysis.sums import BOUNDS
from ...passes.ir.fold import signed_value
from ...passes.ir.instructions import ADDRESS, is_constant_int
from ...spirv.enums import Decoration, Op
from ...spirv.module import Instruction, Kind, Undef, Value
from ..access.emitter import AccessEmitter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

_DEPTH = 40
_SAME = frozenset((Op.Bitcast, Op.CopyObject))
_MOST_ADDED = 1 << 16  # to a coordinate

# value + number: a bound that a coordinate does not exceed; without a value the number alone.
Bound: TypeAlias = tuple[Value | None, int]


class Clamped(NamedTuple):
    """coordinate + added, by way of these clamps between 0 and the bounds. If it is within all of them, none
    of the clamps changes it."""

    coordinate: Value
    added: int
    bounds: tuple[Bound, ...]
    clamps: tuple[Instruction, ...]


class Term(NamedTuple):
    """What is multiplied by a number: an integer (None: 1), a coordinate if it is_clamped, by a factor that
    all lanes have in common (None: 1). Integers of less than 64 bits are extended with their sign."""

    value: Value | None
    factor: Value | None
    is_clamped: bool = False


class Sum:
    """An address: base, which all lanes have in common, and bytes. clamped: what is true of it if no clamp
    changes anything."""

    def __init__(self) -> None:
        self.base: Value | None = None
        self.varying: dict[Term, int] = {}
        self.common: dict[Term, int] = {}
        self.clamped: list[Clamped] = []

    def add(self, terms: dict[Term, int], term: Term, times: int) -> None:
        """Adds a multiple of a term to `varying` or `common`."""
        total = terms.get(term, 0) + times
        if total:
            terms[term] = total
        else:
            terms.pop(term, None)


def is_common(e: AccessEmitter, value: Value) -> bool:
    """Whether a scalar is the same in all lanes."""
    return not (e.is_varying(value) or e.stride_is_mixed(value) or isinstance(value, Undef))


def constant_added(value: Value) -> tuple[Value, int]:
    """A value as another one and what is added to it."""
    added = 0
    while isinstance(value, Instruction) and value.op in (Op.IAdd, Op.ISub):
        a, b = value.operands
        if value.op is Op.IAdd and is_constant_int(a):
            a, b = b, a
        if not is_constant_int(b):
            break
        added += signed_value(b) if value.op is Op.IAdd else -signed_value(b)
        value = a
    return value, added


def bound_of(value: Value) -> Bound:
    """A bound as a value and a number."""
    value, added = constant_added(value)
    return (None, added + signed_value(value)) if is_constant_int(value) else (value, added)


def clamped(e: AccessEmitter, value: Value) -> Clamped | None:
    """What is kept between 0 and bounds that all lanes have in common; None for all else."""
    clamps: list[Instruction] = []
    bounds: list[Bound] = []
    is_from_0 = False
    while isinstance(value, Instruction) and value.op is Op.ExtInst and value.operands[1] in BOUNDS:
        if value.type.kind is not Kind.INT or value.type.width != 32:
            return None
        is_signed, has_lower, has_upper = BOUNDS[value.operands[1]]
        inner, *limits = value.operands[2:]
        if len(limits) == 1 and not e.is_varying(inner):
            inner, limits = limits[0], [inner]
        if not (e.is_varying(inner) and all(is_common(e, limit) for limit in limits)):
            return None
        if has_lower and not (is_constant_int(limits[0]) and signed_value(limits[0]) == 0):
            return None
        if not (is_signed or has_upper):
            return None
        is_from_0 |= has_lower or not is_signed
        if has_upper:
            bounds.append(bound_of(limits[-1]))
        clamps.append(value)
        value = inner
    coordinate, added = constant_added(value)
    is_small = abs(added) < _MOST_ADDED and all(-_MOST_ADDED < number <= 0 for of, number in bounds if of)
    if not (is_from_0 and bounds and is_small and e.is_varying(coordinate)):
        return None
    return Clamped(coordinate, added, tuple(bounds), tuple(clamps))


def address_sum(e: AccessEmitter, pointer: Value) -> Sum | None:
    """An address as a sum that holds if no clamp of it changes anything; None where there is more to it."""
    found = Sum()
    return found if _add_pointer(e, found, pointer, 0) else None


def _add_pointer(e: AccessEmitter, found: Sum, pointer: Value, depth: int) -> bool:
    if not e.is_varying(pointer):
        found.base = pointer
        return is_common(e, pointer)
    if not isinstance(pointer, Instruction) or depth > _DEPTH:
        return False
    if pointer.op in _SAME and pointer.operands[0].type.kind is Kind.POINTER:
        return _add_pointer(e, found, pointer.operands[0], depth + 1)
    if pointer.op not in ADDRESS or e.spacing(pointer) > 1:
        return False
    terms = e.contiguity.address_terms(pointer)
    if not terms:
        return False
    (base, _), *steps = terms
    assert base is not None  # the pointer comes first
    for value, scale in steps:
        if value is None:
            found.add(found.common, Term(None, None), scale)
        elif not _add_integer(e, found, value, scale, None, depth + 1):
            return False
    return _add_pointer(e, found, base, depth + 1)


def _add_integer(
    e: AccessEmitter, found: Sum, value: Value, times: int, factor: Value | None, depth: int
) -> bool:
    """Adds times * factor * value."""
    if value.type.kind is not Kind.INT or value.type.width not in (32, 64):
        return False
    if is_constant_int(value):
        found.add(found.common, Term(None, factor), times * signed_value(value))
        return True
    if is_common(e, value):
        found.add(found.common, Term(value, factor), times)
        return True
    if isinstance(value, Instruction) and depth < _DEPTH:
        known = _add_operands(e, found, value, times, factor, depth + 1)
        if known is not None:
            return known
    found.add(found.varying, Term(value, factor), times)
    return True


def _add_operands(
    e: AccessEmitter, found: Sum, value: Instruction, times: int, factor: Value | None, depth: int
) -> bool | None:
    """The same by way of what the value is computed from; None if it is a term of its own."""
    op, operands, is_wide = value.op, value.operands, value.type.width == 64
    kept = None if is_wide else clamped(e, value)
    if kept is not None:
        found.clamped.append(kept)
        found.add(found.varying, Term(kept.coordinate, factor, True), times)
        found.add(found.common, Term(None, factor), times * kept.added)
        return True
    if op is Op.SConvert and is_wide and operands[0].type.width == 32:
        return _add_integer(e, found, operands[0], times, factor, depth)
    if op is Op.UConvert and is_wide and operands[0].type.width == 32:
        # What is kept above 0 has no sign to extend.
        return _add_operands(e, found, operands[0], times, factor, depth) if clamped(e, operands[0]) else None
    if not is_wide and Decoration.NoSignedWrap not in value.decorations:
        return None
    if op is Op.IAdd or op is Op.ISub:
        sign = times if op is Op.IAdd else -times
        return _add_integer(e, found, operands[0], times, factor, depth) and _add_integer(
            e, found, operands[1], sign, factor, depth
        )
    if op is Op.ShiftLeftLogical and is_wide and is_constant_int(operands[1]):
        bits = operands[1].value or 0
        return _add_integer(e, found, operands[0], times << bits, factor, depth) if bits < 32 else None
    if op is Op.IMul:
        a, b = operands
        if is_common(e, a):
            a, b = b, a
        if is_constant_int(b):
            return _add_integer(e, found, a, times * signed_value(b), factor, depth)
        if is_common(e, b) and factor is None:
            return _add_integer(e, found, a, times, b, depth)
    return None
