"""Which calls of a kernel stay calls, so that its code grows with its source and not with its expansion.

For one work-item at a time a function is compiled as it is in C, with the stack for its private memory; for
several at a time by vectorize/vector_functions.py. What clang had reason to inline is inlined already
(frontend/), so what is left to decide is large.
"""

from __future__ import annotations

from collections.abc import Container

from ...spirv.enums import Op, StorageClass
from ...spirv.module import Constant, ConstantExpr, Function, Kind, Module, Operand, Type, Variable
from ...spirv.tables import of_class
from ..ir.instructions import EXTINST_PRINTF, is_by_value, is_extinst
from ..ir.layout import size_of
from ..ir.plan import PlanError
from .inline import MAX_INSTRUCTIONS, callees, inlined_sizes

# Kernels of fewer instructions after inlining are fast to compile, and LLVM sees all of them at once.
FEW = 20_000

# The same for those with debug information: lines of functions that are called would be lost, which is worth
# some time to keep.
FEW_WITH_LINES = 200_000

# Functions of fewer instructions are inlined everywhere: a call costs as much, and hides them from LLVM.
SMALL = 100

# A function that is called from fewer places costs nothing to inline.
LEAST_CALLS = 2

# With lanes, functions of so many are called even from one place: of the many values that live in large code
# most are spilled, also by paths that no lane takes.
LARGE = 1000

# Functions that call each other one after another with lanes: passes look into what is called.
DEEPEST = 24

# Bytes of private memory of a function and those that it calls, on the stack of the thread.
MOST_STACK = 16 << 10

# What only a kernel knows: its work-item, its group, and the memory that is shared out by launches.
_OF_KERNELS = of_class("Atomic", "Barrier", "Group", "Non-Uniform", "Pipe", "Image") | {
    Op.GenericCastToPtrExplicit, Op.GenericPtrMemSemantics,
    Op.VariableLengthArrayINTEL, Op.SaveMemoryINTEL, Op.RestoreMemoryINTEL,
}  # fmt: skip


def kept_functions(
    module: Module, entry: Function, shared: Container[Variable], has_lanes: bool = False
) -> list[Function]:
    """The functions that a kernel goes on calling, callees before their callers.

    shared: program-scope variables whose place only launches know. has_lanes: whether it has several
    work-items at a time, as vectorize/vector_functions.py has them. Functions that are called once, or are
    small, are not worth a call; those that ask for something of the kernel's cannot be called.
    PlanError if functions call themselves, or if what is left to inline is too much.
    """
    sizes = inlined_sizes(entry)
    has_lines = any(i.line is not None for block in entry.blocks for i in block.instructions)
    if sizes[entry] < (FEW_WITH_LINES if has_lines else FEW) or module.images:
        return []
    calls = dict.fromkeys(sizes, 0)
    for function in sizes:
        for callee in callees(function):
            calls[callee] += 1
    kept: dict[Function, None] = {}
    stack: dict[Function, int] = {}  # bytes of private memory, of those that can be called
    left: dict[Function, int] = {}  # instructions that a function has with calls of what is kept
    depth: dict[Function, int] = {}  # how many functions that stay calls are called one after another
    for function in sizes:  # callees come first
        inside = callees(function)
        left[function] = _size(function) + sum(left[c] for c in inside if c not in kept)
        depth[function] = max((depth[c] + (c in kept) for c in inside), default=0)
        if has_lanes and depth[function] >= DEEPEST:
            continue
        if function is entry or any(c not in stack for c in inside) or not _can_be_called(function, shared):
            continue
        stack[function] = private_size(function) + sum(stack[c] for c in set(inside))
        is_large = has_lanes and left[function] >= LARGE
        if (is_large or (calls[function] >= LEAST_CALLS and left[function] >= SMALL)) and (
            stack[function] <= MOST_STACK
        ):
            kept[function] = None
    if left[entry] > MAX_INSTRUCTIONS:
        raise PlanError(f"more than {MAX_INSTRUCTIONS} instructions after inlining")
    return list(kept)


def sizes_with_calls(functions: list[Function], kept: Container[Function]) -> list[int]:
    """Instructions of functions where calls of those in `kept` stay calls."""
    left: dict[Function, int] = {}
    for function in (f for outer in functions for f in inlined_sizes(outer)):  # callees come first
        left[function] = _size(function) + sum(left[c] for c in callees(function) if c not in kept)
    return [left[function] for function in functions]


def _size(function: Function) -> int:
    return sum(len(block.instructions) for block in function.blocks)


def private_size(function: Function) -> int:
    """Bytes of a function's variables, and of the copies that it may make of what it is passed by value."""
    variables = (i for block in function.blocks for i in block.instructions if i.op is Op.Variable)
    copied = (argument for argument in function.arguments if is_by_value(argument))
    return sum(size_of(value.type.element) for value in (*variables, *copied))


def _can_be_called(function: Function, shared: Container[Variable]) -> bool:
    """Whether a function depends on its arguments and constants alone, and can be compiled by itself."""
    if not all(_in_registers(type_) for type_ in (function.type.element, *function.type.members)):
        return False
    for instruction in (i for block in function.blocks for i in block.instructions):
        if instruction.op in _OF_KERNELS or is_extinst(instruction, EXTINST_PRINTF):
            return False
        if instruction.op is Op.FunctionCall and not instruction.operands[0].blocks:
            return False
        if not all(_is_constant(operand, shared) for operand in instruction.operands):
            return False
    return True


def _in_registers(type_: Type) -> bool:
    """Whether values of a type are passed and returned as LLVM does it."""
    return type_.kind in (Kind.VOID, Kind.BOOL, Kind.INT, Kind.FLOAT, Kind.VECTOR, Kind.POINTER)


def _is_constant(operand: Operand, shared: Container[Variable]) -> bool:
    """False for variables of the module that are not constant, and for what is made of their addresses."""
    if isinstance(operand, Variable):
        return operand.type.storage is StorageClass.UniformConstant and operand not in shared
    if isinstance(operand, ConstantExpr):
        return all(_is_constant(inner, shared) for inner in operand.operands)
    if isinstance(operand, Constant) and isinstance(operand.value, tuple):
        return all(_is_constant(constituent, shared) for constituent in operand.value)
    return True
