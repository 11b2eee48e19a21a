"""OpenCL vectors at W work-items per vector, some components at a time.

Each component of a varying OpenCL vector is a vector of its own: sixteen of them for uint16, and an operation
is done on all before the next one. What a hash computes of uint16 then needs sixteen times the registers of
one component, which there are not, so that LLVM stores nearly every value and loads it again. A run of
component-wise operations is emitted for some components after the others instead, if these have room in the
registers. Where four have none, all are done at once as before: what waits for itself is slower
than what is loaded again.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from ...passes.ir.instructions import PURE
from ...spirv.enums import Op
from ...spirv.module import Instruction, Kind, Operand, Value
from ..llvm.registry import COMPONENTWISE, EXTENDED, LOWERINGS, WIDE, WIDE_EXTENDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from .emitter import WideEmitter

_SHORTEST = 24  # operations of a run
_TOGETHER = 4  # components: enough for instructions that wait for one another
_ROOM = 1.5  # values for each register: some are not needed soon

Run: TypeAlias = list[Instruction]


def find_runs(e: WideEmitter, instructions: Sequence[Instruction]) -> dict[Instruction, Run]:
    """The run of each instruction that is in one. Uniform values may be computed between its instructions."""
    found: list[dict[Instruction, None]] = [{}]
    count = 0
    for i in instructions:
        if _is_componentwise(e, i):
            if i.type.count != count:
                count = i.type.count
                found.append({})
            found[-1][i] = None
        elif found[-1] and not _may_be_between(e, i, found[-1]):
            found.append({})
    runs: dict[Instruction, Run] = {}
    for run in map(list, found):
        if len(run) >= _SHORTEST and run[0].type.count > _TOGETHER and _have_room(e, run, instructions):
            runs.update(dict.fromkeys(run, run))
    return runs


def emit_run(e: WideEmitter, run: Run) -> None:
    """Emits all operations of a run, for some components after the others."""
    count = run[0].type.count
    for i in run:
        e.leaves_of[i] = [""] * count
    for first in range(0, count, _TOGETHER):
        e.component_group = range(first, first + _TOGETHER)
        for i in run:
            start = len(e.lines)
            e.lower(i)
            if e.debug is not None:
                e.debug.attach(e.lines, start, i)
    e.component_group = None


def _is_componentwise(e: WideEmitter, i: Instruction) -> bool:
    if i.type is None or i.type.kind is not Kind.VECTOR or i.mask is not None:
        return False
    if not e.is_varying(i) or i in e.packed or any(o in e.packed for o in i.operands):
        return False
    if i.op is Op.ExtInst:
        return EXTENDED.get(i.operands[1]) in COMPONENTWISE and i.operands[1] not in WIDE_EXTENDED
    return LOWERINGS.get(i.op) in COMPONENTWISE and i.op not in WIDE


def _may_be_between(e: WideEmitter, i: Instruction, run: Container[Operand]) -> bool:
    """Whether an instruction may be emitted before those of a run that it follows."""
    is_uniform = i.op in PURE and i.op is not Op.Phi and not e.is_varying(i)
    return is_uniform and not any(o in run for o in i.operands)


def _have_room(e: WideEmitter, run: Run, block: Sequence[Instruction]) -> bool:
    """Whether a run's own values have room in the registers where there are most of them."""
    last: dict[Value, int] = {}
    for number, i in enumerate(block):
        last.update(dict.fromkeys((o for o in i.operands if isinstance(o, Value)), number))
    of_number = {i: number for number, i in enumerate(block)}
    ends = sorted(max(last.get(i, len(block)), of_number[i]) for i in run)
    live = most = dead = 0
    for i in run:
        while dead < len(ends) and ends[dead] <= of_number[i]:
            dead += 1
            live -= 1
        live += 1
        most = max(most, live)
    widest = max(i.type.element.width for i in run)
    each = max(1, e.width * widest // e.options.vector_bits)
    registers = 32 if e.options.aarch64 or "avx512f" in e.options.features else 16
    return _TOGETHER * most * each <= _ROOM * registers
