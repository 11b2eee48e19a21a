"""Which buffers a kernel only reads, by the arguments that they come as.

Told only of arguments whose address goes nowhere but to reads: what is stored, becomes an integer or is given
to a function that is not known may be written through.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...spirv.enums import Op, StorageClass
from ...spirv.module import Argument, Function, Instruction, Kind, Value
from ..ir.instructions import EXTINST_LOADS, EXTINST_PREFETCH, EXTINST_PRINTF
from .roots import SAME_OBJECT

_SHARED = (StorageClass.CrossWorkgroup, StorageClass.UniformConstant)
# Arithmetic and comparisons, of numbers alone.
_NUMBERS = frozenset(op for op in Op if 126 <= op <= 205 and op is not Op.Select)
_READS = frozenset((
    Op.AtomicLoad, Op.LifetimeStart, Op.LifetimeStop, Op.PtrEqual, Op.PtrNotEqual, Op.PtrDiff,
    Op.SubgroupBlockReadINTEL,
))  # fmt: skip
# Those that read one address and write to another: the operand that is written to.
_COPIES = {Op.CopyMemory: 0, Op.CopyMemorySized: 0, Op.GroupAsyncCopy: 1}
_READING_FUNCTIONS = EXTINST_LOADS | {EXTINST_PRINTF, EXTINST_PREFETCH}


def read_arguments(function: Function) -> frozenset[int]:
    """The numbers of the arguments that point to what a kernel certainly does not write."""
    return _read(function, {})


def _read(function: Function, known: dict[Function, frozenset[int]]) -> frozenset[int]:
    """The same of any function. known: of others, and of those that are being looked at: of a function that
    calls itself none."""
    if function in known:
        return known[function]
    known[function] = frozenset()
    numbers = {a: number for number, a in enumerate(function.arguments) if _is_shared(a)}
    flow = _Flow(numbers, known)
    instructions = [i for block in function.blocks for i in block.instructions if i.op not in _NUMBERS]
    while numbers and flow.go_on(instructions):  # again where a loop carries an address
        pass
    known[function] = frozenset(number for a, number in numbers.items() if a not in flow.written)
    return known[function]


class _Flow:
    """What addresses are computed from; written: the arguments that may be written through."""

    def __init__(self, arguments: Iterable[Argument], known: dict[Function, frozenset[int]]) -> None:
        self._of: dict[Value, frozenset[Argument]] = {a: frozenset([a]) for a in arguments}
        self._known = known
        self.written: set[Argument] = set()

    def go_on(self, instructions: list[Instruction]) -> bool:
        """Looks at all once. True if a phi has other sources now, on which what is above may depend."""
        of, has_changed = self._of, False
        for i in instructions:
            op = i.op
            if op is Op.Load:
                continue
            if op in SAME_OBJECT:
                sources = of.get(i.operands[0])
                if sources is not None:
                    of[i] = sources
                continue
            found = [o for o in i.operands if isinstance(o, Value) and o in of]
            if not found:
                continue
            if op is Op.Phi or op is Op.Select:
                sources = frozenset[Argument]().union(*(of[o] for o in found))
                has_changed |= of.get(i) != sources
                of[i] = sources
            else:
                self.written.update(*(of[o] for o in _written_by(i, found, self._known)))
        return has_changed


def _is_shared(argument: Argument) -> bool:
    type_ = argument.type
    return type_ is not None and type_.kind is Kind.POINTER and type_.storage in _SHARED


def _written_by(i: Instruction, found: list[Value], known: dict[Function, frozenset[int]]) -> list[Value]:
    """The addresses among those operands of an instruction that it may write to, or that go on from it to
    where nobody looks."""
    if i.op in _READS:
        return []
    if i.op in _COPIES:
        return [o for o in found if o is i.operands[_COPIES[i.op]]]
    if i.op is Op.ExtInst:
        return [] if i.operands[1] in _READING_FUNCTIONS else found
    if i.op is not Op.FunctionCall or (i.type is not None and i.type.kind is Kind.POINTER):
        return found
    callee: Function = i.operands[0]
    read = _read(callee, known) if callee.blocks else frozenset[int]()
    return [o for number, o in enumerate(i.operands[1:]) if number not in read and o in found]
