"""Type rules of pipes and reservations (SPIR-V, 3.49.23; OpenCL SPIR-V environment, 3.2.8).

PIPE_RULES: as RULES of rules.py.
"""

from __future__ import annotations

from collections.abc import Callable

from ..enums import AccessQualifier, Op, StorageClass
from ..module import Constant, Instruction, Kind, Operand, Type
from .rules import BOOL, INT, Rule, need, pointer
from .rules_memory import TOGETHER, execution_scope

_ANY = (AccessQualifier.ReadOnly, AccessQualifier.WriteOnly)
_READS, _WRITES = (AccessQualifier.ReadOnly,), (AccessQualifier.WriteOnly,)
_STORAGE = (
    StorageClass.Generic,  # "Pointer must have a type of OpTypePointer with [...] a Generic Storage Class"
    StorageClass.Function,  # of which the class is known before it is made generic
    StorageClass.CrossWorkgroup,
    StorageClass.Workgroup,
)


def _is(type_: Type | None, op: Op) -> bool:
    return type_ is not None and type_.kind is Kind.OPAQUE and type_.op is op


def _pipe(value: Operand, access: tuple[AccessQualifier, ...]) -> None:
    type_ = value.type
    need(_is(type_, Op.TypePipe), "a pipe of type {!r}", type_)
    need(type_.operands[0] in access, "a pipe that is {}", type_.operands[0].name)


def _reservation(type_: Type | None) -> None:
    need(_is(type_, Op.TypeReserveId), "a reservation of type {!r}", type_)


def _word(value: Operand, what: str) -> None:
    type_ = value.type
    need(type_ is not None and type_.kind is INT and type_.width == 32, "{} of type {!r}", what, type_)


def need_packet(size: int, alignment: int) -> None:
    """RuleError unless packets of a size can be aligned so: "1 <= Packet Alignment <= Packet Size; and Packet
    Alignment must evenly divide Packet Size. For concrete types, Packet Alignment should equal Packet Size.
    For aggregate types, Packet Alignment should be the size of the largest primitive type"."""
    need(size > 0, "packets of {} bytes", size)
    need(0 < alignment and size % alignment == 0, "packets of {} bytes, aligned to {}", size, alignment)


def _packet(size: Operand, alignment: Operand) -> None:
    _word(size, "a packet size")
    _word(alignment, "a packet alignment")
    if type(size) is type(alignment) is Constant:
        need_packet(size.value or 0, alignment.value or 0)


def _result(i: Instruction) -> None:
    need(i.type.kind is INT and i.type.width == 32, "the result has type {!r}", i.type)


def _transfer(access: tuple[AccessQualifier, ...]) -> Rule:
    def rule(i: Instruction) -> None:
        pipe, place, size, alignment = i.operands
        _pipe(pipe, access)
        _place(place)
        _packet(size, alignment)
        _result(i)

    return rule


def _place(value: Operand) -> None:
    storage = pointer(value).storage
    need(storage in _STORAGE, "packets in {}", getattr(storage, "name", storage))


def _reserved_transfer(access: tuple[AccessQualifier, ...]) -> Rule:
    def rule(i: Instruction) -> None:
        pipe, id_, index, place, size, alignment = i.operands
        _pipe(pipe, access)
        _reservation(id_.type)
        _word(index, "an index")
        _place(place)
        _packet(size, alignment)
        _result(i)

    return rule


def _reserve(access: tuple[AccessQualifier, ...]) -> Rule:
    def rule(i: Instruction) -> None:
        pipe, count, size, alignment = i.operands
        _pipe(pipe, access)
        _word(count, "a number of packets")
        _packet(size, alignment)
        _reservation(i.type)

    return rule


def _commit(access: tuple[AccessQualifier, ...]) -> Rule:
    def rule(i: Instruction) -> None:
        pipe, id_, size, alignment = i.operands
        _pipe(pipe, access)
        _reservation(id_.type)
        _packet(size, alignment)

    return rule


def _query(i: Instruction) -> None:
    pipe, size, alignment = i.operands
    _pipe(pipe, _ANY)
    _packet(size, alignment)
    _result(i)


def _is_valid(i: Instruction) -> None:
    _reservation(i.operands[0].type)
    need(i.type.kind is BOOL, "the result has type {!r}", i.type)


def _of_group(
    inner: Callable[[tuple[AccessQualifier, ...]], Rule], access: tuple[AccessQualifier, ...]
) -> Rule:
    """The rule of the same instruction for one work-item, behind a scope, which must be known."""
    rule = inner(access)

    def group_rule(i: Instruction) -> None:
        execution_scope(i, *TOGETHER)
        need(type(i.operands[0]) is Constant, "a scope that is no constant")
        alone = Instruction(i.op, i.type, i.operands[1:])
        rule(alone)

    return group_rule


def _from_storage(i: Instruction) -> None:
    storage = i.operands[0].type
    need(_is(storage, Op.TypePipeStorage), "pipe storage of type {!r}", storage)
    need(_is(i.type, Op.TypePipe), "the result has type {!r}", i.type)


PIPE_RULES: dict[Op, Rule] = {
    Op.ReadPipe: _transfer(_READS),
    Op.WritePipe: _transfer(_WRITES),
    Op.ReservedReadPipe: _reserved_transfer(_READS),
    Op.ReservedWritePipe: _reserved_transfer(_WRITES),
    Op.ReserveReadPipePackets: _reserve(_READS),
    Op.ReserveWritePipePackets: _reserve(_WRITES),
    Op.CommitReadPipe: _commit(_READS),
    Op.CommitWritePipe: _commit(_WRITES),
    Op.IsValidReserveId: _is_valid,
    Op.GetNumPipePackets: _query,
    Op.GetMaxPipePackets: _query,
    Op.GroupReserveReadPipePackets: _of_group(_reserve, _READS),
    Op.GroupReserveWritePipePackets: _of_group(_reserve, _WRITES),
    Op.GroupCommitReadPipe: _of_group(_commit, _READS),
    Op.GroupCommitWritePipe: _of_group(_commit, _WRITES),
    Op.CreatePipeFromPipeStorage: _from_storage,
}
