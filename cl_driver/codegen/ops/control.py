"""Control flow (SPIR-V 1.6, section 3.49.17) and function calls."""

from __future__ import annotations

from ...passes.ir.ops import PassOp
from ...spirv.enums import Op
from ...spirv.module import Instruction, Kind
from ..llvm.emitter import FunctionEmitter
from ..llvm.registry import lowers
from ..llvm.types import ir_type
from .address_spaces import call_lowering


@lowers(Op.Phi)
def phi(e: FunctionEmitter, i: Instruction) -> None:
    """OpPhi."""
    e.phi(i)


@lowers(Op.Branch)
def branch(e: FunctionEmitter, i: Instruction) -> None:
    """OpBranch."""
    e.before_jump()
    e.emit_void(f"br label %{e.labels[i.operands[0]]}")


@lowers(Op.BranchConditional)
def branch_conditional(e: FunctionEmitter, i: Instruction) -> None:
    """OpBranchConditional; its weights become branch weights."""
    condition, true, false = i.operands[:3]
    labels = e.labels
    if true is false:
        e.before_jump()
        e.emit_void(f"br label %{labels[true]}")
        return
    test = e.operand(condition)
    e.before_jump()
    e.emit_void(f"br i1 {test}, label %{labels[true]}, label %{labels[false]}")


@lowers(Op.Switch)
def switch(e: FunctionEmitter, i: Instruction) -> None:
    """OpSwitch."""
    selector, default, cases = i.operands[0], i.operands[1], i.operands[2:]
    t = ir_type(selector.type)
    mask = (1 << selector.type.width) - 1
    table = " ".join(
        f"{t} {cases[k] & mask}, label %{e.labels[cases[k + 1]]}" for k in range(0, len(cases), 2)
    )
    typed = e.typed(selector)
    e.before_jump()
    e.emit_void(f"switch {typed}, label %{e.labels[default]} [ {table} ]")


@lowers(Op.Unreachable, Op.Kill)
def unreachable(e: FunctionEmitter, i: Instruction) -> None:
    """OpUnreachable."""
    e.emit_void("unreachable")


@lowers(Op.Return)
def return_(e: FunctionEmitter, i: Instruction) -> None:
    """OpReturn of a library function; kernels end in RegionExit."""
    e.emit_return(None)


@lowers(Op.ReturnValue)
def return_value(e: FunctionEmitter, i: Instruction) -> None:
    """OpReturnValue."""
    e.emit_return(i.operands[0])


@lowers(PassOp.RegionExit)
def region_exit(e: FunctionEmitter, i: Instruction) -> None:
    """The work-item is done with its region."""
    e.emit_region_exit(*i.operands)


@lowers(Op.FunctionCall)
def function_call(e: FunctionEmitter, i: Instruction) -> None:
    """OpFunctionCall that was not inlined: of the builtin library, or within it."""
    function, arguments = i.operands[0], i.operands[1:]
    lowering = call_lowering(function)
    if lowering is not None:
        lowering(e, i)
        return
    symbol = e.module.function_symbol(function)
    typed = ", ".join(e.typed(argument) for argument in arguments)
    if i.type is None or i.type.kind is Kind.VOID:
        e.emit_void(f"call void {symbol}({typed})")
    else:
        e.define(i, e.emit(f"call {ir_type(i.type)} {symbol}({typed})"))
    if e.module.is_of_program(function):
        e.end_if_terminated()  # it may have given back anything
