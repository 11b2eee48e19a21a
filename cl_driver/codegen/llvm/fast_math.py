"""LLVM's fast-math flags of an instruction: from build options, decorations and execution modes.

Options and modes give defaults. FPFastMathMode of an instruction adds to the defaults of the options, as they
are for the whole program; but in a module with FloatControls2 it is all that holds for the instruction
(SPV_KHR_float_controls2), and so is FPFastMathDefault for what has no decoration.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...spirv.enums import Capability, Decoration, ExecutionMode, FPFastMathMode
from ...spirv.module import EntryPoint, Instruction, Kind, Module
from .options import CodegenOptions
from .types import element_type

# FPFastMathMode bits: LLVM's flags.
_FLAGS = (
    (FPFastMathMode.NotNaN, "nnan"),
    (FPFastMathMode.NotInf, "ninf"),
    (FPFastMathMode.NSZ, "nsz"),
    (FPFastMathMode.AllowRecip, "arcp"),
    (FPFastMathMode.AllowContract, "contract"),
    (FPFastMathMode.AllowReassoc, "reassoc"),
    (FPFastMathMode.AllowTransform, "contract reassoc"),
)
_EVERYTHING = "nnan ninf nsz arcp contract reassoc afn"  # what "fast" stands for
# What SignedZeroInfNanPreserve forbids.
_SPECIAL_VALUES = frozenset(("nnan", "ninf", "nsz"))


def flags_of(bits: int) -> tuple[str, ...]:
    """The flags of an FPFastMathMode mask."""
    if bits & FPFastMathMode.Fast:
        return tuple(_EVERYTHING.split())
    text = " ".join(flags for bit, flags in _FLAGS if bits & bit)
    return tuple(dict.fromkeys(text.split()))


def _text(flags: Iterable[str]) -> str:
    return "".join(f"{flag} " for flag in flags)


def without_estimates(flags: str) -> str:
    """Flags, each followed by a space, without the one by which LLVM estimates roots; those of reciprocals of
    roots, which no program takes for exact, it estimates for the division's."""
    return _without(flags, "afn")


def in_order(flags: str) -> str:
    """Flags, each followed by a space, without the one by which LLVM adds up in another order."""
    return _without(flags, "reassoc")


def _without(flags: str, dropped: str) -> str:
    spelled = _EVERYTHING.split() if "fast" in flags.split() else flags.split()
    return _text(flag for flag in spelled if flag != dropped)


class FastMath:
    """The flags of one function's instructions; each text ends in a space or is empty."""

    __slots__ = ("_default", "_exact", "_modes", "_preserved")

    def __init__(self, default: str = "") -> None:
        """default: flags of every instruction, from build options."""
        self._default = default
        self._modes: dict[int, tuple[str, ...]] = {}  # width: flags of FPFastMathDefault
        self._preserved: frozenset[int] = frozenset()  # widths with SignedZeroInfNanPreserve
        self._exact = False  # whether a decoration is all that holds

    @classmethod
    def of_kernel(cls, options: CodegenOptions, entry_point: EntryPoint, module: Module) -> FastMath:
        """Options of the build, and modes of an entry point."""
        modes = entry_point.modes
        flags = options.fast_math_flags
        if ExecutionMode.ContractionOff not in modes and not {"fast", "contract"} & set(flags.split()):
            flags += "contract "
        found = cls(flags)
        found._exact = Capability.FloatControls2 in module.capabilities
        found._preserved = frozenset(modes.get(ExecutionMode.SignedZeroInfNanPreserve, ()))
        given = modes.get(ExecutionMode.FPFastMathDefault, ())
        for width, bits in zip(given[::2], given[1::2], strict=True):
            found._modes[width] = flags_of(bits)
        found._include_half()
        return found

    def _include_half(self) -> None:
        """Arithmetic on half is done in float (passes/lower/half.py): what it forbids is forbidden there."""
        if 16 in self._preserved:
            self._preserved |= {32}
        if 16 in self._modes:
            flags = self._modes.get(32, self._spelled(self._default.split()))
            self._modes[32] = tuple(flag for flag in flags if flag in self._modes[16])

    @staticmethod
    def _spelled(flags: Sequence[str]) -> Sequence[str]:
        return _EVERYTHING.split() if "fast" in flags else flags

    def of(self, instruction: Instruction) -> str:
        """The flags of an instruction."""
        mode = instruction.decorations.get(Decoration.FPFastMathMode)
        if mode is None:
            if not (self._modes or self._preserved):
                return self._default
            return self._of_type(instruction)
        bits = int(mode[0] if isinstance(mode, tuple) else mode)
        if not bits:  # the builtin library says so, too: builtins/strict.py
            return ""
        flags = flags_of(bits)
        if not self._exact:
            flags = self._merged(flags)
        return _text(self._kept(flags, self._width(instruction)))

    def _of_type(self, instruction: Instruction) -> str:
        width = self._width(instruction)
        flags = self._modes.get(width)
        if flags is None:
            flags = self._merged(())
        return _text(self._kept(flags, width))

    def _merged(self, flags: Sequence[str]) -> tuple[str, ...]:
        default = self._default.split()
        return (*default, *(flag for flag in flags if flag not in default))

    def _kept(self, flags: Sequence[str], width: int) -> Sequence[str]:
        if width not in self._preserved:
            return flags
        return [flag for flag in self._spelled(flags) if flag not in _SPECIAL_VALUES]

    @staticmethod
    def _width(instruction: Instruction) -> int:
        """The width of the numbers that an instruction computes with: comparisons have no such result."""
        for value in (instruction, *instruction.operands):
            type_ = getattr(value, "type", None)
            if type_ is not None and element_type(type_).kind is Kind.FLOAT:
                return element_type(type_).width
        return 0
