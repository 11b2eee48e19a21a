"""Places in the source for accesses and calls that have none, in kernels with debug information.

clang merges what two lines have in common, and then names neither; passes join and hoist likewise. A reader
who looks for the most costly load of a kernel wants a line that asks for it. What is not in the source, masks
and addresses, stays without. Nothing but debug information and reports follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...spirv.location import Location
from ...spirv.module import Function, Instruction, Value
from .instructions import users
from .remarks import ATOMIC, CALL, LOAD, STORE, what_is

_MOST = 50  # instructions that are asked, the nearest first
_OF_THE_SOURCE = (LOAD, STORE, ATOMIC, CALL)


def complete_lines(function: Function) -> None:
    """Gives each load, store, atomic and call without a place that of the nearest instruction which uses it,
    or which it uses, or which stands before it."""
    lost = [
        i
        for block in function.blocks
        for i in block.instructions
        if not _has_line(i) and what_is(i) in _OF_THE_SOURCE
    ]
    if not lost:
        return
    used_by = users(function)
    for i in lost:
        i.line = _nearest(used_by.get(i, ()), used_by) or _nearest(_values(i), None)
    before: Location | None = None
    first: Location | None = None
    for block in function.blocks:
        for i in block.instructions:
            if _has_line(i):
                before = i.line
                first = first or before
            elif what_is(i) in _OF_THE_SOURCE:
                i.line = before
    for i in lost:  # nothing stands before the first ones
        i.line = i.line or first


def _has_line(i: Instruction) -> bool:
    """Whether it has a place. Line 0 is what compilers call a place that several lines share."""
    return i.line is not None and i.line.line != 0


def _values(i: Instruction) -> list[Instruction]:
    return [o for o in i.operands if isinstance(o, Instruction)]


def _nearest(start: Iterable[Instruction], used_by: dict[Value, list[Instruction]] | None) -> Location | None:
    """The place of the first instruction that has one, of users of users, or of operands of operands."""
    rest = list(start)
    seen = set(rest)
    for i in rest:  # which grows
        if _has_line(i):
            return i.line
        for more in _values(i) if used_by is None else used_by.get(i, ()):
            if more not in seen and len(rest) < _MOST:
                seen.add(more)
                rest.append(more)
    return None
