"""What a block computes of several loads, twice: where all of them are of neighbours, and where not all are.

For loads of vectors that stay packed (packed_vectors.py), and for those whose one question is that none of
their indices is cut (overflow_versioning.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...passes.ir.instructions import EXTINST_WITH_EFFECT, PURE, users
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Instruction, Kind
from ..llvm.types import ir_type, leaf_types, size_of
from ..llvm.versioning import emit_versions
from . import overflow_versioning, packed_vectors
from .emitter import AccessEmitter
from .natures import Term

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

_LEAST_LOADS = 4  # that one question is about: the questions of fewer are as short
_ARITHMETIC = frozenset((
    Op.FAdd, Op.FSub, Op.FMul, Op.FNegate, Op.IAdd, Op.ISub, Op.IMul, Op.BitwiseAnd, Op.BitwiseOr,
    Op.BitwiseXor, Op.UConvert, Op.SConvert, Op.FConvert, Op.ConvertSToF, Op.ConvertUToF,
))  # fmt: skip


AddressSum: TypeAlias = tuple[
    list[Term], overflow_versioning.IdSum, int
]  # of overflow_versioning.address_sum()
Sums: TypeAlias = dict[Instruction, AddressSum]  # of loads
# What comes before, such loads and what is computed from them, what comes behind, and the loads' addresses.
Divided: TypeAlias = tuple[list[Instruction], list[Instruction], list[Instruction], Sums]
Ask: TypeAlias = Callable[[Instruction], tuple[str, str, int] | None]  # of a load: what loads.py asks
Places: TypeAlias = dict[Instruction, str | None]  # of loads


def divide(e: AccessEmitter, instructions: Sequence[Instruction]) -> Divided | None:
    """What comes before, such loads and what is computed from them, what comes behind, and the addresses of
    loads as sums of ids; None where the loads are few, or something is stored before them."""
    if e.lane_constants is not None or e.lane is not None:
        return None
    loads = [i for i in instructions if i.op is Op.Load and e.is_varying(i.operands[0])]
    if len(loads) < 2:
        return None
    packed = [i for i in loads if i in e.packed]
    sums = {i: found for i in packed or loads if _is_simple(i) and (found := _address_sum(e, i))}
    roots = [found[1].root for found in sums.values()]
    if len(roots) < _LEAST_LOADS or any(root is not roots[0] for root in roots):
        sums = {}
    wanted = set(packed or sums)
    if len(wanted) < 2:
        return None
    first = next(k for k, i in enumerate(instructions) if not _may_move(i))
    if any(i.op is Op.Load or i.op is Op.ExtInst for i in instructions[first:]):
        return None
    versioned: set[Instruction] = set()
    behind = set(instructions[first:])
    for i in instructions[:first]:
        operands = {o for o in (*i.operands, i.mask) if isinstance(o, Instruction)}
        if i in wanted and operands.isdisjoint(versioned | behind):
            versioned.add(i)
        elif i.op is not Op.Phi and not operands.isdisjoint(versioned | behind):
            is_like = i in e.packed if packed else i.op in _ARITHMETIC and e.is_varying(i)
            is_like = is_like and i.op is not Op.Load and operands.isdisjoint(behind)
            (versioned if is_like else behind).add(i)
    if sum(i.op is Op.Load for i in versioned) < (2 if packed else _LEAST_LOADS):
        return None
    before = [i for i in instructions if i not in versioned and i not in behind]
    inside, rest = [i for i in instructions if i in versioned], [i for i in instructions if i in behind]
    return before, inside, rest, {i: sums[i] for i in inside if i in sums}


def _address_sum(e: AccessEmitter, i: Instruction) -> AddressSum | None:
    return overflow_versioning.address_sum(e, i.operands[0], size_of(i.type))


def _is_simple(i: Instruction) -> bool:
    """A load of numbers from global memory, which may be done elsewhere in its block."""
    kind = i.type.element.kind if i.type.kind is Kind.VECTOR else i.type.kind
    is_volatile = i.memory is not None and i.memory.volatile
    is_global = i.operands[0].type.storage is StorageClass.CrossWorkgroup
    return kind in (Kind.INT, Kind.FLOAT) and is_global and not is_volatile


def _may_move(i: Instruction) -> bool:
    if i.op is Op.ExtInst:
        return i.operands[1] not in EXTINST_WITH_EFFECT
    return i.op in PURE or i.op is Op.Load


def emit(e: AccessEmitter, instructions: Sequence[Instruction], sums: Sums, ask: Ask) -> None:
    """Lowers what divide() gives as the loads and what is computed of them. ask(load): what loads.py
    would ask of it."""
    loads = [i for i in instructions if i.op is Op.Load]
    asked = _ask_once(e, loads, sums) or _ask_each(e, loads, ask)
    if asked is None:
        return e.emit_in_order(instructions)
    condition, places = asked
    inside = set(instructions)
    used_by = users(e.function)
    outputs = [i for i in instructions if any(u not in inside for u in used_by.get(i, ()))]

    def version(places: dict[Instruction, str | None]) -> list[str]:
        e.places = places
        e.emit_in_order(instructions)
        return [leaf for i in outputs for leaf in e.leaves_of.pop(i)]

    types = [t for i in outputs for t in _types(e, i)]
    values = emit_versions(
        e, condition, types, lambda: version(places), lambda: version(dict.fromkeys(loads))
    )
    e.places = {}
    for i in outputs:
        count = len(_types(e, i))
        e.define_leaves(i, values[:count])
        values = values[count:]
        late = e.late[i] = []
        e.lines.append(late)
    return None


def _types(e: AccessEmitter, i: Instruction) -> list[str]:
    """The LLVM types of a value's leaves."""
    if i in e.packed:
        return [packed_vectors.packed_type(e, i.type)]
    return [e.form(ir_type(t)) for t in leaf_types(i.type)]


def _ask_once(e: AccessEmitter, loads: list[Instruction], sums: Sums) -> tuple[str, Places] | None:
    """The condition, and the place of each load: before the halves, as prefetch.py is told of it."""
    asked = overflow_versioning.ask(e, [sums[i][1] for i in loads]) if len(sums) == len(loads) else None
    if asked is None:
        return None
    condition, first = asked
    places = overflow_versioning.Places(first)
    return condition, {i: places.address(e, *sums[i]) for i in loads}


def _ask_each(e: AccessEmitter, loads: list[Instruction], ask: Ask) -> tuple[str, Places] | None:
    places: Places = {}
    conditions: list[str] = []
    for i in loads:
        asked = ask(i)
        if asked is None:
            return None
        places[i] = asked[1]
        conditions += [asked[0]] if asked[0] not in conditions else []
    condition = conditions[0]
    for other in conditions[1:]:
        condition = e.emit(f"and i1 {condition}, {other}")
    return condition, places
