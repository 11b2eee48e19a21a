"""The text of one LLVM function as it grows: names, labels, instructions, what is made of operands alone."""

from __future__ import annotations

from .forms import MANGLED, SCALAR, Form
from .options import CodegenOptions
from .types import Lines, integer_bits, is_register

# How instructions begin of which LLVM may make `x & mask` of 64 bits.
_MASKINGS = ("and i64 ", "lshr i64 ")


class FunctionText:
    """Where instructions go, and what they are called.

    lines: the text of the current block. prologue: instructions of the entry block, computed once per call;
    head: those before the body, computed once per work-item. allocas: stack memory. label: of the LLVM block
    that lines go to.
    """

    def __init__(self, options: CodegenOptions) -> None:
        self.options = options
        self.allocas: list[str] = []
        self.prologue: Lines = []
        self.head = self.prologue  # instructions that come before all blocks of the body
        self.lines: Lines = []
        self.label = "entry"
        self._next = 0
        self._loads: dict[str, int] = {}  # names of loads, and when each was emitted
        self._masked: set[str] = set()  # names of what LLVM may make `x & mask` of

    def name(self, hint: str = "v") -> str:
        """A fresh local name."""
        self._next = number = self._next + 1
        return f"%{hint}{number}"

    def emit(self, text: str) -> str:
        """Appends an instruction with a result; its name."""
        self._next = number = self._next + 1
        name = f"%v{number}"
        self.lines.append(f"  {name} = {text}")
        if text.startswith("load "):
            self._loads[name] = number
        elif self.options.aarch64 and text.startswith(_MASKINGS):
            self._masked.add(name)
        return name

    def element(self, operand: str) -> str:
        """A scalar that becomes an element of a vector.

        LLVM for AArch64 takes elements of 64 bits `x & mask` for zero-extended 32 bits where the lower half
        of the mask is all ones, whatever the upper one is, and multiplies the lower halves. It does not look
        through an empty assembly.
        """
        return self.emit(f'call i64 asm "", "=r,0"(i64 {operand})') if operand in self._masked else operand

    def as_loaded(self, a: str, b: str) -> tuple[str, str]:
        """Two operands that may be exchanged: of two loads the later one comes last. It is what LLVM makes an
        operand in memory, so it stays behind the other one. CPUs foresee what is read in ascending order."""
        first, second = self._loads.get(a), self._loads.get(b)
        return (b, a) if first is not None and second is not None and first > second else (a, b)

    def emit_void(self, text: str) -> None:
        """Appends an instruction without a result."""
        self.lines.append("  " + text)

    def emit_prologue(self, text: str) -> str:
        """An instruction in the entry block, before all others."""
        self._next = number = self._next + 1
        name = f"%p{number}"
        self.prologue.append(f"  {name} = {text}")
        return name

    def begin_block(self, label: str) -> None:
        """Starts an LLVM block; the block before it must have its terminator."""
        self.label = label
        self.lines.append(f"{label}:")

    def new_label(self, hint: str = "b") -> str:
        """A fresh label, without the %."""
        self._next = number = self._next + 1
        return f"{hint}{number}"

    def alloca(self, type_text: str, alignment: int) -> str:
        """Stack memory of the LLVM function, reserved once per call."""
        name = self.name("a")
        self.allocas.append(f"  {name} = alloca {type_text}, align {alignment}")
        return name

    def call(self, name: str, result: str, *arguments: str, flags: str = "") -> str:
        """A call with a result; arguments are typed operands."""
        return self.emit(f"call {flags}{result} @{name}({', '.join(arguments)})")

    def intrinsic(
        self, name: str, f: Form, element: str, *arguments: str, extra: str = "", flags: str = ""
    ) -> str:
        """llvm.NAME over arguments and a result of one type; extra: further typed arguments."""
        t = f(element)
        typed = ", ".join([f"{t} {argument}" for argument in arguments])
        return self.emit(f"call {flags}{t} @llvm.{name}.{f.suffix(MANGLED[element])}({typed}{extra})")

    def splat(self, operand: str, element: str, f: Form) -> str:
        """A vector with a scalar in all elements."""
        if not is_register(operand):
            return f.splat(element, operand)
        t = f(element)
        first = self.emit(f"insertelement {t} poison, {element} {self.element(operand)}, i32 0")
        return self.emit(f"shufflevector {t} {first}, {t} poison, <{f.count} x i32> zeroinitializer")

    def to_width(self, typed: str, type_: str) -> str:
        """An unsigned integer in another width; typed: type and operand."""
        source, operand = typed.split(" ", 1)
        return self.resized(SCALAR, operand, source, type_)

    def resized(self, f: Form, operand: str, source: str, wanted: str, signed: bool = False) -> str:
        """An integer of type `source`, or a vector of such, as one of type `wanted`."""
        if source == wanted:
            return operand
        is_shorter = integer_bits(wanted) < integer_bits(source)
        opcode = "trunc" if is_shorter else "sext" if signed else "zext"
        return self.emit(f"{opcode} {f(source)} {operand} to {f(wanted)}")
