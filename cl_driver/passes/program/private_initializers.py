"""Private memory that a context wants to be zeros (cl_khr_initialize_memory).

clang gives the variables of OpenCL C their zeros, for it makes values of most of them. Here are the others:
those of modules that came as SPIR-V, and private memory that passes make.
"""

from __future__ import annotations

from ...spirv.enums import Op, StorageClass
from ...spirv.module import Function, Instruction, MemoryAccess, Module, Variable
from ...spirv.reflect import called, called_by_address
from ...spirv.types import TypeTable
from ..ir.layout import alignment_of, size_of

_LIFETIMES = (Op.LifetimeStart, Op.LifetimeStop)
_LARGE = 16  # bytes from which on memory is filled, as clang fills it


def initialise_private_memory(module: Module) -> None:
    """Changes all functions that kernels may reach. Marks of lifetimes go: they would end what is set."""
    reached = {id(f): f for entry in module.entry_points for f in called(entry.function)}
    reached.update((id(f), f) for target in called_by_address(module) for f in called(target))
    for function in reached.values():
        for block in function.blocks:
            block.instructions = [i for i in block.instructions if i.op not in _LIFETIMES]
        variables = [i for i in function.blocks[0].instructions if i.op is Op.Variable]
        put_zeros(function, [v for v in variables if len(v.operands) == 1], module.types)


def put_zeros(function: Function, variables: list[Instruction], types: TypeTable) -> None:
    """Sets variables of a function where it begins."""
    first = function.blocks[0]
    made = []
    for variable in variables:
        type_ = variable.type.element
        null, access = types.null(type_), MemoryAccess(alignment_of(type_))
        if size_of(type_) < _LARGE:
            store = Instruction(Op.Store, None, [variable, null], first)
        else:
            zeros = Variable(types.pointer(StorageClass.UniformConstant, type_), null, "zeros")
            size = types.integer(64, size_of(type_))
            store = Instruction(Op.CopyMemorySized, None, [variable, zeros, size], first)
        store.memory = access
        made.append(store)
    place = next(k for k, i in enumerate(first.instructions) if i.op is not Op.Variable)
    first.instructions[place:place] = made
