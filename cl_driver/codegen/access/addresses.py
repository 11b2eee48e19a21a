"""Where each lane accesses memory."""

from __future__ import annotations

from ...passes.ir.ops import PassOp
from ...spirv.enums import Op
from ...spirv.module import Instruction, Kind, Value, Variable
from ..layout.lanes import LaneEmitter
from ..llvm.forms import form
from ..llvm.registry import lowers_wide
from ..llvm.types import ir_type, member_offset, size_of
from ..ops.memory import access_chain as single_access_chain
from ..ops.memory import chain_terms, offset_pointer
from .emitter import AccessEmitter


class Address:
    """Where each lane accesses memory: single (lane 0's pointer) with a stride in bytes, or a leaf."""

    __slots__ = ("leaf", "single", "stride")

    def __init__(self, single: str | None, stride: int, leaf: str | None) -> None:
        self.single = single
        self.stride = stride
        self.leaf = leaf

    def all_lanes(self, e: LaneEmitter) -> str:
        """As `<W x ptr>`."""
        if self.leaf is None:
            assert self.single is not None  # one of the two is
            self.leaf = e.lanes_from("ptr", self.single, self.stride)
        return self.leaf


def address_of(e: AccessEmitter, pointer: Value) -> Address:
    """The address of a pointer Value."""
    if e.is_varying(pointer):
        return Address(None, 0, e.leaf(pointer))
    return Address(e.operand(pointer), e.stride(pointer), None)


def all_lanes(e: AccessEmitter, address: Address) -> str:
    """The address as `<W x ptr>`."""
    return address.all_lanes(e)


def advance(e: AccessEmitter, address: Address, index: Value, scale: int, unsigned: bool = False) -> Address:
    """address + index * scale bytes, index being a Value."""
    literal = e.integer(index)
    if literal is not None:
        width = index.type.width
        literal -= 1 << width if literal >> width - 1 else 0
        if address.single is None:
            return Address(
                None, 0, e.emit(f"getelementptr i8, {e.form('ptr')} {address.leaf}, i64 {literal * scale}")
            )
        return Address(offset_pointer(e, address.single, literal * scale, ""), address.stride, None)
    t = ir_type(index.type)
    varying = e.is_varying(index)
    operand = e.leaf(index) if varying or address.single is None else e.operand(index)
    is_wide = varying or address.single is None
    if unsigned and index.type.width < 64:
        f = e.form if is_wide else form(0)
        operand = e.emit(f"zext {f(t)} {operand} to {f('i64')}")
        t = "i64"
    if not is_wide:
        single = e.emit(f"getelementptr [{scale} x i8], ptr {address.single}, {t} {operand}")
        return Address(single, address.stride + e.stride(index) * scale, None)
    base = (
        f"{e.form('ptr')} {all_lanes(e, address)}"
        if address.single is None or address.stride
        else (f"ptr {address.single}")
    )
    return Address(None, 0, e.emit(f"getelementptr [{scale} x i8], {base}, {e.form(t)} {operand}"))


def is_within_variable(e: AccessEmitter, pointer: Value, size: int) -> bool:
    """Whether so many bytes from an address on are in a private variable, though no lane asks for them."""
    end = size
    while isinstance(pointer, Instruction) and pointer.op not in (Op.Variable, PassOp.PrivatePointer):
        if pointer.op is PassOp.Parameter:
            return False
        type_, indices = pointer.operands[0].type.element, list(pointer.operands[1:])
        if pointer.op in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain):
            number = e.integer(indices.pop(0))
            if number is None:
                return False
            end += number * size_of(type_)
        elif pointer.op not in (Op.AccessChain, Op.InBoundsAccessChain, Op.Bitcast, Op.CopyObject):
            return False
        for index in indices:
            number = e.integer(index)
            if number is None:
                return False
            is_struct = type_.kind is Kind.STRUCT
            end += member_offset(type_, number) if is_struct else number * size_of(type_.element)
            type_ = type_.members[number] if is_struct else type_.element
        pointer = pointer.operands[0]
    return isinstance(pointer, Instruction) and size <= end <= size_of(pointer.type.element)


@lowers_wide(Op.AccessChain, Op.InBoundsAccessChain, Op.PtrAccessChain, Op.InBoundsPtrAccessChain)
def access_chain(e: AccessEmitter, i: Instruction) -> None:
    """Access chains with an index or base that varies."""
    base, indices = i.operands[0], list(i.operands[1:])
    if isinstance(base, Variable) and base.builtin is not None:
        e.lane_by_lane(i, single_access_chain)
        return
    type_, spacing = base.type.element, e.spacing(base)
    address = address_of(e, base)
    if e.is_spread(base):
        offset, terms = chain_terms(e, i)
        leaf, f = all_lanes(e, address), e.form
        for index, size in terms:
            steps = e.resized(f, e.leaf(index), ir_type(index.type), "i64", signed=True)
            distance = e.emit(f"mul {f('i64')} {steps}, {e.splat(e.scaled(base, size), 'i64', f)}")
            leaf = e.emit(f"getelementptr i8, {f('ptr')} {leaf}, {f('i64')} {distance}")
        if offset:
            leaf = e.emit(f"getelementptr i8, {f('ptr')} {leaf}, i64 {e.scaled(base, offset)}")
        e.define_leaves(i, [leaf])
        return
    if i.op in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain):
        address = advance(e, address, indices.pop(0), size_of(type_) * spacing)
    constant = 0
    for index in indices:
        if type_.kind is Kind.STRUCT:
            number = e.member_number(type_, index)
            constant += member_offset(type_, number) * spacing
            type_ = type_.members[number]
            continue
        type_ = type_.element
        literal = e.integer(index)
        if literal is not None:
            constant += literal * size_of(type_) * spacing
        else:
            address = advance(e, address, index, size_of(type_) * spacing)
    leaf = all_lanes(e, address)
    if constant:
        leaf = e.emit(f"getelementptr i8, {e.form('ptr')} {leaf}, i64 {constant}")
    e.define_leaves(i, [leaf])
