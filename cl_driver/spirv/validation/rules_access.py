"""Type rules of memory access, composites, calls and control flow. ACCESS_RULES: as RULES of rules.py."""

from __future__ import annotations

from ..enums import Op, StorageClass
from ..module import Constant, ConstantExpr, Function, Instruction, Kind, Operand, Type, Undef, Variable
from .rules import ARRAY, BOOL, INT, POINTER, STRUCT, VECTOR, Rule, count, need, pointer, scalar, types


def _points_to(type_: Type, pointee: Type, what: str) -> None:
    need(
        type_.element is pointee or type_.element is None,
        "{} of type {!r} through {!r}",
        what,
        pointee,
        type_,
    )


def _load(i: Instruction) -> None:
    _points_to(pointer(i.operands[0]), i.type, "a load")
    need(i.type.kind not in (Kind.VOID, Kind.FUNCTION), "a load of type {!r}", i.type)


def _store(i: Instruction) -> None:
    target, value = i.operands
    _points_to(pointer(target), value.type, "a store")
    need(
        target.type.storage not in (StorageClass.UniformConstant, StorageClass.Input),
        "a store into {}",
        target.type.storage.name,
    )


def _copy_memory(i: Instruction) -> None:
    target, source = pointer(i.operands[0], "the target"), pointer(i.operands[1], "the source")
    if i.op == Op.CopyMemory:
        need(
            target.element is source.element and target.element is not None,
            "from {!r} to {!r}",
            source,
            target,
        )
    else:
        size = i.operands[2].type
        need(size is not None and size.kind is INT, "a size of type {!r}", size)
    need(
        target.storage not in (StorageClass.UniformConstant, StorageClass.Input),
        "into {}",
        target.storage.name,
    )


def _variable(i: Instruction) -> None:
    need(
        i.type.kind is POINTER and i.type.storage is StorageClass.Function and i.type.element is not None,
        "a variable of type {!r} in a function",
        i.type,
    )
    need(i.operands[0] == StorageClass.Function, "storage class {!r} in a function", i.operands[0])
    if len(i.operands) > 1:
        initializer = i.operands[1]
        need(
            isinstance(initializer, Constant | ConstantExpr | Undef | Variable),
            "the initializer is not constant",
        )
        need(initializer.type is i.type.element, "an initializer of type {!r}", initializer.type)


def _access_chain(i: Instruction) -> None:
    base = pointer(i.operands[0], "the base")
    element_first = i.op in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain)
    indices = i.operands[1:]
    need(base.element is not None, "the base is an untyped pointer")
    if element_first:
        need(
            indices[0].type is not None and indices[0].type.kind is INT,
            "element of type {!r}",
            indices[0].type,
        )
        indices = indices[1:]
    type_ = walk(base.element, indices)
    result = i.type
    need(
        result.kind is POINTER and result.storage is base.storage and result.element is type_,
        "the result has type {!r}, the part {!r}",
        result,
        type_,
    )


def walk(type_: Type, indices: list[Operand]) -> Type:
    """The type of the part that indices lead to."""
    for index in indices:
        need(index.type is not None and index.type.kind is INT, "an index of type {!r}", index.type)
        if type_.kind is STRUCT:
            need(isinstance(index, Constant), "an index into a structure is not a constant")
            member = index.value or 0
            need(member < len(type_.members), "member {} of {!r}", member, type_)
            type_ = type_.members[member]
        else:
            need(type_.kind in (ARRAY, VECTOR), "an index into {!r}", type_)
            type_ = type_.element
    return type_


def _literal_walk(type_: Type, path: list[int]) -> Type:
    for index in path:
        if type_.kind is STRUCT:
            need(index < len(type_.members), "member {} of {!r}", index, type_)
            type_ = type_.members[index]
        else:
            need(type_.kind in (ARRAY, VECTOR) and index < type_.count, "index {} into {!r}", index, type_)
            type_ = type_.element
    return type_


def _extract(i: Instruction) -> None:
    need(len(i.operands) > 1, "no index")
    part = _literal_walk(i.operands[0].type, i.operands[1:])
    need(part is i.type, "the part has type {!r}, the result {!r}", part, i.type)


def _insert(i: Instruction) -> None:
    part, composite = i.operands[:2]
    need(composite.type is i.type, "the composite has type {!r}, the result {!r}", composite.type, i.type)
    need(len(i.operands) > 2, "no index")
    there = _literal_walk(i.type, i.operands[2:])
    need(there is part.type, "an object of type {!r} for a part of {!r}", part.type, there)


def _construct(i: Instruction) -> None:
    type_, parts = i.type, types(i)
    if type_.kind is VECTOR:
        need(
            all(scalar(p) is type_.element for p in parts) and sum(map(count, parts)) == type_.count,
            "{!r} of {}",
            type_,
            parts,
        )
    elif type_.kind is STRUCT:
        need(tuple(parts) == type_.members, "{!r} of {}", type_, parts)
    else:
        need(
            type_.kind is ARRAY and len(parts) == type_.count and all(p is type_.element for p in parts),
            "{!r} of {}",
            type_,
            parts,
        )


def _shuffle(i: Instruction) -> None:
    a, b = i.operands[0].type, i.operands[1].type
    need(
        a.kind is VECTOR and b.kind is VECTOR and i.type.kind is VECTOR, "{!r} of {!r} and {!r}", i.type, a, b
    )
    need(a.element is b.element is i.type.element, "{!r} of {!r} and {!r}", i.type, a, b)
    picks = i.operands[2:]
    need(len(picks) == i.type.count, "{} components for {!r}", len(picks), i.type)
    for pick in picks:
        need(pick < a.count + b.count or pick == 0xFFFFFFFF, "component {} of {}", pick, a.count + b.count)


def _extract_dynamic(i: Instruction) -> None:
    vector, index = types(i)
    need(
        vector.kind is VECTOR and vector.element is i.type and index.kind is INT,
        "{!r} of {!r} at {!r}",
        i.type,
        vector,
        index,
    )


def _insert_dynamic(i: Instruction) -> None:
    vector, part, index = types(i)
    need(
        vector is i.type and vector.kind is VECTOR and vector.element is part and index.kind is INT,
        "{!r} into {!r} at {!r}",
        part,
        vector,
        index,
    )


def _call(i: Instruction) -> None:
    function = i.operands[0]
    need(isinstance(function, Function), "the callee is not a function")
    type_ = function.type
    need(
        same_but_pointees(type_.element, i.type),
        "a result of type {!r}, the function's is {!r}",
        i.type,
        type_.element,
    )
    arguments = i.operands[1:]
    need(
        len(arguments) == len(type_.members),
        "{} arguments, the function has {} parameters",
        len(arguments),
        len(type_.members),
    )
    for argument, parameter in zip(arguments, type_.members, strict=True):
        need(
            same_but_pointees(argument.type, parameter),
            "an argument of type {!r} for a parameter of {!r}",
            argument.type,
            parameter,
        )


def same_but_pointees(a: Type, b: Type) -> bool:
    """Linked modules may disagree about what a pointer points to."""
    return a is b or (a.kind is POINTER and b.kind is POINTER and a.storage is b.storage)


def _branch_conditional(i: Instruction) -> None:
    need(i.operands[0].type.kind is BOOL, "a condition of type {!r}", i.operands[0].type)


def _switch(i: Instruction) -> None:
    need(i.operands[0].type.kind is INT, "a selector of type {!r}", i.operands[0].type)
    literals = i.operands[2::2]
    need(len(set(literals)) == len(literals), "a literal occurs twice")


def _phi(i: Instruction) -> None:
    for value in i.operands[::2]:
        need(value.type is i.type, "a value of type {!r}, the result has {!r}", value.type, i.type)


def _result(i: Instruction) -> Type:
    """The result type of the function that an instruction is in."""
    assert i.block.function is not None
    return i.block.function.type.element


def _return(i: Instruction) -> None:
    need(
        _result(i).kind is Kind.VOID,
        "without a value in a function of type {!r}",
        _result(i),
    )


def _return_value(i: Instruction) -> None:
    need(
        i.operands[0].type is _result(i),
        "a value of type {!r} in a function of type {!r}",
        i.operands[0].type,
        _result(i),
    )


ACCESS_RULES: dict[Op, Rule] = {
    Op.Load: _load,
    Op.Store: _store,
    Op.CopyMemory: _copy_memory,
    Op.CopyMemorySized: _copy_memory,
    Op.Variable: _variable,
    **dict.fromkeys(
        (Op.AccessChain, Op.InBoundsAccessChain, Op.PtrAccessChain, Op.InBoundsPtrAccessChain), _access_chain
    ),
    Op.CompositeExtract: _extract,
    Op.CompositeInsert: _insert,
    Op.CompositeConstruct: _construct,
    Op.VectorShuffle: _shuffle,
    Op.VectorExtractDynamic: _extract_dynamic,
    Op.VectorInsertDynamic: _insert_dynamic,
    Op.FunctionCall: _call,
    Op.BranchConditional: _branch_conditional,
    Op.Switch: _switch,
    Op.Phi: _phi,
    Op.Return: _return,
    Op.ReturnValue: _return_value,
}
