"""Bounds of errors that a program asks for (SPV_INTEL_fp_max_error): kept, or the program is refused.

"It overrides the accuracy from the environment specification": of a bound that is below what our function
keeps to, the function is computed in double, and its result rounded. Sums, products and quotients are rounded
correctly then, whatever the build options allow. A looser bound changes nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from ...spirv.enums import Decoration, FPFastMathMode, Op, OpenCLStd
from ...spirv.errors import SpirvError
from ...spirv.module import Block, Constant, Function, Instruction, Kind, MemoryAccess, Operand, Type, Value
from ...spirv.types import TypeTable
from ..ir.instructions import append
from .errors import FUNCTIONS

_Std = OpenCLStd

# Rounded once. Of quotients and roots of floats the driver rounds only those that ask for it.
_ROUNDED = 0.5
_ROUNDED_OPS = frozenset((
    Op.FAdd, Op.FSub, Op.FMul, Op.FConvert, Op.ConvertSToF, Op.ConvertUToF, Op.VectorTimesScalar, Op.FMod,
    Op.QuantizeToF16,
))  # fmt: skip
_EXACT_OPS = frozenset((
    Op.FNegate, Op.FRem, Op.Load, Op.Phi, Op.Select, Op.CopyObject, Op.Bitcast, Op.CompositeExtract,
    Op.CompositeConstruct, Op.CompositeInsert, Op.VectorShuffle, Op.VectorExtractDynamic, Op.Variable,
    Op.VectorInsertDynamic, Op.FreezeKHR, Op.AtomicLoad, Op.AtomicExchange, Op.ConvertBF16ToFINTEL,
))  # fmt: skip
_LOOSE_QUOTIENT, _LOOSE_ROOT = 2.5, 3.0  # of floats; OpenCL SPIR-V environment, 8.3

_EXACT_FUNCTIONS = frozenset((
    _Std.ceil, _Std.copysign, _Std.fabs, _Std.floor, _Std.fmax, _Std.fmin, _Std.fmod, _Std.frexp, _Std.ldexp,
    _Std.logb, _Std.maxmag, _Std.minmag, _Std.modf, _Std.nan, _Std.nextafter, _Std.remainder, _Std.remquo,
    _Std.rint, _Std.round, _Std.trunc, _Std.fclamp, _Std.fmax_common, _Std.fmin_common, _Std.step, _Std.sign,
    _Std.fract, _Std.bitselect, _Std.select, _Std.shuffle, _Std.shuffle2, _Std.vloadn, _Std.vload_half,
    _Std.vload_halfn, _Std.vloada_halfn,
))  # fmt: skip
_ROUNDED_FUNCTIONS = frozenset((_Std.fdim, _Std.fma))
_CONSTANT_FACTORS = {_Std.degrees: 2.0, _Std.radians: 2.0}
_ERRORS = {OpenCLStd[name]: errors for name, errors in FUNCTIONS.items()}

# Functions of errors that no bound is known of, as the ones that they stand for.
_PLAIN = {
    _Std.half_cos: _Std.cos, _Std.half_exp: _Std.exp, _Std.half_exp2: _Std.exp2,
    _Std.half_exp10: _Std.exp10, _Std.half_log: _Std.log, _Std.half_log2: _Std.log2,
    _Std.half_log10: _Std.log10, _Std.half_powr: _Std.powr, _Std.half_rsqrt: _Std.rsqrt,
    _Std.half_sin: _Std.sin, _Std.half_sqrt: _Std.sqrt, _Std.half_tan: _Std.tan,
    _Std.native_cos: _Std.cos, _Std.native_exp: _Std.exp, _Std.native_exp2: _Std.exp2,
    _Std.native_exp10: _Std.exp10, _Std.native_log: _Std.log, _Std.native_log2: _Std.log2,
    _Std.native_log10: _Std.log10, _Std.native_powr: _Std.powr, _Std.native_rsqrt: _Std.rsqrt,
    _Std.native_sin: _Std.sin, _Std.native_sqrt: _Std.sqrt, _Std.native_tan: _Std.tan,
}  # fmt: skip
_QUOTIENTS = {_Std.half_divide, _Std.native_divide, _Std.half_recip, _Std.native_recip}

# What flags of an instruction may say where a bound is kept: nothing of how it is computed.
_VALUES = FPFastMathMode.NotNaN | FPFastMathMode.NotInf | FPFastMathMode.NSZ
_HARMLESS = _VALUES | FPFastMathMode.AllowContract


def keep_bounds(functions: Iterable[Function], types: TypeTable, is_relaxed: bool) -> None:
    """is_relaxed: build options let the code generator compute otherwise than the program says.

    SpirvError for bounds that cannot be kept."""
    for function in functions:
        for block in function.blocks:
            if any(Decoration.FPMaxErrorDecorationINTEL in i.decorations for i in block.instructions):
                _Bounds(function, block, types, is_relaxed).run()


class _Bounds:
    """The instructions of one block."""

    def __init__(self, function: Function, block: Block, types: TypeTable, is_relaxed: bool) -> None:
        self.function = function
        self.block = block
        self.types = types
        self.is_relaxed = is_relaxed

    def run(self) -> None:
        old, self.block.instructions = self.block.instructions, []
        for i in old:
            asked = i.decorations.get(Decoration.FPMaxErrorDecorationINTEL)
            if asked is not None:
                self.keep(i, _bound_of(i, asked[0]))
                i.decorations = {
                    d: value
                    for d, value in i.decorations.items()
                    if d != Decoration.FPMaxErrorDecorationINTEL
                }
            self.block.instructions.append(i)

    def keep(self, i: Instruction, bound: float) -> None:
        """Changes an instruction so that its error is at most `bound`."""
        width = _element(i.type).width
        if i.op is Op.ExtInst:
            self.keep_function(i, bound, width)
        elif i.op is Op.FDiv:
            self.keep_rounded(i, bound, _LOOSE_QUOTIENT if width == 32 else _ROUNDED)
        elif i.op in _ROUNDED_OPS:
            self.keep_rounded(i, bound, _ROUNDED)
        elif i.op not in _EXACT_OPS:
            raise _refusal(i, bound, "no bound of its error is known")

    def keep_rounded(self, i: Instruction, bound: float, loose: float) -> None:
        """loose: the error that the driver allows itself unless it is told to round correctly."""
        if bound < _ROUNDED:
            raise _refusal(i, bound, "it rounds its result")
        given = i.decorations.get(Decoration.FPFastMathMode, (0,))[0]
        if bound < loose or self.is_relaxed or given & ~_HARMLESS:
            i.decorations = {**i.decorations, Decoration.FPFastMathMode: (0,)}

    def keep_function(self, i: Instruction, bound: float, width: int) -> None:
        name, number, *arguments = i.operands
        if number in _QUOTIENTS:
            numerator = arguments[0] if len(arguments) > 1 else self.one(i.type)
            i.op, i.operands = Op.FDiv, [numerator, arguments[-1]]
            self.keep(i, bound)
            return
        number = _PLAIN.get(number, number)
        if number == _Std.mad:
            number = _Std.fma
        i.operands = [name, number, *arguments]
        if number == _Std.sqrt:
            self.keep_rounded(i, bound, _LOOSE_ROOT if width == 32 else _ROUNDED)
        elif number in _ROUNDED_FUNCTIONS:
            self.keep_rounded(i, bound, _ROUNDED)
        elif number not in _EXACT_FUNCTIONS:
            self.keep_error(i, bound, width)

    def keep_error(self, i: Instruction, bound: float, width: int) -> None:
        number = i.operands[1]
        factor = _CONSTANT_FACTORS.get(number)
        errors = (factor, factor) if factor is not None else _ERRORS.get(number)
        if errors is None:
            raise _refusal(i, bound, "no bound of its error is known")
        of_float, of_double = errors
        ours = {16: _rounded(of_float, 32, 16), 32: of_float, 64: of_double}[width]
        if _as_float(ours) <= bound:
            return
        in_double = _rounded(of_double, 64, width) if width == 32 else ours
        if bound < in_double:
            raise _refusal(i, bound, f"the driver's may be {in_double:.4g}")
        self.compute_in_double(i)

    def compute_in_double(self, i: Instruction) -> None:
        """The function of doubles, and its result rounded to what `i` was."""
        name, number, *arguments = i.operands
        wide = self.wide(i.type)
        if number == _Std.sincos:
            cosine = self.compute(wide, [name, _Std.cos, self.extended(arguments[0])])
            rounded = append(self.block, Op.FConvert, i.type, [cosine])
            access = MemoryAccess()
            append(self.block, Op.Store, None, [arguments.pop(), rounded], access)
            number = _Std.sin
        extended = [self.extended(a) if _element(a.type).kind is Kind.FLOAT else a for a in arguments]
        result = self.compute(wide, [name, number, *extended])
        i.op, i.operands = Op.FConvert, [result]

    def compute(self, type_: Type, operands: list[Operand]) -> Value:
        return append(self.block, Op.ExtInst, type_, operands)

    def extended(self, value: Value) -> Value:
        return append(self.block, Op.FConvert, self.wide(value.type), [value])

    def wide(self, type_: Type) -> Type:
        double = self.types.float(64)
        return self.types.vector(double, type_.count) if type_.kind is Kind.VECTOR else double

    def one(self, type_: Type) -> Constant:
        """The number 1 of a floating-point type."""
        element = _element(type_)
        bits = {16: 0x3C00, 32: 0x3F800000, 64: 0x3FF << 52}[element.width]
        scalar = self.types.constant(element, bits)
        return self.types.constant(type_, (scalar,) * type_.count) if type_.kind is Kind.VECTOR else scalar


def _element(type_: Type) -> Type:
    return type_.element if type_.kind is Kind.VECTOR else type_


def _rounded(error: float, from_: int, to: int) -> float:
    """The error of a result that is rounded from one width to another, in units of the narrower."""
    digits = {16: 11, 32: 24, 64: 53}
    return _ROUNDED + error * 2.0 ** (digits[to] - digits[from_])


def _as_float(number: float) -> float:
    """Bounds are floats: one that was meant to be this number is this one."""
    found: float
    (found,) = struct.unpack("<f", struct.pack("<f", number))
    return found


def _bound_of(i: Instruction, word: int) -> float:
    bound: float
    (bound,) = struct.unpack("<f", struct.pack("<I", word))
    if not bound > 0:
        raise _refusal(i, bound, "a bound is a positive number")
    if i.type is None or _element(i.type).kind is not Kind.FLOAT or _element(i.type).operands:
        raise _refusal(i, bound, f"it has the type {i.type!r}")
    return bound


def _refusal(i: Instruction, bound: float, why: str) -> SpirvError:
    what = i.operands[1].name if i.op is Op.ExtInst else i.type and repr(i.type)
    return SpirvError(
        i.offset, f"Op{i.op.name}", f"FPMaxErrorDecorationINTEL of {bound:.4g} for {what}: {why}"
    )
