"""Type rules of kernels that enqueue kernels (SPIR-V, 3.49.24).

ENQUEUE_RULES: as RULES of rules.py.
"""

from __future__ import annotations

from ..enums import Op, StorageClass
from ..module import Constant, Function, Instruction, Kind, Operand, Type
from .rules import BOOL, INT, STRUCT, Rule, need, pointer


def _need_opaque(type_: Type | None, op: Op, what: str) -> None:
    need(type_ is not None and type_.kind is Kind.OPAQUE and type_.op is op, "{} of type {!r}", what, type_)


def _queue(value: Operand) -> None:
    _need_opaque(value.type, Op.TypeQueue, "a queue")


def _event(value: Operand) -> None:
    _need_opaque(value.type, Op.TypeDeviceEvent, "an event")


def _is_int(type_: Type | None, bits: int) -> bool:
    return type_ is not None and type_.kind is INT and type_.width == bits


def _word(value: Operand, what: str) -> None:
    need(_is_int(value.type, 32), "{} of type {!r}", what, value.type)


def _events(value: Operand) -> None:
    """An address of events, or a null pointer of any type."""
    element = pointer(value).element
    if not (type(value) is Constant and value.value is None) and not _is_int(element, 8):
        _need_opaque(element, Op.TypeDeviceEvent, "an address of events")


def _is_range(type_: Type | None) -> bool:
    """Whether a structure has the members that OpBuildNDRange makes."""
    if type_ is None or type_.kind is not STRUCT or len(type_.members) != 4:
        return False
    dimensions, *sizes = type_.members
    return _is_int(dimensions, 32) and all(
        t.kind is Kind.ARRAY and t.count == 3 and t.element.kind is INT for t in sizes
    )


def _range(value: Operand) -> None:
    """An nd-range, or where one is, as Khronos' translator writes it."""
    type_ = value.type
    if type_ is not None and type_.kind is Kind.POINTER:
        type_ = type_.element
    need(_is_range(type_), "an nd-range of type {!r}", value.type)


def _result(i: Instruction) -> None:
    need(_is_int(i.type, 32), "the result has type {!r}", i.type)


def _is_captured(type_: Type) -> bool:
    return type_.kind is Kind.POINTER and type_.storage == StorageClass.Generic and _is_int(type_.element, 8)


def _invoked(invoke: Operand, captured: Operand, size: Operand, alignment: Operand) -> int:
    """The number of a block's local arguments. The function that it invokes returns nothing, has a pointer to
    bytes as its first parameter, and pointers to local memory as the others."""
    need(isinstance(invoke, Function), "what is invoked is no function")
    need(invoke.type.element.kind is Kind.VOID, "the block's function returns {!r}", invoke.type.element)
    parameters = invoke.type.members
    need(parameters and _is_captured(parameters[0]), "the block's function has parameters {!r}", parameters)
    for type_ in parameters[1:]:
        is_local = type_.kind is Kind.POINTER and type_.storage == StorageClass.Workgroup
        need(is_local, "the block's function has a parameter of type {!r}", type_)
    need(captured.type is parameters[0], "captured by the block: {!r}", captured.type)
    _word(size, "a size of what is captured")
    _word(alignment, "an alignment of what is captured")
    if type(alignment) is Constant:
        given = alignment.value or 0
        need(given & (given - 1) == 0, "what is captured is aligned to {}", given)
    return len(parameters) - 1


def _enqueue(i: Instruction) -> None:
    queue, flags, range_, count, waits, made, *block = i.operands
    invoke, captured, size, alignment, *local_sizes = block
    _result(i)
    _queue(queue)
    _word(flags, "flags")
    _range(range_)
    _word(count, "a number of events")
    _events(waits)
    _events(made)
    wanted = _invoked(invoke, captured, size, alignment)
    need(len(local_sizes) == wanted, "{} sizes of {} local arguments", len(local_sizes), wanted)
    for local_size in local_sizes:
        need(local_size.type.kind is INT, "a local size of type {!r}", local_size.type)


def _marker(i: Instruction) -> None:
    queue, count, waits, made = i.operands
    _result(i)
    _queue(queue)
    _word(count, "a number of events")
    _events(waits)
    _events(made)


def _size(i: Instruction) -> None:
    _result(i)
    _invoked(*i.operands)


def _size_for_count(i: Instruction) -> None:
    count, *block = i.operands
    _result(i)
    _word(count, "a number of sub-groups")
    _invoked(*block)


def _size_of_range(i: Instruction) -> None:
    range_, *block = i.operands
    _result(i)
    _range(range_)
    _invoked(*block)


def _build(i: Instruction) -> None:
    """ "Global Work Size must be a scalar or an array with 2 or 3 components", and so must the others."""
    need(_is_range(i.type), "the result has type {!r}", i.type)
    size, *others = i.operands
    type_ = size.type
    is_array = type_ is not None and type_.kind is Kind.ARRAY
    need(not is_array or type_.count in (2, 3), "sizes of type {!r}", type_)
    element = type_.element if is_array else type_
    need(element is i.type.members[1].element, "sizes of type {!r} in {!r}", type_, i.type)
    for other in others:
        need(other.type is type_, "sizes of types {!r} and {!r}", type_, other.type)


def _of_event(i: Instruction) -> None:
    _event(i.operands[0])


def _create(i: Instruction) -> None:
    _need_opaque(i.type, Op.TypeDeviceEvent, "the result is")


def _is_valid(i: Instruction) -> None:
    _event(i.operands[0])
    need(i.type.kind is BOOL, "the result has type {!r}", i.type)


def _set_status(i: Instruction) -> None:
    _event(i.operands[0])
    _word(i.operands[1], "a status")


def _capture(i: Instruction) -> None:
    event, what, place = i.operands
    _event(event)
    _word(what, "what is captured is")
    need(pointer(place).storage == StorageClass.CrossWorkgroup, "times in {!r}", place.type)


def _default_queue(i: Instruction) -> None:
    _need_opaque(i.type, Op.TypeQueue, "the result is")


ENQUEUE_RULES: dict[Op, Rule] = {
    Op.EnqueueKernel: _enqueue,
    Op.EnqueueMarker: _marker,
    Op.GetKernelNDrangeSubGroupCount: _size_of_range,
    Op.GetKernelNDrangeMaxSubGroupSize: _size_of_range,
    Op.GetKernelWorkGroupSize: _size,
    Op.GetKernelPreferredWorkGroupSizeMultiple: _size,
    Op.GetKernelLocalSizeForSubgroupCount: _size_for_count,
    Op.GetKernelMaxNumSubgroups: _size,
    Op.BuildNDRange: _build,
    Op.RetainEvent: _of_event,
    Op.ReleaseEvent: _of_event,
    Op.CreateUserEvent: _create,
    Op.IsValidEvent: _is_valid,
    Op.SetUserEventStatus: _set_status,
    Op.CaptureEventProfilingInfo: _capture,
    Op.GetDefaultQueue: _default_queue,
}
