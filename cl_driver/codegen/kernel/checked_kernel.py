"""Kernels with checks (passes/check/): the table of their sites, and calls of native_shim/src/check."""

from __future__ import annotations

import struct

from ...passes.check.sites import CONVERT, SHIFT, STORE, Site
from ...passes.ir.ops import PassOp
from ...passes.ir.plan import KernelPlan, Region
from ...spirv.enums import FPRoundingMode, StorageClass
from ...spirv.module import Argument, Instruction, Kind, Value
from ..layout import abi, check_abi
from ..llvm.emitter import FunctionEmitter, ModuleText
from ..llvm.forms import SCALAR
from ..llvm.registry import lowers
from ..llvm.types import alignment_of, element_type, ir_type
from ..ops.conversion import extend_half
from ..ops.memory import offset_pointer
from .kernel_emitter import KernelEmitter

_SPACES: dict[int, int] = {
    StorageClass.CrossWorkgroup: check_abi.GLOBAL,
    StorageClass.Workgroup: check_abi.LOCAL,
    StorageClass.Function: check_abi.PRIVATE,
    StorageClass.Private: check_abi.PRIVATE,
    StorageClass.UniformConstant: check_abi.CONSTANT,
    StorageClass.Generic: check_abi.GENERIC,
}
_TABLE = "@cld_kcheck_sites"
_DECLARATIONS = (
    "declare void @cld_kcheck_group(ptr, ptr, i64, i64, i64)",
    "declare void @cld_kcheck_region(ptr)",
    "declare void @cld_kcheck_barrier(ptr, ptr)",
    "declare void @cld_kcheck_fence(ptr, ptr)",
    "declare ptr @cld_kcheck_access(ptr, ptr, ptr, i64)",
    "declare ptr @cld_kcheck_outside(ptr, ptr, i64) cold",
    "declare void @cld_kcheck_unwritten(ptr, ptr, i64, i64) cold",
    "declare void @cld_kcheck_index(ptr, ptr, i64) cold",
    "declare i64 @cld_kcheck_copy(ptr, ptr, ptr, i64, i64, i64, ptr)",
    "declare i64 @cld_kcheck_event(ptr)",
    "declare void @cld_kcheck_wait(ptr, ptr, i64, ptr)",
    "declare void @cld_kcheck_unknown(ptr, ptr)",
    "declare void @cld_kcheck_operation(ptr, ptr, i64, i64) cold",
    "declare ptr @cld_kcheck_fault(ptr, ptr) cold",
    "declare void @cld_kcheck_image(ptr, ptr, ptr, double, double, double, i64)",
)


class CheckedKernelEmitter(KernelEmitter):
    """Emits a kernel one work-item at a time, each of which does everything that it is to do."""

    believes_bounds = False  # LLVM would take a pointer that is stepped from for another than null

    def __init__(self, module: ModuleText, plan: KernelPlan) -> None:
        super().__init__(module, plan)
        self.redundant = frozenset()
        self.ahead = None
        self.sites: list[Site] = []
        for declaration in _DECLARATIONS:
            module.declare(declaration)

    def kernel_text(self) -> str:
        """The function, and the table of its sites."""
        return f"{super().kernel_text()}\n{self._table()}"

    def checker(self) -> str:
        """The thread's struct cld_kcheck_thread."""
        return self.thread_field(abi.THREAD_CHECK, "ptr")

    def site(self, site: Site) -> str:
        """The address of a site in the table, an operand."""
        self.sites.append(site)
        offset = check_abi.SITES_HEADER_SIZE + (len(self.sites) - 1) * check_abi.SITE_SIZE
        return f"getelementptr inbounds (i8, ptr {_TABLE}, i64 {offset})"

    def _emit_items(self, region: Region, r: str, metadata: str) -> None:
        self.access_group = ""
        checker = self.checker()
        if region.index == 0:
            ids = ", ".join(f"i64 {group}" for group in self.group_ids)
            self.emit_void(f"call void @cld_kcheck_group(ptr {checker}, ptr {_TABLE}, {ids})")
        else:
            self.emit_void(f"call void @cld_kcheck_region(ptr {checker})")
        super()._emit_items(region, r, "")

    def _emit_body(self, region: Region, prefix: str, exit_label: str) -> None:
        item = "0" if region.once else self.item_index()
        self.emit_void(f"store i64 {item}, ptr {self.checker()}, align 8")
        super()._emit_body(region, prefix, exit_label)

    def _table(self) -> str:
        texts, places = bytearray(), {"": 0}
        start = check_abi.SITES_HEADER_SIZE + len(self.sites) * check_abi.SITE_SIZE

        def place(text: str) -> int:
            if text not in places:
                places[text] = start + len(texts)
                texts.extend(text.encode("utf-8", "surrogateescape") + b"\0")
            return places[text]

        rows = b"".join(self._row(number, site, place) for number, site in enumerate(self.sites))
        data = struct.pack(check_abi.SITES_HEADER, len(self.sites), 0) + rows + bytes(texts)
        text = "".join(f"\\{byte:02X}" for byte in data)
        return f'{_TABLE} = internal constant [{len(data)} x i8] c"{text}", align 8'

    def _row(self, number: int, site: Site, place: object) -> bytes:
        line, root = site.line, site.root
        flags, argument, offset = _SPACES.get(site.storage, check_abi.GENERIC), 0, 0
        if isinstance(root, Argument):
            argument = self.plan.arguments.index(root)
            flags |= check_abi.OF_ARGUMENT
        elif root in self.local_variables:
            offset = self.local_variables[root].offset
            flags |= check_abi.OF_VARIABLE
        elif root in self.module.globals_offsets:
            offset = self.module.globals_offsets[root]
            flags |= check_abi.OF_VARIABLE
        for is_set, flag in (
            (site.acquires, check_abi.ACQUIRE), (site.releases, check_abi.RELEASE),
            (site.has_value, check_abi.HAS_VALUE), (site.any_content, check_abi.ANY_CONTENT),
            (site.orders_local, check_abi.ORDERS_LOCAL), (site.orders_global, check_abi.ORDERS_GLOBAL),
            (site.no_read, check_abi.NO_READ), (site.no_write, check_abi.NO_WRITE),
            (site.is_signed, check_abi.SIGNED),
        ):  # fmt: skip
            flags |= flag if is_set else 0
        return struct.pack(
            check_abi.SITE,
            number,
            line.line if line is not None else 0,
            line.column if line is not None else 0,
            site.size,
            site.kind,
            flags,
            argument,
            min(site.alignment, 1 << 15),
            offset,
            site.bytes,
            place(line.file) if line is not None else 0,  # type: ignore[operator]
            place(site.name),  # type: ignore[operator]
        )


@lowers(PassOp.CheckAccess)
def check_access(e: FunctionEmitter, i: Instruction) -> None:
    """A call, which gives the address to be accessed."""
    assert isinstance(e, CheckedKernelEmitter)
    pointer, site, *value = i.operands
    first = 0
    if site.runs and sum(site.runs[-1]):  # of a vector, some components
        first = site.runs[0][0]
        site.size = sum(site.runs[-1]) - first
    bits = _bits(e, value[0], site.size) if value else "0"
    address = offset_pointer(e, e.operand(pointer), first, "")
    where = f"ptr {e.checker()}, ptr {address}, ptr {e.site(site)}, i64 {bits}"
    e.define(i, offset_pointer(e, e.emit(f"call ptr @cld_kcheck_access({where})"), -first, ""))


def _bits(e: FunctionEmitter, value: Value, size: int) -> str:
    """What is stored as an i64; more than that fits is the address of a copy."""
    t, operand = ir_type(value.type), e.operand(value)
    if size > 8:
        copy = e.alloca(t, alignment_of(value.type))
        e.emit_void(f"store {t} {operand}, ptr {copy}, align {alignment_of(value.type)}")
        return e.emit(f"ptrtoint ptr {copy} to i64")
    width = value.type.count * value.type.element.width if value.type.kind is Kind.VECTOR else size * 8
    if value.type.kind is not Kind.INT:
        operand = e.emit(f"bitcast {t} {operand} to i{width}")
    return operand if width == 64 else e.emit(f"zext i{width} {operand} to i64")


@lowers(PassOp.CheckObject)
def check_object(e: FunctionEmitter, i: Instruction) -> None:
    """Bounds, in line."""
    pointer, base, site = i.operands
    _check_inside(e, i, pointer, base, site, None)


@lowers(PassOp.CheckPrivate)
def check_private(e: FunctionEmitter, i: Instruction) -> None:
    """Bounds and contents, in line."""
    pointer, base, shadow, site = i.operands
    _check_inside(e, i, pointer, base, site, shadow)


def _check_inside(
    e: FunctionEmitter, i: Instruction, pointer: Value, base: Value, site: Site, shadow: Value | None
) -> None:
    assert isinstance(e, CheckedKernelEmitter)
    offset, is_inside = _place_in(e, pointer, base, site)
    _check_place(e, i, e.operand(pointer), e.site(site), offset, is_inside, site, shadow)


@lowers(PassOp.CheckChosen)
def check_chosen(e: FunctionEmitter, i: Instruction) -> None:
    """Bounds of the object that the number tells, in line."""
    assert isinstance(e, CheckedKernelEmitter)
    pointer, number, *rest = i.operands
    offset, is_inside, where = "0", "false", ""
    for base, k, site in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        its_offset, is_inside_it = _place_in(e, pointer, base, site)
        is_it = e.emit(f"icmp eq {e.typed(number)}, {k}")
        offset = e.emit(f"select i1 {is_it}, i64 {its_offset}, i64 {offset}")
        is_inside = e.emit(f"select i1 {is_it}, i1 {is_inside_it}, i1 {is_inside}")
        its_place = e.site(site)
        where = e.emit(f"select i1 {is_it}, ptr {its_place}, ptr {where}") if where else its_place
    _check_place(e, i, e.operand(pointer), where, offset, is_inside, rest[2], None)


def _place_in(e: FunctionEmitter, pointer: Value, base: Value, site: Site) -> tuple[str, str]:
    """The offset of an address from an object's start, an i64, and whether the access is inside of it."""
    start = e.emit(f"ptrtoint ptr {e.operand(base)} to i64")
    offset = e.emit(f"ptrtoint ptr {e.operand(pointer)} to i64")
    offset = e.emit(f"sub i64 {offset}, {start}")
    last = site.bytes - site.size
    return offset, e.emit(f"icmp ule i64 {offset}, {last}") if last >= 0 else "false"


def _check_place(
    e: CheckedKernelEmitter,
    i: Instruction,
    address: str,
    where: str,
    offset: str,
    is_inside: str,
    site: Site,
    shadow: Value | None,
) -> None:
    inside, outside, after = (e.new_label(name) for name in ("inside", "outside", "checked"))
    e.emit_void(f"br i1 {is_inside}, label %{inside}, label %{outside}")
    e.begin_block(outside)
    elsewhere = e.emit(f"call ptr @cld_kcheck_outside(ptr {e.checker()}, ptr {where}, i64 {offset})")
    e.emit_void(f"br label %{after}")
    e.begin_block(inside)
    if shadow is not None and not site.any_content:
        marks = e.emit(f"getelementptr i8, ptr {e.operand(shadow)}, i64 {offset}")
        for at, size in site.runs or ((0, site.size),):
            if size:
                place = e.emit(f"add i64 {offset}, {at}")
                _follow(e, site, where, place, e.emit(f"getelementptr i8, ptr {marks}, i64 {at}"), size)
    last_label = e.label
    e.emit_void(f"br label %{after}")
    e.begin_block(after)
    e.define(i, e.emit(f"phi ptr [ {elsewhere}, %{outside} ], [ {address}, %{last_label} ]"))


def _follow(e: CheckedKernelEmitter, site: Site, where: str, offset: str, marks: str, size: int) -> None:
    """Bytes are written, or must have been."""
    if site.kind == STORE:
        e.emit_void(f"call void @llvm.memset.p0.i64(ptr align 1 {marks}, i8 1, i64 {size}, i1 false)")
        return
    found = e.emit(f"load i{8 * size}, ptr {marks}, align 1")
    is_written = e.emit(f"icmp eq i{8 * size} {found}, {int.from_bytes(bytes([1] * size), 'little')}")
    unwritten, after = e.new_label("unwritten"), e.new_label("written")
    e.emit_void(f"br i1 {is_written}, label %{after}, label %{unwritten}")
    e.begin_block(unwritten)
    arguments = f"ptr {e.checker()}, ptr {where}, i64 {offset}, i64 {size}"
    e.emit_void(f"call void @cld_kcheck_unwritten({arguments})")
    e.emit_void(f"br label %{after}")
    e.begin_block(after)


@lowers(PassOp.CheckBarrier)
def check_barrier(e: FunctionEmitter, i: Instruction) -> None:
    """A work-item has come to a barrier."""
    assert isinstance(e, CheckedKernelEmitter)
    e.emit_void(f"call void @cld_kcheck_barrier(ptr {e.checker()}, ptr {e.site(i.operands[0])})")


@lowers(PassOp.CheckIndex)
def check_index(e: FunctionEmitter, i: Instruction) -> None:
    """An index is compared with the array's size, in line."""
    assert isinstance(e, CheckedKernelEmitter)
    index, site = i.operands
    number = e.resized(SCALAR, e.operand(index), ir_type(index.type), "i64", signed=True)
    outside, after = e.new_label("outside"), e.new_label("checked")
    is_inside = e.emit(f"icmp ult i64 {number}, {site.bytes}")
    e.emit_void(f"br i1 {is_inside}, label %{after}, label %{outside}")
    e.begin_block(outside)
    e.emit_void(f"call void @cld_kcheck_index(ptr {e.checker()}, ptr {e.site(site)}, i64 {number})")
    e.emit_void(f"br label %{after}")
    e.begin_block(after)


@lowers(PassOp.CheckCopy)
def check_copy(e: FunctionEmitter, i: Instruction) -> None:
    """A work-item has come to a copy of the group. The two sites follow one another in the table."""
    assert isinstance(e, CheckedKernelEmitter)
    target, source, count, stride, event, has_event, writes, reads = i.operands
    where = e.site(writes)
    e.site(reads)
    numbers = (e.to_width(e.typed(number), "i64") for number in (count, stride))
    counted = ", ".join(f"i64 {number}" for number in numbers)
    number = e.emit(f"ptrtoint ptr {e.operand(event)} to i64")
    if not has_event:
        number = e.emit(f"or i64 {number}, {1 << 63}")
    pointers = f"ptr {e.operand(target)}, ptr {e.operand(source)}"
    made = e.emit(
        f"call i64 @cld_kcheck_copy(ptr {e.checker()}, {pointers}, {counted}, i64 {number}, ptr {where})"
    )
    e.define(i, e.to_width(f"i64 {made}", ir_type(count.type)))


@lowers(PassOp.CheckWait)
def check_wait(e: FunctionEmitter, i: Instruction) -> None:
    """A work-item waits for copies."""
    assert isinstance(e, CheckedKernelEmitter)
    count, events, site = i.operands
    number = e.to_width(e.typed(count), "i64")
    arguments = f"ptr {e.checker()}, ptr {e.site(site)}, i64 {number}, ptr {e.operand(events)}"
    e.emit_void(f"call void @cld_kcheck_wait({arguments})")


@lowers(PassOp.CheckEvent)
def check_event(e: FunctionEmitter, i: Instruction) -> None:
    """Its number, as a pointer."""
    assert isinstance(e, CheckedKernelEmitter)
    e.define(i, e.emit(f"inttoptr i64 {e.emit(f'call i64 @cld_kcheck_event(ptr {e.checker()})')} to ptr"))


@lowers(PassOp.CheckFault)
def check_fault(e: FunctionEmitter, i: Instruction) -> None:
    """Nothing to be looked at; where the access may go all the same."""
    assert isinstance(e, CheckedKernelEmitter)
    site = i.operands[1]
    e.define(i, e.emit(f"call ptr @cld_kcheck_fault(ptr {e.checker()}, ptr {e.site(site)})"))


@lowers(PassOp.CheckImage)
def check_image(e: FunctionEmitter, i: Instruction) -> None:
    """Coordinates, and the descriptor of the image."""
    assert isinstance(e, CheckedKernelEmitter)
    image, at, *more, site = i.operands
    count = at.type.count if at.type.kind is Kind.VECTOR else 0
    numbers = [_as_double(e, at, k if count else None) for k in range(min(count, 3) or 1)]
    places = ", ".join(f"double {number}" for number in (*numbers, "0.0", "0.0")[:3])
    bits = e.to_width(e.typed(more[0]), "i64") if more else "0"
    where = f"ptr {e.checker()}, ptr {e.site(site)}, ptr {e.operand(image)}"
    e.emit_void(f"call void @cld_kcheck_image({where}, {places}, i64 {bits})")


@lowers(PassOp.CheckFence)
def check_fence(e: FunctionEmitter, i: Instruction) -> None:
    """A work-item comes to a fence."""
    assert isinstance(e, CheckedKernelEmitter)
    e.emit_void(f"call void @cld_kcheck_fence(ptr {e.checker()}, ptr {e.site(i.operands[0])})")


@lowers(PassOp.CheckUnknown)
def check_unknown(e: FunctionEmitter, i: Instruction) -> None:
    """What nobody looks at gets an address."""
    assert isinstance(e, CheckedKernelEmitter)
    e.emit_void(f"call void @cld_kcheck_unknown(ptr {e.checker()}, ptr {e.operand(i.operands[0])})")


@lowers(PassOp.CheckOperation)
def check_operation(e: FunctionEmitter, i: Instruction) -> None:
    """Operands are looked at in line, component by component."""
    assert isinstance(e, CheckedKernelEmitter)
    *operands, site = i.operands
    condition = operands.pop() if site.chosen else None
    where = e.site(site)
    count = i.type.count if i.type.kind is Kind.VECTOR else 0
    for k in range(count or 1):
        numbers = [_component(e, value, k if count else None) for value in operands]
        wrong = _without_result(e, site, [element_type(value.type).width for value in operands], numbers)
        if condition is not None:
            is_vector = condition.type.kind is Kind.VECTOR
            wanted = _component(e, condition, k if is_vector else None)
            if not site.if_true:
                wanted = e.emit(f"xor i1 {wanted}, true")
            wrong = e.emit(f"and i1 {wrong}, {wanted}")
        nothing, after = e.new_label("noresult"), e.new_label("checked")
        e.emit_void(f"br i1 {wrong}, label %{nothing}, label %{after}")
        e.begin_block(nothing)
        bits = [_as_bits(e, value, number) for value, number in zip(operands, numbers, strict=True)]
        arguments = ", ".join(f"i64 {number}" for number in (*bits, "0")[:2])
        e.emit_void(f"call void @cld_kcheck_operation(ptr {e.checker()}, ptr {where}, {arguments})")
        e.emit_void(f"br label %{after}")
        e.begin_block(after)
    e.define(i, e.operand(operands[-1]))


def _component(e: FunctionEmitter, value: Value, k: int | None) -> str:
    """A component, or a scalar; of halves as a float."""
    operand = e.operand(value)
    if k is not None:
        operand = e.emit(f"extractelement {ir_type(value.type)} {operand}, i32 {k}")
    element = element_type(value.type)
    is_half = element.kind is Kind.FLOAT and element.width == 16
    return extend_half(e, SCALAR, operand) if is_half else operand


def _as_double(e: FunctionEmitter, value: Value, k: int | None) -> str:
    """A component, or a scalar, as a double; integers as signed ones."""
    number, element = _component(e, value, k), element_type(value.type)
    if element.kind is not Kind.FLOAT:
        return e.emit(f"sitofp i{element.width} {number} to double")
    return number if element.width == 64 else e.emit(f"fpext float {number} to double")


def _as_bits(e: FunctionEmitter, value: Value, number: str) -> str:
    """As an i64: an integer, or the bits of a double."""
    element = element_type(value.type)
    if element.kind is not Kind.FLOAT:
        return number if element.width == 64 else e.emit(f"zext i{element.width} {number} to i64")
    if element.width < 64:
        number = e.emit(f"fpext float {number} to double")
    return e.emit(f"bitcast double {number} to i64")


def _without_result(e: FunctionEmitter, site: Site, widths: list[int], numbers: list[str]) -> str:
    """Whether scalars have no result: an i1."""
    width = 8 * site.size
    if site.kind == CONVERT:
        (number,) = numbers
        if widths[0] < 64:
            number = e.emit(f"fpext float {number} to double")
        low, is_low_inside, high, is_high_inside = _limits(width, site.is_signed, site.rounding)
        above = e.emit(f"fcmp {'oge' if is_low_inside else 'ogt'} double {number}, {low}")
        below = e.emit(f"fcmp {'ole' if is_high_inside else 'olt'} double {number}, {high}")
        inside = e.emit(f"and i1 {above}, {below}")
        return e.emit(f"xor i1 {inside}, true")
    a, b = numbers
    if site.kind == SHIFT:
        return e.emit(f"icmp uge i{widths[1]} {b}, {width}")
    is_zero = e.emit(f"icmp eq i{width} {b}, 0")
    if not site.is_signed:
        return is_zero
    is_least = e.emit(f"icmp eq i{width} {a}, {-1 << (width - 1)}")
    is_minus_one = e.emit(f"icmp eq i{width} {b}, -1")
    overflows = e.emit(f"and i1 {is_least}, {is_minus_one}")
    return e.emit(f"or i1 {is_zero}, {overflows}")


def _limits(width: int, is_signed: bool, rounding: int) -> tuple[str, bool, str, bool]:
    """Between which doubles a number lies that is in an integer's range once it is rounded, and whether these
    are there, too. Between neighbouring integers of 64 bits there is no double."""
    low = -(1 << (width - 1)) if is_signed else 0
    high = (1 << (width - is_signed)) - 1
    # Numbers in steps of a half, times two: the least integer is even and goes to itself, the largest is odd.
    before, behind = {
        FPRoundingMode.RTE: ((2 * low - 1, True), (2 * high + 1, False)),
        FPRoundingMode.RTP: ((2 * low - 2, False), (2 * high, True)),
        FPRoundingMode.RTN: ((2 * low, True), (2 * high + 2, False)),
    }.get(FPRoundingMode(rounding), ((2 * low - 2, False), (2 * high + 2, False)))
    if width == 64:
        before = before if low == 0 else (2 * low, True)
        behind = (2 * high + 2, False)
    return _double(before[0] / 2), before[1], _double(behind[0] / 2), behind[1]


def _double(number: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
