"""Which buffers a kernel certainly writes to, by the arguments that they come as.

What the host says never changes (CL_MEM_IMMUTABLE_EXT) is refused for them. So an argument is told only where
a store, an atomic or a copy goes through an address that can be of no other: an address that may be of one
or another, was an integer or came out of a buffer counts for none.
"""

from __future__ import annotations

from ...spirv.enums import Op, StorageClass
from ...spirv.module import Argument, Constant, Function, Instruction, Kind, Value
from ..ir.instructions import ATOMICS, EXTINST_PREFETCH, EXTINST_PRINTF, EXTINST_WITH_EFFECT
from ..ir.link_names import source_name
from .roots import SAME_OBJECT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    # What an address may be computed from; None is anything but an argument.
    Sources: TypeAlias = frozenset[Argument | None]

_ELSEWHERE: Sources = frozenset([None])
_NOTHING: Sources = frozenset()

_SHARED = (StorageClass.CrossWorkgroup, StorageClass.Generic)
_WRITTEN = {op: 0 for op in ATOMICS if op is not Op.AtomicLoad} | {
    Op.Store: 0, Op.CopyMemory: 0, Op.CopyMemorySized: 0, Op.GroupAsyncCopy: 1, Op.SubgroupBlockWriteINTEL: 0,
}  # fmt: skip
_WHOLE = frozenset((Op.Load, Op.Store, Op.LifetimeStart, Op.LifetimeStop))
_WRITING_FUNCTIONS = EXTINST_WITH_EFFECT - {EXTINST_PRINTF, EXTINST_PREFETCH}
# Functions of the builtin library (builtins/cl/atomics.cl), by their names in OpenCL C.
_ATOMIC_FUNCTIONS = frozenset(
    [f"{prefix}_{name}" for prefix in ("atomic", "atom") for name in "xchg inc dec min max".split()]
    + [f"atomic_fetch_{name}{end}" for name in ("min", "max") for end in ("", "_explicit")]
)


def written_arguments(function: Function) -> frozenset[int]:
    """The numbers of the arguments that point to what a kernel writes. Its calls are not expanded."""
    return _written(function, {})


def _written(function: Function, known: dict[Function, frozenset[int]]) -> frozenset[int]:
    """The same of any function. known: of others, and of those that are being looked at."""
    if function in known:
        return known[function]
    known[function] = frozenset()
    if not any(map(_is_shared, function.arguments)):
        return frozenset()
    flow = _Flow(function)
    written: set[Argument | None] = set()
    for i in (i for block in function.blocks for i in block.instructions):
        for pointer in _written_by(i, known):
            found = flow.sources(pointer)
            if len(found) == 1:
                written |= found
    known[function] = frozenset(number for number, a in enumerate(function.arguments) if a in written)
    return known[function]


def _written_by(i: Instruction, known: dict[Function, frozenset[int]]) -> list[Value]:
    """The addresses that an instruction writes to."""
    place = _WRITTEN.get(i.op)
    if place is not None:
        return [i.operands[place]]
    if i.op is Op.FunctionCall:
        callee: Function = i.operands[0]
        if callee.linkage is not None and source_name(callee.linkage[0]) in _ATOMIC_FUNCTIONS:
            return i.operands[1:2]
        return [i.operands[1 + number] for number in _written(callee, known)]
    if i.op is Op.ExtInst and i.operands[1] in _WRITING_FUNCTIONS:
        return [o for o in i.operands[2:] if isinstance(o, Value) and o.type.kind is Kind.POINTER]
    return []


def _is_shared(value: Value) -> bool:
    """Whether a value is an address in memory of the host's."""
    type_ = value.type
    return type_ is not None and type_.kind is Kind.POINTER and type_.storage in _SHARED


class _Flow:
    """What the addresses of a function may be computed from."""

    def __init__(self, function: Function) -> None:
        self.of: dict[Value, Sources] = {a: frozenset([a]) for a in function.arguments if _is_shared(a)}
        self.instructions = [i for block in function.blocks for i in block.instructions]
        self.variables = self._variables()
        self.held: dict[Value, Sources] = dict.fromkeys(self.variables.values(), _NOTHING)
        carrying = [i for i in self.instructions if i.op is Op.Store or _is_shared(i)]
        self.changed = True
        while self.changed:  # again where a loop carries an address
            self.changed = False
            for i in carrying:
                held = self.variables.get(i.operands[0]) if i.op is Op.Store else None
                if held is not None and _is_shared(i.operands[1]):
                    self._add(self.held, held, self.sources(i.operands[1]))
                elif _is_shared(i):
                    self._add(self.of, i, self._made_of(i))

    def sources(self, value: Value) -> Sources:
        """Of an address; nothing where that is not known yet, and of NULL."""
        if isinstance(value, Constant) and value.value is None:
            return _NOTHING
        return self.of.get(value, _NOTHING if isinstance(value, Instruction) else _ELSEWHERE)

    def _variables(self) -> dict[Value, Value]:
        """Variables of the function for addresses that are stored and loaded as wholes, nothing else; by
        themselves and by what is the same pointer."""
        variables: dict[Value, Value] = {}
        for i in self.instructions:
            if i.op is Op.Variable:
                variables[i] = i
            elif i.op is Op.Bitcast and i.operands[0] in variables:
                variables[i] = variables[i.operands[0]]
        if not variables:
            return variables
        others: set[Value] = set()
        for i in self.instructions:
            is_whole = i.op in _WHOLE or i in variables
            others.update(variables[o] for o in i.operands[int(is_whole) :] if o in variables)
        return {pointer: variable for pointer, variable in variables.items() if variable not in others}

    def _add(self, table: dict[Value, Sources], value: Value, sources: Sources) -> None:
        before = table.get(value, _NOTHING)
        if not sources <= before:
            table[value] = before | sources
            self.changed = True

    def _made_of(self, i: Instruction) -> Sources:
        if i.op is Op.Load:
            held = self.variables.get(i.operands[0])
            return _ELSEWHERE if held is None else self.held[held]
        if i.op is Op.Phi:
            sources = i.operands[::2]
        elif i.op is Op.Select:
            sources = i.operands[1:]
        elif i.op in SAME_OBJECT and _is_shared(i.operands[0]):
            sources = i.operands[:1]
        else:
            return _ELSEWHERE
        return _NOTHING.union(*map(self.sources, sources))
