"""Type rules of instructions of extensions. EXTENSION_RULES: as RULES of rules.py."""

from __future__ import annotations

from .enums import Op
from .module import Constant
from .rules import FLOAT, INT, VECTOR, count, need, scalar, types


def _read_clock(i):
    type_ = i.type
    width = 64 if type_.kind is INT else 32
    need(
        scalar(type_).kind is INT
        and scalar(type_).width == width
        and (type_.kind is INT or (type_.kind is VECTOR and type_.count == 2)),
        "a clock of type {!r}",
        type_,
    )
    scope = i.operands[0]
    need(scope.type is not None and scope.type.kind is INT and scope.type.width == 32, "not a scope")
    # cl_khr_kernel_clock: "Scope must be Device, Workgroup or Subgroup".
    if isinstance(scope, Constant):
        need(scope.value in (1, 2, 3), "scope {}", scope.value)


def _bfloat16(i):
    (a,) = types(i)
    to_float = i.op == Op.ConvertBF16ToFINTEL
    float_, integer = (i.type, a) if to_float else (a, i.type)
    need(
        scalar(float_).kind is FLOAT
        and scalar(float_).width == 32
        and scalar(integer).kind is INT
        and scalar(integer).width == 16
        and count(float_) == count(integer),
        "{!r} of {!r}",
        i.type,
        a,
    )


EXTENSION_RULES = {
    Op.ReadClockKHR: _read_clock,
    Op.ConvertFToBF16INTEL: _bfloat16,
    Op.ConvertBF16ToFINTEL: _bfloat16,
}
