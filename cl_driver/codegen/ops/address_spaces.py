"""What a generic pointer points to: all private memory of a kernel that asks lies in its thread's scratch
memory, all local memory in the thread's local memory; everything else is global.

The instructions are OpGenericCastToPtrExplicit and OpGenericPtrMemSemantics (SPIR-V 1.6, sections 3.49.11
and 3.49.8); clang-22 calls the functions of FUNCTIONS instead.
"""

from __future__ import annotations

from ...spirv.enums import MemorySemantics, Op, StorageClass
from ...spirv.module import Function, Instruction
from ..llvm.emitter import FunctionEmitter
from ..llvm.registry import Lowering, lowers
from ..llvm.types import ir_type

CLK_LOCAL_MEM_FENCE, CLK_GLOBAL_MEM_FENCE = 1, 2

_CASTS = {
    "__to_global": StorageClass.CrossWorkgroup, "__to_local": StorageClass.Workgroup,
    "__to_private": StorageClass.Function,
}  # fmt: skip
_GET_FENCE = "_Z9get_fencePU3AS4"  # of a generic pointer to void, with qualifiers


def asks_address_space(i: Instruction) -> bool:
    """True for instructions that tell address spaces apart."""
    if i.op is Op.FunctionCall:
        return call_lowering(i.operands[0]) is not None
    return i.op in (Op.GenericCastToPtrExplicit, Op.GenericPtrMemSemantics)


def call_lowering(function: Function) -> Lowering | None:
    """The lowering of a call of one of clang's functions for address spaces, None for other functions."""
    if function.linkage is None or function.blocks:
        return None
    return lowering_of_name(function.linkage[0])


def lowering_of_name(name: str) -> Lowering | None:
    """The same for a function's link name: the linker lets these through although nothing defines them."""
    if name in _CASTS:
        return _to_address_space
    is_fence = name.startswith(_GET_FENCE) and name[len(_GET_FENCE) :].lstrip("rVK") == "v"
    return _get_fence if is_fence else None


@lowers(Op.GenericCastToPtrExplicit)
def generic_cast_explicit(e: FunctionEmitter, i: Instruction) -> None:
    """OpGenericCastToPtrExplicit: null if the pointer is to another storage class."""
    _cast(e, i, e.operand(i.operands[0]), i.type.storage)


def _to_address_space(e: FunctionEmitter, i: Instruction) -> None:
    """to_global, to_local, to_private."""
    _cast(e, i, e.operand(i.operands[1]), _CASTS[i.operands[0].linkage[0]])


def _cast(e: FunctionEmitter, i: Instruction, pointer: str, storage: StorageClass) -> None:
    matches = points_to(e, pointer, storage)
    e.define(i, e.emit(f"select i1 {matches}, ptr {pointer}, ptr null"))


@lowers(Op.GenericPtrMemSemantics)
def generic_pointer_semantics(e: FunctionEmitter, i: Instruction) -> None:
    """OpGenericPtrMemSemantics: which memory the pointer is to, as memory semantics."""
    _choose(
        e,
        i,
        e.operand(i.operands[0]),
        int(MemorySemantics.WorkgroupMemory),
        int(MemorySemantics.CrossWorkgroupMemory),
    )


def _get_fence(e: FunctionEmitter, i: Instruction) -> None:
    """get_fence."""
    _choose(e, i, e.operand(i.operands[1]), CLK_LOCAL_MEM_FENCE, CLK_GLOBAL_MEM_FENCE)


def _choose(e: FunctionEmitter, i: Instruction, pointer: str, if_local: int, if_global: int) -> None:
    """One number for local memory, another for global, 0 for private."""
    t = ir_type(i.type)
    other = e.emit(f"select i1 {e.in_private_memory(pointer)}, {t} 0, {t} {if_global}")
    e.define(i, e.emit(f"select i1 {_in_local_memory(e, pointer)}, {t} {if_local}, {t} {other}"))


def points_to(e: FunctionEmitter, pointer: str, storage: StorageClass) -> str:
    """i1: whether a generic pointer is to Workgroup, Function or CrossWorkgroup memory."""
    if storage == StorageClass.Workgroup:
        return _in_local_memory(e, pointer)
    in_private = e.in_private_memory(pointer)
    if storage == StorageClass.Function:
        return in_private
    elsewhere = e.emit(f"or i1 {in_private}, {_in_local_memory(e, pointer)}")
    return e.emit(f"xor i1 {elsewhere}, true")


def _in_local_memory(e: FunctionEmitter, pointer: str) -> str:
    size = e.local_memory_size()
    return in_range(e, pointer, e.local_memory(), size)


def in_range(e: FunctionEmitter, pointer: str, start: str, size: str) -> str:
    """i1: start <= pointer < start + size."""
    a = e.emit(f"ptrtoint ptr {pointer} to i64")
    b = e.emit(f"ptrtoint ptr {start} to i64")
    offset = e.emit(f"sub i64 {a}, {b}")
    return e.emit(f"icmp ult i64 {offset}, {size}")
