"""Type rules of atomics, barriers, groups, asynchronous copies and opaque objects other than images.

MORE_RULES: as RULES of rules.py.
"""

from __future__ import annotations

from functools import cache

from ..enums import Op, Scope, StorageClass
from ..module import Constant, Instruction, Kind, Operand, Type
from ..tables import ROWS
from .rules import BOOL, FLOAT, INT, POINTER, Rule, RuleError, count, need, pointer, scalar, types
from .rules_std import ext_inst

VECTOR = Kind.VECTOR


def _scope(value: Operand) -> int | None:
    """A scope or semantics operand; its value, if it is a constant."""
    type_ = value.type
    need(
        type_ is not None and type_.kind is INT and type_.width == 32,
        "a scope or semantics of type {!r}",
        type_,
    )
    return (value.value or 0) if value.__class__ is Constant else None


# CrossDevice to Invocation; the others belong to other memory models.
_SCOPES = range(5)
TOGETHER = (Scope.Workgroup, Scope.Subgroup)
_ORDERS = (0, 0x2, 0x4, 0x8, 0x10)  # of MemorySemantics: at most one


@cache
def _places(op: Op) -> tuple[tuple[int, bool], ...]:
    """Where an instruction has its scopes and semantics: (index, whether it is a scope)."""
    operands = [o.kind for o in ROWS[op].operands if o.kind not in ("IdResultType", "IdResult")]
    return tuple(
        (k, kind == "IdScope") for k, kind in enumerate(operands) if kind in ("IdScope", "IdMemorySemantics")
    )


def _scopes(i: Instruction) -> None:
    """Checks the scope and semantics operands by their places in the grammar."""
    operands = i.operands
    for place, is_scope in _places(i.op):
        if place >= len(operands):
            break
        value = _scope(operands[place])
        if value is None:
            continue
        if is_scope:
            need(value in _SCOPES, "scope {}", value)
        else:
            need(value & 0x1E in _ORDERS, "memory semantics {:#x} with several orders", value)


def execution_scope(i: Instruction, *allowed: Scope) -> None:
    """Environment 4: the work-group or the sub-group executes together."""
    value = _scope(i.operands[0])
    need(value is None or value in allowed, "scope {} for execution", value)


_ATOMIC_STORAGE = (
    StorageClass.CrossWorkgroup,
    StorageClass.Workgroup,
    StorageClass.Generic,
    StorageClass.Function,
)


def _atomic(kinds: tuple[Kind, ...], values: int) -> Rule:
    """values: how many operands at the end have the type of the pointee."""

    def rule(i: Instruction) -> None:
        type_ = pointer(i.operands[0])
        need(type_.storage in _ATOMIC_STORAGE, "an atomic in {}", type_.storage.name)
        of = i.type if i.type is not None else i.operands[-1].type
        need(
            of.kind in kinds and (type_.element is of or type_.element is None),
            "{!r} through {!r}",
            of,
            type_,
        )
        # Environment 4: integers of 32 bits, or of 64 with Int64Atomics.
        need(of.kind is not INT or of.width >= 32, "an atomic of {} bits", of.width)
        for value in i.operands[len(i.operands) - values :] if values else ():
            need(value.type is of, "a value of type {!r} for {!r}", value.type, of)
        _scopes(i)

    return rule


def _flag(i: Instruction) -> None:
    type_ = pointer(i.operands[0])
    need(type_.element is None or type_.element.kind is INT, "a flag behind {!r}", type_)
    need(i.type is None or i.type.kind is BOOL, "a result of type {!r}", i.type)
    _scopes(i)


def _barrier(i: Instruction) -> None:
    if i.op != Op.MemoryBarrier:
        execution_scope(i, *TOGETHER)
    _scopes(i)


def _is_named_barrier(type_: Type | None) -> bool:
    return type_ is not None and type_.kind is Kind.OPAQUE and type_.op is Op.TypeNamedBarrier


def _new_named_barrier(i: Instruction) -> None:
    """ "Subgroup Count must be a 32-bit integer type scalar"."""
    need(_is_named_barrier(i.type), "the result has type {!r}", i.type)
    type_ = i.operands[0].type
    is_word = type_ is not None and type_.kind is INT and type_.width == 32
    need(is_word, "a number of sub-groups of type {!r}", type_)


def _named_barrier(i: Instruction) -> None:
    need(_is_named_barrier(i.operands[0].type), "a named barrier of type {!r}", i.operands[0].type)
    _scopes(i)


def _group(kind: Kind) -> Rule:
    """Reductions and scans: the value has the type of the result."""

    def rule(i: Instruction) -> None:
        value = i.operands[2]
        need(value.type is i.type and scalar(i.type).kind is kind, "{!r} of {!r}", i.type, value.type)
        execution_scope(i, *TOGETHER)
        _scopes(i)

    return rule


def _group_vote(i: Instruction) -> None:
    need(i.type.kind is BOOL and i.operands[1].type.kind is BOOL, "{!r} of {!r}", i.type, i.operands[1].type)
    execution_scope(i, *TOGETHER)
    _scopes(i)


def _group_move(i: Instruction) -> None:
    """Broadcasts, shuffles, rotations: value and result have one type."""
    need(i.operands[1].type is i.type, "{!r} of {!r}", i.type, i.operands[1].type)
    for value in i.operands[2:]:
        # Only a work-item of a work-group has an id of several components.
        kind = scalar(value.type).kind if i.op is Op.GroupBroadcast else value.type.kind
        need(kind is INT, "an id of type {!r}", value.type)
    execution_scope(i, *TOGETHER)
    _scopes(i)


def _group_broadcast_first(i: Instruction) -> None:
    need(i.operands[1].type is i.type, "{!r} of {!r}", i.type, i.operands[1].type)
    execution_scope(i, *TOGETHER)
    _scopes(i)


def _all_equal(i: Instruction) -> None:
    need(
        i.type.kind is BOOL and scalar(i.operands[1].type).kind in (INT, FLOAT, BOOL),
        "{!r} of {!r}",
        i.type,
        i.operands[1].type,
    )
    execution_scope(i, *TOGETHER)
    _scopes(i)


def _elect(i: Instruction) -> None:
    need(i.type.kind is BOOL, "a result of type {!r}", i.type)
    execution_scope(i, *TOGETHER)
    _scopes(i)


def _is_ballot(type_: Type) -> bool:
    return (
        type_.kind is VECTOR and type_.count == 4 and type_.element.kind is INT and type_.element.width == 32
    )


def _ballot(i: Instruction) -> None:
    need(_is_ballot(i.type) and i.operands[1].type.kind is BOOL, "{!r} of {!r}", i.type, i.operands[1].type)
    execution_scope(i, *TOGETHER)
    _scopes(i)


def _of_ballot(kind: Kind, at: int) -> Rule:
    def rule(i: Instruction) -> None:
        need(
            i.type.kind is kind and _is_ballot(i.operands[at].type),
            "{!r} of {!r}",
            i.type,
            i.operands[at].type,
        )
        _scopes(i)

    return rule


def _async_copy(i: Instruction) -> None:
    target, source = pointer(i.operands[1], "the target"), pointer(i.operands[2], "the source")
    need(target.element is source.element and target.element is not None, "from {!r} to {!r}", source, target)
    need(
        {target.storage, source.storage} == {StorageClass.Workgroup, StorageClass.CrossWorkgroup},
        "from {} to {}",
        source.storage.name,
        target.storage.name,
    )
    for value in i.operands[3:5]:
        need(value.type.kind is INT, "elements or stride of type {!r}", value.type)
    execution_scope(i, Scope.Workgroup)
    need(i.type.op == Op.TypeEvent and i.operands[5].type.op == Op.TypeEvent, "an event of type {!r}", i.type)
    _scopes(i)


def _wait_events(i: Instruction) -> None:
    execution_scope(i, Scope.Workgroup)
    need(i.operands[1].type.kind is INT, "a number of events of type {!r}", i.operands[1].type)
    type_ = pointer(i.operands[2], "the list of events")
    need(
        type_.element is None or type_.element.op == Op.TypeEvent or type_.element.kind is INT,
        "a list of events of type {!r}",
        type_,
    )
    _scopes(i)


def _lifetime(i: Instruction) -> None:
    pointer(i.operands[0])


def _memory_semantics(i: Instruction) -> None:
    storage, type_ = pointer(i.operands[0]).storage, i.type
    need(storage is StorageClass.Generic, "a pointer to {}", getattr(storage, "name", storage))
    need(type_.kind is INT and type_.width == 32, "the result has type {!r}", type_)


def _size_of(i: Instruction) -> None:
    type_ = pointer(i.operands[0])
    need(type_.element is not None, "the size of what {!r} points to", type_)
    need(i.type.kind is INT and i.type.width == 32, "a size of type {!r}", i.type)


def opaque_rule(i: Instruction) -> None:
    """Device queues: what the opaque operand must be is for the stage that lowers them. RuleError for
    operands without a type."""
    for operand in i.operands:
        if hasattr(operand, "type") and operand.type is None:
            raise RuleError("an operand without a type")


def _integer_pair(i: Instruction) -> None:
    a, b = types(i)
    need(a is b is i.type and scalar(a).kind is INT, "{!r} of {!r} and {!r}", i.type, a, b)


def _dot_product(i: Instruction) -> None:
    """Vectors of 8 or 16-bit integers, or four bytes in a 32-bit integer; with an accumulator maybe."""
    a, b = i.operands[0].type, i.operands[1].type
    accumulated = i.op in (Op.SDotAccSat, Op.UDotAccSat, Op.SUDotAccSat)
    need(
        scalar(a).kind is INT and scalar(b).kind is INT and count(a) == count(b) and i.type.kind is INT,
        "{!r} of {!r} and {!r}",
        i.type,
        a,
        b,
    )
    if accumulated:
        need(i.operands[2].type is i.type, "an accumulator of type {!r}", i.operands[2].type)


def _named(prefix: str, *suffixes: str) -> list[Op]:
    return [Op[prefix + suffix] for suffix in suffixes]


_ARITHMETIC_I = ("IAdd", "UMin", "SMin", "UMax", "SMax")
_ARITHMETIC_F = ("FAdd", "FMin", "FMax")
_BITWISE = ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
_LOGICAL = ("LogicalAnd", "LogicalOr", "LogicalXor")
# Classes of instructions that opaque_rule is the rule of.
OPAQUE_CLASSES = frozenset({"Image", "Device-Side_Enqueue"})

MORE_RULES: dict[Op, Rule] = {
    Op.ExtInst: ext_inst,
    **dict.fromkeys(
        (
            Op.AtomicIAdd,
            Op.AtomicISub,
            Op.AtomicSMin,
            Op.AtomicUMin,
            Op.AtomicSMax,
            Op.AtomicUMax,
            Op.AtomicAnd,
            Op.AtomicOr,
            Op.AtomicXor,
        ),
        _atomic((INT,), 1),
    ),
    **dict.fromkeys((Op.AtomicIIncrement, Op.AtomicIDecrement), _atomic((INT,), 0)),
    Op.AtomicLoad: _atomic((INT, FLOAT, POINTER), 0),
    Op.AtomicStore: _atomic((INT, FLOAT, POINTER), 1),
    Op.AtomicExchange: _atomic((INT, FLOAT, POINTER), 1),
    **dict.fromkeys((Op.AtomicCompareExchange, Op.AtomicCompareExchangeWeak), _atomic((INT, FLOAT), 2)),
    **dict.fromkeys((Op.AtomicFAddEXT, Op.AtomicFMinEXT, Op.AtomicFMaxEXT), _atomic((FLOAT,), 1)),
    Op.AtomicFlagTestAndSet: _flag,
    Op.AtomicFlagClear: _flag,
    Op.ControlBarrier: _barrier,
    Op.MemoryBarrier: _barrier,
    Op.ControlBarrierArriveINTEL: _barrier,
    Op.NamedBarrierInitialize: _new_named_barrier,
    Op.MemoryNamedBarrier: _named_barrier,
    **dict.fromkeys(
        _named("Group", *_ARITHMETIC_I)
        + _named("Group", "IMulKHR", "BitwiseAndKHR", "BitwiseOrKHR", "BitwiseXorKHR"),
        _group(INT),
    ),
    **dict.fromkeys(_named("Group", *_ARITHMETIC_F, "FMulKHR"), _group(FLOAT)),
    **dict.fromkeys(_named("Group", "LogicalAndKHR", "LogicalOrKHR", "LogicalXorKHR"), _group(BOOL)),
    **dict.fromkeys(_named("GroupNonUniform", *_ARITHMETIC_I, "IMul", *_BITWISE), _group(INT)),
    **dict.fromkeys(_named("GroupNonUniform", *_ARITHMETIC_F, "FMul"), _group(FLOAT)),
    **dict.fromkeys(_named("GroupNonUniform", *_LOGICAL), _group(BOOL)),
    **dict.fromkeys((Op.GroupAll, Op.GroupAny, Op.GroupNonUniformAll, Op.GroupNonUniformAny), _group_vote),
    Op.GroupNonUniformAllEqual: _all_equal,
    Op.GroupNonUniformElect: _elect,
    **dict.fromkeys(
        (
            Op.GroupBroadcast,
            Op.GroupNonUniformBroadcast,
            Op.GroupNonUniformShuffle,
            Op.GroupNonUniformShuffleXor,
            Op.GroupNonUniformShuffleUp,
            Op.GroupNonUniformShuffleDown,
            Op.GroupNonUniformRotateKHR,
        ),
        _group_move,
    ),
    Op.GroupNonUniformBroadcastFirst: _group_broadcast_first,
    Op.GroupNonUniformBallot: _ballot,
    Op.GroupNonUniformInverseBallot: _of_ballot(BOOL, 1),
    Op.GroupNonUniformBallotBitExtract: _of_ballot(BOOL, 1),
    Op.GroupNonUniformBallotBitCount: _of_ballot(INT, 2),
    Op.GroupNonUniformBallotFindLSB: _of_ballot(INT, 1),
    Op.GroupNonUniformBallotFindMSB: _of_ballot(INT, 1),
    Op.GroupAsyncCopy: _async_copy,
    Op.GroupWaitEvents: _wait_events,
    Op.LifetimeStart: _lifetime,
    Op.LifetimeStop: _lifetime,
    Op.SizeOf: _size_of,
    Op.GenericPtrMemSemantics: _memory_semantics,
    **dict.fromkeys((Op.IAddSatINTEL, Op.UAddSatINTEL, Op.ISubSatINTEL, Op.USubSatINTEL), _integer_pair),
    **dict.fromkeys((Op.SDot, Op.UDot, Op.SUDot, Op.SDotAccSat, Op.UDotAccSat, Op.SUDotAccSat), _dot_product),
    **dict.fromkeys(
        (
            Op.ReadClockKHR,
            Op.ImageTexelPointer,
            Op.ConvertFToBF16INTEL,
            Op.ConvertBF16ToFINTEL,
        ),
        opaque_rule,
    ),
}
