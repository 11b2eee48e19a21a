"""Reservations in pipes and their commits, of all lanes in one call (builtins/cl/pipe.cl): one atomic
operation moves the pipe past what all lanes ask for. Pipes that differ between lanes get a call for each."""

from __future__ import annotations

from ...passes.ir.link_names import PIPE_COMMIT, PIPE_OF_LANES
from ...spirv.enums import Op
from ...spirv.module import Instruction
from ..llvm.types import ir_type
from .operands import WideOperands


def may_be_for_lanes(e: WideOperands, i: Instruction) -> bool:
    """Whether an instruction is such a call, of one pipe whose packets have one size."""
    if i.op is not Op.FunctionCall or not i.operands[0].linkage:
        return False
    if i.operands[0].linkage[0] not in PIPE_OF_LANES:
        return False
    pipe, _, *rest = i.operands[1:]
    return not any(e.is_varying(value) or e.stride_is_mixed(value) for value in (pipe, *rest))


def call_for_lanes(e: WideOperands, i: Instruction) -> None:
    """The call."""
    callee, pipe, value, *rest = i.operands
    name = callee.linkage[0]
    symbol, ring = e.module.library_function(PIPE_OF_LANES[name]), e.operand(pipe)
    given, lanes = _in_memory(e, ir_type(value.type), e.leaf(value)), _lanes(e, i)
    if name == PIPE_COMMIT:
        e.emit_void(f"call void {symbol}(ptr {ring}, ptr {given}, i64 {lanes})")
        return
    made = _in_memory(e, "i64", "zeroinitializer")
    size, side = map(e.operand, rest)
    e.emit_void(
        f"call void {symbol}(ptr {ring}, ptr {given}, ptr {made}, i64 {lanes}, i32 {size}, i32 {side})"
    )
    e.define_leaves(i, [e.emit(f"load {e.form('i64')}, ptr {made}, align 64")])


def _in_memory(e: WideOperands, t: str, leaf: str) -> str:
    """The address of an array of what lanes have."""
    array = e.alloca(e.form(t), 64)
    e.emit_void(f"store {e.form(t)} {leaf}, ptr {array}, align 64")
    return array


def _lanes(e: WideOperands, i: Instruction) -> str:
    """A bit for each lane that takes part."""
    mask = e.mask_of(i)
    if mask is None:
        return str((1 << e.width) - 1)
    bits = e.emit(f"bitcast {e.form('i1')} {mask} to i{e.width}")
    return e.to_width(f"i{e.width} {bits}", "i64")
