"""Text of functions and plans, for people: `%name = Op type operands`, one line each."""

from __future__ import annotations

from ...spirv.module import Block, Constant, ConstantExpr, Function, Kind, Operand, Type, Undef, Value
from .plan import KernelPlan, PrivateVariable, Slot
from .shapes import ShapeInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def type_text(type_: Type | None) -> str:
    """float4, i32, struct {...}, float* Function."""
    if type_ is None:
        return "-"
    kind = type_.kind
    if kind is Kind.INT:
        return f"i{type_.width}"
    if kind is Kind.FLOAT:
        return f"f{type_.width}"
    if kind is Kind.VECTOR:
        return f"{type_text(type_.element)}x{type_.count}"
    if kind is Kind.ARRAY:
        return f"[{type_.count} {type_text(type_.element)}]"
    if kind is Kind.STRUCT:
        return type_.name or "{" + ", ".join(map(type_text, type_.members)) + "}"
    if kind is Kind.POINTER:
        return f"{type_text(type_.element)}*{type_.storage.name}"
    if kind is Kind.OPAQUE:
        return type_.op.name
    return kind.value


class _Names:
    """Short names, unique within one text."""

    def __init__(self) -> None:
        self._of: dict[object, str] = {}
        self._count: dict[str, int] = {}

    def __call__(self, value: Any) -> str:
        name = self._of.get(value)
        if name is None:
            stem = value.name or ("b" if isinstance(value, Block) else "v")
            number = self._count.get(stem, 0)
            self._count[stem] = number + 1
            name = f"{stem}.{number}" if number or not value.name else stem
            self._of[value] = name
        return name


def operand_text(operand: Operand, names: _Names) -> str:
    """One operand for people; names: those given so far in this text."""
    if isinstance(operand, Constant):
        value = operand.value
        if value is None:
            return f"{type_text(operand.type)} null"
        if isinstance(value, tuple):
            return "{" + ", ".join(operand_text(v, names) for v in value) + "}"
        return f"{type_text(operand.type)} {value}"
    if isinstance(operand, Undef):
        return f"{type_text(operand.type)} undef"
    if isinstance(operand, ConstantExpr):
        return f"{operand.op.name}(" + ", ".join(operand_text(o, names) for o in operand.operands) + ")"
    if isinstance(operand, Value):
        return "%" + names(operand)
    if isinstance(operand, Block):
        return names(operand)
    if isinstance(operand, Slot):
        return f"slot{operand.index}"
    if isinstance(operand, PrivateVariable):
        return f"private{operand.index}"
    return str(operand)


def function_text(function: Function, shapes: ShapeInfo | None = None) -> str:
    """The whole function; with shapes, the lane stride of each value behind it."""
    names = _Names()
    arguments = ", ".join(f"{type_text(a.type)} %{names(a)}" for a in function.arguments)
    lines = [f"function {function.name}({arguments})"]
    for block in function.blocks:
        divergent = " divergent" if shapes and block in shapes.divergent_branches else ""
        lines.append(f"{names(block)}:{divergent}")
        for instruction in block.instructions:
            operands = ", ".join(operand_text(o, names) for o in instruction.operands)
            name = instruction.op.name
            if instruction.type is not None and instruction.type.kind is not Kind.VOID:
                text = f"%{names(instruction)} = {name} {type_text(instruction.type)} {operands}"
                if shapes:
                    text += f"    ; {shapes.text(instruction)}"
            else:
                text = f"{name} {operands}"
            if instruction.mask is not None:
                text += f" mask {operand_text(instruction.mask, names)}"
            lines.append("    " + text)
    return "\n".join(lines) + "\n"


def plan_text(plan: KernelPlan) -> str:
    """A plan with all its regions."""
    lines = [f"kernel {plan.name}: {len(plan.regions)} regions, local {plan.local_size} bytes"]
    for slot in plan.slots:
        kind = "per group" if slot.uniform else "per work-item"
        lines.append(f"slot{slot.index}: {type_text(slot.type)} {kind} {slot.name}")
    for variable in plan.private_variables:
        lines.append(f"private{variable.index}: {variable.size} bytes {variable.name}")
    for region in plan.regions:
        once = " once per group" if region.once else ""
        lines.append(f"region {region.index}{once} -> {list(region.successors)}")
        lines.append(function_text(region.function, region.shapes))
    return "\n".join(lines)
