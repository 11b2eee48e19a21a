"""Instructions of extensions: SPV_KHR_shader_clock, SPV_INTEL_bfloat16_conversion, SPV_KHR_float_controls,
SPV_INTEL_inline_assembly."""

from __future__ import annotations

from collections.abc import Callable

from ...passes.ir.ops import PassOp
from ...spirv.enums import Op
from ...spirv.module import InlineAssembly, Instruction, Kind, Type
from ..layout.lanes import LaneEmitter
from ..llvm.emitter import FunctionEmitter
from ..llvm.forms import Form
from ..llvm.registry import componentwise, lowers, lowers_wide
from ..llvm.types import element_type, ir_type


def _read_clock(e: FunctionEmitter) -> str:
    """i64: a counter that all CPUs share and that has a constant rate: the time stamp counter, CNTVCT_EL0."""
    if e.options.aarch64:  # of which LLVM's readsteadycounter knows nothing: it is 0
        return e.emit('call i64 @llvm.read_volatile_register.i64(metadata !{!"cntvct_el0"})')
    return e.emit("call i64 @llvm.readcyclecounter()")


@lowers(Op.ReadClockKHR)
def read_clock(e: FunctionEmitter, i: Instruction) -> None:
    """OpReadClockKHR: 64 bits, or two components of 32, the lower ones first. The scopes are all one."""
    clock = _read_clock(e)
    e.define(i, clock if i.type.kind is Kind.INT else e.emit(f"bitcast i64 {clock} to <2 x i32>"))


@lowers_wide(Op.ReadClockKHR)
def read_clock_wide(e: LaneEmitter, i: Instruction) -> None:
    """OpReadClockKHR: the lanes read it at one time."""
    clock = _read_clock(e)
    if i.type.kind is Kind.INT:
        e.define_leaves(i, [e.splat(clock, "i64", e.form)])
        return
    high = e.emit(f"lshr i64 {clock}, 32")
    halves = [e.emit(f"trunc i64 {half} to i32") for half in (clock, high)]
    e.define_leaves(i, [e.splat(half, "i32", e.form) for half in halves])


_LEAST_NORMAL = {16: 1 << 10, 32: 1 << 23, 64: 1 << 52}  # bits of the smallest number that is not subnormal


def _integer(f: Form, width: int) -> Callable[[int], str]:
    """A function that gives integer constants of a width."""
    return lambda number: f.splat(f"i{width}", str(number))


def _bits_and_magnitude(e: FunctionEmitter, f: Form, type_: Type, a: str) -> tuple[str, str]:
    """The bits of a floating-point number, and those without its sign."""
    t, c = f(f"i{type_.width}"), _integer(f, type_.width)
    bits = e.emit(f"bitcast {f(ir_type(type_))} {a} to {t}")
    return bits, e.emit(f"and {t} {bits}, {c((1 << type_.width - 1) - 1)}")


@componentwise(PassOp.FlushDenormals)
def flush_denormals(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """Zero of the same sign for a subnormal number. By the bits, of which fast-math flags suppose nothing."""
    type_ = element_type(i.type)
    t, c = f(f"i{type_.width}"), _integer(f, type_.width)
    bits, magnitude = _bits_and_magnitude(e, f, type_, a)
    sign = e.emit(f"and {t} {bits}, {c(-1 << type_.width - 1)}")
    small = e.emit(f"icmp ult {t} {magnitude}, {c(_LEAST_NORMAL[type_.width])}")
    result = e.emit(f"select {f('i1')} {small}, {t} {sign}, {t} {bits}")
    return e.emit(f"bitcast {t} {result} to {f(ir_type(type_))}")


@componentwise(Op.ConvertFToBF16INTEL)
def float_to_bfloat16(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """OpConvertFToBF16INTEL: the upper half of the float, rounded to nearest even; NaN stays a quiet NaN."""
    t, c = f("i32"), _integer(f, 32)
    bits, magnitude = _bits_and_magnitude(e, f, element_type(i.operands[0].type), a)
    upper = e.emit(f"lshr {t} {bits}, {c(16)}")
    last = e.emit(f"and {t} {upper}, {c(1)}")
    rounded = e.emit(f"add {t} {bits}, {c(0x7FFF)}")
    rounded = e.emit(f"add {t} {rounded}, {last}")
    rounded = e.emit(f"lshr {t} {rounded}, {c(16)}")
    quiet = e.emit(f"or {t} {upper}, {c(0x40)}")
    is_nan = e.emit(f"icmp ugt {t} {magnitude}, {c(0x7F800000)}")
    result = e.emit(f"select {f('i1')} {is_nan}, {t} {quiet}, {t} {rounded}")
    return e.emit(f"trunc {t} {result} to {f('i16')}")


@componentwise(Op.ConvertBF16ToFINTEL)
def bfloat16_to_float(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """OpConvertBF16ToFINTEL: exact."""
    wide = e.emit(f"zext {f('i16')} {a} to {f('i32')}")
    wide = e.emit(f"shl {f('i32')} {wide}, {f.splat('i32', '16')}")
    return e.emit(f"bitcast {f('i32')} {wide} to {f('float')}")


@lowers(Op.AsmCallINTEL)
def call_assembly(e: FunctionEmitter, i: Instruction) -> None:
    """OpAsmCallINTEL, of one work-item: registers of its own are all that assembly may count on."""
    assembly: InlineAssembly = i.operands[0]
    typed = []
    for k, argument in enumerate(i.operands[1:]):
        text = e.typed(argument)
        if k in assembly.in_memory and argument.type.kind is Kind.POINTER:
            pointee = ir_type(argument.type.element) if argument.type.element is not None else "i8"
            text = f"ptr elementtype({pointee}) {e.operand(argument)}"
        typed.append(text)
    effect = " sideeffect" if assembly.has_effects else ""
    texts = f"{_quoted(assembly.text)}, {_quoted(assembly.constraints)}"
    is_void = i.type.kind is Kind.VOID
    result = "void" if is_void else ir_type(i.type)
    call = f"call {result} asm{effect} {texts}({', '.join(typed)})"
    if is_void:
        e.emit_void(call)
        e.define(i, "0")
    else:
        e.define(i, e.emit(call))


def _quoted(text: str) -> str:
    """A string of LLVM's."""
    plain = (chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:02X}" for c in text.encode())
    return f'"{"".join(plain)}"'
