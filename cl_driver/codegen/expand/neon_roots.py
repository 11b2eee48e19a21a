"""Reciprocals of roots of floats on AArch64: an estimate of NEON, and two steps of Newton's method.

The dividers of Arm's own cores take 7 to 20 cycles for the root and the quotient of a vector (Neoverse N1 to
V2, as LLVM has them), and what is here takes 3 to 5. Apple's take 3, so it is not for them. frsqrte is within
2^-8, frsqrts makes 2^-15 of it, and the second step adds the residual, as expand/reciprocals.py does. OpenCL
C allows 2 ulp (section 7.4). Subnormals, zeros, infinities and NaN are as IEEE 754 has them.
"""

from __future__ import annotations

from ..llvm.emitter import FunctionEmitter
from ..llvm.forms import Form, form
from .reciprocals import elements, joined

_REGISTER = 4  # floats


def reciprocal_square_root(e: FunctionEmitter, f: Form, x: str) -> str:
    """1 / sqrt(x), with an error below 1 ulp (all significands were tried). f: of whole registers."""
    estimate = _neon(e, f, "frsqrte", x)
    step = _neon(e, f, "frsqrts", _times(e, f, x, estimate), estimate)
    estimate_2 = _times(e, f, estimate, step)
    minus = e.emit(f"fneg {f('float')} {_times(e, f, x, estimate_2)}")
    residual = e.intrinsic("fma", f, "float", minus, estimate_2, f.splat("float", "1.0"))
    half = _times(e, f, estimate_2, f.splat("float", "0.5"))
    result = e.intrinsic("fma", f, "float", residual, half, estimate_2)
    # Of zeros and infinities the estimate is what is wanted, and the rest has multiplied the two.
    is_special = e.emit(f"fcmp uno {f('float')} {result}, {result}")
    return e.emit(f"select {f('i1')} {is_special}, {f('float')} {estimate}, {f('float')} {result}")


def _times(e: FunctionEmitter, f: Form, a: str, b: str) -> str:
    return e.emit(f"fmul {f('float')} {a}, {b}")


def _neon(e: FunctionEmitter, f: Form, name: str, *operands: str) -> str:
    """An instruction on vectors of floats, as many as it takes."""
    if f.count > _REGISTER:
        half = form(f.count // 2)
        low, high = (
            _neon(e, half, name, *(elements(e, f, half, operand, first, "float") for operand in operands))
            for first in (0, half.count)
        )
        return joined(e, half, low, high, "float")
    t = f("float")
    return e.emit(f"call {t} @llvm.aarch64.neon.{name}.v4f32({', '.join(f'{t} {o}' for o in operands)})")
