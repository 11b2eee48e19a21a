"""Pointers without a type (SPV_KHR_untyped_pointers), as pointers of the type that each use says.

Instructions on memory get a pointer of their own that points to what they access. What only moves pointers
stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...spirv.enums import Op, OpenCLStd, StorageClass
from ...spirv.errors import SpirvError
from ...spirv.module import Block, Constant, Function, Instruction, Kind, Operand, Type, Value
from ...spirv.types import TypeTable
from ..ir.instructions import ATOMICS

_Std = OpenCLStd

# As their typed kin.
_CHAINS = {
    Op.UntypedAccessChainKHR: Op.AccessChain, Op.UntypedInBoundsAccessChainKHR: Op.InBoundsAccessChain,
    Op.UntypedPtrAccessChainKHR: Op.PtrAccessChain,
    Op.UntypedInBoundsPtrAccessChainKHR: Op.InBoundsPtrAccessChain,
}  # fmt: skip
_FLAGS = frozenset((Op.AtomicFlagTestAndSet, Op.AtomicFlagClear))
# What functions of OpenCL.std write through their last operand: numbers as their result, or integers.
_WRITES_RESULT = frozenset((_Std.fract, _Std.modf, _Std.sincos))
_WRITES_INTEGERS = frozenset((_Std.frexp, _Std.lgamma_r, _Std.remquo))
_HALF_ACCESSES = frozenset((
    _Std.vload_half, _Std.vload_halfn, _Std.vloada_halfn, _Std.vstore_half, _Std.vstore_half_r,
    _Std.vstore_halfn, _Std.vstore_halfn_r, _Std.vstorea_halfn, _Std.vstorea_halfn_r,
))  # fmt: skip


def type_pointers(functions: Iterable[Function], types: TypeTable) -> None:
    """Changes functions. SpirvError for what says no type."""
    for function in functions:
        for block in function.blocks:
            _Typing(block, types).run()


class _Typing:
    """The instructions of one block."""

    def __init__(self, block: Block, types: TypeTable) -> None:
        self.block = block
        self.types = types
        self.line: Instruction

    def run(self) -> None:
        old, self.block.instructions = self.block.instructions, []
        for i in old:
            self.line = i
            if self.lower(i):
                self.block.instructions.append(i)

    def emit(self, op: Op, type_: Type | None, operands: Sequence[Operand]) -> Instruction:
        """A new instruction at the end of what there is of the block."""
        made = Instruction(op, type_, operands, self.block)
        made.line, made.offset = self.line.line, self.line.offset
        self.block.instructions.append(made)
        return made

    def pointing(self, pointer: Value, type_: Type) -> Value:
        """The pointer, as one to a type if it is untyped."""
        if pointer.type.element is not None:
            return pointer
        return self.emit(Op.Bitcast, self.types.pointer(pointer.type.storage, type_), [pointer])

    def become(self, i: Instruction, value: Value) -> None:
        """The instruction is this pointer, without a type."""
        i.op, i.operands = Op.Bitcast, [value]

    def lower(self, i: Instruction) -> bool:
        """Whether the instruction stays."""
        op = i.op
        if op is Op.UntypedPrefetchKHR:
            return False
        if op in _CHAINS:
            self.chain(i)
        elif op is Op.UntypedVariableKHR:
            self.variable(i)
        elif op is Op.UntypedVariableLengthArrayINTEL:
            type_, length = i.operands
            array = self.emit(
                Op.VariableLengthArrayINTEL, self.types.pointer(i.type.storage, type_), [length]
            )
            array.decorations = i.decorations
            self.become(i, array)
        elif op is Op.UntypedGroupAsyncCopyKHR:
            self.asynchronous_copy(i)
        elif op is Op.Load:
            i.operands[0] = self.pointing(i.operands[0], i.type)
        elif op is Op.Store:
            i.operands[0] = self.pointing(i.operands[0], i.operands[1].type)
        elif op in _FLAGS:
            i.operands[0] = self.pointing(i.operands[0], self.types.int(32))
        elif op in ATOMICS:
            i.operands[0] = self.pointing(i.operands[0], i.type or i.operands[-1].type)
        elif op is Op.SubgroupBlockReadINTEL or op is Op.SubgroupBlockWriteINTEL:
            data = i.type or i.operands[1].type
            i.operands[0] = self.pointing(i.operands[0], _scalar(data))
        elif op is Op.ExtInst:
            return self.function(i)
        return True

    def chain(self, i: Instruction) -> None:
        base_type, base, *indices = i.operands
        first = self.emit(Op.Bitcast, self.types.pointer(base.type.storage, base_type), [base])
        with_element = i.op in (Op.UntypedPtrAccessChainKHR, Op.UntypedInBoundsPtrAccessChainKHR)
        type_ = base_type
        for index in indices[with_element:]:
            type_ = type_.members[index.value or 0] if type_.kind is Kind.STRUCT else type_.element
        place = self.emit(_CHAINS[i.op], self.types.pointer(base.type.storage, type_), [first, *indices])
        self.become(i, place)

    def variable(self, i: Instruction) -> None:
        storage, *rest = i.operands
        if not rest:
            raise SpirvError(i.offset, "OpUntypedVariableKHR", "no type of data")
        type_ = self.types.pointer(StorageClass.Function, rest[0])
        made = self.emit(Op.Variable, type_, [storage, *rest[1:]])
        made.decorations, made.name = i.decorations, i.name
        self.become(i, made)

    def asynchronous_copy(self, i: Instruction) -> None:
        scope, target, source, size, count, stride, event = i.operands[:7]
        number = (size.value or 0) if isinstance(size, Constant) else 0
        if number not in (1, 2, 4, 8, 16, 32, 64, 128):
            raise SpirvError(i.offset, "OpUntypedGroupAsyncCopyKHR", "elements of a size that no type has")
        word = self.types.int(min(8 * number, 64))
        element = word if number <= 8 else self.types.vector(word, number // 8)
        pointers = [self.pointing(pointer, element) for pointer in (target, source)]
        i.op, i.operands = Op.GroupAsyncCopy, [scope, *pointers, count, stride, event]

    def function(self, i: Instruction) -> bool:
        """An instruction of OpenCL.std. Whether it stays."""
        number, arguments = i.operands[1], i.operands[2:]
        pointers = [
            k for k, a in enumerate(arguments)
            if isinstance(a, Value) and a.type is not None and a.type.kind is Kind.POINTER
            and a.type.element is None
        ]  # fmt: skip
        if not pointers:
            return True
        if number == _Std.prefetch:
            return False
        (place,) = pointers[:1]
        if number in _WRITES_RESULT:
            type_ = i.type
        elif number in _WRITES_INTEGERS:
            word = self.types.int(32)
            type_ = self.types.vector(word, i.type.count) if i.type.kind is Kind.VECTOR else word
        elif number == _Std.vloadn or number == _Std.vstoren:
            type_ = _scalar(i.type if number == _Std.vloadn else arguments[0].type)
        elif number in _HALF_ACCESSES:
            type_ = self.types.float(16)
        elif number == _Std.printf:
            type_ = self.types.int(8)
        else:
            raise SpirvError(i.offset, "OpExtInst", f"{number.name} through an untyped pointer")
        i.operands[2 + place] = self.pointing(arguments[place], type_)
        return True


def _scalar(type_: Type) -> Type:
    return type_.element if type_.kind is Kind.VECTOR else type_
