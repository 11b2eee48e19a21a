"""The operations on lanes that passes/lower/subgroups.py makes of sub-group instructions. Wide code only: at
width 1 a sub-group is one work-item, and nothing of this is left."""

from __future__ import annotations

from ...passes.ir.ops import PassOp
from ...spirv.module import Constant, Instruction, Kind, Type
from ..atomic.emitter import AtomicEmitter
from ..llvm.registry import lowers, lowers_wide
from ..llvm.types import ir_type, leaf_types


@lowers_wide(PassOp.Active)
def active(e: AtomicEmitter, i: Instruction) -> None:
    """The mask itself."""
    e.define_leaves(i, [e.mask_of(i) or e.form.splat("i1", "true")])


@lowers(PassOp.Ballot)
@lowers_wide(PassOp.Ballot)
def ballot(e: AtomicEmitter, i: Instruction) -> None:
    """A bit for each lane of the mask whose predicate is true."""
    f, mask = e.form, e.mask_of(i)
    bits = e.frozen(f, "i1", e.leaf(i.operands[0]))
    if mask is not None:
        bits = e.emit(f"select {f('i1')} {mask}, {f('i1')} {bits}, {f('i1')} zeroinitializer")
    packed = e.emit(f"bitcast {f('i1')} {bits} to i{e.width}")
    e.define(i, e.to_width(f"i{e.width} {packed}", ir_type(i.type)))


@lowers(PassOp.ReadLane)
@lowers_wide(PassOp.ReadLane)
def read_lane(e: AtomicEmitter, i: Instruction) -> None:
    """One lane's value, in all."""
    value, lane = i.operands
    if not e.is_varying(value) and not e.stride_is_mixed(value):
        e.define(i, e.operand(value))
        return
    if e.is_varying(lane) or e.stride_is_mixed(lane):
        index = e.first_active("i32", e.leaf(lane), e.mask_of(i))
    else:
        index = e.operand(lane)
    if not isinstance(lane, Constant):
        index = e.emit(f"and i32 {index}, {e.width - 1}")
    scalars = []
    for t, leaf in zip(leaf_types(i.type), e.leaves(value), strict=True):
        scalar = e.emit(f"extractelement {e.form(ir_type(t))} {leaf}, i32 {index}")
        scalars.append(e.emit(f"freeze {ir_type(t)} {scalar}"))
    e.define(i, e.assemble(i.type, iter(scalars)))


@lowers_wide(PassOp.LaneShuffle)
def lane_shuffle(e: AtomicEmitter, i: Instruction) -> None:
    """A fixed choice for each lane."""
    a, b, *lanes = i.operands
    chosen = ", ".join(f"i32 {k}" for k in lanes)
    e.define_leaves(
        i,
        [
            e.emit(
                f"shufflevector {e.form(ir_type(t))} {x}, {e.form(ir_type(t))} {y}, "
                f"<{e.width} x i32> <{chosen}>"
            )
            for t, x, y in zip(leaf_types(i.type), e.leaves(a), e.leaves(b), strict=True)
        ],
    )


@lowers_wide(PassOp.Permute)
def permute(e: AtomicEmitter, i: Instruction) -> None:
    """Each lane's choice."""
    value, lane = i.operands
    f = e.form
    index = e.frozen(f, "i32", e.leaf(lane))
    index = e.emit(f"and {f('i32')} {index}, {f.splat('i32', str(e.width - 1))}")
    leaves = []
    for t, leaf in zip(leaf_types(i.type), e.leaves(value), strict=True):
        element = ir_type(t)
        words, width = _words(e, t, e.emit(f"freeze {f(element)} {leaf}"))
        leaves.append(_from_words(e, t, [_permute_words(e, word, index) for word in words], width))
    e.define_leaves(i, leaves)


def _words(e: AtomicEmitter, type_: Type, leaf: str) -> tuple[list[str], int]:
    """A leaf as vectors of 32-bit integers, low words first, and the bits that its values have."""
    f, t = e.form, ir_type(type_)
    if type_.kind is Kind.POINTER:
        leaf, width = e.emit(f"ptrtoint {f(t)} {leaf} to {f('i64')}"), 64
    else:
        width = 1 if type_.kind is Kind.BOOL else type_.width
        if type_.kind is Kind.FLOAT:
            leaf = e.emit(f"bitcast {f(t)} {leaf} to {f(f'i{width}')}")
    if width == 32:
        return [leaf], width
    if width < 32:
        return [e.emit(f"zext {f(f'i{width}')} {leaf} to {f('i32')}")], width
    high = e.emit(f"lshr {f('i64')} {leaf}, {f.splat('i64', '32')}")
    return [e.emit(f"trunc {f('i64')} {word} to {f('i32')}") for word in (leaf, high)], width


def _from_words(e: AtomicEmitter, type_: Type, words: list[str], width: int) -> str:
    f, leaf = e.form, words[0]
    if width == 64:
        low, high = (e.emit(f"zext {f('i32')} {word} to {f('i64')}") for word in words)
        high = e.emit(f"shl {f('i64')} {high}, {f.splat('i64', '32')}")
        leaf = e.emit(f"or {f('i64')} {low}, {high}")
    elif width < 32:
        leaf = e.emit(f"trunc {f('i32')} {leaf} to {f(f'i{width}')}")
    if type_.kind is Kind.POINTER:
        return e.emit(f"inttoptr {f('i64')} {leaf} to {f('ptr')}")
    if type_.kind is Kind.FLOAT:
        return e.emit(f"bitcast {f(f'i{width}')} {leaf} to {f(ir_type(type_))}")
    return leaf


def _permute_words(e: AtomicEmitter, value: str, index: str) -> str:
    """Lanes of 32 bits by number: one instruction where the CPU has it, else by way of memory."""
    width, features = e.width, e.module.options.features
    t = e.form("i32")
    if width == 16 and "avx512f" in features:
        return e.emit(f"call {t} @llvm.x86.avx512.permvar.si.512({t} {value}, {t} {index})")
    if width == 8 and "avx2" in features:
        return e.emit(f"call {t} @llvm.x86.avx2.permd({t} {value}, {t} {index})")
    memory = e.alloca(f"[{width} x i32]", 64)
    e.emit_void(f"store {t} {value}, ptr {memory}, align 64")
    result = "poison"
    for k in range(width):
        at = e.emit(f"extractelement {t} {index}, i32 {k}")
        place = e.emit(f"getelementptr inbounds i32, ptr {memory}, i32 {at}")
        word = e.emit(f"load i32, ptr {place}, align 4")
        result = e.emit(f"insertelement {t} {result}, i32 {word}, i32 {k}")
    return result
