"""Whole vectors under a mask, on CPUs that have no mask for every element as AVX-512 has.

AVX2 has masked accesses for elements of 32 and 64 bits; x86-64-v2 and NEON have none. LLVM tests each lane by
itself where there is none. AMD executes the stores in microcode, 10 to 13 cycles for any mask, where Intel's
cores take one or two (CpuModel.masked_store_cycles). Most masks are full or empty when the code runs. So
where the CPU has no fast masked access there are versions:

| mask | store | load |
|---|---|---|
| full | the vector | the vector |
| empty | nothing | zeros of the stack |
| mixed | the slow masked store, else lane by lane | the vector if it is in one page, else lane by lane |

Where it has one, a store under an empty mask goes to the stack: x86 takes long to find out that it
need not fault if the page is not there, as that of a buffer that nobody has written yet or of what is behind
its end.

The memory of a page is there as a whole: if a lane may read in it, the vector may. Private memory of all
lanes is this thread's alone: it is loaded, blended and stored.

Stores that follow one another under one mask ask once. Those of several vectors of work-items are first asked
together whether all masks are full: did each ask by itself, LLVM would move the work of each vector behind
the question of the one before it, where a core finds but one chain of operations at a time.
"""

from __future__ import annotations

from collections.abc import Callable

from ...passes.cost import access_costs
from ...passes.cost.access_costs import Reach
from ...passes.ir.instructions import PURE
from ...spirv.module import Instruction
from ..llvm.forms import MANGLED, form
from ..llvm.options import CodegenOptions
from ..llvm.types import is_register
from ..llvm.versioning import FULL, MASKED, PARTIAL, emit_versions
from .emitter import AccessEmitter, MaskedStore

_PAGE = 4096  # bytes: the smallest of any CPU
_MOST_WAITING = 8  # stores that wait for one another: their data are in registers
_NAMES = FULL, PARTIAL, MASKED
_FARTHEST = 24  # instructions that they wait for


def has_masks(options: CodegenOptions) -> bool:
    """Whether the CPU takes a mask with any load and store, without delay."""
    return "avx512f" in options.features


def _has_masked(options: CodegenOptions, place: int, is_whole: bool = True) -> bool:
    """Whether the CPU has masked accesses for lanes of so many bytes, of which all are meant."""
    return "avx" in options.features and place in (4, 8) and is_whole


AT_ONCE, BY_VERSIONS = "at once", "by versions"


def ways_to_store(
    options: CodegenOptions, size: int, place: int, is_whole: bool, mask: str
) -> tuple[str, ...]:
    """How elements of so many bytes, or lanes of `place` bytes of which all are meant, may be stored under a
    mask: with the CPU's masked store, or in versions by what the mask is, which a constant one needs not."""
    if has_masks(options) or not is_register(mask):
        return (AT_ONCE,)
    is_there = "avx" in options.features and (size in (4, 8) or _has_masked(options, place, is_whole))
    return (AT_ONCE, BY_VERSIONS) if is_there else (BY_VERSIONS,)


def _cheapest(e: AccessEmitter, store: MaskedStore, place: int, mask: str) -> str:
    found = ways_to_store(e.options, store.size, place, store.used == store.stride, mask)
    if len(found) == 1:
        return found[0]
    registers = max(1.0, e.width * place * 8 / e.cpu.vector_bits)
    reach = Reach(e.width, place, 32, 1, 1, registers, False, False, place, True, True)
    costs = access_costs.masked_store(reach, e.cpu), access_costs.versions_by_mask(reach, e.cpu)
    at_once, by_versions = (access_costs.price(cost, e.cpu) for cost in costs)
    return AT_ONCE if at_once <= by_versions else BY_VERSIONS


# Masks.


def _bits(e: AccessEmitter, mask: str) -> str:
    return e.emit(f"bitcast {e.form('i1')} {mask} to i{e.width}")


def _each_lane(e: AccessEmitter, bits: str, body: Callable[[str], None]) -> None:
    """Emits a loop over the lanes of a mask that is not empty; body(its number, an i64)."""
    t, before, loop, after = f"i{e.width}", e.label, e.new_label(PARTIAL), e.new_label(PARTIAL)
    e.emit_void(f"br label %{loop}")
    e.begin_block(loop)
    left, rest = e.name("v"), e.name("v")
    e.emit_void(f"{left} = phi {t} [ {bits}, %{before} ], [ {rest}, %{loop} ]")
    lane = e.emit(f"call {t} @llvm.cttz.{t}({t} {left}, i1 true)")
    body(e.resized(form(0), lane, t, "i64"))
    less = e.emit(f"add {t} {left}, -1")
    e.emit_void(f"{rest} = and {t} {left}, {less}")
    done = e.emit(f"icmp eq {t} {rest}, 0")
    e.emit_void(f"br i1 {done}, label %{after}, label %{loop}")
    e.begin_block(after)


def _in_lane(e: AccessEmitter, address: str, lane: str, place: int) -> str:
    return e.emit(f"getelementptr [{place} x i8], ptr {address}, i64 {lane}")


def repeat_mask(e: AccessEmitter, mask: str, stride: int, count: int) -> str:
    """A mask of the elements of values of `stride` elements, of which the first `count` count."""
    if stride == 1:
        return mask
    f = e.form
    lanes = ", ".join(
        f"i32 {lane if k < count else e.width}" for lane in range(e.width) for k in range(stride)
    )
    return e.emit(
        f"shufflevector {f('i1')} {mask}, {f('i1')} zeroinitializer, <{e.width * stride} x i32> <{lanes}>"
    )


# Stores.


def store_masked(e: AccessEmitter, store: MaskedStore, mask: str, waits: bool = False, how: str = "") -> None:
    """Stores in the lanes of a mask. waits: when flush() is called, with others under the same mask. how: one
    of ways_to_store(), the cheapest of them if it is not given."""
    place = store.size * store.stride
    if (how or _cheapest(e, store, place, mask)) == AT_ONCE:
        flush(e)
        if store.is_global and is_register(mask):
            store = store._replace(address=_there(e, store.address, mask, place * e.width))
        _store_under(e, store, mask)
        return
    if not waits or not _may_join(e, mask):
        flush(e)
    parts, stores = e.waiting.setdefault(mask, (set(), []))
    parts.add(e.part)
    stores.append(store)
    if not waits:
        flush(e)


def _may_join(e: AccessEmitter, mask: str) -> bool:
    """Whether a store of this part may wait with those that do: those of a work-item stay in order, as they
    are under one mask."""
    if sum(len(stores) for _, stores in e.waiting.values()) >= _MOST_WAITING:
        return False
    return all(of_others == mask or e.part not in parts for of_others, (parts, _) in e.waiting.items())


def must_flush(e: AccessEmitter, i: Instruction) -> bool:
    """Whether the stores that wait must not wait for an instruction that is no such store."""
    e.waited += 1
    return i.op not in PURE or e.waited > _FARTHEST


def flush(e: AccessEmitter) -> None:
    """Emits the stores that wait."""
    waiting, e.waiting, e.waited = e.waiting, {}, 0
    groups = [(mask, stores) for mask, (_, stores) in waiting.items()]

    def all_lanes() -> None:
        for _, stores in groups:
            for store in stores:
                _store_all(e, store)

    def one_by_one() -> None:
        for mask, stores in groups:
            _store_versions(e, stores, mask)

    if len(groups) < 2 or e.in_rest:
        one_by_one()
        return
    together = groups[0][0]
    for mask, _ in groups[1:]:
        together = e.emit(f"and {e.form('i1')} {together}, {mask}")
    full = e.emit(f"icmp eq i{e.width} {_bits(e, together)}, -1")
    emit_versions(e, full, [], all_lanes, one_by_one, _NAMES)


def _store_versions(e: AccessEmitter, stores: list[MaskedStore], mask: str) -> None:
    """Stores under one mask, in versions by what it is."""
    bits = _bits(e, mask)

    def all_lanes() -> None:
        for store in stores:
            _store_all(e, store)

    def some_lanes() -> None:
        body, after = e.new_label(PARTIAL), e.new_label("stored")
        some = e.emit(f"icmp ne i{e.width} {bits}, 0")
        e.emit_void(f"br i1 {some}, label %{body}, label %{after}")
        e.begin_block(body)
        _store_mixed(e, stores, mask, bits)
        e.emit_void(f"br label %{after}")
        e.begin_block(after)

    if e.in_rest:
        some_lanes()
    else:
        emit_versions(e, e.emit(f"icmp eq i{e.width} {bits}, -1"), [], all_lanes, some_lanes, _NAMES)


def _store_all(e: AccessEmitter, store: MaskedStore) -> None:
    if store.used < store.stride:
        _store_under(e, store, "splat (i1 true)")
        return
    whole, start = form(e.width * store.stride)(store.t), len(e.lines)
    e.emit_void(f"store {whole} {store.data}, ptr {store.address}, align {store.alignment}{store.metadata}")
    e.mark(start, store.made_of)


def _store_mixed(e: AccessEmitter, stores: list[MaskedStore], mask: str, bits: str) -> None:
    """Stores in the lanes of a mask that has some, in order."""
    if all(_has_masked(e.options, s.size * s.stride, s.used == s.stride) for s in stores):
        for store in stores:
            _store_under(e, store, mask)
        return
    copies = []
    for store in stores:
        whole, start = form(e.width * store.stride)(store.t), len(e.lines)
        copies.append(e.alloca(whole, store.size))
        e.emit_void(f"store {whole} {store.data}, ptr {copies[-1]}, align {store.size}")
        e.mark(start, store.made_of)

    def one_lane(lane: str) -> None:
        for store, copy in zip(stores, copies, strict=True):
            place, t, start = store.size * store.stride, form(store.used)(store.t), len(e.lines)
            value = e.emit(f"load {t}, ptr {_in_lane(e, copy, lane, place)}, align {store.size}")
            at = _in_lane(e, store.address, lane, place)
            e.emit_void(f"store {t} {value}, ptr {at}, align {store.alignment}{store.metadata}")
            e.mark(start, store.made_of)

    _each_lane(e, bits, one_lane)


def _store_under(e: AccessEmitter, store: MaskedStore, mask: str) -> None:
    """LLVM's masked store; several elements of a lane as one number, for AVX2 has masks of 32 and 64 bits."""
    t, data, stride, place = store.t, store.data, store.stride, store.size * store.stride
    start = len(e.lines)
    if stride > 1 and not has_masks(e.options) and _has_masked(e.options, place, store.used == stride):
        data, t, stride = _as_lanes(e, t, data, stride, place), f"i{8 * place}", 1
    whole = form(e.width * stride)
    e.emit_void(
        f"call void @llvm.masked.store.{whole.suffix(MANGLED[t])}.p0({whole(t)} {data}, "
        f"ptr align {store.alignment} {store.address}, "
        f"{whole('i1')} {repeat_mask(e, mask, stride, min(stride, store.used))}){store.metadata}"
    )
    e.mark(start, store.made_of)


def _as_lanes(e: AccessEmitter, t: str, data: str, stride: int, place: int) -> str:
    return e.emit(f"bitcast {form(e.width * stride)(t)} {data} to {e.form(f'i{8 * place}')}")


# Private memory.


def store_private(
    e: AccessEmitter, t: str, data: str, address: str, alignment: int, mask: str, is_certain: bool
) -> None:
    """Stores an element of each lane to memory that is of these lanes alone. is_certain: it is there even if
    the mask is empty."""
    whole = e.form(t)
    if has_masks(e.options):
        _store_under(e, MaskedStore(t, 0, data, address, 1, 1, alignment, ""), mask)
        return
    address = address if is_certain else _there(e, address, mask, alignment * e.width)
    # Were it not frozen, LLVM 22 would make a masked store of all three, which takes AMD's cores long.
    old = e.emit(f"freeze {whole} {e.emit(f'load {whole}, ptr {address}, align {alignment}')}")
    new = e.emit(f"select {e.form('i1')} {mask}, {whole} {data}, {whole} {old}")
    e.emit_void(f"store {whole} {new}, ptr {address}, align {alignment}")


def load_private(e: AccessEmitter, t: str, address: str, alignment: int, mask: str, is_certain: bool) -> str:
    """Loads an element of each lane from such memory."""
    if has_masks(e.options):
        return _load_under(e, t, address, 1, alignment, mask, "")
    address = address if is_certain else _there(e, address, mask, alignment * e.width)
    return e.emit(f"load {e.form(t)}, ptr {address}, align {alignment}")


def _there(e: AccessEmitter, address: str, mask: str, size: int) -> str:
    """An address for the lanes of a mask; that of zeros on the stack if there is no lane."""
    return e.emit(f"select i1 {e.any_lane(mask)}, ptr {address}, ptr {_spare(e, size)}")


# Loads.


def load_masked(
    e: AccessEmitter, t: str, size: int, address: str, stride: int, alignment: int, mask: str, metadata: str
) -> str:
    """W times `stride` elements of type t, of `size` bytes each; no matter what outside of the mask, but no
    poison."""
    whole, place = form(e.width * stride), size * stride
    if has_masks(e.options) or not is_register(mask) or e.width * place > _PAGE:
        return _load_under(e, t, address, stride, alignment, mask, metadata)
    if _has_masked(e.options, place):
        lanes = t if stride == 1 else f"i{8 * place}"
        data = _load_under(e, lanes, address, 1, alignment, mask, metadata)
        return data if stride == 1 else e.emit(f"bitcast {e.form(lanes)} {data} to {whole(t)}")
    bytes_ = e.width * stride * size
    address = _there(e, address, mask, bytes_)
    if alignment % bytes_ == 0:
        return e.emit(f"load {whole(t)}, ptr {address}, align {alignment}{metadata}")
    number = e.emit(f"ptrtoint ptr {address} to i64")
    within = e.emit(f"and i64 {number}, {_PAGE - 1}")
    fits = e.emit(f"icmp ule i64 {within}, {_PAGE - bytes_}")

    def vector() -> list[str]:
        return [e.emit(f"load {whole(t)}, ptr {address}, align {alignment}{metadata}")]

    def by_lane() -> list[str]:
        copy = e.alloca(whole(t), size)
        e.emit_void(f"store {whole(t)} zeroinitializer, ptr {copy}, align {size}")

        def one_lane(lane: str) -> None:
            of_lane = form(stride)(t)
            value = e.emit(
                f"load {of_lane}, ptr {_in_lane(e, address, lane, place)}, align {alignment}{metadata}"
            )
            e.emit_void(f"store {of_lane} {value}, ptr {_in_lane(e, copy, lane, place)}, align {size}")

        _each_lane(e, _bits(e, mask), one_lane)
        return [e.emit(f"load {whole(t)}, ptr {copy}, align {size}")]

    return emit_versions(e, fits, [whole(t)], vector, by_lane, _NAMES)[0]


def _load_under(
    e: AccessEmitter, t: str, address: str, stride: int, alignment: int, mask: str, metadata: str
) -> str:
    """LLVM's masked load."""
    whole = form(e.width * stride)
    return e.emit(
        f"call {whole(t)} @llvm.masked.load.{whole.suffix(MANGLED[t])}.p0(ptr align {alignment} {address}, "
        f"{whole('i1')} {repeat_mask(e, mask, stride, stride)}, {whole(t)} zeroinitializer){metadata}"
    )


def _spare(e: AccessEmitter, size: int) -> str:
    """Zeros on the stack, all in one page."""
    size = max(1 << (size - 1).bit_length(), 64)
    found = e.spare_vectors.get(size)
    if found is None:
        found = e.spare_vectors[size] = e.alloca(form(size)("i8"), size)
        e.prologue.append(f"  store <{size} x i8> zeroinitializer, ptr {found}, align {size}")
    return found
