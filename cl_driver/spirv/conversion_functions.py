"""Bodies for convert_double and convert_half, which clang 20 to 22 leave as calls of mangled names.

    half4 _Z17convert_half4_rtpDv4_i(int4)  ►  OpConvertSToF with FPRoundingMode RTP

The linker gives them to declarations that nothing else defines; so the functions exist for every stage after
it, the interpreter included, and are inlined like any other.
"""

from __future__ import annotations

from ..late_patterns import pattern
from .enums import Decoration, FPRoundingMode, Op
from .module import Argument, Block, Function, Instruction, Kind, Type, Value

_NAME = pattern(
    r"_Z\d+convert_(?:double|half)(?:2|3|4|8|16)?(?:_(rte|rtz|rtp|rtn))?(?:Dv\d+_)?(Dh|[acsilhtjmfd])"
)
_CONVERSIONS = {Kind.INT: {True: Op.ConvertSToF, False: Op.ConvertUToF}, Kind.FLOAT: {False: Op.FConvert}}


def define(function: Function) -> bool:
    """Gives a declaration a body, if its name and type are a conversion's; says whether it did."""
    name = function.linkage[0] if function.linkage else ""
    found = _NAME.fullmatch(name) if "convert_" in name else None
    result, parameters = function.type.element, function.type.members
    if found is None or len(parameters) != 1 or _count(result) != _count(parameters[0]):
        return False
    mode, source = found.groups()
    op = _CONVERSIONS.get(_scalar(parameters[0]).kind, {}).get(source in "acsil")
    if op is None or _scalar(result).kind is not Kind.FLOAT:
        return False
    argument, block = Argument(parameters[0], 0), Block(function)
    value: Value = argument
    if result is not parameters[0]:
        value = conversion = Instruction(op, result, [argument], block)
        if mode:
            conversion.decorations = {Decoration.FPRoundingMode: (int(FPRoundingMode[mode.upper()]),)}
        block.instructions.append(conversion)
    block.instructions.append(Instruction(Op.ReturnValue, None, [value], block))
    function.arguments, function.blocks, function.linkage = [argument], [block], None
    return True


def _scalar(type_: Type) -> Type:
    return type_.element if type_.kind is Kind.VECTOR else type_


def _count(type_: Type) -> int:
    return type_.count if type_.kind is Kind.VECTOR else 1
