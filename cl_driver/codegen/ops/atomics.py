"""Atomic instructions and memory barriers (SPIR-V 1.6, sections 3.49.18 and 3.49.20).

A work-group runs on one thread. So atomics on Workgroup memory are plain operations, and barriers of
work-group scope only keep the compiler from moving accesses.
"""

from __future__ import annotations

from ...spirv.enums import Op, Scope, StorageClass
from ...spirv.module import Instruction, Kind, Value
from ..llvm.emitter import FunctionEmitter
from ..llvm.forms import SCALAR
from ..llvm.registry import lowers
from ..llvm.types import alignment_of, ir_type
from .arithmetic import larger_or_smaller
from .conversion import extend_half, truncate_to_half

_ACQUIRE, _RELEASE, _ACQUIRE_RELEASE, _SEQUENTIAL = 0x2, 0x4, 0x8, 0x10


def ordering(e: FunctionEmitter, semantics: Value, default: str = "monotonic") -> str:
    """LLVM's ordering of memory semantics; what is not a constant is taken as the strongest."""
    bits = e.integer(semantics)
    if bits is None or bits & _SEQUENTIAL:
        return "seq_cst"
    acquire = bits & (_ACQUIRE | _ACQUIRE_RELEASE)
    release = bits & (_RELEASE | _ACQUIRE_RELEASE)
    if acquire and release:
        return "acq_rel"
    return "acquire" if acquire else "release" if release else default


def _load_ordering(order: str) -> str:
    return {"release": "monotonic", "acq_rel": "acquire"}.get(order, order)


def _store_ordering(order: str) -> str:
    return {"acquire": "monotonic", "acq_rel": "release"}.get(order, order)


def is_plain(pointer: Value) -> bool:
    """True for memory that only the thread of the work-group can touch."""
    return pointer.type.storage in (StorageClass.Workgroup, StorageClass.Function, StorageClass.Private)


@lowers(Op.AtomicLoad)
def atomic_load(e: FunctionEmitter, i: Instruction) -> None:
    """OpAtomicLoad."""
    pointer, _, semantics = i.operands[:3]
    t, alignment = ir_type(i.type), alignment_of(i.type)
    if is_plain(pointer):
        e.define(i, e.emit(f"load {t}, ptr {e.operand(pointer)}, align {alignment}"))
        return
    order = _load_ordering(ordering(e, semantics))
    e.define(i, e.emit(f"load atomic {t}, ptr {e.operand(pointer)} {order}, align {alignment}"))


@lowers(Op.AtomicStore)
def atomic_store(e: FunctionEmitter, i: Instruction) -> None:
    """OpAtomicStore."""
    pointer, _, semantics, value = i.operands[:4]
    alignment = alignment_of(value.type)
    if is_plain(pointer):
        e.emit_void(f"store {e.typed(value)}, ptr {e.operand(pointer)}, align {alignment}")
        return
    order = _store_ordering(ordering(e, semantics))
    e.emit_void(f"store atomic {e.typed(value)}, ptr {e.operand(pointer)} {order}, align {alignment}")


READ_MODIFY_WRITE = {
    Op.AtomicExchange: "xchg", Op.AtomicIAdd: "add", Op.AtomicISub: "sub", Op.AtomicSMin: "min",
    Op.AtomicUMin: "umin", Op.AtomicSMax: "max", Op.AtomicUMax: "umax", Op.AtomicAnd: "and",
    Op.AtomicOr: "or", Op.AtomicXor: "xor", Op.AtomicFAddEXT: "fadd", Op.AtomicFMinEXT: "fmin",
    Op.AtomicFMaxEXT: "fmax", Op.AtomicIIncrement: "add", Op.AtomicIDecrement: "sub",
}  # fmt: skip


@lowers(*READ_MODIFY_WRITE)
def read_modify_write(e: FunctionEmitter, i: Instruction) -> None:
    """Atomics that give the old value back. Increment and decrement have no value operand."""
    value = e.operand(i.operands[3]) if len(i.operands) > 3 else "1"
    e.define(i, update(e, READ_MODIFY_WRITE[i.op], i, e.operand(i.operands[0]), value))


def update(e: FunctionEmitter, operation: str, i: Instruction, address: str, value: str) -> str:
    """The old value of what the atomic changes at an address."""
    pointer, _, semantics = i.operands[:3]
    t = ir_type(i.type)
    if is_plain(pointer):
        return update_plainly(e, operation, i, address, value)
    order = ordering(e, semantics)
    if t == "half" and operation != "xchg":
        return _exchange_loop(e, operation, t, address, value, order)
    if operation in _CHANGES and order in ("monotonic", "acquire"):
        return _update_what_changes(e, operation, t, address, value, order)
    return e.emit(f"atomicrmw {operation} ptr {address}, {t} {value} {order}")


# Whether a minimum or maximum changes what is in memory: value ? old.
_CHANGES = {"min": "slt", "max": "sgt", "umin": "ult", "umax": "ugt"}


def _update_what_changes(
    e: FunctionEmitter, operation: str, t: str, address: str, value: str, order: str
) -> str:
    """A minimum or maximum that is there already is only read: most are, after a while, and cores that write
    take the cache line from one another. Nobody can tell, for what is written releases nothing."""
    seen = e.emit(f"load atomic {t}, ptr {address} {order}, align {int(t[1:]) // 8}")
    changes = e.emit(f"icmp {_CHANGES[operation]} {t} {value}, {seen}")
    before, body, after = e.label, e.new_label("changes"), e.new_label("done")
    e.emit_void(f"br i1 {changes}, label %{body}, label %{after}")
    e.begin_block(body)
    old = e.emit(f"atomicrmw {operation} ptr {address}, {t} {value} {order}")
    e.emit_void(f"br label %{after}")
    e.begin_block(after)
    return e.emit(f"phi {t} [ {seen}, %{before} ], [ {old}, %{body} ]")


def update_plainly(e: FunctionEmitter, operation: str, i: Instruction, address: str, value: str) -> str:
    """The same in memory that no other thread can touch."""
    t, alignment = ir_type(i.type), alignment_of(i.type)
    old = e.emit(f"load {t}, ptr {address}, align {alignment}")
    new = _plain_result(e, operation, t, old, value)
    e.emit_void(f"store {t} {new}, ptr {address}, align {alignment}")
    return old


def _exchange_loop(e: FunctionEmitter, operation: str, t: str, address: str, value: str, order: str) -> str:
    """The old half: LLVM would call functions for the arithmetic on CPUs that cannot convert halves."""
    first = e.emit(f"load atomic i16, ptr {address} monotonic, align 2")
    before, loop, after = e.label, e.new_label("try"), e.new_label("done")
    e.emit_void(f"br label %{loop}")
    e.begin_block(loop)
    bits, seen = e.name(), e.name()
    e.emit_void(f"{bits} = phi i16 [ {first}, %{before} ], [ {seen}, %{loop} ]")
    old = e.emit(f"bitcast i16 {bits} to {t}")
    new = e.emit(f"bitcast {t} {_plain_result(e, operation, t, old, value)} to i16")
    pair = e.emit(f"cmpxchg weak ptr {address}, i16 {bits}, i16 {new} {order} monotonic")
    e.emit_void(f"{seen} = extractvalue {{ i16, i1 }} {pair}, 0")
    done = e.emit(f"extractvalue {{ i16, i1 }} {pair}, 1")
    e.emit_void(f"br i1 {done}, label %{after}, label %{loop}")
    e.begin_block(after)
    return old


_PLAIN_INTRINSICS = {
    "min": "smin",
    "max": "smax",
    "umin": "umin",
    "umax": "umax",
    "fmin": "minnum",
    "fmax": "maxnum",
}


def _plain_result(e: FunctionEmitter, operation: str, t: str, old: str, value: str) -> str:
    """The new value. fmin and fmax give the other operand where one is NaN, as OpenCL's functions do."""
    if operation == "xchg":
        return value
    if t == "half":
        a, b = (extend_half(e, SCALAR, operand) for operand in (old, value))
        if operation in ("fmin", "fmax"):
            result = larger_or_smaller(e, SCALAR, "float", operation == "fmax", a, b)
        else:
            result = e.emit(f"{operation} float {a}, {b}")
        return truncate_to_half(e, SCALAR, result)
    name = _PLAIN_INTRINSICS.get(operation)
    if name:
        return e.intrinsic(name, SCALAR, t, old, value)
    return e.emit(f"{operation} {t} {old}, {value}")


@lowers(Op.AtomicCompareExchange, Op.AtomicCompareExchangeWeak)
def compare_exchange(e: FunctionEmitter, i: Instruction) -> None:
    """OpAtomicCompareExchange: stores the value if the old one equals the comparator; gives the old one.

    Floats, which clang-22 makes of atomic_float, are compared by their bits.
    """
    pointer, _, equal, unequal, value, comparator = i.operands
    t, address = ir_type(i.type), e.operand(pointer)
    new, expected = e.operand(value), e.operand(comparator)
    bits = t
    if i.type.kind is Kind.FLOAT:
        bits = f"i{i.type.width}"
        new, expected = (e.emit(f"bitcast {t} {o} to {bits}") for o in (new, expected))
    if is_plain(pointer):
        alignment = alignment_of(i.type)
        old = e.emit(f"load {bits}, ptr {address}, align {alignment}")
        same = e.emit(f"icmp eq {bits} {old}, {expected}")
        new = e.emit(f"select i1 {same}, {bits} {new}, {bits} {old}")
        e.emit_void(f"store {bits} {new}, ptr {address}, align {alignment}")
    else:
        failure = _load_ordering(ordering(e, unequal))
        pair = e.emit(
            f"cmpxchg ptr {address}, {bits} {expected}, {bits} {new} {ordering(e, equal)} {failure}"
        )
        old = e.emit(f"extractvalue {{ {bits}, i1 }} {pair}, 0")
    e.define(i, old if bits == t else e.emit(f"bitcast {bits} {old} to {t}"))


@lowers(Op.AtomicFlagTestAndSet)
def flag_test_and_set(e: FunctionEmitter, i: Instruction) -> None:
    """OpAtomicFlagTestAndSet: whether the flag was set. A flag is 32 bits, 0 or 1."""
    pointer, _, semantics = i.operands[:3]
    if is_plain(pointer):
        old = e.emit(f"load i32, ptr {e.operand(pointer)}, align 4")
        e.emit_void(f"store i32 1, ptr {e.operand(pointer)}, align 4")
    else:
        old = e.emit(f"atomicrmw xchg ptr {e.operand(pointer)}, i32 1 {ordering(e, semantics)}")
    e.define(i, e.emit(f"icmp ne i32 {old}, 0"))


@lowers(Op.AtomicFlagClear)
def flag_clear(e: FunctionEmitter, i: Instruction) -> None:
    """OpAtomicFlagClear."""
    pointer, _, semantics = i.operands[:3]
    if is_plain(pointer):
        e.emit_void(f"store i32 0, ptr {e.operand(pointer)}, align 4")
        return
    order = _store_ordering(ordering(e, semantics))
    e.emit_void(f"store atomic i32 0, ptr {e.operand(pointer)} {order}, align 4")


@lowers(Op.MemoryBarrier)
def memory_barrier(e: FunctionEmitter, i: Instruction) -> None:
    """OpMemoryBarrier."""
    fence(e, i.operands[0], i.operands[1])


@lowers(Op.ControlBarrier)
def control_barrier(e: FunctionEmitter, i: Instruction) -> None:
    """What is left of an OpControlBarrier that needs no region of its own: its memory semantics."""
    fence(e, i.operands[1], i.operands[2])


def fence(e: FunctionEmitter, scope: Value, semantics: Value) -> None:
    """A fence for the threads that the scope reaches."""
    bits = e.integer(semantics)
    if bits == 0:
        return
    order = ordering(e, semantics, default="acq_rel")
    literal = e.integer(scope)
    local = literal is not None and literal in (Scope.Workgroup, Scope.Subgroup, Scope.Invocation)
    where = 'syncscope("singlethread") ' if local else ""
    e.emit_void(f"fence {where}{order}")
