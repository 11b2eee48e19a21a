"""Operations without a result in the check mode: CheckOperation before each that may be one.

Before anything is folded or promoted: of the program's own instructions, not of what passes and the library
make. What the texts say:

- Shifts. OpenCL C takes the lowest log2(width) bits of the count (Shift Operators), and clang puts that into
  the module. OpShiftLeftLogical and its like leave a count that is not below the width undefined: modules of
  other compilers may have one.
- Division. By zero, and where the quotient is not representable, the value is unspecified in OpenCL C
  (Arithmetic Operators), and the behaviour undefined in SPIR-V: OpSDiv, OpSRem, OpSMod, OpUDiv, OpUMod.
- Conversion of floating point to integers that do not hold the value: "implementation-defined" without
  SaturatedConversion (OpenCL SPIR-V environment, 6.3; OpenCL C, Out-of-Range Behavior and Saturated
  Conversions), and undefined in SPIR-V: OpConvertFToS, OpConvertFToU. What is
  converted is the rounded value: 255.5 fits into a uchar.
- Pixels: pixels.py.

None of it is told where the result is not chosen: (b != 0 ? a / b : 0) of vectors is right.
"""

from __future__ import annotations

from ...spirv.enums import Decoration, FPRoundingMode, Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Block, Constant, Function, Instruction, Kind, Type, Value
from ..ir.instructions import int_value, is_constant_int
from ..ir.ops import PassOp
from .pixels import watch_pixels
from .sites import CONVERT, DIVIDE, REMAINDER, SHIFT, Site

_SHIFTS = (Op.ShiftLeftLogical, Op.ShiftRightLogical, Op.ShiftRightArithmetic)
_DIVISIONS = {
    Op.SDiv: (DIVIDE, True), Op.UDiv: (DIVIDE, False), Op.SRem: (REMAINDER, True), Op.SMod: (REMAINDER, True),
    Op.UMod: (REMAINDER, False),
}  # fmt: skip
_CONVERSIONS = {Op.ConvertFToS: True, Op.ConvertFToU: False}


def watch_operations(function: Function) -> None:
    """Puts the checks in."""
    for block in function.blocks:
        old, block.instructions = block.instructions, []
        for i in old:
            watch_pixels(block, i)
            site = _site_of(i)
            if site is not None:
                _add(block, i, site)
            block.instructions.append(i)


def _site_of(i: Instruction) -> Site | None:
    """What to check of an instruction; None if it always has a result."""
    if i.op in _SHIFTS:
        width = _element(i.type).width
        return None if _is_below(i.operands[1], width) else Site(SHIFT, i.line, width // 8)
    if i.op in _DIVISIONS:
        kind, is_signed = _DIVISIONS[i.op]
        width = _element(i.type).width
        never = {0, (1 << width) - 1} if is_signed else {0}
        divisors = _numbers(i.operands[1])
        if divisors is not None and not never & divisors:
            return None
        return Site(kind, i.line, width // 8, is_signed=is_signed)
    if i.op in _CONVERSIONS and Decoration.SaturatedConversion not in i.decorations:
        site = Site(CONVERT, i.line, _element(i.type).width // 8, is_signed=_CONVERSIONS[i.op])
        mode = i.decorations.get(Decoration.FPRoundingMode)
        site.rounding = mode[0] if mode else FPRoundingMode.RTZ
        return site
    return None


def _add(block: Block, i: Instruction, site: Site) -> None:
    """The operand that decides, the last one, goes through the check."""
    check = Instruction(PassOp.CheckOperation, i.operands[-1].type, [*i.operands, site], block)
    check.line = i.line
    block.instructions.append(check)
    i.operands[-1] = check


def _element(type_: Type) -> Type:
    return type_.element if type_.kind is Kind.VECTOR else type_


def _numbers(value: Value) -> set[int] | None:
    """The components of a constant."""
    if not isinstance(value, Constant):
        return None
    if value.value is None:
        return {0}
    components = value.value if value.type.kind is Kind.VECTOR else (value,)
    if not all(isinstance(component, Constant) and is_constant_int(component) for component in components):
        return None
    return {int_value(component) for component in components}


def _is_below(count: Value, width: int) -> bool:
    """Whether a count is seen to be below a width: a constant, or one that was masked."""
    numbers = _numbers(count)
    if numbers is not None:
        return max(numbers) < width
    return (
        isinstance(count, Instruction)
        and count.op is Op.BitwiseAnd
        and any(_is_below(operand, width) for operand in count.operands)
    )


# Which results are chosen: after promotion, when variables are out of the way.


def chosen_by(check: Instruction, used_by: dict[Value, list[Instruction]]) -> tuple[Instruction, bool] | None:
    """The OpSelect that alone takes the result of what is checked, and whether it does so where its condition
    is true."""
    checked = used_by.get(check, [])
    users = used_by.get(checked[0], []) if len(checked) == 1 else []
    if len(users) != 1 or users[0].op is not Op.Select:
        return None
    select, i = users[0], checked[0]
    condition, if_true, if_false = select.operands
    return None if condition is i or if_true is if_false else (select, if_true is i)


def is_masked(check: Instruction, used_by: dict[Value, list[Instruction]]) -> bool:
    """Whether all that takes the result of what is checked chooses by bits: select() and bitselect(), and
    (r & m) | (x & ~m), which is what clang makes of the ternary operator of vectors."""
    checked = used_by.get(check, ())
    return bool(checked) and all(_is_chosen(i, used_by) for i in checked)


def _is_chosen(i: Instruction, used_by: dict[Value, list[Instruction]]) -> bool:
    users = used_by.get(i, ())
    return bool(users) and all(_chooses(user, i, used_by) for user in users)


def _chooses(user: Instruction, i: Instruction, used_by: dict[Value, list[Instruction]]) -> bool:
    if user.op is Op.ExtInst:
        return user.operands[1] in (Std.select, Std.bitselect) and i in user.operands[2:4]
    if user.op is Op.Bitcast:
        return _is_chosen(user, used_by)
    if user.op is not Op.BitwiseAnd:
        return False
    after = used_by.get(user, ())
    return len(after) == 1 and after[0].op is Op.BitwiseOr and i.type.kind is Kind.VECTOR
