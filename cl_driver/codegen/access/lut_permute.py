"""Look-ups in small constant arrays: the array lies in vector registers, of which a permute picks one element
for each lane. Nothing is read from memory, so lanes outside of a mask need no care.

Bytes of all lanes seldom fill a register. On x86 look-ups of a block in one array wait until they fill one,
or until somebody needs what one of them finds, and are done together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ...passes.ir.instructions import ADDRESS, PURE
from ...records import record
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Instruction, Kind, Value, Variable
from ..llvm.forms import form
from ..llvm.options import CodegenOptions
from ..llvm.types import integer_bits, ir_type, size_of
from .emitter import AccessEmitter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from .ways import Access

# look(emitter, array, type of an element as an integer, places) -> elements
Look: TypeAlias = "Callable[[AccessEmitter, Variable, str, str], str]"

_LARGEST = 128  # bytes of an array: in two registers of 512 bits, or eight of 128; places are not negative

_MOST_HELD = 32  # instructions that are put off until more is looked up
_PLACE = 32  # bits of a place before it becomes a byte

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


def look_up(e: AccessEmitter, i: Instruction, table: LookUp) -> None:
    """Defines the leaf of such a load, at once or in flush()."""
    if not e.has_waiting_look_ups or table.look is not _bytes_by_sign or 2 * e.width > _lanes(e):
        e.define_leaves(i, [_look_up(e, i, table)])
        return
    e.look_ups.append((i, table, e.leaf(table.at)))


def brought_together(e: AccessEmitter, instructions: Sequence[Instruction]) -> Sequence[Instruction]:
    """A block's instructions, with what is made of a look-up behind the others that may be done with it."""
    found = _method(e.options, 8, 16, e.width)
    if found is None or found[0] is not _bytes_by_sign or 2 * e.width > _lanes(e):
        return instructions
    look_ups = {i for i in instructions if _looks_bytes_up(e, i)}
    if not e.has_waiting_look_ups or len(look_ups) < 2:
        return instructions
    made: list[Instruction] = []
    held: list[Instruction] = []
    waiting: set[Instruction] = set()  # those held, and look-ups that may be waiting
    count = 0
    for i in instructions:
        uses = i.mask in waiting or not waiting.isdisjoint(o for o in i.operands if type(o) is Instruction)
        if uses and i.op in PURE and i.op is not Op.Phi and len(held) < _MOST_HELD:
            held.append(i)
            waiting.add(i)
            continue
        if uses or _ends_waiting(i) or count * e.width >= _lanes(e):
            made += held
            held, waiting, count = [], set(), 0
        made.append(i)
        if i in look_ups:
            waiting.add(i)
            count += 1
    return made + held


def _looks_bytes_up(e: AccessEmitter, i: Instruction) -> bool:
    """Whether an instruction looks like what find_table() will find, a table of bytes."""
    if i.op is not Op.Load or i.type.kind is not Kind.INT or size_of(i.type) != 1:
        return False
    base = i.operands[0]
    if not e.is_varying(base):
        return False
    while isinstance(base, Instruction) and base.op in (*ADDRESS, Op.Bitcast, Op.CopyObject):
        base = base.operands[0]
    return isinstance(base, Variable) and _is_table(e, base, 1)


def must_flush(e: AccessEmitter, i: Instruction) -> bool:
    """Whether look-ups that wait must be done before an instruction."""
    if _ends_waiting(i) or len(e.look_ups) * e.width >= _lanes(e):
        return True
    waiting = [look_up[0] for look_up in e.look_ups]
    return any(operand in waiting for operand in i.operands) or i.mask in waiting


def _ends_waiting(i: Instruction) -> bool:
    """Whether nothing waits for more look-ups behind an instruction: it does something, or ends the block."""
    return i.op not in PURE and i.op is not Op.Load


def flush(e: AccessEmitter) -> list[Instruction]:
    """Does the look-ups that wait; the loads that they are."""
    waiting, e.look_ups = e.look_ups, []
    of_array: dict[Variable, list[tuple[Instruction, LookUp, str]]] = {}
    for one in waiting:
        of_array.setdefault(one[1].array, []).append(one)
    for together in of_array.values():
        if len(together) == 1:
            i, table, _ = together[0]
            e.define_leaves(i, [_look_up(e, i, table)])
        else:
            _look_up_together(e, together)
    return [i for i, _, _ in waiting]


def _look_up_together(e: AccessEmitter, together: list[tuple[Instruction, LookUp, str]]) -> None:
    """Defines the leaves of look-ups of bytes in one array."""
    lanes, width = _lanes(e), e.width
    given = []
    for _, table, index in together:
        bits = table.at.type.width
        given.append((e.resized(e.form, index, f"i{bits}", f"i{_PLACE}"), table))
    whole = form(lanes)
    count = 1
    pieces = [place for place, _ in given]
    while count * width < lanes:
        f, both = form(count * width)(f"i{_PLACE}"), ", ".join(f"i32 {k}" for k in range(2 * count * width))
        pieces += ["poison"] * (len(pieces) % 2)
        pieces = [
            e.emit(f"shufflevector {f} {a}, {f} {b}, <{2 * count * width} x i32> <{both}>")
            for a, b in zip(pieces[::2], pieces[1::2], strict=True)
        ]
        count *= 2
    (places,) = pieces
    places = e.emit(f"trunc {whole(f'i{_PLACE}')} {places} to {whole('i8')}")
    found = _by_sign(e, together[0][1].array, "i8", e.emit(f"freeze {whole('i8')} {places}"), lanes)
    for k, (i, _, _) in enumerate(together):
        leaf = _elements(e, "i8", found, lanes, range(k * width, (k + 1) * width))
        e.define_leaves(i, [leaf])


def _lanes(e: AccessEmitter) -> int:
    """How many bytes are looked up at once."""
    return 32 if "avx2" in e.options.features and e.options.vector_bits >= 256 else 16


def _look_up(e: AccessEmitter, i: Instruction, table: LookUp) -> str:
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


def _changes(e: AccessEmitter, variable: Variable, t: str, lanes: int) -> list[str]:
    """Sixteen bytes of the array, and in what each sixteen differ from those before; over and over in so many
    lanes."""
    key = variable, -lanes  # others have how many elements are in a register
    if key not in e.table_registers:
        first, *others = _registers(e, variable, t, 16)
        outer, e.lines = e.lines, e.prologue
        changes, before = [first], first
        for register in others:
            changes.append(e.emit(f"xor {form(16)(t)} {before}, {register}"))
            before = register
        if lanes > 16:
            f, repeated = form(16)(t), ", ".join(f"i32 {k % 16}" for k in range(lanes))
            changes = [
                e.emit(f"shufflevector {f} {change}, {f} poison, <{lanes} x i32> <{repeated}>")
                for change in changes
            ]
        e.table_registers[key] = changes
        e.lines = outer
    return e.table_registers[key]


def _bytes_by_sign(e: AccessEmitter, variable: Variable, t: str, places: str) -> str:
    """See _by_sign()."""
    return _in_pieces(e, t, places, 16, lambda piece: _by_sign(e, variable, t, piece, 16))


def _by_sign(e: AccessEmitter, variable: Variable, t: str, places: str, lanes: int) -> str:
    """A shuffle that gives 0 where a place is negative, and else goes by its lowest four bits: of the first
    sixteen bytes of the array, then of what changes where 16, 32, ... can be taken off."""
    f, found = form(lanes), ""
    shuffle = "avx2.pshuf.b" if lanes == 32 else "ssse3.pshuf.b.128"
    for k, change in enumerate(_changes(e, variable, t, lanes)):
        here = e.emit(f"sub {f(t)} {places}, {f.splat(t, str(16 * k))}") if k else places
        permuted = e.emit(f"call {f(t)} @llvm.x86.{shuffle}({f(t)} {change}, {f(t)} {here})")
        found = e.emit(f"xor {f(t)} {found}, {permuted}") if found else permuted
    return found


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
