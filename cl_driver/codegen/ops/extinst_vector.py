"""OpenCL.std, sections 2.5, 2.6 and 2.9: vector loads and stores, shuffles, prefetch."""

from __future__ import annotations

from ...spirv.enums import FPRoundingMode, StorageClass
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Constant, Instruction, Kind, Value
from ..llvm.emitter import FunctionEmitter
from ..llvm.errors import CodegenError
from ..llvm.forms import form
from ..llvm.registry import lowers_extended
from ..llvm.types import component_count, element_type, ir_type, size_of
from .composite import shuffle_vectors
from .conversion import RTE, convert_float
from .memory import access_metadata, step


def _address(e: FunctionEmitter, pointer: Value, offset: Value, stride: int) -> str:
    """pointer + offset * stride bytes. vload and vstore offsets are size_t: of any width, unsigned."""
    literal = e.integer(offset)
    if literal is None and offset.type.width < 64:
        wide = e.emit(f"zext {e.typed(offset)} to i64")
        return e.emit(f"getelementptr [{stride} x i8], ptr {e.operand(pointer)}, i64 {wide}")
    return step(e, e.operand(pointer), offset, stride, "")


@lowers_extended(Std.vloadn)
def vload(e: FunctionEmitter, i: Instruction) -> None:
    """vloadn: n elements, tightly packed, aligned as one element."""
    offset, pointer = i.operands[2:4]
    element = element_type(i.type)
    size = size_of(element)
    address = _address(e, pointer, offset, size * component_count(i.type))
    metadata = access_metadata(e, pointer, None, is_load=True)
    e.define(i, e.emit(f"load {ir_type(i.type)}, ptr {address}, align {size}{metadata}"))


@lowers_extended(Std.vstoren)
def vstore(e: FunctionEmitter, i: Instruction) -> None:
    """vstoren."""
    data, offset, pointer = i.operands[2:5]
    size = size_of(element_type(data.type))
    address = _address(e, pointer, offset, size * component_count(data.type))
    e.emit_void(f"store {e.typed(data)}, ptr {address}, align {size}{access_metadata(e, pointer, None)}")


def _alignment(pointer: Value, size: int) -> int:
    """Of vloada_half and vstorea_half. Programs use them on private arrays of short, which do not have it."""
    return 2 if pointer.type.storage == StorageClass.Function else size


VSTORE_HALF = (
    Std.vstore_half,
    Std.vstore_half_r,
    Std.vstore_halfn,
    Std.vstore_halfn_r,
    Std.vstorea_halfn,
    Std.vstorea_halfn_r,
)


def half_place(i: Instruction, count: int) -> tuple[int, bool]:
    """Bytes between halves or vectors of them in memory, and whether they are aligned as vectors (vloada)."""
    aligned = i.operands[1] in (Std.vloada_halfn, Std.vstorea_halfn, Std.vstorea_halfn_r)
    return 2 * (4 if aligned and count == 3 else count), aligned


def rounding_mode(e: FunctionEmitter, i: Instruction) -> int:
    """The FPRoundingMode of a vstore_half instruction; CodegenError for a number that is none."""
    if i.operands[1] not in (Std.vstore_half_r, Std.vstore_halfn_r, Std.vstorea_halfn_r):
        return RTE
    given = i.operands[5]
    mode = e.integer(given) if isinstance(given, Constant) else int(given)
    if mode is None or mode not in FPRoundingMode:
        raise CodegenError(f"vstore_half with rounding mode {mode}")
    return mode


@lowers_extended(Std.vload_half, Std.vload_halfn, Std.vloada_halfn)
def vload_half(e: FunctionEmitter, i: Instruction) -> None:
    """vload_half, vload_halfn: packed halves; vloada_halfn: aligned, a 3-vector taking the place of 4."""
    offset, pointer = i.operands[2:4]
    count = component_count(i.type)
    f = form(count if i.type.kind is Kind.VECTOR else 0)
    place, aligned = half_place(i, count)
    address = _address(e, pointer, offset, place)
    alignment = _alignment(pointer, place) if aligned else 2
    metadata = access_metadata(e, pointer, None, is_load=True)
    half = e.emit(f"load {f('half')}, ptr {address}, align {alignment}{metadata}")
    e.define(i, convert_float(e, f, half, 16, element_type(i.type).width))


@lowers_extended(*VSTORE_HALF)
def vstore_half(e: FunctionEmitter, i: Instruction) -> None:
    """vstore_half and its kin; _r has a rounding mode as its last operand."""
    data, offset, pointer = i.operands[2:5]
    count = component_count(data.type)
    f = form(count if data.type.kind is Kind.VECTOR else 0)
    half = convert_float(e, f, e.operand(data), element_type(data.type).width, 16, rounding_mode(e, i))
    place, aligned = half_place(i, count)
    address = _address(e, pointer, offset, place)
    alignment = _alignment(pointer, place) if aligned else 2
    metadata = access_metadata(e, pointer, None)
    e.emit_void(f"store {f('half')} {half}, ptr {address}, align {alignment}{metadata}")


@lowers_extended(Std.shuffle, Std.shuffle2)
def shuffle(e: FunctionEmitter, i: Instruction) -> None:
    """shuffle, shuffle2: the low bits of each mask component choose."""
    sources, mask = i.operands[2:-1], i.operands[-1]
    count = sources[0].type.count
    total = count * len(sources)
    if isinstance(mask, Constant):
        literals = mask.value if mask.value is not None else (None,) * mask.type.count
        numbers = [(n.value or 0 if n is not None else 0) & total - 1 for n in literals]
        e.define(i, shuffle_vectors(e, sources[0], sources[-1], numbers))
        return
    both = e.operand(sources[0])
    if len(sources) == 2:
        both = shuffle_vectors(e, sources[0], sources[1], range(total))
    source_text = f"<{total} x {ir_type(element_type(i.type))}>"
    mask_element = ir_type(element_type(mask.type))
    components = []
    for component in e.components(mask):
        index = e.emit(f"and {mask_element} {component}, {total - 1}")
        components.append(e.emit(f"extractelement {source_text} {both}, {mask_element} {index}"))
    e.define_components(i, components)


@lowers_extended(Std.prefetch)
def prefetch(e: FunctionEmitter, i: Instruction) -> None:
    """prefetch: a hint for the first line of what is asked for."""
    e.emit_void(f"call void @llvm.prefetch.p0(ptr {e.operand(i.operands[2])}, i32 0, i32 3, i32 1)")
