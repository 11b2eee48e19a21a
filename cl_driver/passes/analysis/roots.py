"""What addresses are computed from: the parameters and variables that a pointer may point into."""

from __future__ import annotations

from ...spirv.enums import Decoration, FunctionParameterAttribute, Op
from ...spirv.module import Argument, Instruction, Kind, Value, Variable
from ..ir.instructions import ADDRESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# A parameter, a variable of the module, or one of the function.
Root: TypeAlias = Argument | Variable | Instruction

SAME_OBJECT = ADDRESS | {Op.Bitcast, Op.CopyObject, Op.PtrCastToGeneric, Op.GenericCastToPtr}

_SEARCHED = 64  # pointers that are looked at to know what one of them is computed from


def roots(pointer: Value) -> frozenset[Root] | None:
    """The arguments and variables that a pointer may point into; None if that is not known."""
    seen, rest = {pointer}, [pointer]
    found: set[Root] = set()
    while rest:
        value = rest.pop()
        if isinstance(value, (Argument, Variable)):
            found.add(value)
            continue
        if not isinstance(value, Instruction) or len(seen) > _SEARCHED:
            return None
        if value.op is Op.Variable:
            found.add(value)
            continue
        if value.op is Op.Phi:
            sources = value.operands[::2]
        elif value.op is Op.Select:
            sources = value.operands[1:]
        elif value.op in SAME_OBJECT and value.operands[0].type.kind is Kind.POINTER:
            sources = value.operands[:1]
        else:
            return None
        rest += [source for source in sources if source not in seen]
        seen.update(sources)
    return frozenset(found)


def is_restrict(pointer: Root) -> bool:
    """Whether what a parameter or variable points to is accessed in no other way."""
    return Decoration.Restrict in pointer.decorations or has_attribute(
        pointer, FunctionParameterAttribute.NoAlias
    )


def has_attribute(pointer: Root, attribute: int) -> bool:
    """Whether a parameter has a function parameter attribute (SPIR-V 1.6, section 3.19)."""
    return attribute in pointer.decorations.get(Decoration.FuncParamAttr, ())
