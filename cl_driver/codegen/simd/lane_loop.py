"""What is done in each lane by itself, as a loop over the lanes of the mask in a function of the module.

Written out, it is lowered as many times as there are lanes, each time with operands taken out of vectors and
a result put into others. Kernels with many calls, of image functions whose formats are not known say, or many
atomics, are many thousands of lines then, for which LLVM takes more than in proportion.
"""

from __future__ import annotations

from collections.abc import Hashable

from ...passes.ir.instructions import ATOMICS
from ...passes.ir.remarks import LANES
from ...spirv.enums import Op
from ...spirv.module import Constant, Function, InlineAssembly, Instruction, Kind, Type, Undef, Value
from ..library.shared_code import shared
from ..llvm.emitter import Components
from ..llvm.registry import Lowering
from ..llvm.types import ir_type, leaf_types
from ..ops.address_spaces import asks_address_space
from .operands import WideOperands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# Calls of single lanes up to which they are written out: few are faster so, and LLVM may inline them.
_MOST_CALLS = 32

_SHARED = ATOMICS | {Op.Load, Op.Store, Op.FunctionCall, Op.AsmCallINTEL}

_Given: TypeAlias = tuple[
    Value, bool, list[Type]
]  # an operand, whether it is in vectors, types of its leaves


def has_many_calls(function: Function, lanes: int) -> bool:
    """Whether calls in each lane by itself would be too many to write out."""
    calls = sum(is_call(i) for block in function.blocks for i in block.instructions)
    return calls * lanes > _MOST_CALLS


def is_call(i: Instruction) -> bool:
    """Whether an instruction is a call that may be in a loop."""
    return i.op is Op.FunctionCall and may_be_in_loop(i)


def may_be_in_loop(i: Instruction) -> bool:
    """Whether an instruction can be in a function with such a loop: it asks for nothing but its operands, and
    has none of bools, vectors of which are no arrays in memory. What memory a pointer is to only the kernel
    knows."""
    if asks_address_space(i):
        return False
    if i.op not in _SHARED or i.type is None:
        return i.op in _SHARED and not _has_bools(i)
    is_void = i.type.kind is Kind.VOID
    return not _has_bools(i) and (is_void or all(t.kind is not Kind.BOOL for t in leaf_types(i.type)))


def _has_bools(i: Instruction) -> bool:
    return any(t.kind is Kind.BOOL for v in _operands(i) for t in leaf_types(v.type))


def _operands(i: Instruction) -> list[Value]:
    """The operands that are there when the kernel runs, without repeats."""
    fixed = (Constant, Undef, Function, InlineAssembly)
    values = [o for o in i.operands if isinstance(o, Value) and not isinstance(o, fixed)]
    return list(dict.fromkeys(values))


def lines_of(i: Instruction, width: int, is_masked: bool) -> int:
    """About how many lines of LLVM IR an instruction is, written out for each lane."""
    leaves = sum(len(leaf_types(v.type)) for v in _operands(i))
    if i.type is not None and i.type.kind is not Kind.VOID:
        leaves += len(leaf_types(i.type)) * (1 + is_masked)
    return width * (2 + 5 * is_masked + leaves)


def loop_over_lanes(e: WideOperands, i: Instruction, lowering: Lowering) -> list[str]:
    """Lowers an instruction once, in a loop over its lanes. Leaves of its result: zeros in other lanes."""
    has_result = i.type is not None and i.type.kind is not Kind.VOID
    scalars = [ir_type(t) for t in leaf_types(i.type)] if has_result else []
    mask = e.mask_of(i)
    e.note(LANES, masked=mask is not None)
    parameters: list[tuple[str, str]] = []
    if mask is not None:
        bits = f"i{e.width}"
        parameters.append((bits, e.emit(f"bitcast {e.form('i1')} {mask} to {bits}")))
    given: list[_Given] = []
    for value in _operands(i):
        types = leaf_types(value.type)
        in_vectors = e.is_varying(value) or e.stride_is_mixed(value)
        given.append((value, in_vectors, types))
        if in_vectors:
            parameters += zip([e.form(ir_type(t)) for t in types], e.leaves(value), strict=True)
        else:
            parameters.append((ir_type(value.type), e.operand(value)))
    return shared(
        e, (lowering, *_key(i, mask is not None, given)), parameters, [e.form(t) for t in scalars],
        lambda names: _loop(e, i, lowering, scalars, mask is not None, given, names),
    )  # fmt: skip


def _key(i: Instruction, is_masked: bool, given: list[_Given]) -> tuple[Hashable, ...]:
    """What tells apart the functions for instructions that are lowered alike."""
    numbers = {value: k for k, (value, _, _) in enumerate(given)}
    operands = []
    for o in i.operands:
        if isinstance(o, Value) and o in numbers:
            storage = o.type.storage if o.type.kind is Kind.POINTER else None
            operands.append((numbers[o], ir_type(o.type), storage, given[numbers[o]][1]))
        else:
            operands.append(o)
    memory = i.memory and (i.memory.alignment, i.memory.volatile, i.memory.nontemporal)
    return "loop", i.op, i.type, is_masked, memory, *operands


def _loop(
    e: WideOperands,
    i: Instruction,
    lowering: Lowering,
    scalars: list[str],
    is_masked: bool,
    given: list[_Given],
    names: list[str],
) -> list[str]:
    """The body of such a function, with these names of its parameters."""
    word = f"i{max(e.width, 32)}"
    lanes, names = (names[0], names[1:]) if is_masked else (str((1 << e.width) - 1), names)
    arrays = [e.alloca(e.form(t), 64) for t in scalars]
    for t, array in zip(scalars, arrays, strict=True):
        e.emit_void(f"store {e.form(t)} zeroinitializer, ptr {array}, align 64")
    places: dict[Value, list[str]] = {}  # of operands in vectors, on the stack
    singles: dict[Value, str] = {}
    for value, in_vectors, types in given:
        if not in_vectors:
            singles[value], *names = names
            continue
        places[value] = []
        for t in map(ir_type, types):
            vector, *names = names
            places[value].append(e.alloca(e.form(t), 64))
            e.emit_void(f"store {e.form(t)} {vector}, ptr {places[value][-1]}, align 64")
    body, after, before = e.new_label("lane"), e.new_label("lanes.end"), e.label
    if is_masked:
        lanes = e.to_width(f"i{e.width} {lanes}", word)
        some = e.emit(f"icmp ne {word} {lanes}, 0")
        e.emit_void(f"br i1 {some}, label %{body}, label %{after}")
    else:
        e.emit_void(f"br label %{body}")
    e.begin_block(body)
    left, rest, latch = f"%{body}.left", f"%{body}.rest", f"{body}.next"
    e.emit_void(f"{left} = phi {word} [ {lanes}, %{before} ], [ {rest}, %{latch} ]")
    lane = e.emit(f"call {word} @llvm.cttz.{word}({word} {left}, i1 true)")
    lane = e.to_width(f"{word} {lane}", "i64")

    def in_lane(t: str, array: str) -> str:
        return e.emit(f"getelementptr inbounds {t}, ptr {array}, i64 {lane}")

    for value, _, types in given:
        if value in places:
            pairs = zip(map(ir_type, types), places[value], strict=True)
            loaded = [e.emit(f"load {t}, ptr {in_lane(t, array)}") for t, array in pairs]
            singles[value] = e.assemble(value.type, iter(loaded))
    found = _lowered(e, i, lowering, singles)
    if scalars:
        for t, array, scalar in zip(scalars, arrays, e.explode(i.type, found), strict=True):
            e.emit_void(f"store {t} {scalar}, ptr {in_lane(t, array)}")
    e.emit_void(f"br label %{latch}")
    e.begin_block(latch)
    fewer = e.emit(f"sub {word} {left}, 1")
    e.emit_void(f"{rest} = and {word} {left}, {fewer}")
    more = e.emit(f"icmp ne {word} {rest}, 0")
    e.emit_void(f"br i1 {more}, label %{body}, label %{after}")
    e.begin_block(after)
    return [
        e.emit(f"load {e.form(t)}, ptr {array}, align 64") for t, array in zip(scalars, arrays, strict=True)
    ]


def _lowered(e: WideOperands, i: Instruction, lowering: Lowering, singles: dict[Value, str]) -> str:
    """What an instruction gives, lowered as if there were no lanes, with these operands; "" for nothing."""
    outer, operands = (e.has_lanes, e.aliases, e.access_group, e.debug, e.remarks), e.operands
    e.has_lanes, e.aliases, e.access_group, e.debug, e.remarks = False, None, "", None, None
    e.operands = dict(singles)
    lowering(e, i)
    found = e.operands.get(i, "")
    if isinstance(found, Components):
        found = e.build_vector(i.type, found)
    e.has_lanes, e.aliases, e.access_group, e.debug, e.remarks = outer
    e.operands = operands
    return found
