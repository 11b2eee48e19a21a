"""What each lane loads or stores at an address of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...passes.cost import access_costs
from ...passes.ir.remarks import GATHER, LANES, ROWS, SCATTER
from ...spirv.enums import Op
from ...spirv.module import Instruction, Kind, Type, Value
from ..library.shared_code import is_written_out, shared
from ..llvm.forms import MANGLED, form
from ..llvm.types import ir_type, leaf_types, member_offset, size_of
from .block_transpose import (
    goes_in_blocks,
    one_vector,
    put_together,
    registers_of,
    shuffle,
    take_apart,
    take_rows_apart,
)
from .emitter import AccessEmitter

_POINTER_STEPS = (Op.PtrAccessChain, Op.InBoundsPtrAccessChain)
# Lines of LLVM IR for each lane, those of shuffles being long.
_LINES_OF_LOAD, _LINES_OF_STORE, _LINES_OF_ROW = 5, 3, 6
_JOINED = {"i8": 8, "i16": 16}  # bits of what lanes load that are joined before they become a vector
_EXTENSIONS = {Op.SConvert: "sext", Op.UConvert: "zext"}


def leaf_offsets(type_: Type) -> list[int]:
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


def memory_type(type_: Type) -> str:
    """The LLVM type of a scalar in memory: bool is a byte."""
    return "i8" if type_.kind is Kind.BOOL else ir_type(type_)


def from_memory(e: AccessEmitter, type_: Type, leaf: str) -> str:
    """A leaf that was loaded: bool is a byte in memory."""
    return e.emit(f"trunc {e.form('i8')} {leaf} to {e.form('i1')}") if type_.kind is Kind.BOOL else leaf


def to_memory(e: AccessEmitter, type_: Type, leaf: str) -> str:
    """A leaf as it is stored."""
    return e.emit(f"zext {e.form('i1')} {leaf} to {e.form('i8')}") if type_.kind is Kind.BOOL else leaf


def gather(
    e: AccessEmitter,
    addresses: str,
    type_: Type,
    alignment: int,
    mask: str | None,
    metadata: str = "",
    affine: tuple[str, int] | None = None,
    how: str = "",
) -> list[str]:
    """The leaves of W values at any addresses, 0 in lanes outside of the mask.

    affine: (lane 0's address, bytes to that of the next lane), if that is known. how: GATHER, ROWS or LANES
    of passes/cost/access_costs.py, the cheapest of them if it is not given. OpenCL vectors of 2, 4 or 8
    bytes are loaded as one integer, larger ones as one vector per lane.
    """
    types = leaf_types(type_)
    size, count = sum(size_of(t) for t in types), len(types)
    by_instruction = (how or ways_anywhere(e, type_, False, mask is not None)[0]) == access_costs.GATHER
    access = e, addresses, mask, metadata, affine
    if type_.kind is Kind.VECTOR and count & (count - 1) == 0:
        if size > 8:
            return _rows(*access, types, alignment)
        chunks = _lanes_of(*access, f"i{8 * size}", 0, alignment, by_instruction)
        return split(e, chunks, 8 * size, types)
    leaves = []
    for t, offset in zip(types, leaf_offsets(type_), strict=True):
        own = min(alignment, size_of(t)) if offset or count > 1 else alignment
        leaves.append(from_memory(e, t, _lanes_of(*access, memory_type(t), offset, own, by_instruction)))
    return leaves


def ways_anywhere(e: AccessEmitter, type_: Type, is_store: bool, is_masked: bool) -> tuple[str, ...]:
    """The ways for values of a type where nothing is known of the addresses, the cheapest first."""
    key = type_, is_store, is_masked
    found: tuple[str, ...] | None = e.ways.get(key)
    if found is None:
        reach = access_costs.reach(type_, e.width, e.cpu, None, is_store, is_masked)
        ways = access_costs.at_any_place(reach, e.cpu)
        first, _ = access_costs.cheapest(ways, reach, e.cpu)
        found = e.ways[key] = first, *(name for name, _ in ways if name != first)
    return found


def _is_gathered(t: str) -> bool:
    """No CPU gathers less than 32 bits."""
    return t not in ("i8", "i16", "half")


def _note(e: AccessEmitter, how: str, t: str, mask: str | None, stride: int | None) -> None:
    """Tells how lanes get at memory, and why so."""
    if e.remarks is not None:
        why = [] if stride is None else [f"{stride} bytes from lane to lane"]
        why += [f"no fast gather or scatter of {t}"] if how == LANES else []
        e.note(how, ", ".join(why), mask is not None)


def _lanes_of(
    e: AccessEmitter,
    addresses: str,
    mask: str | None,
    metadata: str,
    affine: tuple[str, int] | None,
    t: str,
    offset: int,
    alignment: int,
    by_instruction: bool,
) -> str:
    """`<W x t>` from addresses plus an offset."""
    f, is_gathered = e.form, by_instruction and _is_gathered(t)
    _note(e, GATHER if is_gathered else LANES, t, mask, affine and affine[1])
    if not is_gathered:

        def by_lane(places: Iterator[str], _: list[str], metadata: str) -> list[str]:
            values = [e.emit(f"load {t}, ptr {at}, align {alignment}{metadata}") for at in list(places)]
            if t in _JOINED and e.width * _JOINED[t] >= 64:
                return [joined(e, t, values)]
            return [inserted(e, t, values)]

        places = Places(e, addresses, mask, affine, "spare", offset)
        key = "load", t, alignment
        return places.each(e, key, _LINES_OF_LOAD * e.width, [], [f(t)], metadata, by_lane)[0]
    where = e.emit(f"getelementptr i8, {f('ptr')} {addresses}, i64 {offset}") if offset else addresses
    return e.emit(
        f"call {f(t)} @llvm.masked.gather.{f.suffix(MANGLED[t])}.{f.suffix('p0')}"
        f"({f('ptr')} align {alignment} {where}, {f('i1')} {mask or 'splat (i1 true)'}, "
        f"{f(t)} zeroinitializer){metadata}"
    )


def words_of_lanes(e: AccessEmitter, lanes: str, bits: int, size: int) -> Iterator[str]:
    """Integers of so many bits of all lanes, as words of `size` bits, several lanes in each: there are fewer
    ports for what leaves a vector than for what takes words apart.

    LLVM's code generator is not to know what is in them. For CPUs with AVX-512, LLVM 22 drops the mask by
    which the lower half of a word is used if it knows that both halves are small, and uses all of the word.
    """
    whole, count = bits * e.width, bits * e.width // size
    t = e.form(f"i{bits}")
    if whole >= 32:
        floats, suffix = (
            ("float", "f32") if whole == 32 else (f"<{whole // 32} x float>", f"v{whole // 32}f32")
        )
        lanes = e.emit(f"bitcast {t} {lanes} to {floats}")
        lanes, t = e.emit(f"call {floats} @llvm.arithmetic.fence.{suffix}({floats} {lanes})"), floats
    words = e.emit(f"bitcast {t} {lanes} to <{count} x i{size}>")
    for k in range(count):
        yield e.emit(f"extractelement <{count} x i{size}> {words}, i32 {k}")


def inserted(e: AccessEmitter, t: str, values: list[str]) -> str:
    """Scalars as a vector."""
    f, result = form(len(values)), "zeroinitializer"
    for k, value in enumerate(values):
        result = e.emit(f"insertelement {f(t)} {result}, {t} {value}, i32 {k}")
    return result


def joined(e: AccessEmitter, t: str, values: list[str]) -> str:
    """Small integers as a vector, by way of integers of 64 bits: x86 has one port to insert elements, which
    with vectors of 512 bits is one of two for all that is done to these, and more of them for scalars."""
    bits, words = _JOINED[t], []
    for first in range(0, len(values), 64 // bits):
        pieces = [e.emit(f"zext {t} {value} to i64") for value in values[first : first + 64 // bits]]
        pieces = [e.emit(f"shl i64 {piece}, {k * bits}") if k else piece for k, piece in enumerate(pieces)]
        while len(pieces) > 1:
            pieces = [e.emit(f"or i64 {a}, {b}") for a, b in zip(pieces[::2], pieces[1::2], strict=True)]
        words += pieces
    whole = inserted(e, "i64", words)
    return e.emit(f"bitcast <{len(words)} x i64> {whole} to <{len(values)} x {t}>")


class Places:
    """Each lane's address: lane 0's and a stride, or a vector; in lanes outside of the mask that of 128 bytes
    that nobody minds (`instead`)."""

    def __init__(
        self,
        e: AccessEmitter,
        addresses: str,
        mask: str | None,
        affine: tuple[str, int] | None,
        instead: str,
        offset: int = 0,
    ) -> None:
        self.stride: int | None = None
        self.offset, self.operand = offset, addresses
        if affine is not None and mask is None:
            self.operand, self.stride = affine
            return
        f = e.form
        if offset:
            self.operand = e.emit(f"getelementptr i8, {f('ptr')} {addresses}, i64 {offset}")
        if mask is not None:
            other = e.splat(e.harmless_memory(instead), "ptr", f)
            select = f"select {f('i1')} {mask}, {f('ptr')} {self.operand}, {f('ptr')} {other}"
            self.operand = e.emit(select)

    def of_lanes(self, e: AccessEmitter, operand: str) -> Iterator[str]:
        """The addresses, made of such an operand, each emitted when it is asked for."""
        for lane in range(e.width):
            if self.stride is None:
                yield e.emit(f"extractelement {e.form('ptr')} {operand}, i32 {lane}")
                continue
            step = lane * self.stride + self.offset
            yield e.emit(f"getelementptr i8, ptr {operand}, i64 {step}") if step else operand

    def each(
        self,
        e: AccessEmitter,
        key: tuple[object, ...],
        lines: int,
        parameters: list[tuple[str, str]],
        results: list[str],
        metadata: str,
        build: Callable[[Iterator[str], list[str], str], list[str]],
    ) -> list[str]:
        """What build() makes of the addresses, of what else it is given, and of metadata, which only code
        that is written out has: see shared_code.py."""
        if is_written_out(e, lines):
            e.written_out += lines
            return build(self.of_lanes(e, self.operand), [operand for _, operand in parameters], metadata)
        own = "ptr" if self.stride is not None else e.form("ptr"), self.operand
        steps = None if self.stride is None else (self.stride, self.offset)
        return shared(
            e, (*key, steps), [own, *parameters], results,
            lambda operands: build(self.of_lanes(e, operands[0]), operands[1:], ""),
        )  # fmt: skip


def _rows(
    e: AccessEmitter,
    addresses: str,
    mask: str | None,
    metadata: str,
    affine: tuple[str, int] | None,
    types: Sequence[Type],
    alignment: int,
) -> list[str]:
    """The leaves of OpenCL vectors, each loaded as one."""
    count, t = len(types), memory_type(types[0])
    _note(e, ROWS, t, mask, affine and affine[1])
    key = "rows", t, count, alignment
    leaves = Places(e, addresses, mask, affine, "spare").each(
        e, key, _LINES_OF_ROW * e.width, [], [e.form(t)] * count, metadata,
        lambda places, _, metadata: _leaves_of_rows(e, list(places), metadata, types, alignment),
    )  # fmt: skip
    return [from_memory(e, types[0], leaf) for leaf in leaves]


def _leaves_of_rows(
    e: AccessEmitter, places: list[str], metadata: str, types: Sequence[Type], alignment: int
) -> list[str]:
    count, t = len(types), memory_type(types[0])
    if goes_in_blocks(e, t, count):
        return take_rows_apart(e, t, _blocks_of_rows(e, places, metadata, t, count, alignment))
    # Where vectors have 256 bits, LLVM makes two loads and one shuffle of each pair of 64 bits; of more at
    # once it makes many blends, and keeps everything in registers.
    taken = count if "avx512f" in e.options.features or size_of(types[0]) < 8 else min(count, 2)
    leaves = []
    for first in range(0, count, taken):
        offset = first * size_of(types[0])
        aligned = min(alignment, offset & -offset or alignment)
        leaves += _some_of_rows(e, places, metadata, t, taken, offset, aligned)
    return leaves


def _blocks_of_rows(
    e: AccessEmitter, places: list[str], metadata: str, t: str, count: int, alignment: int
) -> list[list[str]]:
    """For each block of 128 bits of OpenCL vectors, those of all lanes."""
    blocks = []
    for offset in range(0, 4 * count, 16):
        aligned = min(alignment, offset & -offset or alignment)
        there = [e.emit(f"getelementptr i8, ptr {at}, i64 {offset}") if offset else at for at in places]
        blocks.append([e.emit(f"load <4 x {t}>, ptr {at}, align {aligned}{metadata}") for at in there])
    return blocks


def _some_of_rows(
    e: AccessEmitter, places: list[str], metadata: str, t: str, count: int, offset: int, alignment: int
) -> list[str]:
    """The leaves of as many elements of a type, which begin at an offset from each lane's place."""
    if offset:
        places = [e.emit(f"getelementptr i8, ptr {at}, i64 {offset}") for at in places]
    rows = [e.emit(f"load <{count} x {t}>, ptr {at}, align {alignment}{metadata}") for at in places]
    length = count
    data, length = one_vector(e, t, rows, count), count * len(rows)
    return [every(e, t, data, length, count, k) for k in range(count)]


def every(e: AccessEmitter, t: str, data: str, length: int, stride: int, first: int) -> str:
    """Elements first, first + stride, ... of a vector, as many as there are lanes."""
    lanes = ", ".join(f"i32 {lane * stride + first}" for lane in range(e.width))
    whole = f"<{length} x {t}>"
    return e.emit(f"shufflevector {whole} {data}, {whole} poison, <{e.width} x i32> <{lanes}>")


def split(e: AccessEmitter, chunks: str, bits: int, types: Sequence[Type]) -> list[str]:
    """The leaves that integers of so many bits consist of."""
    t, count, f, whole = memory_type(types[0]), len(types), e.form, f"i{bits}"
    if bits // count >= 32:
        data = e.emit(f"bitcast {f(whole)} {chunks} to <{e.width * count} x {t}>")
        if goes_in_blocks(e, t, count):
            return take_apart(e, t, registers_of(e, t, data, e.width * count), count, count)
        return [every(e, t, data, e.width * count, count, k) for k in range(count)]
    narrow, leaves = f"i{bits // count}", []
    for k, type_ in enumerate(types):
        bits_of = (
            e.emit(f"lshr {f(whole)} {chunks}, {f.splat(whole, str(k * bits // count))}") if k else chunks
        )
        leaf = e.emit(f"trunc {f(whole)} {bits_of} to {f(narrow)}")
        leaf = leaf if t == narrow else e.emit(f"bitcast {f(narrow)} {leaf} to {f(t)}")
        leaves.append(from_memory(e, type_, leaf))
    return leaves


def scatter(
    e: AccessEmitter, addresses: str, type_: Type, leaves: list[str], alignment: int, mask: str | None,
    metadata: str = "", stride: int | None = None, how: str = "",
) -> None:  # fmt: skip
    """Stores leaves, as they are in memory, to any addresses; where these are equal, the last lane's stay.

    stride: bytes from one lane's to the next, if known; how: as of gather().
    """
    types = leaf_types(type_)
    size, count = sum(size_of(t) for t in types), len(types)
    by_instruction = (how or ways_anywhere(e, type_, True, mask is not None)[0]) == access_costs.GATHER
    if type_.kind is Kind.VECTOR and count & (count - 1) == 0:
        t = memory_type(types[0])
        length = e.width * count
        if size <= 8:
            data = interleave(e, t, leaves, count)
            whole = f"i{8 * size}"
            data = e.emit(f"bitcast <{length} x {t}> {data} to {e.form(whole)}")
            _store_lanes(e, addresses, mask, metadata, whole, data, 0, alignment, stride, by_instruction)
            return
        _note(e, ROWS, t, mask, stride)

        def by_row(places: Iterator[str], leaves: list[str], metadata: str) -> list[str]:
            data = interleave(e, t, leaves, count)
            for lane, at in enumerate(list(places)):
                own = ", ".join(f"i32 {lane * count + k}" for k in range(count))
                row = (
                    f"shufflevector <{length} x {t}> {data}, <{length} x {t}> poison, <{count} x i32> <{own}>"
                )
                e.emit_void(f"store <{count} x {t}> {e.emit(row)}, ptr {at}, align {alignment}{metadata}")
            return []

        given = [(e.form(t), leaf) for leaf in leaves]
        key = "store rows", t, count, alignment
        Places(e, addresses, mask, None, "dump").each(
            e, key, _LINES_OF_ROW * e.width, given, [], metadata, by_row
        )
        return
    for leaf_type, value, offset in zip(types, leaves, leaf_offsets(type_), strict=True):
        aligned = min(alignment, size_of(leaf_type)) if offset or count > 1 else alignment
        t = memory_type(leaf_type)
        _store_lanes(e, addresses, mask, metadata, t, value, offset, aligned, stride, by_instruction)


def _store_lanes(
    e: AccessEmitter,
    addresses: str,
    mask: str | None,
    metadata: str,
    t: str,
    value: str,
    offset: int,
    alignment: int,
    stride: int | None,
    by_instruction: bool,
) -> None:
    """Stores `<W x t>` to addresses plus an offset."""
    f, has_scatters = e.form, by_instruction and _is_gathered(t)
    _note(e, SCATTER if has_scatters else LANES, t, mask, stride)
    if not has_scatters:

        def by_lane(places: Iterator[str], values: list[str], metadata: str) -> list[str]:
            for lane, at in enumerate(list(places)):
                one = e.emit(f"extractelement {f(t)} {values[0]}, i32 {lane}")
                e.emit_void(f"store {t} {one}, ptr {at}, align {alignment}{metadata}")
            return []

        key = "store", t, alignment
        places = Places(e, addresses, mask, None, "dump", offset)
        places.each(e, key, _LINES_OF_STORE * e.width, [(f(t), value)], [], metadata, by_lane)
        return
    where = e.emit(f"getelementptr i8, {f('ptr')} {addresses}, i64 {offset}") if offset else addresses
    e.emit_void(
        f"call void @llvm.masked.scatter.{f.suffix(MANGLED[t])}.{f.suffix('p0')}"
        f"({f(t)} {value}, {f('ptr')} align {alignment} {where}, "
        f"{f('i1')} {mask or 'splat (i1 true)'}){metadata}"
    )


def interleave(e: AccessEmitter, t: str, leaves: list[str], stride: int) -> str:
    """One vector with element k of lane l at l * stride + k."""
    if stride == 1:
        return leaves[0]
    if goes_in_blocks(e, t, stride):
        return one_vector(e, t, put_together(e, t, leaves, stride))
    if goes_in_steps(e, t, stride) and len(leaves) == stride:
        return one_vector(e, t, _zipped(e, t, leaves), e.width)
    rows = list(leaves)
    size = 1
    while size < len(leaves):
        size *= 2
    rows += ["poison"] * (size - len(rows))
    data, f = one_vector(e, t, rows, e.width), form(e.width * size)
    lanes = ", ".join(
        f"i32 {k * e.width + lane}" if k < len(leaves) else "i32 poison"
        for lane in range(e.width)
        for k in range(stride)
    )
    return e.emit(f"shufflevector {f(t)} {data}, {f(t)} poison, <{e.width * stride} x i32> <{lanes}>")


_BITS = {"i32": 32, "float": 32, "i64": 64, "double": 64}


def goes_in_steps(e: AccessEmitter, t: str, stride: int) -> bool:
    """Whether LLVM would take an element at a time from more registers than it knows a way for: n columns are
    n·log2(n) shuffles of two registers, each one by itself would take n - 1."""
    return stride in (8, 16) and e.width > 1 and e.width * _BITS.get(t, 0) >= 128


def _zipped(e: AccessEmitter, t: str, columns: list[str]) -> list[str]:
    """The elements of columns by turns, as vectors that follow one another."""
    if len(columns) == 1:
        return columns
    width, rows = e.width, []
    for a, b in zip(_zipped(e, t, columns[::2]), _zipped(e, t, columns[1::2]), strict=True):
        for start in (0, width // 2):
            lanes = [k + side * width for k in range(start, start + width // 2) for side in (0, 1)]
            rows.append(shuffle(e, t, width, a, b, lanes))
    return rows


def unzipped(e: AccessEmitter, t: str, rows: list[str]) -> list[str]:
    """The columns that _zipped makes of them."""
    if len(rows) == 1:
        return rows
    halves = [
        [
            shuffle(e, t, e.width, a, b, range(side, 2 * e.width, 2))
            for a, b in zip(rows[::2], rows[1::2], strict=True)
        ]
        for side in (0, 1)
    ]
    return [
        column for pair in zip(*(unzipped(e, t, half) for half in halves), strict=True) for column in pair
    ]


def addresses_here(e: AccessEmitter, pointer: Value, addresses: str, index: Value | None) -> str:
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
    if inner.type.width < last.type.width:
        lanes, t = e.emit(f"{extension} {f(t)} {lanes} to {f('i64')}"), "i64"
    return e.emit(f"getelementptr [{size_of(base.type.element)} x i8], ptr {e.operand(base)}, {f(t)} {lanes}")
