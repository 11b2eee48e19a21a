"""What lanes read, change and write back at places of their own, lane by lane: a histogram's bins.

Otherwise vectors would be put together of what lanes load, only to be taken apart again, and each lane's
address would be taken out of a vector twice.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from ...passes.analysis.roots import SAME_OBJECT
from ...passes.analysis.updates import Update, arguments_of, find_updates
from ...passes.cost import access_costs
from ...passes.ir.instructions import ADDRESS
from ...passes.ir.remarks import LANES
from ...spirv.enums import Op
from ...spirv.module import Instruction, Kind, Type, Value
from ..access import ways
from ..access.addresses import address_of
from ..access.gather_scatter import leaf_offsets, memory_type, words_of_lanes
from ..layout.lanes import HARMLESS_BYTES
from ..library.shared_code import is_written_out
from ..llvm.forms import SCALAR
from ..llvm.registry import COMPONENTWISE, EXTENDED, LOWERINGS, Builder
from ..llvm.types import ir_type, leaf_types, size_of
from ..ops.memory import access_alignment, chain_terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from .emitter import WideEmitter

    # The address of a component of a lane's value, by their numbers.
    AddressOf: TypeAlias = Callable[[int, int], str]

_LINES = 6  # of LLVM IR, for a component of a lane's value


def find_lane_updates(
    e: WideEmitter, instructions: Sequence[Instruction], runs: Container[Instruction]
) -> dict[Instruction, Update]:
    """The updates that are cheaper lane by lane, by each of their instructions. Not those of which runs have
    some (component_runs.py)."""
    if e.lane_constants is not None:
        return {}
    if not any(i.op is Op.Store and e.is_varying(i.operands[0]) for i in instructions):
        return {}
    found = [u for u in find_updates(instructions, e.function) if _is_of_lanes(e, u) and _pays(e, u)]
    found = [update for update in found if not any(i in runs for i in update.operations)]
    return {i: update for update in found for i in update.instructions}


def _is_of_lanes(e: WideEmitter, update: Update) -> bool:
    """Whether lanes do it at places of which nothing is known, and each operation is one on scalars."""
    load, store = update.load, update.store
    pointer = store.operands[0]
    if not e.is_varying(pointer) or load in e.places or store in e.merged_stores:
        return False
    if any(i in e.packed for i in (load, *update.operations)):
        return False
    if e.spacing(pointer) == 1 and e.contiguity.guess([(pointer, 1)]) is not None:
        return False
    return None not in map(_builder_of, update.operations)


def _builder_of(operation: Instruction) -> Builder | None:
    table = EXTENDED if operation.op is Op.ExtInst else LOWERINGS
    lowering = table.get(operation.operands[1] if operation.op is Op.ExtInst else operation.op)
    return None if lowering is None else COMPONENTWISE.get(lowering)


def _pays(e: WideEmitter, update: Update) -> bool:
    """Whether it costs less than a load and a store of all lanes."""
    type_, pointer = update.load.type, update.store.operands[0]
    is_private = e.spacing(pointer) > 1 and not e.is_spread(pointer)
    if is_private:  # in pieces
        type_ = leaf_types(type_)[0]
    taken = update.taken(lambda o: e.is_varying(o) or e.stride_is_mixed(o))
    mask = update.store.mask
    is_masked = mask is not None and e.leaves_of.get(mask) != ["splat (i1 true)"]
    return access_costs.updated(type_, e.width, e.cpu, is_private, is_masked, taken) is not None


def emit_update(e: WideEmitter, update: Update) -> None:
    """Emits all of it, where its store stands."""
    store, type_ = update.store, update.load.type
    count = len(leaf_types(type_))
    lines = _LINES * e.width * count
    if not is_written_out(e, lines):  # then loads and stores are calls of functions
        for i in update.instructions:
            e.lower(i)
        return
    e.written_out += lines
    if e.shapes.part_of:
        e.select_part(e.shapes.part_of.get(store, 0))
    mask = e.mask_of(store)
    e.note(LANES, "changed where it is", mask is not None)
    given = {o: _given(e, o) for operation in update.operations for o in update.others(operation)}
    alignment, metadata, address_of_lane = _places(e, update, mask)
    t = memory_type(leaf_types(type_)[0])
    for lane in range(e.width):
        for k in range(count):
            at = address_of_lane(lane, k)
            values = {update.load: e.emit(f"load {t}, ptr {at}, align {alignment}{metadata}")}
            for operation in update.operations:
                build = _builder_of(operation)
                assert build is not None
                operands = [
                    values[o] if o in values else _in_lane(e, o.type, given[o], k, lane)
                    for o in arguments_of(operation)
                ]
                values[operation] = build(e, SCALAR, operation, *operands)
            e.emit_void(f"store {t} {values[update.operations[-1]]}, ptr {at}, align {alignment}{metadata}")


def _given(e: WideEmitter, value: Value) -> tuple[bool, list[str]]:
    """Whether lanes have values of their own, and their components, or those of the one that all have."""
    if e.is_varying(value) or e.stride_is_mixed(value):
        return True, e.leaves(value)
    return False, e.components(value)


def _in_lane(e: WideEmitter, type_: Type, given: tuple[bool, list[str]], component: int, lane: int) -> str:
    is_vector, leaves = given
    leaf = leaves[component if len(leaves) > 1 else 0]
    if not is_vector:
        return leaf
    t = ir_type(type_.element if type_.kind is Kind.VECTOR else type_)
    return e.emit(f"extractelement {e.form(t)} {leaf}, i32 {lane}")


def _places(e: WideEmitter, update: Update, mask: str | None) -> tuple[int, str, AddressOf]:
    """The alignment of components, metadata of their accesses, and where they are."""
    pointer, type_ = update.store.operands[0], update.load.type
    alignment, metadata = size_of(leaf_types(type_)[0]), ""
    if e.spacing(pointer) > 1:
        near = None if e.is_spread(pointer) else _in_variable(e, pointer, mask, alignment)
        if near is not None:
            return alignment, metadata, near
        found = [(address.all_lanes(e), 0) for _, address in ways.pieces(e, pointer, type_)]
    else:
        alignment = min(alignment, *(access_alignment(i.memory, type_) for i in (update.load, update.store)))
        metadata = e.alias_metadata(pointer, is_load=False)
        addresses = address_of(e, pointer).all_lanes(e)
        found = [(addresses, offset) for offset in leaf_offsets(type_)]
    of_lanes = [_of_lanes(e, addresses, offset, mask) for addresses, offset in found]
    return alignment, metadata, lambda lane, k: of_lanes[k][lane]


def _of_lanes(e: WideEmitter, addresses: str, offset: int, mask: str | None) -> list[str]:
    """Each lane's address. Lanes outside of the mask have places of their own, for none is to wait until
    another one has changed what it reads."""
    f = e.form
    if offset:
        addresses = e.emit(f"getelementptr i8, {f('ptr')} {addresses}, i64 {offset}")
    if mask is not None:
        dump = e.harmless_memory("dump")
        apart = ", ".join(f"i64 {8 * lane % HARMLESS_BYTES}" for lane in range(e.width))
        own = e.emit(f"getelementptr i8, ptr {dump}, {f('i64')} <{apart}>")
        addresses = e.emit(f"select {f('i1')} {mask}, {f('ptr')} {addresses}, {f('ptr')} {own}")
    return [e.emit(f"extractelement {f('ptr')} {addresses}, i32 {lane}") for lane in range(e.width)]


def _in_variable(e: WideEmitter, pointer: Value, mask: str | None, piece: int) -> AddressOf | None:
    """Addresses in a private variable of such pieces: scalar code adds an offset of 32 bits for each lane,
    two of which leave a vector as one word. None if the variable is not known."""
    variable, constant = pointer, 0
    terms: list[tuple[Value, int]] = []
    while isinstance(variable, Instruction) and variable.op in SAME_OBJECT:
        if variable.op in ADDRESS:
            more, indices = chain_terms(e, variable)
            constant, terms = constant + more * e.width, terms + indices
        variable = variable.operands[0]
    if not isinstance(variable, Instruction) or variable not in e.scratch.lane_private:
        return None
    f, offsets = e.form, ""
    for index, size in terms:
        steps = e.resized(f, e.leaf(index), ir_type(index.type), "i32", signed=True)
        steps = e.emit(f"mul {f('i32')} {steps}, {f.splat('i32', str(size * e.width))}")
        offsets = e.emit(f"add {f('i32')} {offsets}, {steps}") if offsets else steps
    offsets = offsets or "zeroinitializer"
    if mask is not None:
        dump = f.splat("i32", str(e.scratch.dump - e.scratch.lane_private[variable] - constant))
        offsets = e.emit(f"select {f('i1')} {mask}, {f('i32')} {offsets}, {f('i32')} {dump}")
    each: list[str] = []
    for word in words_of_lanes(e, offsets, 32, 64):
        low = e.emit(f"trunc i64 {word} to i32")
        each += [e.emit(f"sext i32 {low} to i64"), e.emit(f"ashr i64 {word}, 32")]
    start = e.operand(variable)

    def address(lane: int, component: int) -> str:
        at = e.emit(f"getelementptr i8, ptr {start}, i64 {each[lane]}")
        beside = constant + (component * e.width + lane) * piece
        return e.emit(f"getelementptr i8, ptr {at}, i64 {beside}")

    return address
