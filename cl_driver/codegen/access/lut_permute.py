"""Look-ups in small constant arrays: the array lies in vector registers, of which a permute picks one element
for each lane. Nothing is read from memory, so lanes outside of a mask need no care.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from ...passes.ir.instructions import ADDRESS
from ...records import record
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Instruction, Kind, Value, Variable
from ..llvm.forms import form
from ..llvm.options import CodegenOptions
from ..llvm.types import integer_bits, ir_type, size_of
from .emitter import AccessEmitter

if TYPE_CHECKING:
    from .ways import Access

# look(emitter, array, type of an element as an integer, places) -> elements
Look: TypeAlias = "Callable[[AccessEmitter, Variable, str, str], str]"

_LARGEST = 128  # bytes of an array: in two registers of 512 bits, or eight of 128; places are not negative

_CHANGES = -16  # the key of _changes, where others have how many elements are in a register

# Bits of an element: the feature, and the permutes of one and of two registers of 512 bits.
_PERMUTES = {
    8: ("avx512vbmi", "permvar.qi", "vpermi2var.qi"),
    16: ("avx512bw", "permvar.hi", "vpermi2var.hi"),
    32: ("avx512f", "permvar.si", "vpermi2var.d"),
    64: ("avx512f", "permvar.di", "vpermi2var.q"),
}


@record(frozen=True, eq=False)
class LookUp:
    """How a look-up is done: the array, at which element of it each lane looks, the function; for all lanes
    it takes so many shuffles, and other operations on vectors."""

    array: Variable
    at: Value
    look: Look
    shuffles: float
    vectors: float


def find_table(e: AccessEmitter, access: Access) -> LookUp | None:
    """The look-up for an OpLoad from a small constant array; None where that is not what it is."""
    i, pointer, type_ = access.i, access.pointer, access.type
    if i.op is not Op.Load or type_.kind not in (Kind.INT, Kind.FLOAT) or not e.is_varying(pointer):
        return None
    if not isinstance(pointer, Instruction) or pointer.op not in ADDRESS:
        return None
    terms = e.contiguity.address_terms(pointer)
    if not terms or len(terms) != 2 or terms[1][1] != size_of(type_):
        return None
    base, index = terms[0][0], terms[1][0]
    if base is None or index is None:
        return None
    while isinstance(base, Instruction) and base.op in (Op.Bitcast, Op.CopyObject):
        base = base.operands[0]
    if not isinstance(base, Variable) or not _is_table(e, base, size_of(type_)):
        return None
    found = _method(e.options, 8 * size_of(type_), size_of(base.type.element), e.width)
    return None if found is None else LookUp(base, index, *found)


def look_up(e: AccessEmitter, i: Instruction, table: LookUp) -> str:
    """The leaf of such a load."""
    type_, index = i.type, table.at
    bits = 8 * size_of(type_)
    f, t, given = e.form, f"i{bits}", ir_type(index.type)
    places = e.emit(f"freeze {f(given)} {e.leaf(index)}")
    if index.type.width != bits:
        opcode = "trunc" if index.type.width > bits else "zext"
        places = e.emit(f"{opcode} {f(given)} {places} to {f(t)}")
    leaf = table.look(e, table.array, t, places)
    return leaf if ir_type(type_) == t else e.emit(f"bitcast {f(t)} {leaf} to {f(ir_type(type_))}")


def _is_table(e: AccessEmitter, variable: Variable, size: int) -> bool:
    if variable.type.storage != StorageClass.UniformConstant:
        return False
    array = variable.type.element
    if variable.initializer is None or variable in e.module.globals_offsets or array.kind is not Kind.ARRAY:
        return False
    element = array.element
    return element.kind in (Kind.INT, Kind.FLOAT) and size_of(element) == size and size_of(array) <= _LARGEST


def _method(options: CodegenOptions, bits: int, size: int, width: int) -> tuple[Look, float, float] | None:
    """The function that looks up elements of so many bits in an array of so many bytes; the shuffles and the
    other operations on vectors that all lanes take."""
    feature, one, two = _PERMUTES[bits]
    if feature in options.features and options.vector_bits == 512:
        pieces = math.ceil(width * bits / 512)
        name, each = (one, 1) if size <= 64 else (two, 2)
        return lambda e, variable, t, places: _permute(e, variable, t, places, name), each * pieces, 0
    if bits == 8 and (options.aarch64 or "ssse3" in options.features):
        pieces, shuffles = math.ceil(width / 16), math.ceil(size / 16)
        look = _bytes if options.aarch64 else _bytes_by_sign
        return look, pieces * shuffles, pieces * 2 * (shuffles - 1)
    if bits == 32 and size <= 64 and "avx2" in options.features:
        pieces = math.ceil(width / 8)
        return _two_permutes, pieces * math.ceil(size / 32), 2 * pieces * (size > 32)
    return None


def _registers(e: AccessEmitter, variable: Variable, t: str, count: int) -> list[str]:
    """The array in vectors of so many elements, loaded once per call of the kernel."""
    key = variable, count
    if key not in e.table_registers:
        bits = integer_bits(t)
        length = size_of(variable.type.element) * 8 // bits
        outer, e.lines = e.lines, e.prologue
        whole = e.emit(f"load <{length} x {t}>, ptr {e.operand(variable)}, align {bits // 8}")
        e.table_registers[key] = [
            _elements(e, t, whole, length, range(start, start + count)) for start in range(0, length, count)
        ]
        e.lines = outer
    return e.table_registers[key]


def _elements(e: AccessEmitter, t: str, vector: str, length: int, which: range) -> str:
    """The elements with these numbers; what is not there is poison."""
    lanes = ", ".join(f"i32 {k if k < length else 'poison'}" for k in which)
    return e.emit(
        f"shufflevector <{length} x {t}> {vector}, <{length} x {t}> poison, <{len(which)} x i32> <{lanes}>"
    )


def _in_pieces(e: AccessEmitter, t: str, places: str, count: int, look: Callable[[str], str]) -> str:
    """look(vector of `count` places) for all lanes."""
    found, width = [], e.width
    for start in range(0, width, count):
        piece = _elements(e, t, places, width, range(start, start + count)) if count != width else places
        found.append(look(piece))
    length = count
    while len(found) > 1:
        f, both = form(length)(t), ", ".join(f"i32 {k}" for k in range(2 * length))
        found = [
            e.emit(f"shufflevector {f} {a}, {f} {b}, <{2 * length} x i32> <{both}>")
            for a, b in zip(found[::2], found[1::2], strict=True)
        ]
        length *= 2
    return found[0] if length == width else _elements(e, t, found[0], length, range(width))


def _permute(e: AccessEmitter, variable: Variable, t: str, places: str, name: str) -> str:
    """A permute of one or two registers."""
    count = 512 // integer_bits(t)
    f, registers = form(count)(t), _registers(e, variable, t, count)

    def look(piece: str) -> str:
        operands = [registers[0], piece, *registers[1:]]
        typed = ", ".join(f"{f} {operand}" for operand in operands)
        return e.emit(f"call {f} @llvm.x86.avx512.{name}.512({typed})")

    return _in_pieces(e, t, places, count, look)


def _bytes(e: AccessEmitter, variable: Variable, t: str, places: str) -> str:
    """Sixteen bytes of the array at a time, of which a shuffle gives 0 where a place is not among them."""
    registers, f = _registers(e, variable, t, 16), form(16)

    def look(piece: str) -> str:
        found = ""
        for k, register in enumerate(registers):
            here = e.emit(f"xor {f(t)} {piece}, {f.splat(t, str(16 * k))}") if k else piece
            permuted = e.emit(f"call {f(t)} @llvm.aarch64.neon.tbl1.v16i8({f(t)} {register}, {f(t)} {here})")
            found = e.emit(f"or {f(t)} {found}, {permuted}") if found else permuted
        return found

    return _in_pieces(e, t, places, 16, look)


def _changes(e: AccessEmitter, variable: Variable, t: str) -> list[str]:
    """Sixteen bytes of the array, and in what each sixteen differ from those before."""
    key = variable, _CHANGES
    if key not in e.table_registers:
        first, *others = _registers(e, variable, t, 16)
        outer, e.lines = e.lines, e.prologue
        changes, before = [first], first
        for register in others:
            changes.append(e.emit(f"xor {form(16)(t)} {before}, {register}"))
            before = register
        e.table_registers[key] = changes
        e.lines = outer
    return e.table_registers[key]


def _bytes_by_sign(e: AccessEmitter, variable: Variable, t: str, places: str) -> str:
    """A shuffle that gives 0 where a place is negative, and else goes by its lowest four bits: of the first
    sixteen bytes of the array, then of what changes where 16, 32, ... can be taken off."""
    changes, f = _changes(e, variable, t), form(16)

    def look(piece: str) -> str:
        found = ""
        for k, change in enumerate(changes):
            here = e.emit(f"sub {f(t)} {piece}, {f.splat(t, str(16 * k))}") if k else piece
            permuted = e.emit(f"call {f(t)} @llvm.x86.ssse3.pshuf.b.128({f(t)} {change}, {f(t)} {here})")
            found = e.emit(f"xor {f(t)} {found}, {permuted}") if found else permuted
        return found

    return _in_pieces(e, t, places, 16, look)


def _two_permutes(e: AccessEmitter, variable: Variable, t: str, places: str) -> str:
    """Up to sixteen elements in two registers of 256 bits."""
    registers, f = _registers(e, variable, t, 8), form(8)

    def look(piece: str) -> str:
        first, *second = [
            e.emit(f"call {f(t)} @llvm.x86.avx2.permd({f(t)} {register}, {f(t)} {piece})")
            for register in registers
        ]
        if not second:
            return first
        beyond = e.emit(f"icmp ugt {f(t)} {piece}, {f.splat(t, '7')}")
        return e.emit(f"select {f('i1')} {beyond}, {f(t)} {second[0]}, {f(t)} {first}")

    return _in_pieces(e, t, places, 8, look)
