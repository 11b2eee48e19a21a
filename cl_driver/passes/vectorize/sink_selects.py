"""Puts selects of what only one way computes into that way.

    inside: ...                              inside: t = select m, v, b
    join:   p = phi(v from inside, undef)    join:   s = phi(t from inside, b)
            s = select m, p, b

What is undefined may be anything, so it may be the other operand. Where no lane goes inside, as where a
function has a rare case, nothing is left to do for it.
"""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import Block, Function, Instruction, Undef, Value
from ..ir.instructions import predecessors, substitute


def sink_selects(function: Function) -> bool:
    """All such selects. True if there were any: phis may be left that nobody needs."""
    replaced: dict[Value, Value] = {}
    for join, sources in predecessors(function).items():
        if len(sources) != 2:
            continue
        for select in [i for i in join.instructions if i.op is Op.Select]:
            select.operands = [replaced.get(o, o) for o in select.operands]
            phi = _sunk(select, join, sources)
            if phi is not None:
                replaced[select] = phi
    substitute(function, replaced)
    return bool(replaced)


def _sunk(select: Instruction, join: Block, sources: list[Block]) -> Instruction | None:
    """Takes a select out of the join; the phi in its place, None if it must stay."""
    for inside, other in (sources, sources[::-1]):
        if inside.terminator.op is not Op.Branch:
            continue  # a loop that is left for the join, or some other way than there
        at_end = [_incoming(o, join, inside) for o in select.operands]
        _, *values = (_incoming(o, join, other) for o in select.operands)
        undefined = [isinstance(value, Undef) for value in values]
        if any(undefined) and None not in at_end:
            passed = values[undefined[0]]
            if passed is None:
                continue
            sunk = Instruction(Op.Select, select.type, at_end, inside, select.name)
            sunk.line = select.line
            inside.instructions.insert(-1, sunk)
            phi = Instruction(Op.Phi, select.type, [sunk, inside, passed, other], join, select.name)
            join.instructions.remove(select)
            join.instructions.insert(0, phi)
            return phi
    return None


def _incoming(value: Value, join: Block, source: Block) -> Value | None:
    """What a value is on the way from a predecessor, None if the join itself computes it."""
    if not isinstance(value, Instruction) or value.block is not join:
        return value
    if value.op is not Op.Phi:
        return None
    incoming: Value = value.operands[value.operands.index(source) - 1]
    return incoming
