"""Calls in each lane by itself, as a loop over the lanes of the mask.

Written out, a call is as many calls as there are lanes, each with its operands taken out of vectors and its
result put into others. Kernels with many calls, of image functions whose formats are not known say, are many
thousands of lines then, for which LLVM takes more than in proportion.
"""

from __future__ import annotations

from ...passes.ir.remarks import LANES
from ...spirv.enums import Op
from ...spirv.module import Function, Instruction, Kind
from ..llvm.emitter import Components
from ..llvm.registry import Lowering
from ..llvm.types import ir_type, leaf_types
from .operands import WideOperands

# Calls of single lanes up to which they are written out: few are faster so, and LLVM may inline them.
_MOST_CALLS = 32


def has_many_calls(function: Function, lanes: int) -> bool:
    """Whether calls in each lane by itself would be too many to write out."""
    calls = sum(is_call(i) for block in function.blocks for i in block.instructions)
    return calls * lanes > _MOST_CALLS


def is_call(i: Instruction) -> bool:
    """Whether an instruction is a call that may be in a loop: vectors of bools are no arrays in memory."""
    if i.op is not Op.FunctionCall or i.type is None:
        return False
    return i.type.kind is Kind.VOID or all(t.kind is not Kind.BOOL for t in leaf_types(i.type))


def loop_over_lanes(e: WideOperands, i: Instruction, lowering: Lowering) -> list[str]:
    """Lowers an instruction once, in a loop over its lanes. Leaves of its result: zeros in other lanes."""
    has_result = i.type is not None and i.type.kind is not Kind.VOID
    scalars = [ir_type(t) for t in leaf_types(i.type)] if has_result else []
    arrays = [e.alloca(e.form(t), 64) for t in scalars]
    mask = e.mask_of(i)
    e.note(LANES, masked=mask is not None)
    for t, array in zip(scalars, arrays, strict=True):
        e.emit_void(f"store {e.form(t)} zeroinitializer, ptr {array}, align 64")
    word = f"i{max(e.width, 32)}"
    body, after = e.new_label("lane"), e.new_label("lanes.end")
    lanes = str((1 << e.width) - 1)
    if mask is not None:
        lanes = e.emit(f"bitcast {e.form('i1')} {mask} to i{e.width}")
        lanes = e.to_width(f"i{e.width} {lanes}", word)
        some = e.emit(f"icmp ne {word} {lanes}, 0")
        before = e.label
        e.emit_void(f"br i1 {some}, label %{body}, label %{after}")
    else:
        before = e.label
        e.emit_void(f"br label %{body}")
    e.begin_block(body)
    left, rest, latch = f"%{body}.left", f"%{body}.rest", f"{body}.next"
    e.emit_void(f"{left} = phi {word} [ {lanes}, %{before} ], [ {rest}, %{latch} ]")
    lane = e.emit(f"call {word} @llvm.cttz.{word}({word} {left}, i1 true)")
    e.lane = e.to_width(f"{word} {lane}", "i32")
    lowering(e, i)
    single = e.operands.pop(i, None)
    if has_result:
        assert single is not None
        if isinstance(single, Components):
            single = e.build_vector(i.type, single)
        found = e.explode(i.type, single)
        for t, array, value in zip(scalars, arrays, found, strict=True):
            at = e.emit(f"getelementptr inbounds {t}, ptr {array}, i32 {e.lane}")
            e.emit_void(f"store {t} {value}, ptr {at}")
    e.lane = None
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
