"""Composite instructions (SPIR-V 1.6, section 3.49.12)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...spirv.enums import Op
from ...spirv.module import Instruction, Kind, Type, Undef, Value
from ..llvm.emitter import Components, FunctionEmitter
from ..llvm.errors import CodegenError
from ..llvm.registry import lowers
from ..llvm.types import constant_text, element_type, ir_type

UNDEFINED_COMPONENT = 0xFFFFFFFF


def _base_operand(e: FunctionEmitter, value: Value) -> str:
    """A composite to be changed: what is undefined of it stays so."""
    return "poison" if isinstance(value, Undef) else e.operand(value)


@lowers(Op.CompositeExtract)
def composite_extract(e: FunctionEmitter, i: Instruction) -> None:
    """OpCompositeExtract: literal indices through arrays and structures, a vector last."""
    composite, indices = i.operands[0], i.operands[1:]
    found = e.operands.get(composite)
    if isinstance(found, Components) and len(indices) == 1:
        e.define(i, found[indices[0]])
        return
    operand, type_ = e.operand(composite), composite.type
    if isinstance(composite, Undef) or operand == "zeroinitializer":
        e.define(i, constant_text(Undef(i.type)))
        return
    e.define(i, extract(e, operand, type_, indices))


def extract(e: FunctionEmitter, operand: str, type_: Type, indices: Sequence[int]) -> str:
    """A constituent of an aggregate operand, at any depth. CodegenError for indices that lead into a
    scalar."""
    outer: list[int] = []
    text = ir_type(type_)
    for position, index in enumerate(indices):
        if type_.kind is Kind.VECTOR:
            if outer:
                operand = e.emit(f"extractvalue {text} {operand}, {', '.join(map(str, outer))}")
            if position + 1 != len(indices):
                raise CodegenError("an index into a scalar")
            return e.emit(f"extractelement {ir_type(type_)} {operand}, i32 {index}")
        outer.append(index)
        type_ = type_.members[index] if type_.kind is Kind.STRUCT else type_.element
    if not outer:
        return operand
    return e.emit(f"extractvalue {text} {operand}, {', '.join(map(str, outer))}")


@lowers(Op.CompositeInsert)
def composite_insert(e: FunctionEmitter, i: Instruction) -> None:
    """OpCompositeInsert."""
    value, composite, indices = i.operands[0], i.operands[1], i.operands[2:]
    type_ = composite.type
    path = [type_]
    for index in indices:
        type_ = type_.members[index] if type_.kind is Kind.STRUCT else type_.element
        path.append(type_)
    base = _base_operand(e, composite)
    if not indices:
        e.define(i, e.operand(value))
        return
    text = ir_type(composite.type)
    if path[-2].kind is not Kind.VECTOR:
        e.define(i, e.emit(f"insertvalue {text} {base}, {e.typed(value)}, {', '.join(map(str, indices))}"))
        return
    vector = extract(e, base, composite.type, indices[:-1]) if base != "poison" else base
    if len(indices) > 1 and base == "poison":
        vector = "poison"
    vector_text = ir_type(path[-2])
    element = f"{ir_type(value.type)} {e.element(e.operand(value))}"
    vector = e.emit(f"insertelement {vector_text} {vector}, {element}, i32 {indices[-1]}")
    if len(indices) > 1:
        outer = ", ".join(map(str, indices[:-1]))
        vector = e.emit(f"insertvalue {text} {base}, {vector_text} {vector}, {outer}")
    e.define(i, vector)


@lowers(Op.CompositeConstruct)
def composite_construct(e: FunctionEmitter, i: Instruction) -> None:
    """OpCompositeConstruct: a vector's constituents may be vectors."""
    type_ = i.type
    text = ir_type(type_)
    if type_.kind is not Kind.VECTOR:
        result = "poison"
        for k, constituent in enumerate(i.operands):
            result = e.emit(f"insertvalue {text} {result}, {e.typed(constituent)}, {k}")
        e.define(i, result)
        return
    components = [c for constituent in i.operands for c in e.components(constituent)]
    e.define(i, e.build_vector(type_, components))


@lowers(Op.CompositeConstructReplicateEXT)
def composite_replicate(e: FunctionEmitter, i: Instruction) -> None:
    """OpCompositeConstructReplicateEXT: the same constituent everywhere."""
    if i.type.kind is Kind.VECTOR:
        e.define(i, e.spread(i.operands[0], e.form_of(i.type)))
        return
    count = i.type.count if i.type.kind is Kind.ARRAY else len(i.type.members)
    result = "poison"
    for k in range(count):
        result = e.emit(f"insertvalue {ir_type(i.type)} {result}, {e.typed(i.operands[0])}, {k}")
    e.define(i, result)


@lowers(Op.VectorExtractDynamic)
def vector_extract_dynamic(e: FunctionEmitter, i: Instruction) -> None:
    """OpVectorExtractDynamic: an index out of range has an undefined result, not poison."""
    vector, index = i.operands
    e.define(i, e.emit(f"extractelement {e.typed(vector)}, {bounded_index(e, index, vector.type.count)}"))


@lowers(Op.VectorInsertDynamic)
def vector_insert_dynamic(e: FunctionEmitter, i: Instruction) -> None:
    """OpVectorInsertDynamic."""
    vector, component, index = i.operands
    t = ir_type(vector.type)
    where = bounded_index(e, index, vector.type.count)
    element = f"{ir_type(component.type)} {e.element(e.operand(component))}"
    e.define(i, e.emit(f"insertelement {t} {_base_operand(e, vector)}, {element}, {where}"))


def bounded_index(e: FunctionEmitter, index: Value, count: int) -> str:
    """An index as a typed operand, kept inside the vector."""
    literal = e.integer(index)
    if literal is not None:
        return f"i32 {literal if literal < count else 0}"
    t = ir_type(index.type)
    if count & count - 1 == 0 and count <= 1 << index.type.width - 1:
        return f"{t} {e.emit(f'and {t} {e.operand(index)}, {count - 1}')}"
    inside = e.emit(f"icmp ult {e.typed(index)}, {count}")
    return f"{t} {e.emit(f'select i1 {inside}, {e.typed(index)}, {t} 0')}"


@lowers(Op.VectorShuffle)
def vector_shuffle(e: FunctionEmitter, i: Instruction) -> None:
    """OpVectorShuffle: components of the two vectors one after the other; all ones is undefined."""
    a, b, literals = i.operands[0], i.operands[1], i.operands[2:]
    e.define(i, shuffle_vectors(e, a, b, literals))


def shuffle_vectors(e: FunctionEmitter, a: Value, b: Value, literals: Iterable[int]) -> str:
    """One LLVM vector of chosen components of two vector Values, which may differ in length."""
    first, second = a.type.count, b.type.count
    element = ir_type(element_type(a.type))
    mask = [k if k != UNDEFINED_COMPONENT else -1 for k in literals]
    uses_second = any(k >= first for k in mask)
    uses_first = any(0 <= k < first for k in mask)
    if not uses_first and uses_second:
        mask = [k - first if k >= 0 else k for k in mask]
        return _shuffle(e, element, second, e.operand(b), "poison", mask)
    if not uses_second:
        return _shuffle(e, element, first, e.operand(a), "poison", mask)
    x, y = e.operand(a), e.operand(b)
    if first != second:
        widest = max(first, second)
        if first < widest:
            x = _shuffle(e, element, first, x, "poison", [*range(first)] + [-1] * (widest - first))
        else:
            y = _shuffle(e, element, second, y, "poison", [*range(second)] + [-1] * (widest - second))
        mask = [k if k < first else k - first + widest for k in mask]
        first = widest
    return _shuffle(e, element, first, x, y, mask)


def _shuffle(e: FunctionEmitter, element: str, count: int, x: str, y: str, mask: Sequence[int]) -> str:
    t = f"<{count} x {element}>"
    lanes = ", ".join(f"i32 {k}" if k >= 0 else "i32 poison" for k in mask)
    return e.emit(f"shufflevector {t} {x}, {t} {y}, <{len(mask)} x i32> <{lanes}>")


@lowers(Op.Transpose)
def transpose(e: FunctionEmitter, i: Instruction) -> None:
    """OpTranspose: CodegenError, for matrices are for shaders."""
    raise CodegenError("OpTranspose needs matrices, which kernels do not have")


@lowers(Op.CopyLogical)
def copy_logical(e: FunctionEmitter, i: Instruction) -> None:
    """OpCopyLogical: the same parts in another structure or array, which may be packed otherwise."""
    source = i.operands[0]
    e.define(i, _copy_members(e, e.operand(source), source.type, i.type))


def _copy_members(e: FunctionEmitter, operand: str, source: Type, result: Type) -> str:
    if ir_type(source) == ir_type(result):
        return operand
    is_struct = source.kind is Kind.STRUCT
    pairs = (
        list(zip(source.members, result.members, strict=True))
        if is_struct
        else [(source.element, result.element)] * source.count
    )
    copy = "poison"
    for k, (old, new) in enumerate(pairs):
        member = e.emit(f"extractvalue {ir_type(source)} {operand}, {k}")
        member = _copy_members(e, member, old, new)
        copy = e.emit(f"insertvalue {ir_type(result)} {copy}, {ir_type(new)} {member}, {k}")
    return copy
