"""Program-scope variables: their place in the memory that all kernels of a program share, and its
contents.

CrossWorkgroup variables live there, and so do UniformConstant variables whose initialiser holds an address
or whose address an initialiser holds. Object code thus has no absolute relocations. Large tables live there,
too: as text of a kernel's LLVM IR they would take several times their size, once for each kernel. And so do
those that hosts are to read (SPV_INTEL_global_variable_host_access).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ...passes.ir.layout import step_into
from ...records import field, record
from ...spirv.enums import Decoration, HostAccessQualifier, LinkageType, Op, StorageClass
from ...spirv.layout import member_offsets
from ...spirv.module import Constant, ConstantExpr, Instruction, Kind, Module, Type, Undef, Value, Variable
from ..llvm.errors import CodegenError
from ..llvm.types import alignment_of, size_of


@record(slots=True)
class GlobalsLayout:
    """offsets: of each variable; image: the first bytes of the memory, the rest is zero;
    fixups: (offset, target): the 8 bytes at offset hold the address of the byte at target."""

    offsets: dict[Variable, int] = field(default_factory=dict)
    size: int = 0
    alignment: int = 1
    image: bytes = b""
    fixups: list[tuple[int, int]] = field(default_factory=list)


def variable_alignment(variable: Variable | Instruction) -> int:
    """The alignment of a Variable or OpVariable: its type's, or a larger one that is asked for."""
    asked: int
    (asked,) = variable.decorations.get(Decoration.Alignment, (0,))
    return max(alignment_of(variable.type.element), asked)


LARGE_TABLE = 16 << 10  # bytes
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}  # of struct, for scalars of so many bytes


def layout_globals(module: Module) -> GlobalsLayout:
    """The layout for a program: the same for all its kernels."""
    shared = [
        v for v in module.variables if v.type.storage == StorageClass.CrossWorkgroup and not _is_import(v)
    ]
    pending = list(shared) + [v for v in module.variables if v.type.storage == StorageClass.UniformConstant]
    seen = set(shared)
    for variable in pending:
        targets = set(_addressed(variable.initializer))
        is_large = variable.initializer is not None and size_of(variable.type.element) > LARGE_TABLE
        if (targets or is_large or _host_access(variable)[0]) and variable not in seen:
            seen.add(variable)
            shared.append(variable)
        for target in targets - seen:
            if target.type.storage in (StorageClass.UniformConstant, StorageClass.CrossWorkgroup):
                seen.add(target)
                shared.append(target)
    result = GlobalsLayout()
    for variable in shared:
        alignment = variable_alignment(variable)
        result.size = -(-result.size // alignment) * alignment
        result.alignment = max(result.alignment, alignment)
        result.offsets[variable] = result.size
        result.size += max(1, size_of(variable.type.element))
    image = bytearray(result.size)
    for variable, offset in result.offsets.items():
        if variable.initializer is not None:
            _write(result, image, offset, variable.initializer, variable.type.element)
    result.image = bytes(image).rstrip(b"\0")
    return result


READS, WRITES = 1, 2  # what hosts may do with a variable: bits
_ACCESS = {
    HostAccessQualifier.NoneINTEL: 0,
    HostAccessQualifier.ReadINTEL: READS,
    HostAccessQualifier.WriteINTEL: WRITES,
    HostAccessQualifier.ReadWriteINTEL: READS | WRITES,
}


def _host_access(variable: Variable) -> tuple[int, str]:
    """What a variable says that hosts do with it, and by which name; (0, "") if it says nothing."""
    qualifier, name = variable.decorations.get(Decoration.HostAccessINTEL, (None, ""))
    return _ACCESS.get(qualifier, 0), name


def host_variables(layout: GlobalsLayout) -> list[tuple[str, int, int, int]]:
    """What hosts may ask for: (name, offset, size, READS | WRITES), each name once.

    cl_intel_global_variable_access: "The implementation looks first for an OpVariable that is decorated with
    HostAccessINTEL where the Name operand is the same as name. The implementation next looks for an
    OpVariable that is decorated with LinkageAttributes where the Linkage Type is Export". Code takes
    constants for what they are initialised with, so hosts cannot write to them.
    """
    found: dict[str, tuple[str, int, int, int]] = {}
    names = [(variable, _host_access(variable)[1]) for variable in layout.offsets]
    names += [
        (variable, variable.linkage[0])
        for variable in layout.offsets
        if variable.linkage is not None and variable.linkage[1] != LinkageType.Import
    ]
    for variable, name in names:
        if not name or name in found:
            continue
        is_decorated = Decoration.HostAccessINTEL in variable.decorations
        access = _host_access(variable)[0] if is_decorated else READS | WRITES
        if variable.type.storage == StorageClass.UniformConstant:
            access &= READS
        found[name] = name, layout.offsets[variable], size_of(variable.type.element), access
    return list(found.values())


def _is_import(variable: Variable) -> bool:
    return variable.linkage is not None and getattr(variable.linkage[1], "name", "") == "Import"


def _addressed(value: Value | None) -> Iterator[Variable]:
    """The variables whose addresses an initialiser holds."""
    if isinstance(value, Variable):
        yield value
    elif isinstance(value, ConstantExpr):
        for operand in value.operands:
            yield from _addressed(operand)
    elif isinstance(value, Constant) and isinstance(value.value, tuple):
        for constituent in value.value:
            yield from _addressed(constituent)


def _write(result: GlobalsLayout, image: bytearray, offset: int, value: Value, type_: Type) -> None:
    """Writes an initialiser at an offset of the image."""
    if isinstance(value, (Variable, ConstantExpr)):
        base, addend = constant_offset(value)
        if base is None:
            image[offset : offset + 8] = (addend & (1 << 64) - 1).to_bytes(8, "little")
            return
        if base not in result.offsets:
            raise CodegenError(f"the address of {base.name} in the initialiser of a program-scope variable")
        result.fixups.append((offset, result.offsets[base] + addend))
        return
    if isinstance(value, Undef):
        return
    if not isinstance(value, Constant):
        raise CodegenError("an initialiser that is not known at compile time")
    if value.value is None:
        return
    kind = type_.kind
    if kind in (Kind.VECTOR, Kind.ARRAY, Kind.STRUCT):
        if kind is Kind.STRUCT:
            members = zip(member_offsets(type_), value.value, type_.members, strict=True)
            for distance, constituent, member in members:
                _write(result, image, offset + distance, constituent, member)
            return
        size = size_of(type_.element)
        if (
            size in _CODES
            and type_.element.kind in (Kind.INT, Kind.FLOAT)
            and {*map(type, value.value)} == {Constant}
        ):
            values = [constituent.value or 0 for constituent in value.value]
            image[offset : offset + size * len(values)] = struct.pack(
                f"<{len(values)}{_CODES[size]}", *values
            )
            return
        for k, constituent in enumerate(value.value):
            _write(result, image, offset + k * size, constituent, type_.element)
        return
    size = size_of(type_)
    image[offset : offset + size] = (int(value.value) & (1 << 8 * size) - 1).to_bytes(size, "little")


def constant_offset(value: Value) -> tuple[Variable | None, int]:
    """A constant address as a variable and a distance in bytes; no variable for null and integers.
    CodegenError for what is no constant address."""
    if isinstance(value, Variable):
        return value, 0
    if isinstance(value, Constant):
        return None, int(value.value or 0)
    if not isinstance(value, ConstantExpr):
        raise CodegenError("an initialiser that is not known at compile time")
    op, operands = value.op, value.operands
    if op in (
        Op.Bitcast,
        Op.PtrCastToGeneric,
        Op.GenericCastToPtr,
        Op.ConvertPtrToU,
        Op.ConvertUToPtr,
        Op.CopyObject,
    ):
        return constant_offset(operands[0])
    if op in (Op.AccessChain, Op.InBoundsAccessChain, Op.PtrAccessChain, Op.InBoundsPtrAccessChain):
        base, offset = constant_offset(operands[0])
        type_ = operands[0].type.element
        indices = list(operands[1:])
        if op in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain):
            offset += _signed(indices.pop(0)) * size_of(type_)
        distance = 0
        for index in indices:
            type_, distance = step_into(type_, _signed(index))
            offset += distance
        if indices and type_ is not value.type.element:
            # clang-22 writes `table + 2` as a step of 8 chars, but on the array of int that table is: the
            # chain does not lead to its own result's type, whose size is what the last index counts.
            offset += _signed(indices[-1]) * size_of(value.type.element) - distance
        return base, offset
    raise CodegenError(f"Op{op.name} in an initialiser")


def _signed(index: Constant) -> int:
    number, width = index.value or 0, index.type.width
    return number - (1 << width) if number >> width - 1 else number
