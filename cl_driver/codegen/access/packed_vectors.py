"""OpenCL vectors that only stream through: one LLVM vector with the components of all lanes, as in memory.

Elsewhere each component of a varying OpenCL vector is a vector of its own, which takes shuffles to load and
to store. What is loaded, computed component by component and stored needs none of them, and bytes and halves
fill registers: 16 lanes of uchar4 are one of 512 bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...passes.cost.streams import LEAST_LOADS
from ...passes.ir.instructions import users
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Constant, Function, Instruction, Kind, Type, Undef, Value
from ..llvm.emitter import Components
from ..llvm.forms import form
from ..llvm.registry import COMPONENTWISE, EXTENDED, LOWERINGS, Builder
from ..llvm.types import constant_text, ir_type, leaf_types, size_of
from .block_transpose import goes_in_blocks, registers_of, take_apart
from .emitter import AccessEmitter
from .gather_scatter import (
    from_memory,
    gather,
    goes_in_steps,
    interleave,
    memory_type,
    unzipped,
)
from .masked_access import load_masked
from .natures import NEIGHBOURS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

Users: TypeAlias = Mapping[Value, Sequence[Instruction]]  # of a value: what has it for an operand

_NUMBERS = {bits: Type(Kind.INT, width=bits) for bits in (16, 32, 64)}
_COUNTS = (2, 4, 8, 16)  # three components take the place of four
_STREAMED = frozenset((StorageClass.CrossWorkgroup, StorageClass.Workgroup))
_MOST_REGISTERS = 8  # that a value takes: more are more code


def find_packed(e: AccessEmitter, function: Function) -> frozenset[Instruction]:
    """The values of a region that are held so: all that they are computed from, and who uses them.

    But the few values that many loads come to may be taken apart.
    """
    found = {i for block in function.blocks for i in block.instructions if _may_be_packed(e, i)}
    if not found:
        return frozenset()
    used_by = users(function)
    packed: set[Instruction] = set()
    for values in _connected(_narrowed(e, set(found), used_by, True)):
        apart = sum(not all(_stays_packed(e, i, u, values) for u in used_by.get(i, ())) for i in values)
        loads = sum(i.op is Op.Load for i in values)
        if loads and LEAST_LOADS * apart <= loads:
            packed |= values
    rest = _narrowed(e, found - packed, used_by, False)
    return frozenset(packed | rest if any(i.op is Op.Load for i in rest) else packed)


def _narrowed(
    e: AccessEmitter, found: set[Instruction], used_by: Users, comes_apart: bool
) -> set[Instruction]:
    """Those of some values of which this holds. comes_apart: they may be taken apart."""
    pending = list(found)
    while pending:
        i = pending.pop()
        if i not in found:
            continue
        uses = used_by.get(i, ())
        if _suit(e, i, found) and all(
            _stays_packed(e, i, u, found) or (comes_apart and _takes_components(i, u)) for u in uses
        ):
            continue
        found.discard(i)
        pending += used_by.get(i, ())
        pending += (o for o in i.operands if isinstance(o, Instruction))
    return found


def _connected(values: set[Instruction]) -> list[set[Instruction]]:
    """Those that are computed from one another, together."""
    of: dict[Instruction, set[Instruction]] = {}
    for i in values:
        group = of.setdefault(i, {i})
        for other in i.operands:
            if isinstance(other, Instruction) and other in values and of.get(other) is not group:
                joined = of.pop(other, {other})
                if len(joined) > len(group):
                    group, joined = joined, group
                group |= joined
                of |= dict.fromkeys(joined, group)
                of[other] = group
    return list({id(group): group for group in of.values()}.values())


def _may_be_packed(e: AccessEmitter, i: Instruction) -> bool:
    type_ = i.type
    if type_ is None or type_.kind is not Kind.VECTOR or type_.count not in _COUNTS or not e.is_varying(i):
        return False
    if type_.element.kind not in (Kind.INT, Kind.FLOAT, Kind.BOOL):
        return False
    if type_.element.kind is not Kind.BOOL:
        bits = type_.count * type_.element.width * e.width
        if bits > _MOST_REGISTERS * e.options.vector_bits:
            return False
    if i.op is Op.Load:
        return _passes_through(e, i, i.operands[0], type_)
    lowering = EXTENDED.get(i.operands[1]) if i.op is Op.ExtInst else LOWERINGS.get(i.op)
    return i.op is Op.Phi or lowering in COMPONENTWISE


def _passes_through(e: AccessEmitter, i: Instruction, pointer: Value, type_: Type) -> bool:
    """Whether an access is one of neighbours, or may turn out to be."""
    storage = pointer.type.storage
    if storage not in _STREAMED or type_.element.kind is Kind.BOOL:
        return False
    if storage is StorageClass.Workgroup and (e.group or e.is_varying(pointer)):
        return False
    if i.memory is not None and i.memory.volatile:
        return False
    if e.is_varying(pointer):
        return e.contiguity.nature(pointer) == NEIGHBOURS
    return e.stride(pointer) == size_of(type_)


def _suit(e: AccessEmitter, i: Instruction, found: set[Instruction]) -> bool:
    """Whether the operands of an instruction are held so, or are the same in all lanes."""
    if i.op is Op.Load:
        return True
    operands = i.operands[::2] if i.op is Op.Phi else i.operands[2:] if i.op is Op.ExtInst else i.operands
    return all(
        o in found or not (e.is_varying(o) or e.stride_is_mixed(o)) for o in operands if isinstance(o, Value)
    )


def _stays_packed(e: AccessEmitter, value: Value, user: Instruction, found: set[Instruction]) -> bool:
    if user.op is Op.Store:
        return user.operands[0] is not value and _passes_through(e, user, user.operands[0], value.type)
    return user in found


def _takes_components(value: Value, user: Instruction) -> bool:
    """Phis could do so where their edges come from alone."""
    return user.op is not Op.Phi and value.type.element.kind is not Kind.BOOL


def operand_of(e: AccessEmitter, value: Value, count: int) -> str:
    """A value as one vector of `count` components for each lane."""
    if value in e.packed:
        return e.leaves_of[value][0]
    t, whole = ir_type(leaf_types(value.type)[0]), form(e.width * count)
    if isinstance(value, Undef) or (isinstance(value, Constant) and value.value is None):
        return "zeroinitializer"
    if isinstance(value, Constant):
        components = value.value if value.type.kind is Kind.VECTOR else [value]
        texts = [constant_text(component, e.module.constant_address) for component in components]
        if len(set(texts)) == 1:
            return whole.splat(t, texts[0])
        return f"<{', '.join(f'{t} {text}' for text in texts * e.width)}>"
    key = value, count
    if key not in e.tiled:
        leaves = e.leaves(value)
        leaves = leaves * count if len(leaves) == 1 else leaves
        is_spread = isinstance(e.operands.get(value), Components)
        outer, e.lines = e.lines, e.head if is_spread else e.late.get(value, e.prologue)
        e.tiled[key] = interleave(e, t, leaves, count)
        e.lines = outer
    return e.tiled[key]


def components_of(e: AccessEmitter, value: Value) -> list[str]:
    """The components of a value that is held so, each as a vector: taken where they are asked for."""
    key = value, e.label
    if key not in e.apart:
        element, count = value.type.element, value.type.count
        e.apart[key] = separate(e, element, e.leaves_of[value][0], count, count)
    return e.apart[key]


def packed_type(e: AccessEmitter, type_: Type) -> str:
    """The LLVM type of a value that is held so."""
    return form(e.width * type_.count)(ir_type(type_.element))


def componentwise(e: AccessEmitter, i: Instruction, operands: Sequence[Value], build: Builder) -> None:
    """An instruction on all components of all lanes."""
    count = i.type.count
    arguments = [operand_of(e, o, count) for o in operands]
    e.define_leaves(i, [build(e, form(e.width * count), i, *arguments)])


def _as_number(type_: Type) -> Type | None:
    """The integer that has as many bits as an OpenCL vector, if gathers take it."""
    return _NUMBERS.get(8 * size_of(type_))


def load_neighbours(
    e: AccessEmitter, i: Instruction, place: str, alignment: int, mask: str | None, metadata: str
) -> str:
    """What all lanes load where they are neighbours, lane 0 at a place."""
    element = i.type.element
    loaded = load_consecutive(e, place, element, i.type.count, alignment, mask, metadata)
    return from_memory(e, element, loaded)


def load_anywhere(
    e: AccessEmitter, i: Instruction, addresses: str, alignment: int, mask: str | None, metadata: str
) -> str:
    """What all lanes load at any addresses."""
    type_ = i.type
    number = _as_number(type_)
    leaves = gather(e, addresses, number or type_, alignment, mask, metadata)
    if number is not None:
        t = e.form(ir_type(number))
        return e.emit(f"bitcast {t} {leaves[0]} to {packed_type(e, type_)}")
    return interleave(e, ir_type(type_.element), leaves, type_.count)


def load_consecutive(
    e: AccessEmitter,
    address: str,
    element: Type,
    stride: int,
    alignment: int,
    mask: str | None,
    metadata: str,
) -> str:
    """W times `stride` elements that follow one another."""
    t, whole = memory_type(element), form(e.width * stride)
    if mask is None:
        return e.emit(f"load {whole(t)}, ptr {address}, align {alignment}{metadata}")
    return load_masked(e, t, size_of(element), address, stride, alignment, mask, metadata)


def separate(e: AccessEmitter, element: Type, data: str, stride: int, count: int) -> list[str]:
    """The first `count` of `stride` components of each lane, each as a vector."""
    if stride == 1:
        return [data]
    width, t = e.width, memory_type(element)
    whole, leaves = form(width * stride), []
    if goes_in_blocks(e, t, stride):
        return take_apart(e, t, registers_of(e, t, data, width * stride), stride, count)
    if goes_in_steps(e, t, stride) and count == stride:
        rows = [
            e.emit(
                f"shufflevector {whole(t)} {data}, {whole(t)} poison, "
                f"<{width} x i32> <{', '.join(f'i32 {k}' for k in range(start, start + width))}>"
            )
            for start in range(0, width * stride, width)
        ]
        return unzipped(e, t, rows)
    for k in range(count):
        lanes = ", ".join(f"i32 {lane * stride + k}" for lane in range(width))
        leaves.append(
            e.emit(f"shufflevector {whole(t)} {data}, {whole(t)} poison, <{width} x i32> <{lanes}>")
        )
    return leaves
