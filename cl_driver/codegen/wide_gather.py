"""What each lane loads or stores at an address of its own."""

from __future__ import annotations

from ..spirv.enums import Op
from ..spirv.module import Instruction, Kind
from .lanes import MANGLED
from .types import ir_type, leaf_types, member_offset, size_of

_POINTER_STEPS = (Op.PtrAccessChain, Op.InBoundsPtrAccessChain)
_EXTENSIONS = {Op.SConvert: "sext", Op.UConvert: "zext"}


def leaf_offsets(type_) -> list[int]:
    """Where in memory the leaves of a type are."""
    kind = type_.kind
    if kind is Kind.VECTOR:
        size = size_of(type_.element)
        return [k * size for k in range(type_.count)]
    if kind is Kind.ARRAY:
        size = size_of(type_.element)
        return [k * size + o for k in range(type_.count) for o in leaf_offsets(type_.element)]
    if kind is Kind.STRUCT:
        return [member_offset(type_, k) + o for k, m in enumerate(type_.members) for o in leaf_offsets(m)]
    return [0]


def memory_type(type_) -> str:
    """The LLVM type of a scalar in memory: bool is a byte."""
    return "i8" if type_.kind is Kind.BOOL else ir_type(type_)


def from_memory(e, type_, leaf: str) -> str:
    return e.emit(f"trunc {e.form('i8')} {leaf} to {e.form('i1')}") if type_.kind is Kind.BOOL else leaf


def to_memory(e, type_, leaf: str) -> str:
    return e.emit(f"zext {e.form('i1')} {leaf} to {e.form('i8')}") if type_.kind is Kind.BOOL else leaf


def gather(e, addresses: str, type_, alignment: int, mask: str | None, metadata: str = "") -> list[str]:
    """The leaves of W values at any addresses."""
    types, leaves = leaf_types(type_), []
    for t, offset in zip(types, leaf_offsets(type_), strict=True):
        where = (
            e.emit(f"getelementptr i8, {e.form('ptr')} {addresses}, i64 {offset}") if offset else addresses
        )
        m = memory_type(t)
        own = min(alignment, size_of(t)) if offset or len(types) > 1 else alignment
        value = e.emit(
            f"call {e.form(m)} @llvm.masked.gather.{e.form.suffix(MANGLED[m])}.{e.form.suffix('p0')}"
            f"({e.form('ptr')} align {own} {where}, {e.form('i1')} {mask or 'splat (i1 true)'}, "
            f"{e.form(m)} zeroinitializer){metadata}"
        )
        leaves.append(from_memory(e, t, value))
    return leaves


def scatter(
    e, addresses: str, type_, leaves: list[str], alignment: int, mask: str | None, metadata: str = ""
) -> None:
    """Stores leaves, as they are in memory, to any addresses."""
    types = leaf_types(type_)
    for t, value, offset in zip(types, leaves, leaf_offsets(type_), strict=True):
        where = (
            e.emit(f"getelementptr i8, {e.form('ptr')} {addresses}, i64 {offset}") if offset else addresses
        )
        m = memory_type(t)
        own = min(alignment, size_of(t)) if offset or len(types) > 1 else alignment
        e.emit_void(
            f"call void @llvm.masked.scatter.{e.form.suffix(MANGLED[m])}.{e.form.suffix('p0')}"
            f"({e.form(m)} {value}, {e.form('ptr')} align {own} {where}, "
            f"{e.form('i1')} {mask or 'splat (i1 true)'}){metadata}"
        )


def addresses_here(e, pointer, addresses: str, index) -> str:
    """Addresses computed again where they are used: LLVM then finds what is common, for one instruction.

    The freeze is what keeps it from computing them where they were computed before.
    """
    while isinstance(pointer, Instruction) and pointer.op in (Op.Bitcast, Op.CopyObject):
        pointer = pointer.operands[0]
    if index is not None or not isinstance(pointer, Instruction) or pointer.op not in _POINTER_STEPS:
        return addresses
    base, *indices = pointer.operands
    if len(indices) > 1 or e.is_varying(base) or e.stride_is_mixed(base) or not e.is_varying(indices[0]):
        return addresses
    (last,) = indices
    inner, extension = last, _EXTENSIONS.get(last.op)
    if extension is not None and last.type.width == 64:
        inner = last.operands[0]
    t, f = ir_type(inner.type), e.form
    lanes = e.emit(f"freeze {f(t)} {e.leaf(inner)}")
    if inner is not last:
        lanes, t = e.emit(f"{extension} {f(t)} {lanes} to {f('i64')}"), "i64"
    return e.emit(f"getelementptr [{size_of(base.type.element)} x i8], ptr {e.operand(base)}, {f(t)} {lanes}")
