"""Calls of functions for all lanes (passes/vectorize/vector_functions.py).

A single value is passed as it is, of a varying one each leaf; the mask comes first, where there is one. What
a call returns is one value for all lanes, or the leaves.
"""

from __future__ import annotations

from ...passes.ir.plan import VectorFunction
from ...spirv.module import Instruction, Type, Value
from ..llvm.forms import Form
from ..llvm.types import ir_type, leaf_types
from .operands import WideOperands


def call_vector_function(e: WideOperands, i: Instruction) -> None:
    """OpFunctionCall of a version."""
    function, *arguments = i.operands
    version, mask = e.plan.vector_functions[function], e.mask_of(i)
    pieces = tuple(e.piece(argument) for argument in arguments)
    symbol = e.vector_symbol(version, pieces, mask is not None)
    passed = ["ptr %thread"]
    if mask is not None:
        passed.append(f"{e.form('i1')} {mask}")
    for argument, parameter in zip(arguments, version.parameters, strict=True):
        if varies(version, parameter):
            types = [e.form(ir_type(t)) for t in leaf_types(argument.type)]
            passed += [f"{t} {leaf}" for t, leaf in zip(types, e.leaves(argument), strict=True)]
        else:
            passed.append(e.typed(argument))
    call = f"call {result_type(version, e.form)} {symbol}({', '.join(passed)})"
    if version.result is None:
        e.emit_void(call)
    else:
        _define(e, i, version, e.emit(call), mask)
    e.end_if_terminated()  # it may have given back anything


def _define(e: WideOperands, i: Instruction, version: VectorFunction, made: str, mask: str | None) -> None:
    types = leaf_types(i.type)
    if version.returns_one:
        if e.is_varying(i):
            scalars = zip(types, e.explode(i.type, made), strict=True)
            e.define_leaves(i, [e.splat(scalar, ir_type(t), e.form) for t, scalar in scalars])
        else:
            e.define(i, made)
        return
    leaves = [made]
    if len(types) > 1:
        whole = result_type(version, e.form)
        leaves = [e.emit(f"extractvalue {whole} {made}, {k}") for k in range(len(types))]
    if e.is_varying(i):
        e.define_leaves(i, leaves)
    else:
        found = [e.first_active(ir_type(t), leaf, mask) for t, leaf in zip(types, leaves, strict=True)]
        e.define(i, e.assemble(i.type, iter(found)))


def varies(version: VectorFunction, parameter: Value) -> bool:
    """Whether a parameter is passed as leaves."""
    stride = version.shapes.stride(parameter)
    return stride is None or (type(stride) is tuple and None in stride)


def result_type(version: VectorFunction, f: Form) -> str:
    """The LLVM type of what a version returns."""
    if version.result is None:
        return "void"
    type_: Type = version.result.operands[0].type
    if version.returns_one:
        return ir_type(type_)
    types = [f(ir_type(t)) for t in leaf_types(type_)]
    return types[0] if len(types) == 1 else f"{{ {', '.join(types)} }}"


def parameter_types(version: VectorFunction, f: Form) -> list[list[str]]:
    """Of each parameter, the LLVM types of what is passed."""
    return [
        [f(ir_type(t)) for t in leaf_types(p.type)] if varies(version, p) else [ir_type(p.type)]
        for p in version.parameters
    ]
