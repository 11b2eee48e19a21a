"""What accesses memory within the builtin library is made visible: calls of library functions with pointers
become calls of functions with bodies, which the caller inlines, and vectors are loaded and stored at
addresses of their own.
"""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Block, Function, Instruction, Kind, Value
from ...spirv.types import TypeTable
from ..ir.instructions import append
from ..ir.layout import size_of
from ..ir.library import Library
from ..ir.link_names import stays_a_call
from ..ir.ops import PassOp
from .sites import WAIT, Site

# Instructions that load or store a vector: the number of the operand that has the type in registers, where it
# is not the result, and of the offset.
_LOADS = {Std.vloadn: 2, Std.vload_half: 2, Std.vload_halfn: 2, Std.vloada_halfn: 2}
_STORES = {
    Std.vstoren: 3, Std.vstore_half: 3, Std.vstore_half_r: 3, Std.vstore_halfn: 3, Std.vstore_halfn_r: 3,
    Std.vstorea_halfn: 3, Std.vstorea_halfn_r: 3,
}  # fmt: skip
_ALIGNED = (Std.vloada_halfn, Std.vstorea_halfn, Std.vstorea_halfn_r)
_PLAIN = (Std.vloadn, Std.vstoren)


def expose_calls(function: Function, library: Library) -> bool:
    """Gives calls with pointers, and those that only order memory, their bodies; True if there are any.
    Waits for events become checks."""
    is_changed = False
    for block in function.blocks:
        old, block.instructions = block.instructions, []
        for i in old:
            if i.op is Op.GroupWaitEvents:
                i.op, i.operands = PassOp.CheckWait, [*i.operands[1:3], Site(WAIT, i.line)]
            is_changed |= _expose(block, i, library)
            block.instructions.append(i)
    return is_changed


def _expose(block: Block, call: Instruction, library: Library) -> bool:
    if call.op is not Op.FunctionCall:
        return False
    declared, *arguments = call.operands
    if declared.blocks or not declared.linkage or stays_a_call(declared.linkage[0]):
        return False
    has_pointer = any(a.type.kind is Kind.POINTER for a in arguments)
    if not has_pointer and call.type is not None and call.type.kind is not Kind.VOID:
        return False
    callee = library.function(declared.linkage[0])
    if callee is None or not callee.blocks or len(callee.type.members) != len(arguments):
        return False
    for wanted, argument in zip(callee.type.members, arguments, strict=True):
        is_other = wanted is not argument.type
        are_pointers = wanted.kind is Kind.POINTER is argument.type.kind
        if is_other and not (are_pointers and wanted.storage is argument.type.storage):
            return False
    given: list[Value] = []
    for wanted, argument in zip(callee.type.members, arguments, strict=True):
        if argument.type is not wanted:
            argument = append(block, Op.Bitcast, wanted, [argument])
            argument.line = call.line
        given.append(argument)
    call.operands = [callee, *given]
    return True


_INTEGER_RESULTS = (Std.frexp, Std.lgamma_r, Std.remquo)
_SECOND_RESULTS = (Std.fract, Std.modf, Std.sincos, *_INTEGER_RESULTS)


def second_result_size(i: Instruction) -> int:
    """Bytes that an instruction of OpenCL.std writes to where its last operand points; 0: it does not."""
    if i.operands[1] not in _SECOND_RESULTS:
        return 0
    is_vector = i.type.kind is Kind.VECTOR
    count = i.type.count if is_vector else 1
    element = 4 if i.operands[1] in _INTEGER_RESULTS else size_of(i.type.element if is_vector else i.type)
    return element * (4 if count == 3 else count)


def is_vector_access(i: Instruction) -> bool:
    """Whether an instruction of OpenCL.std loads or stores a vector."""
    return i.operands[1] in _LOADS or i.operands[1] in _STORES


def vector_place(block: Block, i: Instruction, types: TypeTable) -> tuple[int, int, int, bool] | None:
    """Puts the whole address of a vector's load or store into its pointer operand: that operand's number,
    bytes, alignment, and whether it is a load. None of other instructions."""
    number = i.operands[1]
    is_load = number in _LOADS
    if not is_load and number not in _STORES:
        return None
    at = _LOADS[number] if is_load else _STORES[number]
    offset, pointer = i.operands[at : at + 2]
    value = i.type if is_load else i.operands[2].type
    count = value.count if value.kind is Kind.VECTOR else 1
    element = value.element if value.kind is Kind.VECTOR else value
    size = size_of(element) if number in _PLAIN else 2
    stride = 4 if number in _ALIGNED and count == 3 else count
    pointee = pointer.type.element
    if pointee is None or size_of(pointee) != size:
        pointer = _made(
            block, i, Op.Bitcast, types.pointer(pointer.type.storage, types.int(size * 8)), [pointer]
        )
    if offset.type.width < 64:  # size_t, which has no sign
        offset = _made(block, i, Op.UConvert, types.int(64), [offset])
    steps = _made(block, i, Op.IMul, offset.type, [offset, types.constant(offset.type, stride)])
    i.operands[at + 1] = _made(block, i, Op.PtrAccessChain, pointer.type, [pointer, steps])
    i.operands[at] = types.constant(offset.type, 0)
    alignment = size * (4 if count == 3 else count) if number in _ALIGNED else size
    return at + 1, size * count, alignment, is_load


def _made(block: Block, i: Instruction, op: Op, type_: object, operands: list[Value]) -> Instruction:
    made = append(block, op, type_, operands)  # type: ignore[arg-type]
    made.line = i.line
    return made
