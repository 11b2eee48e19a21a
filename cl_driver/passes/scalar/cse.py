"""Expressions that are computed again where they are known already: what unrolled loops consist of to a good
part, since whoever compiled the loop could only take out of it what is the same in every iteration."""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import Function, Instruction, Value
from ..ir.dominance import dominators
from ..ir.instructions import EXTINST_LOADS, EXTINST_WITH_EFFECT, PURE, STAY, reads_builtin, substitute

_REPEATABLE = PURE - STAY


def drop_repeated(function: Function) -> None:
    """Changes a function in place, whose blocks are in reverse postorder. Before masks are there."""
    tree = dominators(function)
    seen: dict[tuple[object, ...], Instruction] = {}
    replaced: dict[Value, Value] = {}
    for block in function.blocks:
        kept = []
        for i in block.instructions:
            i.operands = [replaced.get(o, o) for o in i.operands]
            if _is_repeatable(i):
                key = (i.op, i.type, *i.operands, *sorted(map(repr, i.decorations.items())))
                first = seen.get(key)
                if first is not None and tree.dominates(first.block, block):
                    replaced[i] = first
                    continue
                seen[key] = i
            kept.append(i)
        block.instructions = kept
    substitute(function, replaced)


def _is_repeatable(i: Instruction) -> bool:
    if i.op is Op.ExtInst:
        return i.operands[1] not in EXTINST_WITH_EFFECT and i.operands[1] not in EXTINST_LOADS
    return i.op in _REPEATABLE or reads_builtin(i)
