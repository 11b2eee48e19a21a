"""Wide lowerings of what is not component-wise: composites, shuffles, casts, masks."""

from __future__ import annotations

from collections.abc import Sequence

from ...passes.ir.ops import PassOp
from ...spirv.enums import Decoration, Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Constant, Instruction, Kind, Type, Value
from ..atomic.emitter import AtomicEmitter
from ..llvm.registry import LOWERINGS, lowers, lowers_wide, lowers_wide_extended
from ..llvm.types import element_type, ir_type, leaf_types
from ..ops.composite import UNDEFINED_COMPONENT


def leaf_range(type_: Type, indices: Sequence[int]) -> tuple[int, int]:
    """Which of a composite's leaves a part consists of: first, and how many."""
    first = 0
    for index in indices:
        if type_.kind is Kind.STRUCT:
            first += sum(len(leaf_types(member)) for member in type_.members[:index])
            type_ = type_.members[index]
        else:
            type_ = type_.element
            first += index * len(leaf_types(type_))
    return first, len(leaf_types(type_))


@lowers_wide(Op.CompositeExtract)
def composite_extract(e: AtomicEmitter, i: Instruction) -> None:
    """OpCompositeExtract: some of the leaves."""
    composite = i.operands[0]
    first, count = leaf_range(composite.type, i.operands[1:])
    e.define_leaves(i, e.leaves(composite)[first : first + count])


@lowers_wide(Op.CompositeInsert)
def composite_insert(e: AtomicEmitter, i: Instruction) -> None:
    """OpCompositeInsert: some of the leaves replaced."""
    value, composite = i.operands[:2]
    first, count = leaf_range(composite.type, i.operands[2:])
    leaves = list(e.leaves(composite))
    leaves[first : first + count] = e.leaves(value)
    e.define_leaves(i, leaves)


@lowers_wide(Op.CompositeConstruct)
def composite_construct(e: AtomicEmitter, i: Instruction) -> None:
    """OpCompositeConstruct: the leaves of all constituents."""
    e.define_leaves(i, [leaf for constituent in i.operands for leaf in e.leaves(constituent)])


@lowers_wide(Op.VectorShuffle)
def vector_shuffle(e: AtomicEmitter, i: Instruction) -> None:
    """OpVectorShuffle: a choice of leaves."""
    a, b, literals = i.operands[0], i.operands[1], i.operands[2:]
    both = [*e.leaves(a), *e.leaves(b)]
    e.define_leaves(i, ["poison" if k == UNDEFINED_COMPONENT else both[k] for k in literals])


@lowers_wide(Op.VectorExtractDynamic)
def vector_extract_dynamic(e: AtomicEmitter, i: Instruction) -> None:
    """OpVectorExtractDynamic: a chain of selects over the components."""
    vector, index = i.operands
    e.define_leaves(i, [_choose(e, e.leaves(vector), ir_type(i.type), index.type, e.leaf(index))])


def _choose(e: AtomicEmitter, choices: list[str], t: str, index_type: Type, index: str) -> str:
    """In each lane the choice with the lane's number; the first for numbers out of range."""
    f, wide_index = e.form, ir_type(index_type)
    result = choices[0]
    for k, choice in enumerate(choices[1:], 1):
        here = e.emit(f"icmp eq {f(wide_index)} {index}, {f.splat(wide_index, str(k))}")
        result = e.emit(f"select {f('i1')} {here}, {f(t)} {choice}, {f(t)} {result}")
    return result


@lowers_wide(Op.VectorInsertDynamic)
def vector_insert_dynamic(e: AtomicEmitter, i: Instruction) -> None:
    """OpVectorInsertDynamic: a select for each component."""
    vector, component, index = i.operands
    f, t, wide_index = e.form, ir_type(component.type), ir_type(index.type)
    value, where = e.leaf(component), e.leaf(index)
    leaves = []
    for k, old in enumerate(e.leaves(vector)):
        here = e.emit(f"icmp eq {f(wide_index)} {where}, {f.splat(wide_index, str(k))}")
        leaves.append(e.emit(f"select {f('i1')} {here}, {f(t)} {value}, {f(t)} {old}"))
    e.define_leaves(i, leaves)


@lowers_wide_extended(Std.shuffle, Std.shuffle2)
def shuffle(e: AtomicEmitter, i: Instruction) -> None:
    """shuffle, shuffle2: the low bits of each mask component choose."""
    sources, mask = i.operands[2:-1], i.operands[-1]
    choices = [leaf for source in sources for leaf in e.leaves(source)]
    t = ir_type(element_type(i.type))
    index_type = element_type(mask.type)
    if isinstance(mask, Constant):
        numbers = [p.value or 0 for p in mask.value] if mask.value is not None else [0] * mask.type.count
        e.define_leaves(i, [choices[k & len(choices) - 1] for k in numbers])
        return
    leaves = []
    for leaf in e.leaves(mask):
        wide_index = ir_type(index_type)
        index = e.emit(f"and {e.form(wide_index)} {leaf}, {e.form.splat(wide_index, str(len(choices) - 1))}")
        leaves.append(_choose(e, choices, t, index_type, index))
    e.define_leaves(i, leaves)


@lowers_wide(Op.Select)
def select(e: AtomicEmitter, i: Instruction) -> None:
    """OpSelect: one condition for all components, or one for each."""
    condition, true, false = i.operands
    if not e.is_varying(condition) and condition.type.kind is Kind.BOOL:
        conditions = [f"i1 {e.operand(condition)}"]
    else:
        conditions = [f"{e.form('i1')} {leaf}" for leaf in e.leaves(condition)]
    types = leaf_types(i.type)
    if len(conditions) == 1:
        conditions *= len(types)
    e.define_leaves(
        i,
        [
            e.emit(f"select {c}, {e.form(ir_type(t))} {a}, {e.form(ir_type(t))} {b}")
            for c, t, a, b in zip(conditions, types, e.leaves(true), e.leaves(false), strict=True)
        ],
    )


@lowers_wide_extended(Std.select)
def select_by_bits(e: AtomicEmitter, i: Instruction) -> None:
    """select: of vectors by the top bit of c, of scalars by c not being 0."""
    a, b, c = i.operands[2:]
    f, t, bits = e.form, ir_type(element_type(i.type)), ir_type(element_type(c.type))
    predicate = "slt" if i.type.kind is Kind.VECTOR else "ne"
    leaves = []
    for x, y, z in zip(e.leaves(a), e.leaves(b), e.leaves(c), strict=True):
        condition = e.emit(f"icmp {predicate} {f(bits)} {z}, zeroinitializer")
        leaves.append(e.emit(f"select {f('i1')} {condition}, {f(t)} {y}, {f(t)} {x}"))
    e.define_leaves(i, leaves)


@lowers_wide(Op.CopyObject, Op.CopyLogical, Op.PtrCastToGeneric, Op.GenericCastToPtr, Op.ExpectKHR)
def same_value(e: AtomicEmitter, i: Instruction) -> None:
    """What changes nothing."""
    e.define_leaves(i, e.leaves(i.operands[0]))


def address_leaf(e: AtomicEmitter, pointer: Value, t: str) -> str:
    """A pointer as integers. One lane's address and integers from there, if that will do: LLVM 22 has
    assertions against differences and comparisons of vectors of pointers with one base."""
    if e.is_varying(pointer):
        return e.emit(f"ptrtoint {e.form('ptr')} {e.leaf(pointer)} to {e.form(t)}")
    return e.lanes_from(t, e.emit(f"ptrtoint {e.typed(pointer)} to {t}"), e.stride(pointer))


@lowers_wide(Op.ConvertPtrToU)
def convert_pointer(e: AtomicEmitter, i: Instruction) -> None:
    """OpConvertPtrToU."""
    e.define_leaves(i, [address_leaf(e, i.operands[0], ir_type(i.type))])


@lowers_wide(Op.PtrEqual, Op.PtrNotEqual)
def compare_pointers(e: AtomicEmitter, i: Instruction) -> None:
    """OpPtrEqual, OpPtrNotEqual."""
    a, b = (address_leaf(e, pointer, "i64") for pointer in i.operands)
    predicate = "eq" if i.op is Op.PtrEqual else "ne"
    e.define_leaves(i, [e.emit(f"icmp {predicate} {e.form('i64')} {a}, {b}")])


@lowers_wide(Op.Bitcast)
def bitcast(e: AtomicEmitter, i: Instruction) -> None:
    """OpBitcast: leaves of one width are cast one by one; else components are put together or taken apart."""
    value = i.operands[0]
    source, result = element_type(value.type), element_type(i.type)
    leaves = e.leaves(value)
    f = e.form
    if source.kind is Kind.POINTER or result.kind is Kind.POINTER:
        if source.kind is result.kind:
            e.define_leaves(i, leaves)
        else:
            e.lane_by_lane(i, LOWERINGS[Op.Bitcast])
        return
    s, t = ir_type(source), ir_type(result)
    if source.width == result.width:
        e.define_leaves(
            i, [leaf if s == t else e.emit(f"bitcast {f(s)} {leaf} to {f(t)}") for leaf in leaves]
        )
        return
    bits = [
        leaf if source.kind is Kind.INT else e.emit(f"bitcast {f(s)} {leaf} to {f(f'i{source.width}')}")
        for leaf in leaves
    ]
    regrouped = _regroup(e, bits, source.width, result.width)
    if result.kind is not Kind.INT:
        regrouped = [e.emit(f"bitcast {f(f'i{result.width}')} {leaf} to {f(t)}") for leaf in regrouped]
    e.define_leaves(i, regrouped)


def _regroup(e: AtomicEmitter, leaves: list[str], source: int, result: int) -> list[str]:
    """The same bits as integers of another width, least significant first."""
    f, s, t = e.form, f"i{source}", f"i{result}"
    if source > result:
        out = []
        for leaf in leaves:
            for k in range(source // result):
                bits = e.emit(f"lshr {f(s)} {leaf}, {f.splat(s, str(k * result))}") if k else leaf
                out.append(e.emit(f"trunc {f(s)} {bits} to {f(t)}"))
        return out
    out, count = [], result // source
    for start in range(0, len(leaves), count):
        total = e.emit(f"zext {f(s)} {leaves[start]} to {f(t)}")
        for k in range(1, count):
            bits = e.emit(f"zext {f(s)} {leaves[start + k]} to {f(t)}")
            bits = e.emit(f"shl {f(t)} {bits}, {f.splat(t, str(k * source))}")
            total = e.emit(f"or {f(t)} {total}, {bits}")
        out.append(total)
    return out


@lowers_wide(Op.Dot)
def dot(e: AtomicEmitter, i: Instruction) -> None:
    """OpDot: products summed from the first to the last component, fused: its error bound allows that."""
    f, t, flags = e.form, ir_type(i.type), e.flags(i)
    if Decoration.FPFastMathMode not in i.decorations and not {"contract", "fast"} & set(flags.split()):
        flags += "contract "
    total = ""
    for x, y in zip(e.leaves(i.operands[0]), e.leaves(i.operands[1]), strict=True):
        product = e.emit(f"fmul {flags}{f(t)} {x}, {y}")
        total = product if not total else e.emit(f"fadd {flags}{f(t)} {total}, {product}")
    e.define_leaves(i, [total])


@lowers_wide_extended(Std.cross)
def cross(e: AtomicEmitter, i: Instruction) -> None:
    """cross of 3- or 4-component vectors; a fourth component becomes 0."""
    f, t, flags = e.form, ir_type(element_type(i.type)), e.flags(i)
    x, y = e.leaves(i.operands[2]), e.leaves(i.operands[3])
    leaves = []
    for j, k in ((1, 2), (2, 0), (0, 1)):
        first = e.emit(f"fmul {flags}{f(t)} {x[j]}, {y[k]}")
        second = e.emit(f"fmul {flags}{f(t)} {x[k]}, {y[j]}")
        leaves.append(e.emit(f"fsub {flags}{f(t)} {first}, {second}"))
    e.define_leaves(i, [*leaves, "zeroinitializer"][: i.type.count])


@lowers_wide(Op.Any, Op.All)
def any_all(e: AtomicEmitter, i: Instruction) -> None:
    """OpAny, OpAll: over the components of each lane."""
    opcode = "or" if i.op is Op.Any else "and"
    form = e.form("i1")
    result, *leaves = [e.emit(f"freeze {form} {leaf}") for leaf in e.leaves(i.operands[0])]
    for leaf in leaves:
        result = e.emit(f"{opcode} {form} {result}, {leaf}")
    e.define_leaves(i, [result])


@lowers(PassOp.EntryMask)
def entry_mask_single(e: AtomicEmitter, i: Instruction) -> None:
    """The lanes that hold a work-item: at width 1 there is one."""
    e.define(i, "true")


@lowers_wide(PassOp.EntryMask)
def entry_mask(e: AtomicEmitter, i: Instruction) -> None:
    """The lanes that hold a work-item."""
    e.define_leaves(i, [e.entry_mask()])


@lowers(PassOp.Parameter, PassOp.Result)
def of_function(e: AtomicEmitter, i: Instruction) -> None:
    """What comes with a call, and goes back (kernel/vector_function.py)."""


@lowers_wide(PassOp.Parameter)
def parameter(e: AtomicEmitter, i: Instruction) -> None:
    """The same where it varies."""


@lowers(PassOp.FirstItem)
def first_item(e: AtomicEmitter, i: Instruction) -> None:
    """The value of lane 0 of part 0."""
    e.define(i, e.operand(i.operands[0]))


@lowers(PassOp.AnyLane, PassOp.AnyLaneOfPart)
def any_lane(e: AtomicEmitter, i: Instruction) -> None:
    """True if any lane's mask is true."""
    mask = i.operands[0]
    e.define(i, e.any_lane(e.leaf(mask)) if e.is_varying(mask) else e.operand(mask))
