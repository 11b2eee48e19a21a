"""Type rules of instructions: what the passes and the code generator rely on.

RULES: {Op: rule(instruction)}; a rule raises RuleError with the rule that is broken. Where clang's back end
writes what the specification does not allow, but means one thing only, the rule allows it and says so.
"""

from __future__ import annotations

from .enums import Op, StorageClass
from .module import Constant, ConstantExpr, Function, Instruction, Kind, Type, Undef, Value, Variable

INT, FLOAT, BOOL, VECTOR, POINTER, ARRAY, STRUCT = (Kind.INT, Kind.FLOAT, Kind.BOOL, Kind.VECTOR, Kind.POINTER,
                                                    Kind.ARRAY, Kind.STRUCT)


class RuleError(Exception):
    """The rule that an instruction breaks."""


def need(condition, rule: str, *parts) -> None:
    if not condition:
        raise RuleError(rule.format(*parts))


def scalar(type_: Type) -> Type:
    return type_.element if type_.kind is VECTOR else type_


def count(type_: Type) -> int:
    return type_.count if type_.kind is VECTOR else 1


def types(instruction: Instruction) -> list[Type]:
    """The types of the operands, all of which are values."""
    return [o.type for o in instruction.operands]


def _same(kind: Kind):
    """Result and operands have one type: scalars or vectors of the kind."""
    def rule(i):
        type_ = i.type
        if scalar(type_).kind is not kind:
            raise RuleError(f"the result has type {type_!r}, not one of {kind.value}")
        for operand in i.operands:
            if operand.type is not type_:
                raise RuleError(f"an operand has type {operand.type!r}, the result {type_!r}")
    return rule


def _shift(i):
    a, b = types(i)
    need(scalar(i.type).kind is INT and a is i.type, "the base has type {!r}, the result {!r}", a, i.type)
    need(scalar(b).kind is INT and count(b) == count(a), "shifted by {!r}", b)


def _compare(kind: Kind):
    def rule(i):
        a, b = types(i)
        need(a is b, "operands of types {!r} and {!r}", a, b)
        need(scalar(a).kind is kind, "operands of type {!r}, not of {}", a, kind.value)
        need(scalar(i.type).kind is BOOL and count(i.type) == count(a), "the result has type {!r}", i.type)
    return rule


def _equality(i):
    """OpIEqual and OpINotEqual; clang compares pointers with them after OpPtrEqual's fashion, too."""
    a, b = types(i)
    if a.kind is POINTER and b.kind is POINTER:
        need(i.type.kind is BOOL, "the result has type {!r}", i.type)
        return
    _compare(INT)(i)


def _pointer_compare(i):
    a, b = types(i)
    need(a.kind is POINTER and b.kind is POINTER, "operands of types {!r} and {!r}", a, b)
    need(i.type.kind in (BOOL, INT), "the result has type {!r}", i.type)


def _convert(to: Kind, from_: Kind):
    def rule(i):
        (a,) = types(i)
        need(scalar(i.type).kind is to and scalar(a).kind is from_ and count(a) == count(i.type),
             "{!r} to {!r}", a, i.type)
    return rule


def _float_test(i):
    (a,) = types(i)
    need(scalar(a).kind is FLOAT and scalar(i.type).kind is BOOL and count(a) == count(i.type),
         "{!r} of {!r}", i.type, a)


def _any_all(i):
    """Of integers, too: clang writes any(int4) so; the most significant bits count then."""
    (a,) = types(i)
    need(scalar(a).kind in (BOOL, INT) and i.type.kind is BOOL, "{!r} of {!r}", i.type, a)


def _dot(i):
    a, b = types(i)
    need(a is b and a.kind is VECTOR and a.element.kind is FLOAT and i.type is a.element,
         "{!r} of {!r} and {!r}", i.type, a, b)


def _vector_times_scalar(i):
    a, b = types(i)
    need(a is i.type and a.kind is VECTOR and a.element.kind is FLOAT and b is a.element,
         "{!r} of {!r} and {!r}", i.type, a, b)


def _select(i):
    condition, a, b = types(i)
    need(a is i.type and b is i.type, "objects of types {!r} and {!r}, the result has {!r}", a, b, i.type)
    need(scalar(condition).kind is BOOL and count(condition) in (1, count(i.type)),
         "a condition of type {!r} for {!r}", condition, i.type)


def bits(type_: Type) -> int | None:
    """Bits of a numeric or pointer type."""
    kind = type_.kind
    if kind is VECTOR:
        inner = bits(type_.element)
        return inner * type_.count if inner else None
    if kind is INT or kind is FLOAT:
        return type_.width
    return 64 if kind is POINTER else None


def _bitcast(i):
    (a,) = types(i)
    if a.kind is POINTER and i.type.kind is POINTER:
        need(a.storage is i.type.storage, "{!r} to {!r}", a, i.type)
        return
    need(bits(a) is not None and bits(a) == bits(i.type), "{!r} to {!r}", a, i.type)


def pointer(operand: Value, what: str = "the pointer") -> Type:
    """The type of an operand that must be a pointer."""
    type_ = operand.type
    need(type_ is not None and type_.kind is POINTER, "{} has type {!r}", what, type_)
    return type_


def _points_to(type_: Type, pointee: Type, what: str) -> None:
    need(type_.element is pointee or type_.element is None, "{} of type {!r} through {!r}", what, pointee, type_)


def _load(i):
    _points_to(pointer(i.operands[0]), i.type, "a load")
    need(i.type.kind not in (Kind.VOID, Kind.FUNCTION), "a load of type {!r}", i.type)


def _store(i):
    target, value = i.operands
    _points_to(pointer(target), value.type, "a store")
    need(target.type.storage not in (StorageClass.UniformConstant, StorageClass.Input),
         "a store into {}", target.type.storage.name)


def _copy_memory(i):
    target, source = pointer(i.operands[0], "the target"), pointer(i.operands[1], "the source")
    if i.op == Op.CopyMemory:
        need(target.element is source.element and target.element is not None, "from {!r} to {!r}", source, target)
    else:
        size = i.operands[2].type
        need(size is not None and size.kind is INT, "a size of type {!r}", size)
    need(target.storage not in (StorageClass.UniformConstant, StorageClass.Input), "into {}", target.storage.name)


def _variable(i):
    need(i.type.kind is POINTER and i.type.storage is StorageClass.Function and i.type.element is not None,
         "a variable of type {!r} in a function", i.type)
    need(i.operands[0] == StorageClass.Function, "storage class {!r} in a function", i.operands[0])
    if len(i.operands) > 1:
        initializer = i.operands[1]
        need(isinstance(initializer, Constant | ConstantExpr | Undef | Variable), "the initializer is not constant")
        need(initializer.type is i.type.element, "an initializer of type {!r}", initializer.type)


def _access_chain(i):
    base = pointer(i.operands[0], "the base")
    element_first = i.op in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain)
    indices = i.operands[1:]
    need(base.element is not None, "the base is an untyped pointer")
    if element_first:
        need(indices[0].type is not None and indices[0].type.kind is INT, "element of type {!r}", indices[0].type)
        indices = indices[1:]
    type_ = walk(base.element, indices)
    result = i.type
    need(result.kind is POINTER and result.storage is base.storage and result.element is type_,
         "the result has type {!r}, the part {!r}", result, type_)


def walk(type_: Type, indices: list) -> Type:
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


def _extract(i):
    part = _literal_walk(i.operands[0].type, i.operands[1:])
    need(part is i.type, "the part has type {!r}, the result {!r}", part, i.type)


def _insert(i):
    part, composite = i.operands[:2]
    need(composite.type is i.type, "the composite has type {!r}, the result {!r}", composite.type, i.type)
    there = _literal_walk(i.type, i.operands[2:])
    need(there is part.type, "an object of type {!r} for a part of {!r}", part.type, there)


def _construct(i):
    type_, parts = i.type, types(i)
    if type_.kind is VECTOR:
        need(all(scalar(p) is type_.element for p in parts) and sum(map(count, parts)) == type_.count,
             "{!r} of {}", type_, parts)
    elif type_.kind is STRUCT:
        need(tuple(parts) == type_.members, "{!r} of {}", type_, parts)
    else:
        need(type_.kind is ARRAY and len(parts) == type_.count and all(p is type_.element for p in parts),
             "{!r} of {}", type_, parts)


def _shuffle(i):
    a, b = i.operands[0].type, i.operands[1].type
    need(a.kind is VECTOR and b.kind is VECTOR and i.type.kind is VECTOR, "{!r} of {!r} and {!r}", i.type, a, b)
    need(a.element is b.element is i.type.element, "{!r} of {!r} and {!r}", i.type, a, b)
    picks = i.operands[2:]
    need(len(picks) == i.type.count, "{} components for {!r}", len(picks), i.type)
    for pick in picks:
        need(pick < a.count + b.count or pick == 0xFFFFFFFF, "component {} of {}", pick, a.count + b.count)


def _extract_dynamic(i):
    vector, index = types(i)
    need(vector.kind is VECTOR and vector.element is i.type and index.kind is INT, "{!r} of {!r} at {!r}", i.type,
         vector, index)


def _insert_dynamic(i):
    vector, part, index = types(i)
    need(vector is i.type and vector.kind is VECTOR and vector.element is part and index.kind is INT,
         "{!r} into {!r} at {!r}", part, vector, index)


def _copy(i):
    need(i.operands[0].type is i.type, "{!r} of {!r}", i.type, i.operands[0].type)


def _call(i):
    function = i.operands[0]
    need(isinstance(function, Function), "the callee is not a function")
    type_ = function.type
    need(same_but_pointees(type_.element, i.type), "a result of type {!r}, the function's is {!r}", i.type,
         type_.element)
    arguments = i.operands[1:]
    need(len(arguments) == len(type_.members), "{} arguments, the function has {} parameters", len(arguments),
         len(type_.members))
    for argument, parameter in zip(arguments, type_.members, strict=True):
        need(same_but_pointees(argument.type, parameter), "an argument of type {!r} for a parameter of {!r}",
             argument.type, parameter)


def same_but_pointees(a: Type, b: Type) -> bool:
    """Linked modules may disagree about what a pointer points to."""
    return a is b or (a.kind is POINTER and b.kind is POINTER and a.storage is b.storage)


def _branch_conditional(i):
    need(i.operands[0].type.kind is BOOL, "a condition of type {!r}", i.operands[0].type)


def _switch(i):
    need(i.operands[0].type.kind is INT, "a selector of type {!r}", i.operands[0].type)
    literals = i.operands[2::2]
    need(len(set(literals)) == len(literals), "a literal occurs twice")


def _phi(i):
    for value in i.operands[::2]:
        need(value.type is i.type, "a value of type {!r}, the result has {!r}", value.type, i.type)


def _return(i):
    need(i.block.function.type.element.kind is Kind.VOID, "without a value in a function of type {!r}",
         i.block.function.type.element)


def _return_value(i):
    need(i.operands[0].type is i.block.function.type.element, "a value of type {!r} in a function of type {!r}",
         i.operands[0].type, i.block.function.type.element)


def _to_generic(i):
    source = pointer(i.operands[0])
    need(i.type.kind is POINTER and i.type.storage is StorageClass.Generic
         and source.storage in (StorageClass.Function, StorageClass.Workgroup, StorageClass.CrossWorkgroup),
         "{!r} to {!r}", source, i.type)


def _from_generic(i):
    source = pointer(i.operands[0])
    need(i.type.kind is POINTER and source.storage is StorageClass.Generic, "{!r} to {!r}", source, i.type)


def _pointer_to_int(i):
    need(pointer(i.operands[0]) and i.type.kind is INT, "to {!r}", i.type)


def _int_to_pointer(i):
    need(i.operands[0].type.kind is INT and i.type.kind is POINTER, "{!r} to {!r}", i.operands[0].type, i.type)


def _bit_count(i):
    (a,) = types(i)
    need(scalar(a).kind is INT and scalar(i.type).kind is INT and count(a) == count(i.type), "{!r} of {!r}", i.type, a)


def _with_carry(i):
    a, b = types(i)
    need(a is b and scalar(a).kind is INT and i.type.kind is STRUCT and i.type.members == (a, a),
         "{!r} of {!r} and {!r}", i.type, a, b)


def _bit_field(i):
    for value in i.operands[:-2]:
        need(value.type is i.type, "{!r} of {!r}", i.type, value.type)
    need(scalar(i.type).kind is INT, "{!r}", i.type)
    for value in i.operands[-2:]:
        need(value.type.kind is INT, "offset or count of type {!r}", value.type)


def _expect(i):
    need(all(o.type is i.type for o in i.operands), "{!r} of {}", i.type, types(i))


RULES = {
    **dict.fromkeys((Op.IAdd, Op.ISub, Op.IMul, Op.UDiv, Op.SDiv, Op.UMod, Op.SRem, Op.SMod, Op.BitwiseAnd,
                     Op.BitwiseOr, Op.BitwiseXor, Op.Not, Op.SNegate, Op.BitReverse), _same(INT)),
    **dict.fromkeys((Op.FAdd, Op.FSub, Op.FMul, Op.FDiv, Op.FRem, Op.FMod, Op.FNegate), _same(FLOAT)),
    **dict.fromkeys((Op.LogicalAnd, Op.LogicalOr, Op.LogicalEqual, Op.LogicalNotEqual, Op.LogicalNot), _same(BOOL)),
    **dict.fromkeys((Op.ShiftLeftLogical, Op.ShiftRightLogical, Op.ShiftRightArithmetic), _shift),
    **dict.fromkeys((Op.IEqual, Op.INotEqual), _equality),
    **dict.fromkeys((Op.UGreaterThan, Op.SGreaterThan, Op.UGreaterThanEqual, Op.SGreaterThanEqual, Op.ULessThan,
                     Op.SLessThan, Op.ULessThanEqual, Op.SLessThanEqual), _equality),
    **dict.fromkeys((Op.FOrdEqual, Op.FUnordEqual, Op.FOrdNotEqual, Op.FUnordNotEqual, Op.FOrdLessThan,
                     Op.FUnordLessThan, Op.FOrdGreaterThan, Op.FUnordGreaterThan, Op.FOrdLessThanEqual,
                     Op.FUnordLessThanEqual, Op.FOrdGreaterThanEqual, Op.FUnordGreaterThanEqual,
                     Op.LessOrGreater, Op.Ordered, Op.Unordered), _compare(FLOAT)),
    **dict.fromkeys((Op.PtrEqual, Op.PtrNotEqual, Op.PtrDiff), _pointer_compare),
    **dict.fromkeys((Op.UConvert, Op.SConvert, Op.SatConvertSToU, Op.SatConvertUToS), _convert(INT, INT)),
    Op.FConvert: _convert(FLOAT, FLOAT), Op.QuantizeToF16: _convert(FLOAT, FLOAT),
    **dict.fromkeys((Op.ConvertFToS, Op.ConvertFToU), _convert(INT, FLOAT)),
    **dict.fromkeys((Op.ConvertSToF, Op.ConvertUToF), _convert(FLOAT, INT)),
    **dict.fromkeys((Op.IsNan, Op.IsInf, Op.IsFinite, Op.IsNormal, Op.SignBitSet), _float_test),
    Op.Any: _any_all, Op.All: _any_all, Op.Dot: _dot, Op.VectorTimesScalar: _vector_times_scalar,
    Op.Select: _select, Op.Bitcast: _bitcast, Op.Load: _load, Op.Store: _store, Op.CopyMemory: _copy_memory,
    Op.CopyMemorySized: _copy_memory, Op.Variable: _variable,
    **dict.fromkeys((Op.AccessChain, Op.InBoundsAccessChain, Op.PtrAccessChain, Op.InBoundsPtrAccessChain),
                    _access_chain),
    Op.CompositeExtract: _extract, Op.CompositeInsert: _insert, Op.CompositeConstruct: _construct,
    Op.VectorShuffle: _shuffle, Op.VectorExtractDynamic: _extract_dynamic,
    Op.VectorInsertDynamic: _insert_dynamic, Op.CopyObject: _copy, Op.FreezeKHR: _copy, Op.ExpectKHR: _expect,
    Op.FunctionCall: _call, Op.BranchConditional: _branch_conditional, Op.Switch: _switch, Op.Phi: _phi,
    Op.Return: _return, Op.ReturnValue: _return_value, Op.PtrCastToGeneric: _to_generic,
    Op.GenericCastToPtr: _from_generic, Op.GenericCastToPtrExplicit: _from_generic,
    Op.ConvertPtrToU: _pointer_to_int, Op.ConvertUToPtr: _int_to_pointer, Op.BitCount: _bit_count,
    **dict.fromkeys((Op.IAddCarry, Op.ISubBorrow, Op.UMulExtended, Op.SMulExtended), _with_carry),
    **dict.fromkeys((Op.BitFieldInsert, Op.BitFieldSExtract, Op.BitFieldUExtract), _bit_field),
}
