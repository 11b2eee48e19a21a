"""Stores to components of vectors in memory.

clang makes of `v[k].x += 1` a load of the vector, and a store of all that was loaded with another component.
The code generator would gather and scatter all components. Where only the store of a few is left, so are the
loads of those that are wanted. What nobody else wrote meanwhile need not be written again.

Vectors that lie one after the other stay whole: they are loaded and stored as they are in memory.
"""

from __future__ import annotations

from collections.abc import Callable

from ...spirv.enums import Op, StorageClass
from ...spirv.module import Function, Instruction, Kind, MemoryAccess, Type, Value
from ...spirv.types import TypeTable
from ..analysis.shape import analyse_shapes
from ..ir.instructions import PURE, substitute, users
from ..ir.layout import size_of
from ..ir.plan import PlanOptions
from .simplify import remove_dead_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

_MARKS = (Op.LifetimeStart, Op.LifetimeStop)
_UNDEFINED = 0xFFFFFFFF  # as the component that a shuffle takes

_Component: TypeAlias = "tuple[Value, int]"  # of a vector


def store_components(function: Function, types: TypeTable, options: PlanOptions) -> None:
    """Changes a function in place."""
    found = [pair for block in function.blocks for pair in _updates(block.instructions)]
    if not found:
        return
    is_scattered = _scattered(function, options, found)
    _Narrowing(function, types).run([pair for pair in found if is_scattered(pair[0].operands[0])])


def _updates(instructions: list[Instruction]) -> list[tuple[Instruction, Instruction]]:
    """(store, load) of vectors of which at most half of the components change in between, and of which
    nothing else may."""
    found = []
    loads: dict[Value, Instruction] = {}
    for i in instructions:
        if i.op is Op.Load:
            if i.type.kind is Kind.VECTOR and not _is_volatile(i):
                loads[i.operands[0]] = i
        elif i.op is Op.Store:
            load = loads.get(i.operands[0])
            loads = {}
            if load is None or _is_volatile(i):
                continue
            base, changed = _changed(i.operands[1])
            if base is load and 2 * len(changed) <= i.operands[1].type.count:
                found.append((i, load))
        elif i.op not in PURE and i.op not in _MARKS:
            loads = {}
    return found


def _is_volatile(access: Instruction) -> bool:
    return access.memory is not None and access.memory.volatile


def _changed(value: Value) -> tuple[Value, dict[int, Value | _Component]]:
    """The vector that components are put into, and these."""
    changed: dict[int, Value | _Component] = {}
    while isinstance(value, Instruction):
        if value.op is Op.CompositeInsert and len(value.operands) == 3:
            component, value, index = value.operands
            changed.setdefault(index, component)
        elif value.op is Op.VectorShuffle and len(value.operands) == 2 + value.operands[0].type.count:
            (first, second), sources = value.operands[:2], value.operands[2:]
            for place, source in enumerate(sources):
                if source not in (place, _UNDEFINED):
                    is_first = source < len(sources)
                    component = (first, source) if is_first else (second, source - len(sources))
                    changed.setdefault(place, component)
            value = first
        else:
            break
    return value, changed


def _scattered(
    function: Function, options: PlanOptions, found: list[tuple[Instruction, Instruction]]
) -> Callable[[Value], bool]:
    """Whether lanes access places that do not follow one another, or memory of their own."""
    pointers = [store.operands[0] for store, _ in found]
    if all(pointer.type.storage is StorageClass.Function for pointer in pointers):
        return lambda pointer: True
    shapes = analyse_shapes(function, options)
    return lambda pointer: pointer.type.storage is StorageClass.Function or shapes.stride(pointer) is None


class _Narrowing:
    def __init__(self, function: Function, types: TypeTable) -> None:
        self.function, self.types = function, types
        self.used_by = users(function)
        self.places: dict[tuple[Instruction, int], Instruction] = {}  # of components, by load
        self.before: dict[Instruction, list[Instruction]] = {}
        self.replaced: dict[Value, Value] = {}
        self.instead: dict[Instruction, list[Instruction]] = {}  # of stores

    def run(self, found: list[tuple[Instruction, Instruction]]) -> None:
        for store, load in found:
            self.store(store, load)
        for load in dict.fromkeys(load for _, load in found):
            self.load(load)
        for block in self.function.blocks:
            out: list[Instruction] = []
            for i in block.instructions:
                out += self.before.get(i, ())
                out += self.instead.get(i, (i,))
            block.instructions = out
        substitute(self.function, self.replaced)
        remove_dead_code(self.function)

    def store(self, store: Instruction, load: Instruction) -> None:
        _, changed = _changed(store.operands[1])
        made = self.instead[store] = []
        for index, source in changed.items():
            value = source if isinstance(source, Value) else self.component(source, store, made)
            one = Instruction(Op.Store, None, [self.place(load, index), value], store.block)
            one.memory, one.line, one.offset = _access(store, load.type.element), store.line, store.offset
            made.append(one)

    def component(self, source: _Component, store: Instruction, made: list[Instruction]) -> Instruction:
        """A component that a store takes from a vector."""
        vector, index = source
        value = Instruction(Op.CompositeExtract, vector.type.element, [vector, index], store.block)
        value.line, value.offset = store.line, store.offset
        self.used_by.setdefault(vector, []).append(value)
        made.append(value)
        return value

    def load(self, load: Instruction) -> None:
        """Of the components that are wanted, if nobody wants all."""
        rest = [i for i in self.used_by.get(load, ()) if not self.is_dead(i)]
        if not all(i.op is Op.CompositeExtract and len(i.operands) == 2 for i in rest):
            return
        indices = sorted({i.operands[1] for i in rest})
        if 2 * len(indices) > load.type.count:
            return
        ones: dict[int, Instruction] = {}
        for index in indices:
            one = Instruction(Op.Load, load.type.element, [self.place(load, index)], load.block, load.name)
            one.memory, one.line, one.offset = _access(load, load.type.element), load.line, load.offset
            self.before[load].append(one)
            ones[index] = one
        for i in rest:
            self.replaced[i] = ones[i.operands[1]]

    def is_dead(self, value: Instruction) -> bool:
        """Whether nothing but stores that are replaced needs a vector with other components."""
        return value.op in (Op.CompositeInsert, Op.VectorShuffle) and all(
            i in self.instead if i.op is Op.Store else self.is_dead(i) for i in self.used_by.get(value, ())
        )

    def place(self, load: Instruction, index: int) -> Instruction:
        """The address of a component, before the load."""
        found = self.places.get((load, index))
        if found is None:
            pointer, element = load.operands[0], load.type.element
            type_ = self.types.pointer(pointer.type.storage, element)
            start = Instruction(Op.Bitcast, type_, [pointer], load.block)
            number = self.types.integer(64, index)
            found = Instruction(Op.InBoundsPtrAccessChain, type_, [start, number], load.block)
            self.places[load, index] = found
            self.before.setdefault(load, []).extend((start, found))
        return found


def _access(access: Instruction, element: Type) -> MemoryAccess:
    """What is known of an access to a component."""
    size = size_of(element)
    memory = access.memory or MemoryAccess()
    alignment = memory.alignment or size
    return MemoryAccess(min(alignment, size), False, memory.nontemporal)
