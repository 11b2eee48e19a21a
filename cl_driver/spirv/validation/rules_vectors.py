"""Type rules of vectors of pointers (SPV_INTEL_masked_gather_scatter). VECTOR_RULES: as RULES of rules.py."""

from __future__ import annotations

from collections.abc import Mapping

from ..enums import Op
from ..module import Instruction, Kind, Undef, Value
from .rules import Rule, need, scalar


def _masked(i: Instruction) -> None:
    is_gather = i.op is Op.MaskedGatherINTEL
    if is_gather:
        pointers, alignment, mask, fill = i.operands
        data = i.type
    else:
        stored, pointers, alignment, mask = i.operands
        data, fill = stored.type, None
    addresses = pointers.type
    need(data is not None and data.kind is Kind.VECTOR, "data of type {!r}", data)
    need(
        addresses is not None and addresses.kind is Kind.VECTOR and addresses.element.kind is Kind.POINTER,
        "{!r} is no vector of pointers",
        addresses,
    )
    pointee = addresses.element.element
    need(pointee in (None, data.element), "{!r} behind pointers to {!r}", data, pointee)
    need(alignment & (alignment - 1) == 0, "alignment {} is not a power of two", alignment)
    need(
        mask.type is not None and mask.type.kind is Kind.VECTOR and mask.type.element.kind is Kind.BOOL,
        "a mask of type {!r}",
        mask.type,
    )
    need(
        data.count == addresses.count == mask.type.count,
        "{} components of data, {} pointers, a mask of {}",
        data.count,
        addresses.count,
        mask.type.count,
    )
    # The extension's text wants a component, and compilers write a vector.
    if fill is not None:
        need(fill.type in (data, data.element), "{!r} to fill {!r} with", fill.type, data)


def _by_component(rule: Rule) -> Rule:
    """The rule, which vectors of pointers keep to component by component."""

    def checked(i: Instruction) -> None:
        values = [i, *(o for o in i.operands if isinstance(o, Value))]
        types = [value.type for value in values if value.type is not None]
        if not any(t.kind is Kind.VECTOR and t.element.kind is Kind.POINTER for t in types):
            rule(i)
            return
        vectors = [t for t in types if t.kind is Kind.VECTOR]
        need(all(t.count == vectors[0].count for t in vectors), "vectors of different sizes")
        need(i.type is not None and i.type.kind is Kind.VECTOR, "a result of type {!r}", i.type)
        if i.op not in _CHAINS:  # of which base and indices may be the same for all
            need(len(vectors) == len(types), "a vector of pointers, and what is no vector")
        rule(_first(i))

    return checked


def _first(i: Instruction) -> Instruction:
    """What an instruction does for one component."""
    operands = [_component(o) if isinstance(o, Value) else o for o in i.operands]
    return Instruction(i.op, scalar(i.type), operands, i.block)


def _component(value: Value) -> Value:
    return value if value.type is None or value.type.kind is not Kind.VECTOR else Undef(scalar(value.type))


_CHAINS = (Op.AccessChain, Op.InBoundsAccessChain, Op.PtrAccessChain, Op.InBoundsPtrAccessChain)
# Those that are of addresses, and may be of several.
_OF_ADDRESSES = (
    *_CHAINS, Op.PtrEqual, Op.PtrNotEqual, Op.PtrDiff, Op.ConvertPtrToU, Op.ConvertUToPtr,
    Op.PtrCastToGeneric, Op.GenericCastToPtr,
    Op.GenericCastToPtrExplicit, Op.Bitcast, Op.Variable, Op.IEqual, Op.INotEqual,
)  # fmt: skip


def vector_rules(rules: Mapping[Op, Rule]) -> dict[Op, Rule]:
    """The rules to have in place of these, and those of the extension's instructions."""
    changed = {op: _by_component(rules[op]) for op in _OF_ADDRESSES}
    return {**changed, Op.MaskedGatherINTEL: _masked, Op.MaskedScatterINTEL: _masked}
