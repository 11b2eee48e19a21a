"""Memory instructions (SPIR-V 1.6, section 3.49.8): variables, addresses, loads, stores, copies.

Addresses are GEPs in bytes with offsets from the layout: LLVM 22 loses the provenance of integer arithmetic.
"""

from __future__ import annotations

from ...passes.analysis.private_uses import repeated_byte
from ...passes.ir.ops import PassOp
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Constant, Instruction, Kind, MemoryAccess, Type, Undef, Value, Variable
from ..layout.program_globals import variable_alignment
from ..llvm.emitter import Components, FunctionEmitter
from ..llvm.errors import CodegenError
from ..llvm.forms import SCALAR
from ..llvm.registry import lowers
from ..llvm.types import alignment_of, constant_text, element_type, ir_type, member_offset, size_of


@lowers(Op.Variable)
def variable(e: FunctionEmitter, i: Instruction) -> None:
    """OpVariable in Function storage: memory of the work-item, uninitialised or set each time."""
    e.define(i, e.private_memory(i))
    if i.operands and isinstance(i.operands[0], (Constant, Variable)):
        initializer = i.operands[0]
        store_value(e, e.operand(i), initializer, variable_alignment(i))


@lowers(PassOp.PrivatePointer)
def context_variable(e: FunctionEmitter, i: Instruction) -> None:
    """Private memory that outlives a region."""
    e.define(i, e.context_memory(i.operands[0]))


# Addresses.


def step(e: FunctionEmitter, pointer: str, index: Value, stride: int, inbounds: str) -> str:
    """pointer + index * stride bytes; index is a Value, signed."""
    literal = e.integer(index)
    if literal is not None:
        width = index.type.width
        if literal >> (width - 1):
            literal -= 1 << width
        return offset_pointer(e, pointer, literal * stride, inbounds)
    text = e.typed(index)
    unit = "i8" if stride == 1 else f"[{stride} x i8]"
    return e.emit(f"getelementptr{inbounds} {unit}, ptr {pointer}, {text}")


def offset_pointer(e: FunctionEmitter, pointer: str, offset: int, inbounds: str = " inbounds") -> str:
    """pointer + offset bytes."""
    if offset == 0:
        return pointer
    return e.emit(f"getelementptr{inbounds} i8, ptr {pointer}, i64 {offset}")


@lowers(Op.AccessChain, Op.InBoundsAccessChain, Op.PtrAccessChain, Op.InBoundsPtrAccessChain)
def access_chain(e: FunctionEmitter, i: Instruction) -> None:
    """The access chains; the Ptr forms begin with an index into an array of what the base points to."""
    base, indices = i.operands[0], i.operands[1:]
    if isinstance(base, Variable) and base.builtin is not None:
        e.define_builtin_component(i, base, indices)
        return
    is_inside = e.believes_bounds and i.op in (Op.InBoundsAccessChain, Op.InBoundsPtrAccessChain)
    inbounds = " inbounds" if is_inside else ""
    pointer = e.operand(base)
    if e.is_spread(base):
        constant, terms = chain_terms(e, i)
        total = ""
        for index, size in terms:
            steps = e.resized(SCALAR, e.operand(index), ir_type(index.type), "i64", signed=True)
            distance = e.emit(f"mul i64 {steps}, {e.scaled(base, size)}")
            total = e.emit(f"add i64 {total}, {distance}") if total else distance
        if constant:
            distance = e.scaled(base, constant)
            total = e.emit(f"add i64 {total}, {distance}") if total else distance
        e.define(i, e.emit(f"getelementptr i8, ptr {pointer}, i64 {total}") if total else pointer)
        return
    type_, spacing = base.type.element, e.spacing(base)
    offset = 0
    if i.op in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain):
        pointer, offset = _advance(e, pointer, offset, indices[0], size_of(type_) * spacing, inbounds)
        indices = indices[1:]
    for index in indices:
        if type_.kind is Kind.STRUCT:
            number = e.member_number(type_, index)
            offset += member_offset(type_, number) * spacing
            type_ = type_.members[number]
        else:
            type_ = type_.element
            pointer, offset = _advance(e, pointer, offset, index, size_of(type_) * spacing, inbounds)
    e.define(i, offset_pointer(e, pointer, offset, inbounds))


def chain_terms(e: FunctionEmitter, i: Instruction) -> tuple[int, list[tuple[Value, int]]]:
    """How many bytes an access chain adds: a number, and indices with what they are multiplied by."""
    type_, indices = i.operands[0].type.element, list(i.operands[1:])
    constant = 0
    terms: list[tuple[Value, int]] = []

    def add(index: Value, size: int) -> int:
        literal = e.integer(index)
        if literal is None:
            terms.append((index, size))
            return 0
        width = index.type.width
        return (literal - (1 << width if literal >> (width - 1) else 0)) * size

    if i.op in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain):
        constant += add(indices.pop(0), size_of(type_))
    for index in indices:
        if type_.kind is Kind.STRUCT:
            number = e.member_number(type_, index)
            constant += member_offset(type_, number)
            type_ = type_.members[number]
        else:
            type_ = type_.element
            constant += add(index, size_of(type_))
    return constant, terms


def _advance(
    e: FunctionEmitter, pointer: str, offset: int, index: Value, stride: int, inbounds: str
) -> tuple[str, int]:
    """One step of a chain: constants add to the offset, other indices make a GEP."""
    literal = e.integer(index)
    if literal is None:
        return step(e, pointer, index, stride, inbounds), offset
    width = index.type.width
    if literal >> (width - 1):
        literal -= 1 << width
    return pointer, offset + literal * stride


@lowers(Op.PtrDiff)
def pointer_difference(e: FunctionEmitter, i: Instruction) -> None:
    """OpPtrDiff: in elements."""
    a, b = i.operands
    x = e.emit(f"ptrtoint {e.typed(a)} to i64")
    y = e.emit(f"ptrtoint {e.typed(b)} to i64")
    difference = e.emit(f"sub i64 {x}, {y}")
    size = size_of(a.type.element)
    if size > 1:
        difference = e.emit(f"sdiv exact i64 {difference}, {size}")
    if i.type.width < 64:
        difference = e.emit(f"trunc i64 {difference} to {ir_type(i.type)}")
    e.define(i, difference)


@lowers(Op.PtrCastToGeneric, Op.GenericCastToPtr, Op.CopyObject, Op.ExpectKHR)
def same_value(e: FunctionEmitter, i: Instruction) -> None:
    """Casts that change nothing where all storage classes share one address space; copies."""
    source = i.operands[0]
    address = e.builtin_addresses.get(source)
    if address is not None:
        e.builtin_addresses[i] = address
        return
    found = e.operands.get(source)
    e.define(i, found if isinstance(found, Components) else e.operand(source))


# Loads and stores.


def access_alignment(access: MemoryAccess | None, type_: Type) -> int:
    """The alignment in bytes that an access relies on: of vectors, their components'.

    Programs that point to vectors at any address are wrong, but run on devices that do not mind. CPUs do not
    where the instruction says so, which costs nothing where the address is a multiple after all.
    """
    if access is None or not access.alignment:
        return alignment_of(element_type(type_))
    return min(access.alignment & -access.alignment, alignment_of(element_type(type_)))


@lowers(Op.Load)
def load(e: FunctionEmitter, i: Instruction) -> None:
    """OpLoad."""
    pointer = i.operands[0]
    if isinstance(pointer, Variable) and pointer.builtin is not None:
        e.define_builtin(i, pointer)
        return
    address = e.builtin_addresses.get(pointer)
    if address is not None:
        e.define(i, e.builtin_element(address))
        return
    access = i.memory
    e.define(
        i,
        load_value(
            e,
            e.operand(pointer),
            i.type,
            access_alignment(access, i.type),
            access is not None and access.volatile,
            access_metadata(e, pointer, access, is_load=True),
        ),
    )
    if e.width == 1 and i.type.kind is Kind.VECTOR:
        e.note_load(pointer, e.operand(pointer), size_of(i.type))


def access_metadata(
    e: FunctionEmitter, pointer: Value, access: MemoryAccess | None, is_load: bool = False
) -> str:
    """The metadata of a load or store through a pointer Value, "" or beginning with a comma.

    Between barriers no order is defined for accesses of several work-items to memory that they share, so the
    loop over work-items may be vectorised, unless some are volatile: LLVM's vectoriser would take these for
    others, or abort. Private memory is used again by the next item. Loads get no hint: it gains nothing, and
    LLVM's x86 back end dies of it where they are of 1 or 2 bytes.
    """
    hint = "" if is_load else hint_of(access)
    if access is not None and access.volatile:
        return hint
    hint += e.alias_metadata(pointer, is_load)
    return hint + e.access_group if e.access_group and storage_of(pointer) in _SHARED else hint


def hint_of(access: MemoryAccess | None) -> str:
    """The metadata of a store that streams, as whole vectors do best."""
    return ", !nontemporal !0" if access is not None and access.nontemporal else ""


_SHARED = (StorageClass.CrossWorkgroup, StorageClass.UniformConstant, StorageClass.Workgroup)
_CASTS = (Op.PtrCastToGeneric, Op.Bitcast, Op.CopyObject, Op.AccessChain, Op.InBoundsAccessChain,
          Op.PtrAccessChain, Op.InBoundsPtrAccessChain)  # fmt: skip


def storage_of(pointer: Value) -> StorageClass:
    """The storage class of a pointer, of what it was cast from if it is generic."""
    while pointer.type.storage == StorageClass.Generic and isinstance(pointer, Instruction):
        if pointer.op not in _CASTS or pointer.operands[0].type.kind is not Kind.POINTER:
            break
        pointer = pointer.operands[0]
    return pointer.type.storage


def load_value(
    e: FunctionEmitter, address: str, type_: Type, alignment: int, volatile: bool = False, metadata: str = ""
) -> str:
    """Loads a value of any type. bool is a byte in memory, 0 or 1."""
    v = "volatile " if volatile else ""
    t = ir_type(type_)
    if element_type(type_).kind is Kind.BOOL:
        memory = t.replace("i1", "i8")
        byte = e.emit(f"load {v}{memory}, ptr {address}, align {alignment}{metadata}")
        return e.emit(f"trunc {memory} {byte} to {t}")
    return e.emit(f"load {v}{t}, ptr {address}, align {alignment}{metadata}")


def store_value(
    e: FunctionEmitter, address: str, value: Value, alignment: int, volatile: bool = False, metadata: str = ""
) -> None:
    """Stores a Value."""
    store_operand(e, address, value.type, e.operand(value), alignment, volatile, metadata)


def store_operand(
    e: FunctionEmitter,
    address: str,
    type_: Type,
    operand: str,
    alignment: int,
    volatile: bool = False,
    metadata: str = "",
) -> None:
    """Stores an operand of a type."""
    v = "volatile " if volatile else ""
    t = ir_type(type_)
    if element_type(type_).kind is Kind.BOOL:
        memory = t.replace("i1", "i8")
        operand = e.emit(f"zext {t} {operand} to {memory}")
        t = memory
    e.emit_void(f"store {v}{t} {operand}, ptr {address}, align {alignment}{metadata}")


@lowers(Op.Store)
def store(e: FunctionEmitter, i: Instruction) -> None:
    """OpStore. Storing an undefined value leaves memory as it is."""
    pointer, value = i.operands[:2]
    if isinstance(value, Undef):
        return
    access = i.memory
    if _is_large_null(value):
        fill_zero(e, e.operand(pointer), size_of(value.type), access_alignment(access, value.type))
        return
    store_value(
        e,
        e.operand(pointer),
        value,
        access_alignment(access, value.type),
        access is not None and access.volatile,
        access_metadata(e, pointer, access),
    )


def _is_large_null(value: Value) -> bool:
    return (
        isinstance(value, Constant) and value.value is None and value.type.kind in (Kind.ARRAY, Kind.STRUCT)
    )


def fill_zero(e: FunctionEmitter, address: str, size: int, alignment: int) -> None:
    """Sets memory to zero."""
    e.emit_void(f"call void @llvm.memset.p0.i64(ptr align {alignment} {address}, i8 0, i64 {size}, i1 false)")


@lowers(Op.CopyMemory)
def copy_memory(e: FunctionEmitter, i: Instruction) -> None:
    """OpCopyMemory: one object."""
    target, source = i.operands[:2]
    type_ = target.type.element if target.type.element is not None else source.type.element
    _copy(e, i, target, source, f"i64 {size_of(type_)}", alignment_of(type_))


@lowers(Op.CopyMemorySized)
def copy_memory_sized(e: FunctionEmitter, i: Instruction) -> None:
    """OpCopyMemorySized: so many bytes; the operands may be the same, but may not overlap otherwise."""
    target, source, size = i.operands[:3]
    _copy(e, i, target, source, e.typed(size), 1)


def _copy(
    e: FunctionEmitter, i: Instruction, target: Value, source: Value, size: str, alignment: int
) -> None:
    access = i.memory
    if access is not None and access.alignment:
        alignment = access.alignment
    volatile = "true" if access is not None and access.volatile else "false"
    if isinstance(source, (Constant, Undef)):
        raise CodegenError("a copy from an address that is a constant")
    width = size.split()[0]
    byte = repeated_byte(source)
    if byte is not None:
        e.emit_void(
            f"call void @llvm.memset.p0.{width}(ptr align {alignment} {e.operand(target)}, i8 {byte}, "
            f"{size}, i1 {volatile})"
        )
        return
    e.emit_void(
        f"call void @llvm.memcpy.p0.p0.{width}(ptr align {alignment} {e.operand(target)}, "
        f"ptr align {alignment} {e.operand(source)}, {size}, i1 {volatile})"
    )


@lowers(Op.LifetimeStart, Op.LifetimeStop, Op.Nop, Op.LoopMerge, Op.SelectionMerge, Op.Line, Op.NoLine)
def nothing(e: FunctionEmitter, i: Instruction) -> None:
    """Hints and structure that need no code."""


@lowers(Op.Undef)
def undef(e: FunctionEmitter, i: Instruction) -> None:
    """OpUndef inside a function."""
    e.define(i, constant_text(Undef(i.type)))


@lowers(Op.ArrayLength)
def array_length(e: FunctionEmitter, i: Instruction) -> None:
    """OpArrayLength: CodegenError, for only shaders have run-time arrays."""
    raise CodegenError("OpArrayLength needs a run-time array, which kernels do not have")


@lowers(Op.SizeOf)
def size_of_pointee(e: FunctionEmitter, i: Instruction) -> None:
    """OpSizeOf: the size of what the operand points to."""
    e.define(i, str(size_of(i.operands[0].type.element)))


@lowers(Op.AssumeTrueKHR)
def assume(e: FunctionEmitter, i: Instruction) -> None:
    """OpAssumeTrueKHR."""
    e.emit_void(f"call void @llvm.assume(i1 {e.operand(i.operands[0])})")
