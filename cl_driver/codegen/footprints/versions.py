"""Reads around a place of each lane's own, in versions: all places within bounds, none of them, and any.

A filter of an image reads several pixels around a coordinate, each clamped to the image. Mostly no clamp
changes anything. This is asked once for all lanes, and all reads of a block. If so, the pixels of a footprint
lie at distances that all lanes have in common: a lane's address is computed once, and what lies side by side
is loaded together (loads.py). Everything that is computed of the reads, up to where the fewest values are in
use, belongs to the version: comparisons with the bounds are known there, too.

Where programs choose a border's colour by comparisons with the size, vectors that are beyond it with all
lanes have a version, too: what is chosen is known, and nothing that was read matters.

search.py finds them; sums.py tells what addresses are sums of.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...spirv.module import Instruction, Value
from ..access.emitter import AccessEmitter
from ..access.gather_scatter import words_of_lanes
from ..llvm.types import ir_type, leaf_types
from ..llvm.versioning import AFTER, SLOW, emit_versions
from .loads import GroupLoads, common_offset
from .search import Footprints, Group, find
from .sums import Term

__all__ = ["Inside", "emit", "find"]

_BORDER = "outside", SLOW, AFTER
_LARGEST = (1 << 31) - 1


class Outside:
    """What is known while the version is emitted in which lanes read nothing within the sizes."""

    def __init__(self, footprints: Footprints) -> None:
        self.missed = frozenset(footprints.missed)

    def define(self, e: AccessEmitter, i: Instruction) -> bool:
        """Lowers an instruction of which something is known. False for all others."""
        if i not in self.missed:
            return False
        e.define_leaves(i, ["zeroinitializer"])
        return True


class Inside:
    """What is known while the version is emitted in which no clamp changes anything."""

    def __init__(self, footprints: Footprints, loads: list[GroupLoads]) -> None:
        self.footprints = footprints
        self.loads = {i: group for group in loads for i in group.runs}

    def define(self, e: AccessEmitter, i: Instruction) -> bool:
        """Lowers an instruction of which something is known. False for all others."""
        known = self.footprints
        if i in known.decided:
            e.define_leaves(i, ["splat (i1 true)" if known.decided[i] else "zeroinitializer"])
        elif i in known.clamps:
            e.define_leaves(i, e.leaves(known.clamps[i]))
        elif i in self.loads:
            self.loads[i].load(i)
        else:
            return False
        return True


def emit(e: AccessEmitter, footprints: Footprints) -> None:
    """Lowers what there are two versions of."""
    condition, least = _ask(e, footprints)
    inside, outputs = footprints.inside, footprints.outputs
    types = [e.form(ir_type(t)) for i in outputs for t in leaf_types(i.type)]

    def results() -> list[str]:
        found = [leaf for i in outputs for leaf in e.leaves(i)]
        _forget(e, inside)
        return found

    def fast() -> list[str]:
        loads = [_group_loads(e, footprints, group, least) for group in footprints.groups]
        e.inside = Inside(footprints, loads)
        e.emit_in_order(inside)
        e.inside = None
        return results()

    def anywhere() -> list[str]:
        e.emit_in_order(inside)
        return results()

    def outside() -> list[str]:
        e.inside = Outside(footprints)
        e.emit_in_order(inside)
        e.inside = None
        return results()

    def slow() -> list[str]:
        if not footprints.missed:
            return anywhere()
        return emit_versions(e, _ask_outside(e, footprints, least), types, outside, anywhere, _BORDER)

    values = emit_versions(e, condition, types, fast, slow)
    for i in outputs:
        count = len(leaf_types(i.type))
        e.define_leaves(i, values[:count])
        values = values[count:]
        late = e.late[i] = []
        e.lines.append(late)


def _ask_outside(e: AccessEmitter, footprints: Footprints, least: dict[Value, str]) -> str:
    """An i1: in each lane there is a coordinate with which nothing that is added to it is below the size."""
    f, lanes, scalars = e.form, "", ""
    for value in dict.fromkeys(footprints.tests.values()):
        known, size = footprints.coordinates[value], e.operand(footprints.sizes[value])
        span = known.most - known.least
        place = e.emit(f"add {f('i32')} {least[value]}, {f.splat('i32', str(span))}")
        limit = e.splat(e.emit(f"add i32 {size}, {span}"), "i32", f)
        outside = e.emit(f"icmp uge {f('i32')} {place}, {limit}")
        lanes = e.emit(f"or {f('i1')} {lanes}, {outside}") if lanes else outside
        is_positive = e.emit(f"icmp sge i32 {size}, 0")
        scalars = e.emit(f"and i1 {scalars}, {is_positive}") if scalars else is_positive
    lanes = e.emit(f"freeze {f('i1')} {lanes}")
    bits = e.emit(f"bitcast {f('i1')} {lanes} to i{e.width}")
    all_lanes = e.emit(f"icmp eq i{e.width} {bits}, -1")
    scalars = e.emit(f"freeze i1 {scalars}")
    return e.emit(f"and i1 {all_lanes}, {scalars}")


def _forget(e: AccessEmitter, instructions: Sequence[Instruction]) -> None:
    """What is known of values that one version has computed."""
    for i in instructions:
        e.leaves_of.pop(i, None)
        e.late.pop(i, None)
    e.contiguity.forget(set(instructions))


def _ask(e: AccessEmitter, footprints: Footprints) -> tuple[str, dict[Value, str]]:
    """An i1: all lanes are in the masks, and no clamp changes anything; and each coordinate at its least."""
    f = e.form
    conditions: list[str] = []
    scalars: list[str] = []
    least: dict[Value, str] = {}
    highest: dict[Value, str] = {}
    for mask in footprints.masks:
        leaf = e.leaf(mask)
        conditions += [leaf] if leaf != "splat (i1 true)" else []
    for value, known in footprints.coordinates.items():
        place = e.emit(f"freeze {f('i32')} {e.leaf(value)}")
        if known.least:
            place = e.emit(f"add {f('i32')} {place}, {f.splat('i32', str(known.least))}")
        least[value] = place
        for of, room in known.room.items():
            limit = str(room + known.least)
            if of is not None:
                bound = e.emit(f"sext i32 {e.operand(of)} to i64")
                limit = e.emit(f"add i64 {bound}, {limit}")
            scalars.append(e.emit(f"icmp sge i64 {limit}, 0"))
            highest[value] = limit
            short = e.splat(e.emit(f"trunc i64 {limit} to i32"), "i32", f)
            conditions.append(e.emit(f"icmp ule {f('i32')} {place}, {short}"))
    for group in footprints.groups:
        scalars += _fits(e, group, highest) if _are_short(group) else []
    all_lanes = conditions[0]
    for condition in conditions[1:]:
        all_lanes = e.emit(f"and {f('i1')} {all_lanes}, {condition}")
    all_lanes = e.emit(f"freeze {f('i1')} {all_lanes}")
    bits = e.emit(f"bitcast {f('i1')} {all_lanes} to i{e.width}")
    result = e.emit(f"icmp eq i{e.width} {bits}, -1")
    for scalar in scalars:
        known_scalar = e.emit(f"freeze i1 {scalar}")
        result = e.emit(f"and i1 {result}, {known_scalar}")
    return result, least


def _group_loads(
    e: AccessEmitter, footprints: Footprints, group: Group, least: dict[Value, str]
) -> GroupLoads:
    """A group's loads, places counted from where all coordinates are at their least."""
    adjusted: dict[Term, int] = {}
    for term, number in group.varying.items():
        if term.value is not None and term.is_clamped:
            factor = Term(None, term.factor)
            added = number * footprints.coordinates[term.value].least
            adjusted[factor] = adjusted.get(factor, 0) - added
    is_short = _are_short(group)
    places = (_short_places if is_short else _places)(e, group, least)
    return GroupLoads(
        e,
        group,
        footprints.users,
        e.operand(group.base),
        places,
        {term: n for term, n in adjusted.items() if n},
    )


def _are_short(group: Group) -> bool:
    """Whether 32 bits are enough for a group's places, if _fits() holds."""
    return all(term.is_clamped and number > 0 for term, number in group.varying.items())


def _fits(e: AccessEmitter, group: Group, highest: dict[Value, str]) -> list[str]:
    """i1: that 31 bits are enough for all places, given the highest values of coordinates."""
    conditions: list[str] = []
    total = "0"
    for term, number in group.varying.items():
        assert term.value is not None  # it varies
        factor = common_offset(e, {Term(term.factor, None): number})
        conditions.append(e.emit(f"icmp ule i64 {factor}, {_LARGEST}"))
        total = e.emit(f"add i64 {total}, {e.emit(f'mul i64 {factor}, {highest[term.value]}')}")
    conditions.append(e.emit(f"icmp ule i64 {total}, {_LARGEST}"))
    return conditions


def _short_places(e: AccessEmitter, group: Group, least: dict[Value, str]) -> list[str]:
    """Each lane's place, computed with 32 bits."""
    f, total = e.form, ""
    for term, number in group.varying.items():
        assert term.value is not None  # it varies
        factor = common_offset(e, {Term(term.factor, None): number})
        if not factor.isdecimal():
            factor = e.emit(f"trunc i64 {factor} to i32")
        operand = least[term.value]
        if factor != "1":
            operand = e.emit(f"mul {f('i32')} {operand}, {e.splat(factor, 'i32', f)}")
        total = e.emit(f"add {f('i32')} {total}, {operand}") if total else operand
    return _pairs_of_lanes(e, total)


def _places(e: AccessEmitter, group: Group, least: dict[Value, str]) -> list[str]:
    """Each lane's place."""
    f, total = e.form, ""
    for term, number in group.varying.items():
        value = term.value
        assert value is not None  # it varies
        if term.is_clamped:
            operand = e.emit(f"zext {f('i32')} {least[value]} to {f('i64')}")
        else:
            operand = e.leaf(value)
            if value.type.width < 64:
                operand = e.emit(f"sext {f(ir_type(value.type))} {operand} to {f('i64')}")
        if term.factor is not None:
            by = common_offset(e, {Term(term.factor, None): 1})
            operand = e.emit(f"mul {f('i64')} {operand}, {e.splat(by, 'i64', f)}")
        if number != 1:
            operand = e.emit(f"mul {f('i64')} {operand}, {f.splat('i64', str(number))}")
        total = e.emit(f"add {f('i64')} {total}, {operand}") if total else operand
    return [e.emit(f"extractelement {f('i64')} {total}, i32 {lane}") for lane in range(e.width)]


def _pairs_of_lanes(e: AccessEmitter, places: str) -> list[str]:
    """Numbers of 32 bits that are not negative, as i64."""
    lanes = []
    for both in words_of_lanes(e, places, 32, 64):
        lanes += [e.emit(f"and i64 {both}, 4294967295"), e.emit(f"lshr i64 {both}, 32")]
    return lanes
