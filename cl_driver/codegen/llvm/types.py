"""SPIR-V types and constants as LLVM IR text.

Every pointer is `ptr` in address space 0: on a CPU all storage classes share one flat address space. The
memory layout of LLVM's types on x86-64 and aarch64 is that of OpenCL C for scalars, vectors, arrays and
structures (a 3-vector takes the place of a 4-vector), so that aggregates can be loaded and stored as they
are.
"""

from __future__ import annotations

from collections.abc import Callable

from ...passes.ir.layout import alignment_of, member_offset, size_of
from ...spirv.layout import is_of_any_width, word_width
from ...spirv.module import Constant, Kind, Type, Undef, Value
from .errors import CodegenError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# Text of a function: instructions, labels, and places where more instructions can be put.
Lines: TypeAlias = "list[str | Lines]"


def flat(lines: Lines) -> list[str]:
    """The lines in order, without places that nothing was put into."""
    found: list[str] = []
    _add_flat(lines, found)
    return found


def _add_flat(lines: Lines, found: list[str]) -> None:
    for line in lines:
        if not line:
            continue
        if isinstance(line, str):
            found.append(line)
        else:
            _add_flat(line, found)


_FLOATS = {16: "half", 32: "float", 64: "double"}

_texts: dict[Type, str] = {}


def ir_type(type_: Type) -> str:
    """The LLVM type of a value of this type."""
    text = _texts.get(type_)
    if text is None:
        text = _texts[type_] = _ir_type(type_)
    return text


def forget_types() -> None:
    """Drops the memoised texts (types belong to a program; a worker process compiles many programs)."""
    _texts.clear()


def _ir_type(type_: Type) -> str:
    kind = type_.kind
    if is_of_any_width(type_):  # in memory alone: values have become words
        word = word_width(type_.width)
        count = -(-type_.width // word)
        return f"i{word}" if count == 1 else f"[{count} x i{word}]"
    if kind is Kind.INT:
        return f"i{type_.width}"
    if kind is Kind.FLOAT:
        if type_.operands:
            return f"i{type_.width}"  # bfloat16 and other encodings: bits only
        return _FLOATS[type_.width]
    if kind is Kind.BOOL:
        return "i1"
    if kind in (Kind.POINTER, Kind.OPAQUE):
        return "ptr"
    if kind is Kind.VECTOR:
        return f"<{type_.count} x {ir_type(type_.element)}>"
    if kind is Kind.ARRAY:
        return f"[{type_.count} x {ir_type(type_.element)}]"
    if kind is Kind.STRUCT:
        members = ", ".join(map(ir_type, type_.members))
        return f"<{{ {members} }}>" if type_.packed else f"{{ {members} }}"
    if kind is Kind.VOID:
        return "void"
    raise CodegenError(f"a value of type {kind.value} has no representation")


def integer_bits(type_text: str) -> int:
    """The width of an LLVM integer type: 32 of "i32"."""
    return int(type_text[1:])


def is_register(operand: str) -> bool:
    """Whether an operand is the result of an instruction, or a parameter: no constant."""
    return operand[0] == "%"


def element_type(type_: Type) -> Type:
    """The component type of a vector, any other type itself."""
    return type_.element if type_.kind is Kind.VECTOR else type_


def component_count(type_: Type) -> int:
    """1 for everything but vectors."""
    return type_.count if type_.kind is Kind.VECTOR else 1


def leaf_types(type_: Type) -> list[Type]:
    """The scalar types that a type consists of, in order."""
    kind = type_.kind
    if kind is Kind.VECTOR:
        return [type_.element] * type_.count
    if kind is Kind.ARRAY:
        return leaf_types(type_.element) * type_.count
    if kind is Kind.STRUCT:
        return [leaf for member in type_.members for leaf in leaf_types(member)]
    return [type_]


def float_text(bits: int, width: int) -> str:
    """The LLVM literal of a floating-point bit pattern: half as 0xH, others as the bits of the double."""
    if width == 16:
        return f"0xH{bits:04X}"
    if width == 64:
        return f"0x{bits:016X}"
    sign, exponent, fraction = bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        exponent = 0x7FF
    elif exponent:
        exponent += 1023 - 127
    elif fraction:
        shift = 24 - fraction.bit_length()
        fraction = fraction << shift & 0x7FFFFF
        exponent = 1023 - 126 - shift
    return f"0x{sign << 63 | exponent << 52 | fraction << 29:016X}"


def scalar_text(type_: Type, value: int | None) -> str:
    """The LLVM literal of a scalar constant, in the form that Constant.value has."""
    value = value or 0
    if is_of_any_width(type_) and type_.width > 64:
        words = (value >> k & (1 << 64) - 1 for k in range(0, type_.width, 64))
        return f"[{', '.join(f'i64 {word}' for word in words)}]"
    if type_.kind is Kind.INT:
        return str(value)
    if type_.kind is Kind.BOOL:
        return "true" if value else "false"
    if type_.operands:
        return str(value)
    return float_text(value, type_.width)


def constant_text(value: Value, pointer_text: Callable[[Value], str] | None = None) -> str:
    """The LLVM literal of a constant without its type.

    pointer_text(value) names what is not a Constant: variables, functions and address arithmetic.
    CodegenError without it.
    """
    if isinstance(value, Undef):
        return "zeroinitializer" if value.type.kind in _AGGREGATE else scalar_or_null(value.type)
    if not isinstance(value, Constant):
        if pointer_text is None:
            raise CodegenError("an address in a constant that must be known at compile time")
        return pointer_text(value)
    kind = value.type.kind
    if kind in _AGGREGATE:
        if value.value is None:
            return "zeroinitializer"
        constituents = ", ".join(f"{ir_type(c.type)} {constant_text(c, pointer_text)}" for c in value.value)
        if kind is Kind.VECTOR:
            return f"<{constituents}>"
        if kind is Kind.ARRAY:
            return f"[{constituents}]"
        return f"<{{ {constituents} }}>" if value.type.packed else f"{{ {constituents} }}"
    if kind in (Kind.POINTER, Kind.OPAQUE):
        return "null" if value.value is None else f"inttoptr (i64 {value.value} to ptr)"
    return scalar_text(value.type, value.value)


def scalar_or_null(type_: Type) -> str:
    """Zero of a scalar or pointer type."""
    return "null" if type_.kind in (Kind.POINTER, Kind.OPAQUE) else scalar_text(type_, None)


_AGGREGATE = (Kind.VECTOR, Kind.ARRAY, Kind.STRUCT)

__all__ = [
    "Lines",
    "alignment_of",
    "component_count",
    "constant_text",
    "element_type",
    "flat",
    "float_text",
    "forget_types",
    "ir_type",
    "leaf_types",
    "member_offset",
    "scalar_or_null",
    "scalar_text",
    "size_of",
]
