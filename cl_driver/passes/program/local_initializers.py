"""Workgroup variables with initialisers, as stores at the beginning of each kernel that uses them.

LLVM has undefined ones for `__shared__` variables, AdaptiveCpp null ones for the local memory of its kernels.
The work-items of a group share the stores, and a barrier follows.
"""

from __future__ import annotations

from math import gcd

from ...spirv.enums import BuiltIn, MemorySemantics, Op, Scope, StorageClass
from ...spirv.local_memory import used_variables
from ...spirv.module import (
    Block,
    Constant,
    Function,
    Instruction,
    MemoryAccess,
    Module,
    Type,
    Undef,
    Value,
    Variable,
)
from ...spirv.reflect import called
from ...spirv.types import TypeTable
from ..ir.instructions import append
from ..ir.layout import alignment_of, size_of

_LARGEST = 8  # bytes that one store writes


def initialise_local_memory(module: Module) -> None:
    """Changes the functions of kernels, and variables."""
    given = {v: v.initializer for v in module.variables if _is_local(v) and not _is_undefined(v.initializer)}
    copied: dict[Variable, Variable] = {}
    for variable, value in given.items():
        if not _is_null(value):
            type_ = module.types.pointer(StorageClass.UniformConstant, variable.type.element)
            copied[variable] = Variable(type_, value, f"{variable.name}.initial")
    module.variables += copied.values()
    for entry in module.entry_points:
        used = dict.fromkeys(v for f in called(entry.function) for v in used_variables(f) if v in given)
        if used:
            _Beginning(entry.function, module.types).put({v: copied.get(v) for v in used})
    for variable in module.variables:
        if _is_local(variable):
            variable.initializer = None


class _Beginning:
    """What a kernel does before its own code."""

    def __init__(self, function: Function, types: TypeTable) -> None:
        self.function, self.types = function, types
        self.word = types.int(64)
        self.blocks: list[Block] = []

    def put(self, variables: dict[Variable, Variable | None]) -> None:
        """Sets variables. Each with what it is a copy of; None for zeros."""
        first = self.function.blocks[0]
        block = self.block()
        own = [i for i in first.instructions if i.op is Op.Variable]
        first.instructions = [i for i in first.instructions if i.op is not Op.Variable]
        for i in own:
            i.block = block
        block.instructions = own
        index = self.builtin(BuiltIn.LocalInvocationIndex, block)
        sizes = self.builtin(BuiltIn.WorkgroupSize, block)
        x, y, z = (append(block, Op.CompositeExtract, self.word, [sizes, k]) for k in range(3))
        rows = append(block, Op.IMul, self.word, [x, y])
        items = append(block, Op.IMul, self.word, [rows, z])
        for variable, source in variables.items():
            block = self.loop(block, variable, source, index, items)
        scope = self.types.integer(32, Scope.Workgroup)
        order = MemorySemantics.AcquireRelease | MemorySemantics.WorkgroupMemory
        append(block, Op.ControlBarrier, None, [scope, scope, self.types.integer(32, order)])
        append(block, Op.Branch, None, [first])
        self.function.blocks[:0] = self.blocks

    def block(self) -> Block:
        self.blocks.append(Block(self.function, "initialise"))
        return self.blocks[-1]

    def builtin(self, builtin: BuiltIn, block: Block) -> Instruction:
        type_ = self.types.vector(self.word, 3) if builtin is BuiltIn.WorkgroupSize else self.word
        variable = Variable(self.types.pointer(StorageClass.Input, type_), name=builtin.name)
        variable.builtin = builtin
        return append(block, Op.Load, type_, [variable], MemoryAccess())

    def loop(
        self, block: Block, variable: Variable, source: Variable | None, index: Value, items: Value
    ) -> Block:
        """The loop over the words of a variable. Returns the block behind it."""
        types, element = self.types, variable.type.element
        size = gcd(size_of(element), alignment_of(element), _LARGEST)
        piece = types.int(8 * size)
        count = types.integer(64, size_of(element) // size)
        head, body, after = self.block(), self.block(), self.block()
        append(block, Op.Branch, None, [head])
        place = append(head, Op.Phi, self.word, [index, block])
        is_inside = append(head, Op.ULessThan, types.bool(), [place, count])
        append(head, Op.BranchConditional, None, [is_inside, body, after])
        value: Value = types.integer(8 * size, 0)
        if source is not None:
            value = append(
                body, Op.Load, piece, [self.pointer(body, source, piece, place)], MemoryAccess(size)
            )
        append(body, Op.Store, None, [self.pointer(body, variable, piece, place), value], MemoryAccess(size))
        following = append(body, Op.IAdd, self.word, [place, items])
        append(body, Op.Branch, None, [head])
        place.operands += [following, body]
        return after

    def pointer(self, block: Block, variable: Variable, piece: Type, place: Value) -> Instruction:
        type_ = self.types.pointer(variable.type.storage, piece)
        begin = append(block, Op.Bitcast, type_, [variable])
        return append(block, Op.InBoundsPtrAccessChain, type_, [begin, place])


def _is_local(variable: Variable) -> bool:
    return variable.type.storage is StorageClass.Workgroup


def _is_undefined(value: Value | None) -> bool:
    if type(value) is Constant and type(value.value) is tuple:
        return all(map(_is_undefined, value.value))
    return value is None or type(value) is Undef


def _is_null(value: Value | None) -> bool:
    """Whether all bits of what is defined are zero."""
    if type(value) is not Constant:
        return _is_undefined(value)
    return all(map(_is_null, value.value)) if type(value.value) is tuple else not value.value
