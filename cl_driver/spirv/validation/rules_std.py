"""Type rules of the OpenCL.std instructions; `ext_inst` is the rule of OpExtInst."""

from __future__ import annotations

from collections.abc import Callable

from ..enums import OpenCLStd, StorageClass
from ..module import Instruction, Kind, Operand
from .rules import BOOL, FLOAT, INT, RuleError, count, need, pointer, scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

VECTOR = Kind.VECTOR

# Of an instruction and its arguments, those behind set and number.
StdRule: TypeAlias = Callable[[Instruction, list[Operand]], None]


# Shapes of operands: f float like the result, i integer like the result.
_FLOAT_1 = (
    "acos acosh acospi asin asinh asinpi atan atanh atanpi cbrt ceil cos cosh cospi erfc erf exp exp2 exp10 "
    "expm1 fabs floor lgamma log log2 log10 log1p logb rint round rsqrt sin sinh sinpi sqrt tan tanh tanpi "
    "tgamma trunc half_cos half_exp half_exp2 half_exp10 half_log half_log2 half_log10 half_recip half_rsqrt "
    "half_sin half_sqrt half_tan native_cos native_exp native_exp2 native_exp10 native_log native_log2 "
    "native_log10 native_recip native_rsqrt native_sin native_sqrt native_tan degrees radians sign normalize "
    "fast_normalize"
)
_FLOAT_2 = (
    "atan2 atan2pi copysign fdim fmax fmin fmod hypot maxmag minmag nextafter pow powr remainder half_divide "
    "half_powr native_divide native_powr fmax_common fmin_common step cross"
)
_FLOAT_3 = "fma mad fclamp mix smoothstep"
_INTEGERS = (
    "s_abs u_abs s_abs_diff u_abs_diff s_add_sat u_add_sat s_hadd u_hadd s_rhadd u_rhadd s_clamp u_clamp clz "
    "ctz s_mad_hi u_mad_hi s_mad_sat u_mad_sat s_max u_max s_min u_min s_mul_hi u_mul_hi rotate s_sub_sat "
    "u_sub_sat popcount s_mad24 u_mad24 s_mul24 u_mul24"
)


def _std_same(kind: Kind) -> StdRule:
    def rule(i: Instruction, operands: list[Operand]) -> None:
        need(scalar(i.type).kind is kind, "the result has type {!r}", i.type)
        for operand in operands:
            need(operand.type is i.type, "an operand of type {!r} for {!r}", operand.type, i.type)

    return rule


def _std_pointer(kind: Kind) -> StdRule:
    """The last operand points to a second result: fract, frexp, modf, lgamma_r, remquo, sincos."""

    def rule(i: Instruction, operands: list[Operand]) -> None:
        need(scalar(i.type).kind is FLOAT, "the result has type {!r}", i.type)
        for operand in operands[:-1]:
            need(operand.type is i.type, "an operand of type {!r} for {!r}", operand.type, i.type)
        type_ = pointer(operands[-1])
        if type_.element is not None:
            # The pointee may be another type, after clang's guess; its use says which is meant.
            need(
                type_.storage not in (StorageClass.UniformConstant, StorageClass.Input),
                "writes to {}",
                type_.storage.name,
            )

    return rule


def _std_float_int(i: Instruction, operands: list[Operand]) -> None:
    """ldexp, pown, rootn: an integer for each component, or one for all."""
    a, b = (o.type for o in operands)
    need(
        a is i.type and scalar(a).kind is FLOAT and scalar(b).kind is INT and count(b) in (1, count(a)),
        "{!r} of {!r} and {!r}",
        i.type,
        a,
        b,
    )


def _std_float_to_int(i: Instruction, operands: list[Operand]) -> None:
    need(
        scalar(i.type).kind is INT
        and scalar(operands[0].type).kind is FLOAT
        and count(i.type) == count(operands[0].type),
        "{!r} of {!r}",
        i.type,
        operands[0].type,
    )


def _std_nan(i: Instruction, operands: list[Operand]) -> None:
    need(
        scalar(i.type).kind is FLOAT
        and scalar(operands[0].type).kind is INT
        and count(i.type) == count(operands[0].type),
        "{!r} of {!r}",
        i.type,
        operands[0].type,
    )


def _std_length(i: Instruction, operands: list[Operand]) -> None:
    for operand in operands:
        need(i.type.kind is FLOAT and scalar(operand.type) is i.type, "{!r} of {!r}", i.type, operand.type)


def _std_upsample(i: Instruction, operands: list[Operand]) -> None:
    a, b = (o.type for o in operands)
    need(
        a is b
        and scalar(a).kind is INT
        and scalar(i.type).kind is INT
        and count(a) == count(i.type)
        and scalar(i.type).width == 2 * scalar(a).width,
        "{!r} of {!r} and {!r}",
        i.type,
        a,
        b,
    )


def _std_select(i: Instruction, operands: list[Operand]) -> None:
    a, b, c = (o.type for o in operands)
    need(
        a is b is i.type and scalar(c).kind in (INT, BOOL) and count(c) == count(a),
        "{!r} of {!r}, {!r}, {!r}",
        i.type,
        a,
        b,
        c,
    )


def _std_bitselect(i: Instruction, operands: list[Operand]) -> None:
    need(all(o.type is i.type for o in operands) and scalar(i.type).kind in (INT, FLOAT), "{!r}", i.type)


def _std_vload(i: Instruction, operands: list[Operand]) -> None:
    offset, source = operands[:2]
    need(offset.type.kind is INT, "an offset of type {!r}", offset.type)
    pointer(source)
    if len(operands) > 2:
        need(
            i.type.kind is VECTOR and i.type.count == operands[2],
            "{!r} of {} components",
            i.type,
            operands[2],
        )
    need(scalar(i.type).kind in (INT, FLOAT), "{!r}", i.type)


def _std_vstore(i: Instruction, operands: list[Operand]) -> None:
    value, offset, target = operands[:3]
    need(
        scalar(value.type).kind in (INT, FLOAT) and offset.type.kind is INT,
        "{!r} at {!r}",
        value.type,
        offset.type,
    )
    type_ = pointer(target)
    need(
        type_.storage not in (StorageClass.UniformConstant, StorageClass.Input),
        "writes to {}",
        type_.storage.name,
    )


def _std_shuffle(i: Instruction, operands: list[Operand]) -> None:
    mask = operands[-1].type
    need(
        i.type.kind is VECTOR
        and mask.kind is VECTOR
        and mask.element.kind is INT
        and mask.count == i.type.count,
        "{!r} by {!r}",
        i.type,
        mask,
    )
    for operand in operands[:-1]:
        need(
            operand.type.kind is VECTOR
            and operand.type.element is i.type.element
            and operand.type is operands[0].type,
            "{!r} of {!r}",
            i.type,
            operand.type,
        )


def _std_printf(i: Instruction, operands: list[Operand]) -> None:
    pointer(operands[0], "the format")
    need(i.type.kind is INT and i.type.width == 32, "a result of type {!r}", i.type)


def _std_prefetch(i: Instruction, operands: list[Operand]) -> None:
    pointer(operands[0])
    need(operands[1].type.kind is INT, "a number of elements of type {!r}", operands[1].type)


_STD: dict[OpenCLStd, StdRule] = {
    **{OpenCLStd[name]: _std_same(FLOAT) for name in (_FLOAT_1 + " " + _FLOAT_2 + " " + _FLOAT_3).split()},
    **{OpenCLStd[name]: _std_same(INT) for name in _INTEGERS.split()},
    **{OpenCLStd[name]: _std_pointer(FLOAT) for name in ("fract", "modf", "sincos")},
    **{OpenCLStd[name]: _std_pointer(INT) for name in ("frexp", "lgamma_r", "remquo")},
    **{OpenCLStd[name]: _std_float_int for name in ("ldexp", "pown", "rootn")},
    OpenCLStd.ilogb: _std_float_to_int,
    OpenCLStd.nan: _std_nan,
    **{OpenCLStd[name]: _std_length for name in ("length", "distance", "fast_length", "fast_distance")},
    OpenCLStd.s_upsample: _std_upsample,
    OpenCLStd.u_upsample: _std_upsample,
    OpenCLStd.select: _std_select,
    OpenCLStd.bitselect: _std_bitselect,
    **{OpenCLStd[name]: _std_vload for name in ("vloadn", "vload_half", "vload_halfn", "vloada_halfn")},
    **{
        OpenCLStd[name]: _std_vstore
        for name in (
            "vstoren",
            "vstore_half",
            "vstore_half_r",
            "vstore_halfn",
            "vstore_halfn_r",
            "vstorea_halfn",
            "vstorea_halfn_r",
        )
    },
    OpenCLStd.shuffle: _std_shuffle,
    OpenCLStd.shuffle2: _std_shuffle,
    OpenCLStd.printf: _std_printf,
    OpenCLStd.prefetch: _std_prefetch,
}


def ext_inst(i: Instruction) -> None:
    """OpExtInst of OpenCL.std."""
    rule = _STD.get(i.operands[1])
    if rule is None:
        raise RuleError(f"{i.operands[1]!r} is not known")
    try:
        rule(i, i.operands[2:])
    except RuleError as error:
        raise RuleError(f"{i.operands[1].name}: {error}") from None
