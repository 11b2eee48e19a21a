"""Division of integer vectors, for which no CPU has an instruction: by way of floating-point numbers.

Operands of up to 16 bits are exact in float, those of 32 in double, and so is the truncated quotient: a
quotient that is not an integer n is at least 1/b away from it, that is by a factor of 1/(n·b), and n·b has no
more bits than the operands, far fewer than the significand. For the same reason a divisor that is the same in
all lanes may be a factor, its reciprocal, if that is rounded away from zero. Operands of 64 bits are divided
so if they turn out to have 32.
"""

from __future__ import annotations

from ..llvm.emitter import FunctionEmitter
from ..llvm.forms import Form
from ..llvm.types import integer_bits
from ..llvm.versioning import emit_versions

_AWAY = "0x3FF0000000000004"  # 1 + 2⁻⁵⁰


def divide(
    e: FunctionEmitter, f: Form, element: str, a: str, b: str, signed: bool, factor: str | None = None
) -> str:
    """a / b truncated, of vectors of integers without a 0 in b. Garbage where it overflows, never poison.

    factor: what reciprocal() makes of b, in all lanes, if b is the same in all lanes.
    """
    bits = integer_bits(element)
    if bits == 64:
        return _divide_long(e, f, a, b, signed, factor)
    if bits < 32:  # to 32 bits, where all are signed numbers
        extend = "sext" if signed else "zext"
        a, b = (e.emit(f"{extend} {f(element)} {o} to {f('i32')}") for o in (a, b))
        signed = True
    t, real = f("i32"), f("float" if bits < 32 and factor is None else "double")
    opcode = "s" if signed else "u"
    x = e.emit(f"{opcode}itofp {t} {a} to {real}")
    if factor is None:
        y = e.emit(f"{opcode}itofp {t} {b} to {real}")
        quotient = e.emit(f"fdiv {real} {x}, {y}")
    else:
        quotient = e.emit(f"fmul {real} {x}, {factor}")
    result = e.emit(f"freeze {t} {e.emit(f'fpto{opcode}i {real} {quotient} to {t}')}")
    return e.emit(f"trunc {t} {result} to {f(element)}") if bits < 32 else result


def reciprocal(e: FunctionEmitter, element: str, b: str, signed: bool) -> str:
    """1 / b as a double that is no nearer to zero."""
    x = e.emit(f"{'s' if signed else 'u'}itofp {element} {b} to double")
    return e.emit(f"fmul double {e.emit(f'fdiv double 1.0, {x}')}, {_AWAY}")


def _divide_long(e: FunctionEmitter, f: Form, a: str, b: str, signed: bool, factor: str | None) -> str:
    """64 bits, of which mostly no more than 32 are used."""
    t, narrow = f("i64"), f("i32")
    both = e.emit(f"or {t} {a}, {b}")
    high = e.emit(f"lshr {t} {both}, {f.splat('i64', '32')}")
    large = e.emit(f"icmp ne {t} {high}, zeroinitializer")
    bits = e.emit(f"bitcast {f('i1')} {large} to i{f.count}")
    condition = e.emit(f"icmp eq i{f.count} {bits}, 0")

    def in_32_bits() -> list[str]:
        x, y = (e.emit(f"trunc {t} {o} to {narrow}") for o in (a, b))
        return [e.emit(f"zext {narrow} {divide(e, f, 'i32', x, y, False, factor)} to {t}")]

    def in_64_bits() -> list[str]:
        if signed and factor is not None:  # nobody has looked yet at what would trap
            least = e.emit(f"icmp eq {t} {a}, {f.splat('i64', str(-1 << 63))}")
            one = f.splat("i64", "1")
            divisor = e.emit(f"select {f('i1')} {least}, {t} {one}, {t} {b}")
            minus = e.emit(f"icmp eq {t} {b}, {f.splat('i64', '-1')}")
            divisor = e.emit(f"select {f('i1')} {minus}, {t} {divisor}, {t} {b}")
            return [e.emit(f"sdiv {t} {a}, {divisor}")]
        return [e.emit(f"{'s' if signed else 'u'}div {t} {a}, {b}")]

    return emit_versions(e, condition, [t], in_32_bits, in_64_bits)[0]
